"""Measurements, never tests: no benchmark asserts, and no test times."""

"""Dagster wiring: a YAML file becomes asset, supervisor sensor and jobs."""

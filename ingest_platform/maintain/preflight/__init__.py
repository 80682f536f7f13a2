"""Checks before anything runs: each finding says what was found, why it matters, how to mend it."""

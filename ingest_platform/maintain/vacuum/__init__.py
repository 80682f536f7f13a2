"""Vacuum: plan from the log, then delete the files that no version within the retention needs."""

"""Compaction on request: plan from the log, then one OPTIMIZE, and so one commit, a batch."""

"""What this deployment runs: one folder per table, a `defs.yaml` in each."""

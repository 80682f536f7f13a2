"""Record to commit: what happens inside the streaming driver."""

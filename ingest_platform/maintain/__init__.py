"""What keeps a table healthy, and what shows that it is: audit, preflight, status."""

"""What people and runs do to a stream: start, drain, restart, stop. One way for jobs and CLI."""

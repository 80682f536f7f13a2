"""Programs that are measured beside the platform. Each is a plain script, run as a process."""

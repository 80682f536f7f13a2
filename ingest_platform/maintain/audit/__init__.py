"""The audit: proves from the log, and on request from data and topic, that nothing is lost."""

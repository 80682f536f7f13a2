"""Spark sessions: locked jars, the conditional-put LogStore and the session itself."""

"""Edges of the platform: storage, launchers, Kafka and table-log look-ups."""

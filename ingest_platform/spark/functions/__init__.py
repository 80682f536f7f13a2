"""SQL functions of the platform, in Java: `ingest.json_object`, which decodes a record's value."""

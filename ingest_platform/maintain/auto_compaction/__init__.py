"""Asynchronous auto compaction: small files are merged beside the batches, and yield to DML."""

"""Alert channels, and the outbox in front of them."""

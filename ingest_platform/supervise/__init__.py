"""Pure decisions: what is seen of a stream, in; what to do and what to report, out."""

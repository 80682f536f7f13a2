"""The conditional-put LogStore: its Java source, and its compilation at set-up."""

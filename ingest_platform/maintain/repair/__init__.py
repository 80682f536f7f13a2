"""Repair: what is wrong, where the last good state ends, and a journal of the way back."""

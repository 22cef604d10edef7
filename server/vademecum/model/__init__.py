"""The rules, and nothing else: no clock, no randomness, no I/O. Time and ids come in as arguments."""

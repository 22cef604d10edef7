"""The parts of bench/memory.py: what a turn costs to keep, a large memory to search, and mem0 beside it."""

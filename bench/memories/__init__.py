"""The benchmarks of bench/memory.py: storing a turn, search in a large memory, and a comparison with mem0."""

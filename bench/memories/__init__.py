"""The benchmarks of bench/memory.py: the cost of storing a turn, search in a large memory, and a comparison with mem0."""

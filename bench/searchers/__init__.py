"""The searchers that `search.py` compares, each in its own process."""

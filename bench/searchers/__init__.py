"""Vector searchers side by side: each in a process of its own, which `search.py` drives."""

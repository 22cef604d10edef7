"""Vademecum: a person's documents and the memory of their conversations, on every device."""

import os

# Read when numpy is first imported. One thread a search: with more, users that ask at once wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"

"""Vademecum: a person's documents and the memory of their conversations, on every device."""

__version__ = "0.1.0"

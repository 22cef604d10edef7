"""What the worker needs of a searcher. Rule: a searcher answers with row numbers; it measures nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from searchers.data import Library, Vectors


class Searcher(ABC):
    """One library in one folder. Hits carry the passage's text with them, as every real search needs it."""

    name: ClassVar[str]

    def __init__(self, folder: Path, library: Library) -> None:
        self.folder = folder
        self.library = library

    @abstractmethod
    def build(self) -> None:
        """Bring all rows into the folder, as a program that means it well does; then close."""

    @abstractmethod
    def open(self) -> None:
        """Open the folder. What is read here or at the first question counts as cold alike."""

    @abstractmethod
    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        """The rows of these documents with the nearest vectors, by cosine."""

    def words(self, question: str, documents: Sequence[int], k: int) -> list[int]:
        """The rows of these documents that any of the question's words fit best."""
        raise NotImplementedError(f"{self.name} is not asked for words")

    @abstractmethod
    def close(self) -> None:
        """Give everything back; memory forgets the library."""

    def evict(self) -> bool:
        """Let memory forget the library while it stays open; False where there is no such thing."""
        return False

    def row(self, document: int, chunk: int) -> int:
        return document * self.library.per_document + chunk


def document_name(document: int) -> str:
    return f"document-{document:03d}"


def document_number(name: str) -> int:
    return int(name.rpartition("-")[2])

"""The interface of a searcher. A searcher returns row numbers. The worker measures the time that it takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from searchers.data import Library, Vectors


class Searcher(ABC):
    """A searcher of one library in one folder. It must also read the texts of the hits, because real searches do."""

    name: ClassVar[str]

    def __init__(self, folder: Path, library: Library) -> None:
        self.folder = folder
        self.library = library

    @abstractmethod
    def build(self) -> None:
        """Write all rows to the folder, as a well-written program would. Close the searcher."""

    @abstractmethod
    def open(self) -> None:
        """Open the folder. What this method and the first question read counts toward the cold time."""

    @abstractmethod
    def near(self, vector: Vectors, documents: Sequence[int], k: int) -> list[int]:
        """Return the k rows of these documents whose vectors are nearest to `vector` by cosine."""

    def words(self, question: str, documents: Sequence[int], k: int) -> list[int]:
        """Return the k best rows of these documents for a keyword search for any word of the question."""
        raise NotImplementedError(f"{self.name} is not asked for words")

    @abstractmethod
    def close(self) -> None:
        """Close the searcher and release all memory of the library."""

    def evict(self) -> bool:
        """Evict the library from memory while it stays open. Return False if the searcher does not support this."""
        return False

    def row(self, document: int, chunk: int) -> int:
        return document * self.library.per_document + chunk


def document_name(document: int) -> str:
    return f"document-{document:03d}"


def document_number(name: str) -> int:
    return int(name.rpartition("-")[2])

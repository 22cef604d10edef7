"""Which documents does a message name? For the question "Found 'lease.pdf'. Include it?", and for search: who names one
that is open asks about it.

A filename matches without regard to case, accents and extension: as a whole, or by all of its words. A bare name
("lease") also finds the files whose words include all of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vademecum.model.text.ranking import STOP_WORDS, fold
from vademecum.model.text.unicode14 import blank_unknown

_WORD = re.compile(r"[^\W_]+")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_NOT, _PERHAPS, _SURELY = range(3)  # how surely a document is named


def match(message: str, filenames: Iterable[tuple[str, str]]) -> list[str]:
    """Ids of the documents that `message` names, best first. `filenames`: (id, filename)."""
    said = _words(message)
    bare = _words(_EXTENSION.sub("", message))
    ranked = []
    for position, (document_id, filename) in enumerate(filenames):
        rank = _rank(said, bare, filename)
        if rank is not None:
            ranked.append((rank, position, document_id))
    return [document_id for _, _, document_id in sorted(ranked)]


class AskedAbout(NamedTuple):
    """Ids of documents. `surely`: one of them is named by several words, or with its extension; one word alone may just
    mean what it says (`test.md` in "how do I test this")."""

    documents: frozenset[str]
    surely: bool


def asked_about(message: str, filenames: Mapping[str, str]) -> AskedAbout:
    """The documents whose name is in `message`, whatever else is. `filenames`: by id."""
    said = _words(message)
    named = {document_id: _naming(said, filename) for document_id, filename in filenames.items()}
    return AskedAbout(
        frozenset(i for i, naming in named.items() if naming != _NOT), _SURELY in named.values()
    )


def _naming(said: list[str], filename: str) -> int:
    """`a.txt` is named by nothing shorter: every other message has "a"."""
    name, full = set(_words(_EXTENSION.sub("", filename))), _words(filename)
    if full and _contains(said, full):
        return _SURELY if len(full) > 1 else _PERHAPS
    telling = {word for word in name if len(word) > 2 and word not in STOP_WORDS}
    if not telling or not name <= set(said):
        return _NOT
    return _SURELY if len(telling) > 1 else _PERHAPS


def _rank(said: list[str], bare: list[str], filename: str) -> tuple[int, int] | None:
    """Lower is better, longer names before shorter; None: not named."""
    name = _words(_EXTENSION.sub("", filename))
    if not name or not said:
        return None
    if bare == name:
        return 0, 0
    if _contains(said, name):
        return 1, -len(name)
    if set(name) <= set(said):
        return 2, -len(name)
    if set(bare) and set(bare) <= set(name):
        return 3, len(name)
    return None


def _words(text: str) -> list[str]:
    return _WORD.findall(blank_unknown(fold(text)))


def _contains(words: list[str], run: list[str]) -> bool:
    return any(words[i : i + len(run)] == run for i in range(len(words) - len(run) + 1))

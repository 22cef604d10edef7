"""Find the documents that a message names, for the offer to include them and for search.

Filenames match without regard to case, accents and extension: as a whole, or by all their words. A message that is only
a name ("lease") also matches each file whose words include all words of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vademecum.model.text.tokenize import STOP_WORDS, fold
from vademecum.model.text.unicode14 import blank_unassigned

_WORD = re.compile(r"[^\W_]+")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_NOT, _PERHAPS, _SURELY = range(3)  # how certain it is that a document is named


def match(message: str, filenames: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of the documents that `message` names, best match first. `filenames`: (id, filename)."""
    said = _words(message)
    bare = _words(_EXTENSION.sub("", message))
    ranked = []
    for position, (document_id, filename) in enumerate(filenames):
        rank = _rank(said, bare, filename)
        if rank is not None:
            ranked.append((rank, position, document_id))
    return [document_id for _, _, document_id in sorted(ranked)]


class AskedAbout(NamedTuple):
    """The ids of named documents.

    `surely`: one is named by several words or with its extension. A single word may have its ordinary meaning, such as
    `test.md` in "how do I test this".
    """

    documents: frozenset[str]
    surely: bool


def asked_about(message: str, filenames: Mapping[str, str]) -> AskedAbout:
    """Return the documents whose name `message` contains. `filenames`: by id."""
    said = _words(message)
    named = {document_id: _naming(said, filename) for document_id, filename in filenames.items()}
    return AskedAbout(
        frozenset(i for i, naming in named.items() if naming != _NOT), _SURELY in named.values()
    )


def _naming(said: list[str], filename: str) -> int:
    """Return how certainly the words name the file. `a.txt` needs its extension, because many messages contain "a"."""
    name, full = set(_words(_EXTENSION.sub("", filename))), _words(filename)
    if full and _contains(said, full):
        return _SURELY if len(full) > 1 else _PERHAPS
    telling = {word for word in name if len(word) > 2 and word not in STOP_WORDS}
    if not telling or not name <= set(said):
        return _NOT
    return _SURELY if len(telling) > 1 else _PERHAPS


def _rank(said: list[str], bare: list[str], filename: str) -> tuple[int, int] | None:
    """Return the rank of a match, lower is better and longer names first, or None if there is no match."""
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
    return _WORD.findall(blank_unassigned(fold(text)))


def _contains(words: list[str], run: list[str]) -> bool:
    return any(words[i : i + len(run)] == run for i in range(len(words) - len(run) + 1))

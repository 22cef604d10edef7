"""Find the documents that a message names. Document search and the suggestions in the app use these documents.

Filenames match regardless of case, accents and extension: as a whole, or by all their words. A message that is only
a name ("lease") also matches each file whose words include all words of the message. The browser mirrors this file;
shared cases: tests/conformance/filename_match.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vademecum.model.text.tokenize import STOP_WORDS, fold
from vademecum.model.text.unicode14 import blank_unassigned

_WORD = re.compile(r"[^\W_]+")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_NOT_NAMED, _UNCERTAIN, _CERTAIN = range(3)


def match_filenames(message: str, filenames: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of the documents that `message` names, best match first. `filenames`: (id, filename)."""
    words = _split_words(message)
    words_without_extension = _split_words(_EXTENSION.sub("", message))
    ranked = []
    for position, (document_id, filename) in enumerate(filenames):
        rank = _rank(words, words_without_extension, filename)
        if rank is not None:
            ranked.append((rank, position, document_id))
    return [document_id for _, _, document_id in sorted(ranked)]


class NamedDocuments(NamedTuple):
    """The ids of named documents.

    `is_certain`: the message names at least one document by several words or with its extension. A single word may have
    its ordinary meaning, such as "test" in "how do I test this", which does not mean `test.md`.
    """

    documents: frozenset[str]
    is_certain: bool


def find_named_documents(message: str, filenames: Mapping[str, str]) -> NamedDocuments:
    """Return the documents whose names occur in `message`. `filenames`: maps document ids to filenames."""
    words = _split_words(message)
    certainties = {document_id: _certainty(words, filename) for document_id, filename in filenames.items()}
    return NamedDocuments(
        frozenset(i for i, certainty in certainties.items() if certainty != _NOT_NAMED),
        _CERTAIN in certainties.values(),
    )


def _certainty(words: list[str], filename: str) -> int:
    """Return how certainly the words name the file. `a.txt` needs its extension, because many messages contain "a"."""
    name, full = set(_split_words(_EXTENSION.sub("", filename))), _split_words(filename)
    if full and _contains(words, full):
        return _CERTAIN if len(full) > 1 else _UNCERTAIN
    distinctive = {word for word in name if len(word) > 2 and word not in STOP_WORDS}
    if not distinctive or not name <= set(words):
        return _NOT_NAMED
    return _CERTAIN if len(distinctive) > 1 else _UNCERTAIN


def _rank(words: list[str], words_without_extension: list[str], filename: str) -> tuple[int, int] | None:
    """Return the rank of a match, or None if there is no match. Lower ranks are better, and longer names come first."""
    name = _split_words(_EXTENSION.sub("", filename))
    if not name or not words:
        return None
    if words_without_extension == name:
        return 0, 0
    if _contains(words, name):
        return 1, -len(name)
    if set(name) <= set(words):
        return 2, -len(name)
    if words_without_extension and set(words_without_extension) <= set(name):
        return 3, len(name)
    return None


def _split_words(text: str) -> list[str]:
    return _WORD.findall(blank_unassigned(fold(text)))


def _contains(words: list[str], phrase: list[str]) -> bool:
    return any(words[i : i + len(phrase)] == phrase for i in range(len(words) - len(phrase) + 1))

"""Derive row ids from the content of rows, and normalize the names in that content.

Two offline devices that create the same entity create the same row, because its id is derived from its content.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from vademecum.model.text.normalization import normalize
from vademecum.model.text.tokenize import fold

_FACT_ID = re.compile("f[0-9a-f]{32}")


def normalize_name(name: str) -> str:
    """Return the name without differences of case, accents, width and spaces. The result may be empty."""
    return " ".join(fold(normalize(name)).split())


def entity_id(project_id: str, kind: str, name: str) -> str:
    """Return the id of an entity. Spellings with the same `normalize_name` get the same id."""
    return _derived(project_id, kind, normalize_name(name))


def join_notes(stored: str | None, new: str | None, base: str | None = None) -> str | None:
    """Join the notes of two versions of an entity, each line once, or return None if no line remains.

    `base`: the version from which `new` was edited. Lines of `base` that `new` lacks were deleted by the user.
    """
    lines = [(text or "").strip().split("\n") for text in (stored, new, base)]
    deleted = {*lines[2]} - {*lines[1]} - {""}
    joined = dict.fromkeys([line for line in lines[0] if line not in deleted] + lines[1])
    return "\n".join(joined).strip() or None


def relationship_id(from_id: str, to_id: str, label: str) -> str:
    """Return the id of a relationship."""
    return _derived(from_id, to_id, label)


def memory_id(key: str, project_id: str, form: str) -> str:
    """Return the id of a memory.

    `project_id`: empty without a project. `form`: the result of `deduplication.exact_form`.
    """
    return _keyed(key, f"memory\n{project_id}\n{form}")


def fact_id(key: str, name: str, value: str) -> str:
    """Return the id of a proposed fact. `is_fact_id` recognizes it."""
    return "f" + _keyed(key, f"fact\0{name}\0{value}")


def is_fact_id(row_id: str) -> bool:
    """Return whether the id has the form of an id from `fact_id`."""
    return _FACT_ID.fullmatch(row_id) is not None


def dedup_key(path: str | None, content: str) -> str:
    """Return the part of an observation that identifies repeats, besides project, session and kind."""
    return f"path\0{path}" if path else f"content\0{content}"


def observation_id(key: str, project_id: str, session: str, kind: str, content_key: str) -> str:
    """Return the id of an observation. `content_key`: the result of `dedup_key`."""
    return "o" + _keyed(key, "\0".join(("observation", project_id, session, kind, content_key)))


def root_id(key: str, name: str, root: str) -> str:
    """Return the id of a folder root."""
    return "r" + _keyed(key, "\0".join(("root", normalize_name(name), root)))


def _keyed(key: str, text: str) -> str:
    """Return a keyed hash. Tombstones keep ids, but without the key nobody can check guesses of the deleted text."""
    return hmac.new(key.encode(), text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()[:32]


def _derived(first: str, second: str, text: str) -> str:
    """Return a hash of 128 bits. `first` and `second` contain no line break, so the hashed text is unambiguous."""
    return hashlib.sha256(f"{first}\n{second}\n{text}".encode()).hexdigest()[:32]

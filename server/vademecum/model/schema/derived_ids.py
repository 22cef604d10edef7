"""Names as one thing however they are spelt, and the ids that follow from them.

Two devices that find the same entity while offline make the same row, because its id is derived from what it is.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from vademecum.model.text.normalization import normalise
from vademecum.model.text.ranking import fold

_FACT_ID = re.compile("f[0-9a-f]{32}")


def normal_name(name: str) -> str:
    """Without regard to case, accents, widths and the number of spaces. Empty if nothing is left to be called by."""
    return " ".join(fold(normalise(name)).split())


def entity_id(project_id: str, kind: str, name: str) -> str:
    return _derived(project_id, kind, normal_name(name))


def join_notes(known: str | None, said: str | None, before: str | None = None) -> str | None:
    """What is known of an entity that was two, each line once. `before`: what `said` was made from; a line of that which
    is not said any more was taken out on purpose."""
    lines = [(text or "").strip().split("\n") for text in (known, said, before)]
    gone = {*lines[2]} - {*lines[1]} - {""}
    kept = dict.fromkeys([line for line in lines[0] if line not in gone] + lines[1])
    return "\n".join(kept).strip() or None


def relationship_id(from_id: str, to_id: str, label: str) -> str:
    return _derived(from_id, to_id, label)


def memory_id(key: str, project_id: str, form: str) -> str:
    """`project_id`: empty for the pool. `form`: the text as exact repeats are told by (see `deduplication.same_form`)."""
    return _keyed(key, f"memory\n{project_id}\n{form}")


def fact_id(key: str, name: str, value: str) -> str:
    """Of a fact that is proposed: `is_fact_id` knows it again."""
    return "f" + _keyed(key, f"fact\0{name}\0{value}")


def is_fact_id(row_id: str) -> bool:
    return _FACT_ID.fullmatch(row_id) is not None


def dedup_key(path: str | None, content: str) -> str:
    """What a repeat of an observation is known by, beside project, session and kind."""
    return f"path\0{path}" if path else f"content\0{content}"


def observation_id(key: str, project_id: str, session: str, kind: str, known_by: str) -> str:
    """`known_by`: as `told_by` has it."""
    return "o" + _keyed(key, "\0".join(("observation", project_id, session, kind, known_by)))


def root_id(key: str, name: str, root: str) -> str:
    return "r" + _keyed(key, "\0".join(("root", normal_name(name), root)))


def _keyed(key: str, text: str) -> str:
    """Ids stay in tombstones for ever: without the key, which the user's file has, nobody can try what was deleted."""
    return hmac.new(key.encode(), text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()[:32]


def _derived(first: str, second: str, text: str) -> str:
    """The first two hold no line end, so what is hashed can be read in one way only. 128 bits meet by no chance."""
    return hashlib.sha256(f"{first}\n{second}\n{text}".encode()).hexdigest()[:32]

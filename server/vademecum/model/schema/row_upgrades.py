"""Upgrade rows of schema version 0 to version 1. The browser mirrors this file; shared cases:
tests/conformance/row_upgrades.json.

An upgrade keeps the id, the times and the content of a row, so that a device and the server, which upgrade their rows
independently, get equal rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vademecum.model.schema.collections import Json

_NAME_MAX = 255
_NOTICES_MAX = 20
_UNTITLED = "New conversation"
_NOT_EMBEDDED = (
    "A part of this document could not be embedded, so search finds that part only by its words. Add the document "
    "again to retry."
)
_NOT_FOUND = "I could not find information about that in your documents."

# Sentences of the app in answers of version 0, each a paragraph, and the codes of their notices in version 1.
_SENTENCES = {
    "This conversation has no documents yet. Add one, and ask again.": "no_documents",
    "No assistant can be reached, and a FREE account's questions do not look into documents.": "no_search",
    "Searched by words alone: the model that understands meaning is not ready on this device.": "words_only",
}
# Sentences with names of files. Those about unfinished files were added to all answers, the first to quotations only.
_FOUND_NOTHING = (re.compile(rf"{re.escape(_NOT_FOUND)} Searched: (.+)\."), "not_found")
_UNFINISHED = (
    (re.compile(r"This answer is without (.+): not read when it was given\."), "files_not_read"),
    (
        re.compile(
            r"Not wholly ready when this answer was given, so something in it may have been missed: (.+)\."
        ),
        "files_partly_read",
    ),
)


def upgrade_row(collection: str, row: Json) -> Json:
    """Return the row or tombstone of version 0 as version 1. Collections without a version 1 are returned unchanged."""
    upgrade = _UPGRADES.get(collection)
    if upgrade is None:
        return row
    if row.get("_deleted"):
        return {**row, **_TOMBSTONE_FIELDS.get(collection, {})}
    return upgrade(row)


def _upgrade_document(row: Json) -> Json:
    upgraded = {**row, "textHash": "", "original": "none", "fileRevision": 1}
    if row.get("statusDetail") == _NOT_EMBEDDED:
        upgraded["statusDetail"] = "not_embedded"
    return upgraded


def _upgrade_session(row: Json) -> Json:
    title = "" if row["title"] == _UNTITLED else row["title"]
    return {**row, "title": title, "documentScope": "chosen", "memory": "on"}


def _upgrade_episode(row: Json) -> Json:
    """Number the citations by their position, and replace sentences of the app by notices."""
    is_quotation = row.get("model") == "quotes"
    paragraphs: list[str] = []
    notices: list[Json] = []
    for paragraph in row["aiResponse"].split("\n\n"):
        notice = _notice(paragraph, is_quotation)
        if notice is None:
            paragraphs.append(paragraph)
        else:
            notices.append(notice)
    upgraded = {**row, "citations": [{"n": n, **citation} for n, citation in enumerate(row["citations"], 1)]}
    if not 0 < len(notices) <= _NOTICES_MAX:
        return upgraded
    return {**upgraded, "aiResponse": "\n\n".join(paragraphs), "notices": notices}


def _notice(paragraph: str, is_quotation: bool) -> Json | None:
    """Return the notice that replaces a paragraph, or None for other text."""
    if is_quotation and paragraph in _SENTENCES:
        return {"code": _SENTENCES[paragraph]}
    for pattern, code in (_FOUND_NOTHING, *_UNFINISHED) if is_quotation else _UNFINISHED:
        match = pattern.fullmatch(paragraph)
        names = match[1].split(", ") if match else []
        if names and max(map(len, names)) <= _NAME_MAX:
            return {"code": code, "names": names}
    return None


_UPGRADES: Mapping[str, Callable[[Json], Json]] = {
    "documents": _upgrade_document,
    "vectorEmbeddings": lambda row: {**row, "textHash": ""},
    "projects": lambda row: {**row, "documentIds": []},
    "sessions": _upgrade_session,
    "episodes": _upgrade_episode,
}
UPGRADED_COLLECTIONS = tuple(_UPGRADES)
# The blank values of the fields that version 1 requires in addition.
_TOMBSTONE_FIELDS: Mapping[str, Json] = {
    "documents": {"textHash": "", "original": "none", "fileRevision": 0},
    "vectorEmbeddings": {"textHash": ""},
    "projects": {"documentIds": []},
    "sessions": {"documentScope": "chosen", "memory": "on"},
}

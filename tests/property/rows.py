"""Create valid rows of each collection, as the contract defines them. Fields that a test does not set have defaults."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import Any

Row = dict[str, Any]

OLD = "2020-05-01T00:00:00.000Z"  # before any time that the server sets
NEW = "2099-05-01T00:00:00.000Z"  # after any time that the server sets
HASH = "0" * 64
VERSION_1 = {"documents", "vectorEmbeddings", "projects", "sessions", "episodes"}


def version_of(collection: str) -> int:
    """Return the schema version of a collection. Unknown collections have version 0."""
    return 1 if collection in VERSION_1 else 0


def sync_path(collection: str) -> str:
    return f"/v1/sync/{collection}/{version_of(collection)}"


def bumped(row: Row) -> Row:
    """Return the row with `updatedAt` one millisecond later, as the server stores a merge that equals neither side."""
    later = datetime.fromisoformat(row["updatedAt"]) + timedelta(milliseconds=1)
    return {**row, "updatedAt": later.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def day(number: int) -> str:
    return f"2021-01-{number:02d}T00:00:00.000Z"


def common(row_id: str, **more: Any) -> Row:
    return {"id": row_id, "createdAt": OLD, "updatedAt": OLD, "_deleted": False, **more}


def document(user_id: str, row_id: str, **more: Any) -> Row:
    return common(
        row_id,
        **{
            "userId": user_id,
            "originSessionId": "",
            "activeSessions": [],
            "accessCount": 0,
            "lastAccessedAt": OLD,
            "filename": f"{row_id}.txt",
            "mimeType": "text/plain",
            "size": 10,
            "contentHash": HASH,
            "chunkCount": 1,
            "status": "ready",
            "textHash": "",
            "original": "none",
            "fileRevision": 1,
            **more,
        },
    )


def block(document_id: str, number: int = 0, text: str = "some words", **more: Any) -> Row:
    chunk = {"index": 0, "start": 0, "text": text, "tokens": 2}
    return common(
        f"{document_id}.{number}",
        **{
            "documentId": document_id,
            "block": number,
            "textHash": "",
            "model": "",
            "dims": 2,
            "chunks": [chunk],
            "embedding": base64.b64encode(b"\0\0\x80\x3f\0\0\0\x40").decode(),
            **more,
        },
    )


def project(row_id: str, **more: Any) -> Row:
    return common(row_id, **{"name": row_id, "documentIds": [], **more})


def session(row_id: str, **more: Any) -> Row:
    return common(
        row_id, **{"title": row_id, "mode": "analysis", "documentScope": "chosen", "memory": "on", **more}
    )


def episode(row_id: str, session_id: str, **more: Any) -> Row:
    return common(
        row_id,
        **{
            "sessionId": session_id,
            "userMessage": "what?",
            "aiResponse": "that.",
            "citations": [],
            "status": "done",
            **more,
        },
    )


def turn(number: int, **more: Any) -> Row:
    """Return the turn with this number in the session s1."""
    words = {"userMessage": f"question {number}", "aiResponse": f"answer {number}"}
    return episode(f"e{number}", "s1", createdAt=day(number), **{**words, **more})


def fact(row_id: str, **more: Any) -> Row:
    return common(
        row_id,
        **{
            "key": "user.name",
            "value": "Ada",
            "sourceRemoved": False,
            "confidence": 1,
            "confirmed": True,
            **more,
        },
    )


def memory(row_id: str, **more: Any) -> Row:
    return common(
        row_id, **{"text": "likes tea", "sessionIds": [], "source": "user", "pinned": False, **more}
    )


def entity(row_id: str, project_id: str, **more: Any) -> Row:
    return common(row_id, **{"name": row_id, "type": "person", "projectId": project_id, **more})


def relationship(row_id: str, from_id: str, to_id: str, **more: Any) -> Row:
    return common(row_id, **{"fromId": from_id, "toId": to_id, "label": "knows", **more})


def summary(row_id: str, **more: Any) -> Row:
    return common(row_id, **{"content": "in short", **more})


def one_of_each(user_id: str) -> dict[str, Row]:
    """Return a row of each collection without optional fields, except the parent of a summary."""
    return {
        "documents": document(user_id, "d"),
        "vectorEmbeddings": block("d"),
        "projects": project("p"),
        "sessions": session("s"),
        "episodes": episode("e", "s"),
        "facts": fact("f"),
        "memories": memory("m"),
        "entities": entity("n", "p"),
        "relationships": relationship("r", "n", "n2"),
        "summaries": summary("u", sessionId="s"),
    }


def dead(row: Row) -> Row:
    """Return the deleted row as a device sends it: with its content, because RxDB keeps that."""
    return {**row, "_deleted": True}


def marked(row: Row, base: str | None, code: str = "DUPLICATE") -> Row:
    """Return the row with the error mark that a device stores after a refusal."""
    error = {"code": code, "message": "no", "at": OLD}
    return {**row, "syncError": error | ({"base": base} if base is not None else {})}


def unmarked(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "syncError"}

"""A simple, slow model of the server's rows and answers, written only from sections 3 to 6 of the design.

It shares no code with the server. Where the server optimizes (heads, drafts, groups, prefetching), the model iterates
over all rows. It does not predict `seq` numbers: `touched` names the rows that get one, and the test enters the number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from property.rows import bumped

Row = dict[str, Any]
Key = tuple[str, str]  # collection, id

PARENTS = {
    "vectorEmbeddings": {"documentId": "documents"},
    "episodes": {"sessionId": "sessions"},
    "memories": {"projectId": "projects"},
    "entities": {"projectId": "projects"},
    "relationships": {"fromId": "entities", "toId": "entities"},
    "summaries": {"sessionId": "sessions", "projectId": "projects"},
}
SETS = {  # fields that are lists of ids, and the collection of these ids
    "documents": ("activeSessions", "sessions"),
    "memories": ("sessionIds", "sessions"),
    "projects": ("documentIds", "documents"),
}
NAMES = {
    "sessions": {"projectId": "projects"},
    "memories": {"supersedes": "memories", "supersededBy": "memories"},
}
FROZEN = {"documents": "originSessionId", "entities": "projectId"}
TOGETHER = {
    "documents": (
        "contentHash",
        "textHash",
        "size",
        "chunkCount",
        "pageCount",
        "status",
        "statusDetail",
        "fileRevision",
        "losses",
        "ocr",
    ),
    "facts": ("value", "confirmed", "confidence"),
    "episodes": ("aiResponse", "citations", "status", "model", "notices"),
}
BLANKS: dict[str, Row] = {
    "documents": {"userId": "", "originSessionId": "", "activeSessions": [], "accessCount": 0, "lastAccessedAt": "",
                  "filename": "", "mimeType": "", "size": 0, "contentHash": "", "chunkCount": 0, "status": "pending",
                  "textHash": "", "original": "none", "fileRevision": 0},
    "vectorEmbeddings": {"block": 0, "textHash": "", "model": "", "dims": 0, "chunks": [], "embedding": None},
    "projects": {"name": "", "documentIds": []},
    "sessions": {"title": "", "mode": "analysis", "documentScope": "chosen", "memory": "on"},
    "episodes": {"userMessage": "", "aiResponse": "", "citations": [], "status": "queued"},
    "facts": {"key": "", "value": "", "sourceRemoved": False, "confidence": 0, "confirmed": False},
    "memories": {"text": "", "sessionIds": [], "source": "user", "pinned": False},
    "entities": {"name": "", "type": "person"},
    "relationships": {"label": ""},
    "summaries": {"content": ""},
}  # fmt: skip
MODES = ("analysis", "authoritative")


@dataclass
class Limits:
    documents: int
    file_bytes: int
    row_bytes: int
    authoritative: bool


@dataclass
class StoredRow:
    """A row of the server. `seq` is None until the test enters the number that the server assigned."""

    row: Row
    waiting: bool = False
    seq: int | None = None

    @property
    def is_deleted(self) -> bool:
        return self.row["_deleted"]


@dataclass
class Model:
    user_id: str
    epoch: str
    limits: Limits
    rows: dict[Key, StoredRow] = field(default_factory=dict)
    touched: set[Key] = field(default_factory=set)  # the rows that get a seq in the current step
    forgotten_at: str = ""

    # -- visible state -----------------------------------------------------------------------------------------

    def pulled(self, collection: str) -> dict[str, Row]:
        return {i: h.row for (c, i), h in self.rows.items() if c == collection and not h.waiting}

    def row_state(self, key: Key) -> str:
        stored = self.rows.get(key)
        if stored is None or stored.waiting:
            return "missing"
        return "dead" if stored.is_deleted else "live"

    def live_documents(self) -> int:
        return sum(self.row_state(key) == "live" for key in self.rows if key[0] == "documents")

    # -- operations --------------------------------------------------------------------------------------------

    def push(self, collection: str, batch: list[tuple[Row, Row | None]]) -> list[Row]:
        """Apply a batch and return the expected answer.

        The error mark of a refused row has a `code` and perhaps a `base`, which is "?" if this batch assigned its seq.
        """
        refused = {}
        for new, assumed in batch:
            if new["_deleted"]:
                stored = self.rows.get((collection, new["id"]))
                is_live = stored is not None and not stored.is_deleted
                if is_live and assumed is None and new["updatedAt"] < stored.row["updatedAt"]:
                    refused[new["id"]] = stored.row
                else:
                    self.delete((collection, new["id"]), new)
        answers = [
            refused.get(new["id"]) if new["_deleted"] else self._judge(collection, new, assumed)
            for new, assumed in batch
        ]
        return [answer for answer in answers if answer is not None]

    def delete(self, key: Key, sent: Row | None = None) -> None:
        stored = self.rows.get(key)
        if stored is None and sent is not None:
            stored = StoredRow({**sent, "_deleted": False})
        if stored is not None and not stored.is_deleted:
            self._delete_with_dependents(key, stored.row)

    def forget(self, at: str) -> None:
        for key, stored in list(self.rows.items()):
            if stored.waiting:
                del self.rows[key]
            elif not stored.is_deleted:
                self._store(key, blank(key[0], stored.row))
        self.forgotten_at = at

    # -- the seven rules, numbered as in conflict_rules.py --------------------------------------------------------

    def _judge(self, collection: str, new: Row, assumed: Row | None) -> Row | None:
        key, stored = (collection, new["id"]), self.rows.get((collection, new["id"]))
        edited, base = unmarked(new), unmarked(assumed)
        if not self._is_valid(collection, new):  # rule 2: an invalid row
            known = stored is not None and self._is_assumed(collection, stored, assumed)
            return self._refusal(new, "INVALID", stored if known else None)
        if stored is not None and stored.row == edited:  # rule 3: a retry
            return stored.row if "syncError" in new else None
        if "syncError" in new and "syncError" in (assumed or {}) and edited == base:
            return None
        if stored is None:
            return self._judge_unknown(key, new)
        merged = not self._is_assumed(collection, stored, assumed)
        if merged:
            # Rule 4: deletion wins. Rule 6: without a base for a merge, the stored row wins.
            if stored.is_deleted or assumed is None or collection == "vectorEmbeddings":
                return stored.row
            base, edited = self._drop_dangling(collection, base), self._drop_dangling(collection, edited)
            edited = merge(collection, base, stored.row, edited)
            if edited == stored.row:
                return stored.row
        elif stored.is_deleted and new["createdAt"] < self.forgotten_at:
            return self._refusal(new, "FORGOTTEN", stored)
        return self._accept(key, new, edited, merged)  # rules 5 and 6: replaced or merged

    def _judge_unknown(self, key: Key, new: Row) -> Row | None:
        if new["createdAt"] < self.forgotten_at:
            return self._refusal(new, "FORGOTTEN", None)
        if "dead" in self._parent_states(key[0], new):
            return blank(key[0], new)
        return self._accept(key, new, unmarked(new))

    def _is_assumed(self, collection: str, stored: StoredRow, assumed: Row | None) -> bool:
        if assumed is None:
            return False
        base = assumed.get("syncError", {}).get("base")
        if base is not None and base == self.base(stored):
            return True
        if stored.is_deleted:  # the device that deleted the row may assume a tombstone with the old content
            return assumed["_deleted"] and blank(collection, assumed) == stored.row
        return unmarked(assumed) == stored.row

    def base(self, stored: StoredRow | None) -> str | None:
        if stored is None or stored.waiting:
            return None
        return f"{self.epoch}:{stored.seq}" if stored.seq is not None else "?"

    def _refusal(self, new: Row, code: str, stored: StoredRow | None) -> Row:
        base = self.base(stored)
        return {**new, "syncError": {"code": code} | ({} if base is None else {"base": base})}

    # -- accepting ----------------------------------------------------------------------------------------------

    def _accept(self, key: Key, new: Row, edited: Row, merged: bool = False) -> Row | None:
        collection, stored = key[0], self.rows.get(key)
        is_live = stored is not None and not stored.is_deleted
        frozen = FROZEN.get(collection)
        if is_live and frozen:
            edited = {**edited, frozen: stored.row[frozen]}
        if collection == "documents":
            edited = {**edited, "original": "none"}  # only the server sets it, once it stores originals
        row = self._drop_dangling(collection, edited)
        code = self._exceeded_limit(key, stored.row if is_live else None, row)
        if code:
            return self._refusal(row if merged else new, code, stored)
        was_unseen = stored is None or stored.waiting
        states = self._parent_states(collection, row)
        self._store(key, row, waiting=was_unseen and "missing" in states)
        if "dead" in states:
            self._delete_with_dependents(key, row)
        elif self.row_state(key) == "live" and (was_unseen or stored.is_deleted):
            self._admit_waiting_children(key)
        now = self.rows[key].row
        return None if now == new else now

    def _exceeded_limit(self, key: Key, before: Row | None, row: Row) -> str | None:
        collection = key[0]
        same = [k for k, h in self.rows.items() if k[0] == "sessions" and k != key and not h.is_deleted]
        if collection == "sessions" and row.get("externalId") in [
            self.rows[k].row["externalId"] for k in same if "externalId" in self.rows[k].row
        ]:
            return "DUPLICATE"
        if size_of_text(row) > self.limits.row_bytes:
            return "TOO_LARGE"
        if collection == "documents":
            if before is None and self.live_documents() >= self.limits.documents:
                return "DOCUMENT_LIMIT"
            if row["size"] > self.limits.file_bytes and (before is None or row["size"] > before["size"]):
                return "TOO_LARGE"
        if collection == "sessions" and row["mode"] == "authoritative" and not self.limits.authoritative:
            return "TIER"
        return None

    def _is_valid(self, collection: str, row: Row) -> bool:
        """Return whether a row is valid. Only errors of the kinds that `random_rows` creates are detected."""
        return (
            row.get("userId", self.user_id) == self.user_id
            and 0 <= row.get("confidence", 0) <= 1
            and row.get("mode", "analysis") in MODES
            and row.get("size", 0) >= 0
            and len(row.get("name", "")) <= 255
        )

    # -- creation and deletion ----------------------------------------------------------------------------------

    def _store(self, key: Key, row: Row, *, waiting: bool = False) -> None:
        self.rows[key] = StoredRow(row, waiting)
        if not waiting:
            self.touched.add(key)

    def _parent_states(self, collection: str, row: Row) -> list[str]:
        return [self.row_state(parent) for parent in parents(collection, row)]

    def _delete_with_dependents(self, key: Key, row: Row) -> None:
        self._store(key, blank(key[0], row))
        for other, stored in list(self.rows.items()):
            if self.rows[other].is_deleted:
                continue
            if key in parents(other[0], stored.row) or follows(other[0], self.rows[other].row, key, row):
                self._delete_with_dependents(other, stored.row)
            elif (repaired := self._drop_dangling(other[0], self.rows[other].row)) != self.rows[other].row:
                self._store(other, repaired, waiting=stored.waiting)

    def _admit_waiting_children(self, parent: Key) -> None:
        for key, stored in list(self.rows.items()):
            states = self._parent_states(key[0], stored.row)
            if self.rows[key].waiting and parent in parents(key[0], stored.row) and set(states) == {"live"}:
                self._store(key, self._drop_dangling(key[0], stored.row))
                self._admit_waiting_children(key)

    def _drop_dangling(self, collection: str, row: Row) -> Row:
        row = dict(row)
        if collection in SETS:
            name, target = SETS[collection]
            row[name] = [i for i in row[name] if self.row_state((target, i)) != "dead"]
        for name, target in NAMES.get(collection, {}).items():
            if name in row and self.row_state((target, row[name])) == "dead":
                del row[name]
        if collection == "facts" and self.row_state(("documents", row.get("sourceDocumentId", ""))) == "dead":
            row["sourceRemoved"] = True
        return row


def parents(collection: str, row: Row) -> list[Key]:
    return [(target, row[name]) for name, target in PARENTS.get(collection, {}).items() if name in row]


def follows(collection: str, row: Row, dead: Key, dead_row: Row) -> bool:
    """Return whether this memory is deleted because the deleted memory, of the same project, superseded it."""
    named = (collection, row.get("supersededBy"))
    return (
        collection == "memories"
        and named == dead
        and parents("memories", row) == parents("memories", dead_row)
    )


def blank(collection: str, row: Row) -> Row:
    names = ("id", "createdAt", "updatedAt", *PARENTS.get(collection, {}))
    return {**BLANKS[collection], **{name: row[name] for name in names if name in row}, "_deleted": True}


def unmarked(row: Row | None) -> Row:
    return {name: value for name, value in (row or {}).items() if name != "syncError"}


def size_of_text(row: Row) -> int:
    return sum(len(value) for value in row.values() if isinstance(value, str))


def merge(collection: str, base: Row, stored: Row, new: Row) -> Row:
    merged = dict(stored)
    whole = TOGETHER.get(collection, ())
    ids, _ = SETS.get(collection, (None, None))
    special = {"updatedAt", "lastAccessedAt", "accessCount", "original", ids, FROZEN.get(collection)}
    single = {*base, *stored, *new} - {*whole} - special
    for unit in (whole, *((name,) for name in single)):
        mine_changed, theirs_changed = (any(differ(base, s, name) for name in unit) for s in (new, stored))
        if mine_changed and not theirs_changed:
            for name in unit:
                merged.pop(name, None)
            merged |= {name: new[name] for name in unit if name in new}
    for latest in ("updatedAt", "lastAccessedAt"):
        if latest in stored:
            merged[latest] = max(stored[latest], new[latest])
    if ids:
        base_ids, stored_ids, new_ids = base.get(ids, []), stored[ids], new[ids]
        stay = [i for i in stored_ids if i in new_ids or i not in base_ids]
        merged[ids] = stay + [i for i in new_ids if i not in base_ids and i not in stored_ids]
        if collection == "documents":
            delta = new["accessCount"] - base.get("accessCount", 0)
            merged["accessCount"] = max(0, stored["accessCount"] + delta)
    return merged if merged in (stored, new) else bumped(merged)


def differ(one: Row, other: Row, name: str) -> bool:
    """Return whether the field differs between two rows. An absent field differs from every value."""
    return (name in one) != (name in other) or one.get(name) != other.get(name)

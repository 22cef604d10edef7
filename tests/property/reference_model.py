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
SETS = {"documents": "activeSessions", "memories": "sessionIds"}  # each field is a list of session ids
NAMES = {
    "sessions": {"projectId": "projects"},
    "memories": {"supersedes": "memories", "supersededBy": "memories"},
}
FROZEN = {"documents": "originSessionId", "entities": "projectId"}
TOGETHER = {
    "documents": ("contentHash", "size", "chunkCount", "pageCount", "status", "statusDetail"),
    "facts": ("value", "confirmed", "confidence"),
    "episodes": ("aiResponse", "citations", "status", "model"),
}
BLANKS: dict[str, Row] = {
    "documents": {"userId": "", "originSessionId": "", "activeSessions": [], "accessCount": 0, "lastAccessedAt": "",
                  "filename": "", "mimeType": "", "size": 0, "contentHash": "", "chunkCount": 0, "status": "pending"},
    "vectorEmbeddings": {"block": 0, "model": "", "dims": 0, "chunks": [], "embedding": None},
    "projects": {"name": ""},
    "sessions": {"title": "", "mode": "analysis"},
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
class Held:
    """A row of the server. `seq` is None until the test enters the number that the server assigned."""

    row: Row
    waiting: bool = False
    seq: int | None = None

    @property
    def dead(self) -> bool:
        return self.row["_deleted"]


@dataclass
class Model:
    user_id: str
    epoch: str
    limits: Limits
    rows: dict[Key, Held] = field(default_factory=dict)
    touched: set[Key] = field(default_factory=set)  # the rows that get a seq in the current step
    forgotten_at: str = ""

    # -- visible state -----------------------------------------------------------------------------------------

    def pulled(self, collection: str) -> dict[str, Row]:
        return {i: h.row for (c, i), h in self.rows.items() if c == collection and not h.waiting}

    def life(self, key: Key) -> str:
        held = self.rows.get(key)
        if held is None or held.waiting:
            return "missing"
        return "dead" if held.dead else "live"

    def live_documents(self) -> int:
        return sum(self.life(key) == "live" for key in self.rows if key[0] == "documents")

    # -- operations --------------------------------------------------------------------------------------------

    def push(self, collection: str, batch: list[tuple[Row, Row | None]]) -> list[Row]:
        """Apply a batch and return the expected answer.

        The error mark of a refused row has a `code` and perhaps a `base`, which is "?" if this batch assigned its seq.
        """
        refused = {}
        for new, assumed in batch:
            if new["_deleted"]:
                held = self.rows.get((collection, new["id"]))
                is_live = held is not None and not held.dead
                if is_live and assumed is None and new["updatedAt"] < held.row["updatedAt"]:
                    refused[new["id"]] = held.row
                else:
                    self.delete((collection, new["id"]), new)
        answers = [
            refused.get(new["id"]) if new["_deleted"] else self._judge(collection, new, assumed)
            for new, assumed in batch
        ]
        return [answer for answer in answers if answer is not None]

    def delete(self, key: Key, sent: Row | None = None) -> None:
        held = self.rows.get(key)
        if held is None and sent is not None:
            held = Held({**sent, "_deleted": False})
        if held is not None and not held.dead:
            self._die(key, held.row)

    def forget(self, at: str) -> None:
        for key, held in list(self.rows.items()):
            if held.waiting:
                del self.rows[key]
            elif not held.dead:
                self._keep(key, blank(key[0], held.row))
        self.forgotten_at = at

    # -- the seven rules ----------------------------------------------------------------------------------------

    def _judge(self, collection: str, new: Row, assumed: Row | None) -> Row | None:
        key, held = (collection, new["id"]), self.rows.get((collection, new["id"]))
        wanted, believed = unmarked(new), unmarked(assumed)
        if not self._fits(collection, new):  # rule 2
            known = held is not None and self._is_assumed(collection, held, assumed)
            return self._refusal(new, "INVALID", held if known else None)
        if held is not None and held.row == wanted:  # rule 3
            return held.row if "syncError" in new else None
        if "syncError" in new and "syncError" in (assumed or {}) and wanted == believed:
            return None
        if held is None:
            return self._judge_unknown(key, new)
        merged = not self._is_assumed(collection, held, assumed)
        if merged:
            if held.dead or assumed is None or collection == "vectorEmbeddings":  # rules 4 and 6
                return held.row
            believed, wanted = self._healed(collection, believed), self._healed(collection, wanted)
            wanted = merge(collection, believed, held.row, wanted)
            if wanted == held.row:
                return held.row
        elif held.dead and new["createdAt"] < self.forgotten_at:
            return self._refusal(new, "FORGOTTEN", held)
        return self._accept(key, new, wanted, merged)  # rules 5 and 6

    def _judge_unknown(self, key: Key, new: Row) -> Row | None:
        if new["createdAt"] < self.forgotten_at:
            return self._refusal(new, "FORGOTTEN", None)
        if "dead" in self._parents_lives(key[0], new):
            return blank(key[0], new)
        return self._accept(key, new, unmarked(new))

    def _is_assumed(self, collection: str, held: Held, assumed: Row | None) -> bool:
        if assumed is None:
            return False
        base = assumed.get("syncError", {}).get("base")
        if base is not None and base == self.base(held):
            return True
        if held.dead:  # the device that deleted the row may assume a tombstone with the old content
            return assumed["_deleted"] and blank(collection, assumed) == held.row
        return unmarked(assumed) == held.row

    def base(self, held: Held | None) -> str | None:
        if held is None or held.waiting:
            return None
        return f"{self.epoch}:{held.seq}" if held.seq is not None else "?"

    def _refusal(self, new: Row, code: str, held: Held | None) -> Row:
        base = self.base(held)
        return {**new, "syncError": {"code": code} | ({} if base is None else {"base": base})}

    # -- accepting ----------------------------------------------------------------------------------------------

    def _accept(self, key: Key, new: Row, wanted: Row, merged: bool = False) -> Row | None:
        collection, held = key[0], self.rows.get(key)
        here = held is not None and not held.dead
        frozen = FROZEN.get(collection)
        if here and frozen:
            wanted = {**wanted, frozen: held.row[frozen]}
        row = self._healed(collection, wanted)
        code = self._over_a_limit(key, held.row if here else None, row)
        if code:
            return self._refusal(row if merged else new, code, held)
        was_unseen = held is None or held.waiting
        lives = self._parents_lives(collection, row)
        self._keep(key, row, waiting=was_unseen and "missing" in lives)
        if "dead" in lives:
            self._die(key, row)
        elif self.life(key) == "live" and (was_unseen or held.dead):
            self._let_in(key)
        now = self.rows[key].row
        return None if now == new else now

    def _over_a_limit(self, key: Key, before: Row | None, row: Row) -> str | None:
        collection = key[0]
        same = [k for k, h in self.rows.items() if k[0] == "sessions" and k != key and not h.dead]
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

    def _fits(self, collection: str, row: Row) -> bool:
        """Return whether a row is valid. Only errors of the kinds that `random_rows` creates are detected."""
        return (
            row.get("userId", self.user_id) == self.user_id
            and 0 <= row.get("confidence", 0) <= 1
            and row.get("mode", "analysis") in MODES
            and row.get("size", 0) >= 0
            and len(row.get("name", "")) <= 255
        )

    # -- creation and deletion ----------------------------------------------------------------------------------

    def _keep(self, key: Key, row: Row, *, waiting: bool = False) -> None:
        self.rows[key] = Held(row, waiting)
        if not waiting:
            self.touched.add(key)

    def _parents_lives(self, collection: str, row: Row) -> list[str]:
        return [self.life(parent) for parent in parents(collection, row)]

    def _die(self, key: Key, row: Row) -> None:
        self._keep(key, blank(key[0], row))
        for other, held in list(self.rows.items()):
            if self.rows[other].dead:
                continue
            if key in parents(other[0], held.row) or follows(other[0], self.rows[other].row, key, row):
                self._die(other, held.row)
            elif (healed := self._healed(other[0], self.rows[other].row)) != self.rows[other].row:
                self._keep(other, healed, waiting=held.waiting)

    def _let_in(self, parent: Key) -> None:
        for key, held in list(self.rows.items()):
            lives = self._parents_lives(key[0], held.row)
            if self.rows[key].waiting and parent in parents(key[0], held.row) and set(lives) == {"live"}:
                self._keep(key, self._healed(key[0], held.row))
                self._let_in(key)

    def _healed(self, collection: str, row: Row) -> Row:
        row = dict(row)
        if collection in SETS:
            name = SETS[collection]
            row[name] = [i for i in row[name] if self.life(("sessions", i)) != "dead"]
        for name, target in NAMES.get(collection, {}).items():
            if name in row and self.life((target, row[name])) == "dead":
                del row[name]
        if collection == "facts" and self.life(("documents", row.get("sourceDocumentId", ""))) == "dead":
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
    kept = ("id", "createdAt", "updatedAt", *PARENTS.get(collection, {}))
    return {**BLANKS[collection], **{name: row[name] for name in kept if name in row}, "_deleted": True}


def unmarked(row: Row | None) -> Row:
    return {name: value for name, value in (row or {}).items() if name != "syncError"}


def size_of_text(row: Row) -> int:
    return sum(len(value) for value in row.values() if isinstance(value, str))


def merge(collection: str, base: Row, stored: Row, new: Row) -> Row:
    merged = dict(stored)
    whole = TOGETHER.get(collection, ())
    special = {"updatedAt", "lastAccessedAt", "accessCount", SETS.get(collection), FROZEN.get(collection)}
    single = {*base, *stored, *new} - {*whole} - special
    for unit in (whole, *((name,) for name in single)):
        mine_changed, theirs_changed = (any(differ(base, s, name) for name in unit) for s in (new, stored))
        if mine_changed and not theirs_changed:
            for name in unit:
                merged.pop(name, None)
            merged |= {name: new[name] for name in unit if name in new}
    for name in ("updatedAt", "lastAccessedAt"):
        if name in stored:
            merged[name] = max(stored[name], new[name])
    name = SETS.get(collection)
    if name:
        was, here, mine = base.get(name, []), stored[name], new[name]
        stay = [i for i in here if i in mine or i not in was]
        merged[name] = stay + [i for i in mine if i not in was and i not in here]
        if collection == "documents":
            delta = new["accessCount"] - base.get("accessCount", 0)
            merged["accessCount"] = max(0, stored["accessCount"] + delta)
    return merged if merged in (stored, new) else bumped(merged)


def differ(one: Row, other: Row, name: str) -> bool:
    """Return whether the field differs between two rows. An absent field differs from every value."""
    return (name in one) != (name in other) or one.get(name) != other.get(name)

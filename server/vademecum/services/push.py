"""Push: a device's batch of rows becomes what the rules allow. Deletes first, then the rest in the order sent.

Never all or nothing: a refused row comes back marked and the others go on, so no row can block a device's queue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from vademecum.errors import BadRequest
from vademecum.model import cascade, causes, vectors
from vademecum.model.collections import ID_PATTERN, Collection, Json, Links, links
from vademecum.model.draft import WAITING, Draft, Head
from vademecum.model.jsontext import HALF, without_depths, without_excess, without_halves
from vademecum.model.limits import Limits, has_free_tombstone, refusal
from vademecum.model.misfit import sentence
from vademecum.model.names import entity_id, joined_notes
from vademecum.model.replication import (
    Circumstances,
    Stored,
    Verdict,
    decide,
    marked,
    repeats_mark,
    without_mark,
)

ROWS_MAX = 1000  # of one push; RxDB sends 100
CUT_MAX = 4 * 2**20  # bytes that are looked through, bracket by bracket, for what is nested too deeply
ENTITIES = "entities"
NO_NUMBER = "A number in it is larger than any that can be kept."
_NULL = msgspec.Raw(b"null")
_NO_MODELS: Mapping[str, int] = {}


class PushRow(msgspec.Struct):
    """One row as an RxDB client sends it; the bytes are kept, because they are given back as they came."""

    newDocumentState: msgspec.Raw
    assumedMasterState: msgspec.Raw = _NULL
    imported: bool = False


class Incoming(msgspec.Struct):
    """A row decoded, with the bytes it came in and the reason why it does not fit (None: it does). `altered`: it is not
    what was sent, and whoever sent it has to be told. `imported`: it comes out of an export, beside what was made of it."""

    key: str
    row: Json
    body: bytes
    assumed: Json | None
    problem: str | None
    altered: bool = False
    imported: bool = False


_ID = re.compile(ID_PATTERN)
_rows = msgspec.json.Decoder(list[PushRow])


def read_batch(
    collection: Collection, body: bytes, user_id: str, dims: Mapping[str, int] = _NO_MODELS
) -> list[Incoming]:
    """Decode a push. A row that does not fit its schema is not an error here: it is refused by itself later. `dims`: of
    the vectors of each model that is known here."""
    try:
        try:
            return _read_rows(collection, body, user_id, dims)
        except RecursionError:
            # What is cut off fits no schema: that row is refused, and those beside it are not.
            if len(body) > CUT_MAX:
                raise
            return _read_rows(collection, without_depths(body), user_id, dims)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(
            f"A push is a JSON array of {{newDocumentState, assumedMasterState?}}. Nothing was changed. ({error})"
        ) from error


def _read_rows(collection: Collection, body: bytes, user_id: str, dims: Mapping[str, int]) -> list[Incoming]:
    rows, is_mended = _read(body)
    if len(rows) > ROWS_MAX:
        raise BadRequest(
            f"A push has at most {ROWS_MAX} rows, and this one has {len(rows)}. Nothing was changed and nothing is "
            "lost: send them in smaller batches."
        )
    return [read_row(collection, row, user_id, dims, is_mended=is_mended) for row in rows]


def _read(body: bytes) -> tuple[list[PushRow], bool]:
    """And whether it had to be mended: a title that was cut within an emoji is no JSON, and would keep all rows beside it
    from coming up."""
    try:
        return _rows.decode(body), False
    except msgspec.DecodeError:
        mended = without_halves(body.decode()).encode()
        if mended == body:
            raise
        return _rows.decode(mended), True


def read_row(
    collection: Collection,
    sent: PushRow,
    user_id: str,
    dims: Mapping[str, int] = _NO_MODELS,
    *,
    is_mended: bool = False,
) -> Incoming:
    row, counts = _decoded(sent.newDocumentState)
    assumed, _ = _decoded(sent.assumedMasterState)
    if not isinstance(row, dict) or not isinstance(row.get(collection.primary_key), str):
        raise BadRequest(f"Every row needs a string `{collection.primary_key}`. Nothing was changed.")
    if assumed is not None and not isinstance(assumed, dict):
        raise BadRequest("`assumedMasterState` must be an object. Nothing was changed.")
    key = f"{collection.name}/{row[collection.primary_key]}"
    body = bytes(sent.newDocumentState)
    problem = _problem(collection, row, sent, user_id, dims)
    if problem is None and not counts and row.get("_deleted") is not True:
        problem = NO_NUMBER
    altered = is_mended and HALF.encode() in body
    return Incoming(key, row, body, assumed, problem, altered=altered, imported=sent.imported)


def _decoded(sent: msgspec.Raw) -> tuple[Any, bool]:
    """And whether its numbers are numbers here. A row with 1e400 is refused by itself, and those beside it are not."""
    try:
        return msgspec.json.decode(sent), True
    except msgspec.ValidationError:
        return without_excess(bytes(sent)), False


def _problem(
    collection: Collection, row: Json, sent: PushRow, user_id: str, dims: Mapping[str, int]
) -> str | None:
    if row.get("_deleted") is True:
        return None
    try:
        collection.decode(sent.newDocumentState)
    except msgspec.ValidationError as error:
        return sentence(str(error), "The row")
    if row.get("userId", user_id) != user_id:
        return "`userId` is not the account's."
    if row.get("embedding") is not None:  # only blocks have one
        return vectors.unusable(row["embedding"], row["dims"], dims.get(row["model"]))
    return None


def push(draft: Draft, collection: Collection, batch: list[Incoming], limits: Limits) -> list[Json]:
    """Judge the whole batch. Returns the rows that did not become what was sent, in the order sent."""
    draft.prefetch(incoming.key for incoming in batch)
    # What is here already has been looked at, or will be, for what it says here.
    imported = [i.key for i in batch if i.imported and draft.head(i.key) is None]
    _delete(draft, [incoming for incoming in batch if _is_delete(incoming)])
    answers = [
        _push_row(draft, collection, incoming, limits) for incoming in batch if not _is_delete(incoming)
    ]
    causes.know(draft, imported)
    return [answer for answer in answers if answer is not None]


def _is_delete(incoming: Incoming) -> bool:
    return incoming.row.get("_deleted") is True


def _delete(draft: Draft, deletes: list[Incoming]) -> None:
    """Always accepted. Of an unknown row it is only remembered while tombstones are free, or a client could fill the
    disk with ids it made up. What is given up then: should the row itself come later, it is taken for a new one.
    """
    dead: list[str] = []
    for incoming in deletes:
        head = draft.head(incoming.key)
        if head is None and _is_id(incoming.key) and has_free_tombstone(draft.tombstones):
            draft.bury(incoming.key, incoming.row)
        elif head is not None and not head.deleted:
            draft.bury(incoming.key, draft.row(incoming.key))
        else:
            continue
        dead.append(incoming.key)
    cascade.bereave(draft, dead)


def _is_id(key: str) -> bool:
    _, _, row_id = key.partition("/")
    return _ID.match(row_id) is not None


def _push_row(draft: Draft, collection: Collection, sent: Incoming, limits: Limits) -> Json | None:
    """The answer to one live row, or None when it became what was sent."""
    incoming = _brought_along(draft, collection, sent)
    if incoming.key != sent.key:
        return _received_elsewhere(draft, collection, sent, incoming, limits)
    answer = _judged(draft, collection, incoming, limits)
    if answer is None and incoming.altered and not repeats_mark(sent.row, sent.assumed):
        return draft.row(sent.key)
    return answer


def _brought_along(draft: Draft, collection: Collection, sent: Incoming) -> Incoming:
    """As the device would have sent it, had it known which projects are a part of others now."""
    into = cascade.merged_into(draft, sent.row) if sent.problem is None else None
    before = cascade.merged_into(draft, sent.assumed) if sent.assumed is not None else None
    if into is None and before is None:
        return sent
    row, assumed, key = sent.row, sent.assumed, sent.key
    if assumed is not None and before is not None:
        assumed = {**assumed, "projectId": before}
    if into is not None:
        row = {**row, "projectId": into}
    if into is not None and collection.name == ENTITIES:  # whose id says its project
        row["id"] = entity_id(into, row["type"], row["name"])
        key = f"{ENTITIES}/{row['id']}"
    return Incoming(
        key, row, msgspec.json.encode(row), assumed, sent.problem, altered=into is not None or sent.altered
    )


def _received_elsewhere(
    draft: Draft, collection: Collection, sent: Incoming, incoming: Incoming, limits: Limits
) -> Json | None:
    """An entity joins the one of its name, if that was not deleted, and is gone where the device has it."""
    if repeats_mark(sent.row, sent.assumed):
        return None
    stored = _stored(draft, incoming.key, draft.head(incoming.key))
    is_forgotten = sent.row["createdAt"] < draft.forgotten_at
    if not is_forgotten and (stored is None or not stored.deleted):
        known = stored.row if stored is not None else without_mark(incoming.row)
        before = (sent.assumed or {}).get("notes")
        row = {**known, "notes": joined_notes(known.get("notes"), incoming.row.get("notes"), before)}
        row = {name: value for name, value in row.items() if value is not None}
        joined = Incoming(incoming.key, row, msgspec.json.encode(row), None, None)
        verdict = Verdict("store", row)
        no = _store(draft, collection, joined, verdict, links(collection, row), stored, limits)
        if no is not None and "syncError" in no:
            return {**sent.row, "syncError": no["syncError"]}
    if draft.life(sent.key) != "dead":
        draft.bury(sent.key, sent.row)
        cascade.bereave(draft, [sent.key])
    return draft.row(sent.key)


def _judged(draft: Draft, collection: Collection, incoming: Incoming, limits: Limits) -> Json | None:
    head = draft.head(incoming.key)
    stored = _stored(draft, incoming.key, head)
    heal = partial(cascade.healed, draft, collection)
    about = Circumstances(draft.life, heal, draft.forgotten_at, draft.now)
    named = links(collection, incoming.row) if incoming.problem is None else ((), ())
    verdict = decide(collection, incoming.row, incoming.assumed, stored, named[0], incoming.problem, about)
    if verdict.kind == "refuse":
        return marked(incoming.row, verdict.code, verdict.message, draft.now, verdict.base)
    if verdict.kind == "answer":
        return verdict.row
    return _store(draft, collection, incoming, verdict, named, stored, limits)


def _stored(draft: Draft, key: str, head: Head | None) -> Stored | None:
    if head is None:
        return None
    if head.seq == WAITING:
        return Stored(draft.row(key), head.deleted, None)
    restored = head.seq <= draft.restored_seq
    return Stored(draft.row(key), head.deleted, f"{draft.epoch}:{head.seq}", restored)


def _store(
    draft: Draft,
    collection: Collection,
    incoming: Incoming,
    verdict: Verdict,
    named: Links,
    stored: Stored | None,
    limits: Limits,
) -> Json | None:
    """`named`: what the row as it was sent names."""
    assert verdict.row is not None
    key = incoming.key
    head = draft.head(key)
    row = cascade.healed(draft, collection, _thawed(collection, verdict.row, stored))
    body = incoming.body
    if row is not incoming.row:
        body, named = msgspec.json.encode(row), links(collection, row)
        if (problem := _misfit(collection, body)) is not None:
            return marked(incoming.row, "INVALID", problem, draft.now, None)
    lives = {draft.life(parent) for parent in named[0]}
    no = _refused(draft, collection, key, row, body, stored, limits)
    if no is not None:
        # As it was sent; or merged, so that the next edit does not undo what others did and the device has not seen.
        mine = row if verdict.merged else incoming.row
        return marked(mine, no[0], no[1], draft.now, verdict.base)
    waiting = "missing" in lives and (head is None or head.seq == WAITING)
    draft.put(key, row, body, waiting=waiting, named=named)
    if "dead" in lives:  # an edit moved it under a parent that is gone: it goes the way of that parent's rows
        cascade.kill(draft, key)
        return draft.row(key)
    if not waiting and (head is None or head.deleted or head.seq == WAITING):
        cascade.welcome(draft, key)
    return None if row == incoming.row else row


def _refused(
    draft: Draft,
    collection: Collection,
    key: str,
    row: Json,
    body: bytes,
    stored: Stored | None,
    limits: Limits,
) -> tuple[str, str] | None:
    if collection.unique and row.get(collection.unique):
        holder = draft.holder(collection.name, row[collection.unique])
        if holder not in (None, key):
            return "DUPLICATE", f"Another of your {collection.name} has this {collection.unique} already."
    before = stored.row if stored is not None and not stored.deleted else None
    no = refusal(collection.name, before, row, draft.measure(key, row, body), len(body), draft.usage, limits)
    return (no.code, no.message) if no is not None else None


def _misfit(collection: Collection, body: bytes) -> str | None:
    """Why a row that the server has merged does not fit its schema, though both sides did: sets and counts can grow
    beyond their bounds. It is refused like a merge that breaks a limit, and the stored row is not answered: a plain
    client would take that over its own, and lose what it wrote. Marked, its row stays as it is,
    and the mark names no base: the device does not know the stored row.
    """
    try:
        collection.decode(body)
    except msgspec.ValidationError as error:
        return f"Together with what another device changed, this is more than a row can hold: {error}"
    return None


def _thawed(collection: Collection, wanted: Json, stored: Stored | None) -> Json:
    """`wanted` with the fields that never change after birth as the live row has them."""
    if stored is None or stored.deleted:
        return wanted
    changed = {
        f: stored.row[f] for f in collection.frozen if f in stored.row and wanted.get(f) != stored.row[f]
    }
    return {**wanted, **changed} if changed else wanted

"""A pushed batch, decoded: each row with its bytes and with what is wrong with it. Nothing is decided here.

A row that does not fit is no error of the batch: it is refused by itself later, and those beside it go on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from vademecum.errors import BadRequest
from vademecum.model.schema import vector_codec
from vademecum.model.schema.collections import ID_PATTERN, Collection, Json
from vademecum.model.schema.lenient_json import (
    HALF,
    as_json,
    elements,
    without_depths,
    without_excess,
    without_halves,
)
from vademecum.model.schema.validation_messages import sentence

ROWS_MAX = 1000  # of one push; RxDB sends 100
CUT_MAX = 4 * 2**20  # bytes that are looked through, bracket by bracket, for what is nested too deeply
NO_NUMBER = "A number in it is larger than any that can be kept."
NOT_JSON = "It holds NaN, Infinity or a raw control character, which JSON does not allow."
_NULL = msgspec.Raw(b"null")
_NO_MODELS: Mapping[str, int] = {}


class PushRow(msgspec.Struct):
    """One row as an RxDB client sends it; the bytes are kept, because they are given back as they came."""

    newDocumentState: msgspec.Raw
    assumedMasterState: msgspec.Raw = _NULL
    imported: bool = False


class IncomingRow(msgspec.Struct):
    """A row decoded, with the bytes it came in and the reason why it does not fit (None: it does). `altered`: it is not
    what was sent, and whoever sent it has to be told. `imported`: it comes out of an export, beside what was made of it."""

    key: str
    row: Json
    body: bytes
    assumed: Json | None
    problem: str | None
    altered: bool = False
    imported: bool = False

    @property
    def deletes(self) -> bool:
        return self.row.get("_deleted") is True

    @property
    def has_id(self) -> bool:
        """Whether its id is one that a live row could have: nobody has looked at what a delete names."""
        _, _, row_id = self.key.partition("/")
        return _ID.match(row_id) is not None


_ID = re.compile(ID_PATTERN)
_rows = msgspec.json.Decoder(list[PushRow])
_row = msgspec.json.Decoder(PushRow)


def decode_batch(
    collection: Collection, body: bytes, user_id: str, dims: Mapping[str, int] = _NO_MODELS
) -> list[IncomingRow]:
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


def _read_rows(
    collection: Collection, body: bytes, user_id: str, dims: Mapping[str, int]
) -> list[IncomingRow]:
    rows, is_mended, not_json = _read(body)
    if len(rows) > ROWS_MAX:
        raise BadRequest(
            f"A push has at most {ROWS_MAX} rows, and this one has {len(rows)}. Nothing was changed and nothing is "
            "lost: send them in smaller batches."
        )
    incoming = [decode_row(collection, row, user_id, dims, is_mended=is_mended) for row in rows]
    for number in not_json:
        if not incoming[number].deletes:
            incoming[number].problem = NOT_JSON
    return incoming


def _read(body: bytes) -> tuple[list[PushRow], bool, list[int]]:
    """The rows; whether they had to be mended: a title that was cut within an emoji is no JSON, and would keep all rows
    beside it from coming up; and the numbers of the rows that are no JSON for another reason."""
    try:
        return _rows.decode(body), False, []
    except msgspec.DecodeError:
        text = body.decode()
        mended = without_halves(text)
        try:
            if mended != text:
                return _rows.decode(mended.encode()), True, []
            raise
        except msgspec.DecodeError:
            if len(body) > CUT_MAX:
                raise
            rows, not_json = _read_each(mended)
            return rows, mended != text, not_json


def _read_each(text: str) -> tuple[list[PushRow], list[int]]:
    """Decode each row by itself. Raises DecodeError when one cannot be mended."""
    rows: list[PushRow] = []
    not_json: list[int] = []
    try:
        parts = elements(text)
    except ValueError as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from error
    for number, part in enumerate(parts):
        try:
            rows.append(_row.decode(part.encode()))
        except msgspec.DecodeError:
            rows.append(_row.decode(as_json(part).encode()))
            not_json.append(number)
    return rows, not_json


def decode_row(
    collection: Collection,
    sent: PushRow,
    user_id: str,
    dims: Mapping[str, int] = _NO_MODELS,
    *,
    is_mended: bool = False,
) -> IncomingRow:
    row, counts = _decoded(sent.newDocumentState)
    assumed, _ = _decoded(sent.assumedMasterState)
    if not isinstance(row, dict) or not isinstance(row.get(collection.primary_key), str):
        raise BadRequest(f"Every row needs a string `{collection.primary_key}`. Nothing was changed.")
    if assumed is not None and not isinstance(assumed, dict):
        raise BadRequest("`assumedMasterState` must be an object. Nothing was changed.")
    key = f"{collection.name}/{row[collection.primary_key]}"
    body = bytes(sent.newDocumentState)
    problem = None
    if row.get("_deleted") is not True:
        problem = _problem(collection, row, user_id, dims) if counts else NO_NUMBER
    altered = is_mended and HALF.encode() in body
    return IncomingRow(key, row, body, assumed, problem, altered=altered, imported=sent.imported)


def _decoded(sent: msgspec.Raw) -> tuple[Any, bool]:
    """And whether its numbers are numbers here. A row with 1e400 is refused by itself, and those beside it are not."""
    if sent == _NULL:
        return None, True
    try:
        return msgspec.json.decode(sent), True
    except msgspec.ValidationError:
        return without_excess(bytes(sent)), False


def _problem(collection: Collection, row: Json, user_id: str, dims: Mapping[str, int]) -> str | None:
    """Why a live row does not fit; None: it does."""
    try:
        collection.fit(row)
    except msgspec.ValidationError as error:
        return sentence(str(error), "The row")
    if row.get("userId", user_id) != user_id:
        return "`userId` is not the account's."
    if row.get("embedding") is not None:  # only blocks have one
        return vector_codec.unusable(row["embedding"], row["dims"], dims.get(row["model"]))
    return None

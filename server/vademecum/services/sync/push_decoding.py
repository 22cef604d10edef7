"""Decode a pushed batch into rows. Each decoded row has its original bytes and, if it is invalid, its problem.

An invalid row does not fail the batch. Only that row is rejected later, and the valid rows are stored.
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
    REPLACEMENT,
    decode_large_numbers,
    repair_json,
    replace_lone_surrogates,
    split_array,
    truncate_depth,
)
from vademecum.model.schema.validation_messages import describe_problem

ROWS_MAX = 1000  # the maximum number of rows in one push; RxDB sends 100
CUT_MAX = 4 * 2**20  # the maximum size in bytes of a body that is repaired, because repairs are slow
NO_NUMBER = "The row contains a number that is too large to store."
NOT_JSON = "The row contains NaN, Infinity or a raw control character, which JSON does not allow."
_NULL = msgspec.Raw(b"null")
_NO_MODELS: Mapping[str, int] = {}


class PushRow(msgspec.Struct):
    """One row as an RxDB client sends it. The bytes are kept, because the row is returned unchanged."""

    newDocumentState: msgspec.Raw
    assumedMasterState: msgspec.Raw = _NULL
    imported: bool = False


class IncomingRow(msgspec.Struct):
    """A decoded row with its bytes. `problem`: the reason why the row does not fit its schema, or None.

    `altered`: decoding changed the row, so the stored row must be returned to the device. `imported`: the row comes
    from an export, together with the rows extracted from it.
    """

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
        """Return whether the id is valid. The ids of deleted rows are not validated elsewhere."""
        _, _, row_id = self.key.partition("/")
        return _ID.match(row_id) is not None


_ID = re.compile(ID_PATTERN)
_rows = msgspec.json.Decoder(list[PushRow])
_row = msgspec.json.Decoder(PushRow)


def decode_batch(
    collection: Collection, body: bytes, user_id: str, dims: Mapping[str, int] = _NO_MODELS
) -> list[IncomingRow]:
    """Decode a push. A row that does not fit its schema gets a `problem` instead of raising an error.

    `dims`: the vector length of each known model. Raises BadRequest for a malformed batch.
    """
    try:
        try:
            return _read_rows(collection, body, user_id, dims)
        except RecursionError:
            # Replace deeply nested values with null. Their rows fit no schema any more, so only those are rejected.
            if len(body) > CUT_MAX:
                raise
            return _read_rows(collection, truncate_depth(body), user_id, dims)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(
            f"A push is a JSON array of {{newDocumentState, assumedMasterState?}}. Nothing was changed. ({error})"
        ) from error


def _read_rows(
    collection: Collection, body: bytes, user_id: str, dims: Mapping[str, int]
) -> list[IncomingRow]:
    rows, is_repaired, not_json = _read(body)
    if len(rows) > ROWS_MAX:
        raise BadRequest(
            f"A push can contain at most {ROWS_MAX} rows, but this one contains {len(rows)}. Nothing was changed. Send "
            "the rows in smaller batches."
        )
    incoming = [_decode_row(collection, row, user_id, dims, is_repaired=is_repaired) for row in rows]
    for number in not_json:
        if not incoming[number].deletes:
            incoming[number].problem = NOT_JSON
    return incoming


def _read(body: bytes) -> tuple[list[PushRow], bool, list[int]]:
    """Return three values: the rows, whether lone surrogates were replaced, and the indexes of rows with invalid JSON.

    A title that was cut within an emoji has a lone surrogate. Without the replacement, the title would block all rows
    of its batch.
    """
    try:
        return _rows.decode(body), False, []
    except msgspec.DecodeError:
        text = body.decode()
        repaired = replace_lone_surrogates(text)
        try:
            if repaired != text:
                return _rows.decode(repaired.encode()), True, []
            raise
        except msgspec.DecodeError:
            if len(body) > CUT_MAX:
                raise
            rows, not_json = _read_each(repaired)
            return rows, repaired != text, not_json


def _read_each(text: str) -> tuple[list[PushRow], list[int]]:
    """Decode each row separately. Return the rows and the indexes of repaired rows.

    Raises DecodeError if a row cannot be repaired.
    """
    rows: list[PushRow] = []
    not_json: list[int] = []
    try:
        parts = split_array(text)
    except ValueError as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from error
    for number, part in enumerate(parts):
        try:
            rows.append(_row.decode(part.encode()))
        except msgspec.DecodeError:
            rows.append(_row.decode(repair_json(part).encode()))
            not_json.append(number)
    return rows, not_json


def _decode_row(
    collection: Collection,
    sent: PushRow,
    user_id: str,
    dims: Mapping[str, int],
    *,
    is_repaired: bool,
) -> IncomingRow:
    """Decode one row and validate it. Raises BadRequest if it has no id, or if the assumed state is not an object."""
    row, is_in_range = _decoded(sent.newDocumentState)
    assumed, _ = _decoded(sent.assumedMasterState)
    if not isinstance(row, dict) or not isinstance(row.get(collection.primary_key), str):
        raise BadRequest(f"Every row needs a string `{collection.primary_key}`. Nothing was changed.")
    if assumed is not None and not isinstance(assumed, dict):
        raise BadRequest("`assumedMasterState` must be an object. Nothing was changed.")
    key = f"{collection.name}/{row[collection.primary_key]}"
    body = bytes(sent.newDocumentState)
    problem = None
    if row.get("_deleted") is not True:
        problem = find_problem(collection, row, user_id, dims) if is_in_range else NO_NUMBER
    altered = is_repaired and REPLACEMENT.encode() in body
    return IncomingRow(key, row, body, assumed, problem, altered=altered, imported=sent.imported)


def _decoded(sent: msgspec.Raw) -> tuple[Any, bool]:
    """Return the value, and whether its numbers are in range. A number such as 1e400 must reject only its own row."""
    if sent == _NULL:
        return None, True
    try:
        return msgspec.json.decode(sent), True
    except msgspec.ValidationError:
        return decode_large_numbers(bytes(sent)), False


def find_problem(
    collection: Collection, row: Json, user_id: str, dims: Mapping[str, int] = _NO_MODELS
) -> str | None:
    """Return why a live row is invalid, or None if it is valid. `dims`: as in `decode_batch`."""
    try:
        collection.validate(row)
    except msgspec.ValidationError as error:
        return describe_problem(str(error), "The row")
    if row.get("userId", user_id) != user_id:
        return "`userId` is not the id of this account."
    if row.get("embedding") is not None:  # only blocks have an embedding
        return vector_codec.find_vector_problem(row["embedding"], row["dims"], dims.get(row["model"]))
    return None

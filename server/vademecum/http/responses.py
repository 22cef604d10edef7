"""What answers have in common: rows go out as they are stored, lists in pages, with the scope they were read in; events
on a connection that is held."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import Response
from litestar.openapi.datastructures import ResponseSpec
from litestar.response import Stream

from vademecum.model.memory.scope import MemoryScope
from vademecum.model.schema.collections import Json
from vademecum.services.sync.pagination import Page

SCOPE = "X-Vademecum-Scope"
EVENTS = "text/event-stream"
HEARTBEAT = b": hb\n\n"  # a sign of life, which no client takes for an event


class Deleted(msgspec.Struct):
    deleted: int


def response_spec(
    answer: Any, status: int = 200, media_type: str = "application/json"
) -> dict[int, ResponseSpec]:
    """What the schema says of an answer that is put together of stored rows, or of the data of each event."""
    return {status: ResponseSpec(answer, False, "Request fulfilled", media_type)}


def event_stream(events: AsyncIterator[bytes]) -> Stream:
    """No proxy keeps it back."""
    return Stream(
        events,
        media_type=EVENTS,
        headers={"X-Accel-Buffering": "no"},
    )


def json_response(row: bytes, status: int = 200, scope: MemoryScope | None = None) -> Response[bytes]:
    """`scope`: where the row was read or written, told in a header, for the body is the row alone."""
    echoed = {SCOPE: msgspec.json.encode(scope).decode()} if scope is not None else {}
    return Response(row, status_code=status, media_type="application/json", headers=echoed)


def row_response(row: Json, *, new: bool, scope: MemoryScope | None = None) -> Response[bytes]:
    return json_response(msgspec.json.encode(row), 201 if new else 200, scope)


def page_response(name: str, page: Page, scope: MemoryScope | None = None) -> Response[bytes]:
    """`name`: the field that holds the rows."""
    echoed = {"scope": scope} if scope is not None else {}
    answer = {**echoed, name: [msgspec.Raw(row) for row in page.rows], "next": page.next}
    return json_response(msgspec.json.encode(answer))

"""Build responses: stored rows, pages of rows with their scope, and event streams."""

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
HEARTBEAT = b": hb\n\n"  # an SSE comment, which clients ignore


class Deleted(msgspec.Struct):
    deleted: int


def response_spec(
    answer: Any, status: int = 200, media_type: str = "application/json"
) -> dict[int, ResponseSpec]:
    """Describe, for the OpenAPI document, a response with stored rows or the data of a stream's events."""
    return {status: ResponseSpec(answer, False, "Request fulfilled", media_type)}


def event_stream(events: AsyncIterator[bytes]) -> Stream:
    """Return a response that streams server-sent events and that proxies do not buffer."""
    return Stream(events, media_type=EVENTS, headers={"X-Accel-Buffering": "no"})


def json_response(row: bytes, status: int = 200, scope: MemoryScope | None = None) -> Response[bytes]:
    """Return a response with a row. The scope goes into a header, because the body is the row itself."""
    headers = {SCOPE: msgspec.json.encode(scope).decode()} if scope is not None else {}
    return Response(row, status_code=status, media_type="application/json", headers=headers)


def row_response(row: Json, *, new: bool, scope: MemoryScope | None = None) -> Response[bytes]:
    return json_response(msgspec.json.encode(row), 201 if new else 200, scope)


def page_response(name: str, page: Page, scope: MemoryScope | None = None) -> Response[bytes]:
    """Return a response with a page of rows. `name` is the JSON field that contains the rows."""
    prefix = {"scope": scope} if scope is not None else {}
    answer = {**prefix, name: [msgspec.Raw(row) for row in page.rows], "next": page.next}
    return json_response(msgspec.json.encode(answer))

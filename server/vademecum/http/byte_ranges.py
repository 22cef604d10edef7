"""Respond with a whole file, a range of it, or 304 if the client has the current version (RFC 9110, 13 and 14)."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litestar import Request
from litestar.exceptions import HTTPException
from litestar.response.base import ASGIResponse
from litestar.response.streaming import ASGIStreamingResponse

from vademecum.http.head_requests import HEAD

IMMUTABLE = "public, max-age=31536000, immutable"
REVALIDATE = "no-cache"
_READ = 2**18
_TAG = re.compile(r'(?:W/)?("[^"]*")')
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file and its response headers. `tag` must change when the content changes. `more` holds additional headers."""

    path: Path
    size: int
    tag: str
    media_type: str
    cache: str
    encoding: str = ""
    more: Mapping[str, str] = field(default_factory=dict)


def requested_range(header: str, size: int) -> range | None:
    """Return the byte range that a Range header requests. The range is empty if it lies outside the file.

    Return None for the whole file: the header is absent or malformed, or has several ranges, which are not supported.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.group() == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    if last and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1, size) if last else size)


def etag_matches(header: str, etag: str) -> bool:
    """Return whether an If-None-Match header contains this tag or `*`. A weak tag in the header matches, too."""
    return header.strip() == "*" or etag in _TAG.findall(header)


def file_response(request: Request[Any, Any, Any], file: ServedFile) -> ASGIResponse:
    """Respond to a GET or HEAD of this file. Raises 416 for a range beyond its end."""
    etag = f'"{file.tag}"'
    headers = {"ETag": etag, "Cache-Control": file.cache, "Accept-Ranges": "bytes", **file.more}
    if file.encoding:
        headers |= {"Content-Encoding": file.encoding, "Vary": "Accept-Encoding"}
    if etag_matches(request.headers.get("if-none-match", ""), etag):
        return ASGIResponse(status_code=304, headers=headers)
    span = None
    is_head = HEAD in request.scope
    if not is_head and request.headers.get("if-range", etag) == etag:
        span = requested_range(request.headers.get("range", ""), file.size)
    if span is not None:
        if not span:
            raise _range_not_satisfiable(file.size)
        headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{file.size}"
    content = range(file.size) if span is None else span
    return ASGIStreamingResponse(
        iterator=_bytes(file.path, content),
        status_code=200 if span is None else 206,
        is_head_response=is_head,
        headers={**headers, "Content-Type": file.media_type, "Content-Length": str(len(content))},
    )


def _range_not_satisfiable(size: int) -> HTTPException:
    return HTTPException(
        f"The requested range is beyond the end of the file, which has {size} bytes.",
        status_code=416,
        headers={"Content-Range": f"bytes */{size}"},
    )


async def _bytes(path: Path, span: range) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        file.seek(span.start)
        remaining = len(span)
        while remaining > 0 and (piece := await asyncio.to_thread(file.read, min(_READ, remaining))):
            remaining -= len(piece)
            yield piece

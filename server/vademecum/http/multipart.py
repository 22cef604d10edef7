"""Read the multipart form of an upload before Litestar does.

Litestar decodes each part with the encoding that the part names. That encoding may not exist, or may be one such as
Punycode, which Python decodes in quadratic time while the event loop is blocked.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, cast

from litestar import Request
from litestar.datastructures import UploadFile
from litestar.utils.scope.state import ScopeState
from multipart import MultipartSegment, ParserError, ParserLimitReached, PushMultipartParser

from vademecum.errors import BadRequest
from vademecum.http.parameters import Req, reject_compressed
from vademecum.http.upload_names import decode_filename
from vademecum.model.sync.quotas import Limits
from vademecum.services.documents.upload import check_file_size

PARTS_MAX = 100
FIELD_MAX = 10_000  # maximum bytes of a part that is not a file


async def read_form(request: Request[Any, Any, Any]) -> None:
    """Parse the form of the request before Litestar does (a `before_request` hook). Raises BadRequest, TooLarge.

    A file larger than 1 MB goes to a temporary file without a name, which the system removes when it is closed.
    """
    await reject_compressed(request)
    boundary = request.content_type[1].get("boundary", "")
    form = _Form(cast(Req, request).limits)
    try:
        await _read(request, boundary, form)
    except BaseException:
        await form.close()
        raise
    # Litestar uses this parsed form instead of parsing the body, and closes its files after the response.
    ScopeState.from_scope(request.scope).form = form.values()


async def _read(request: Request[Any, Any, Any], boundary: str, form: _Form) -> None:
    stream = request.stream()
    try:
        with PushMultipartParser(boundary, max_segment_count=PARTS_MAX) as parser:
            while not parser.closed:
                chunk = await anext(stream, b"")
                for event in parser.parse(chunk):
                    await form.feed(event)
    except ParserLimitReached as error:
        raise BadRequest(
            f"The form has more than {PARTS_MAX} parts, or the header of a part is too long. Nothing was stored."
        ) from error
    except ParserError as error:
        raise BadRequest(
            "The body is not a complete multipart/form-data form with a boundary. Nothing was stored."
        ) from error


class _Form:
    """Build the form's fields from the parser's events: the header of a part, pieces of its content, None at its end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._size = 0  # bytes of the current part's file
        self._fields: defaultdict[str, list[UploadFile | str]] = defaultdict(list)
        self._files: list[UploadFile] = []
        self._name = ""
        self._content: UploadFile | bytearray = bytearray()

    async def feed(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, MultipartSegment):
            self._name = event.name or ""
            filename = decode_filename(event)
            self._content = self._open_file(event, filename) if filename else bytearray()
            self._size = 0
        elif event is None:
            self._fields[self._name].append(await self._finish_part())
        elif isinstance(self._content, UploadFile):
            self._size += len(event)
            check_file_size(self._content.filename, self._size, self._limits)
            await self._content.write(bytes(event))
        else:
            self._content += event
            if len(self._content) > FIELD_MAX:
                raise BadRequest(
                    f"A form field is larger than {FIELD_MAX} bytes. Nothing was stored. Send files with a filename."
                )

    async def _finish_part(self) -> UploadFile | str:
        if isinstance(self._content, UploadFile):
            await self._content.seek(0)
            return self._content
        try:
            return self._content.decode()
        except UnicodeDecodeError as error:
            raise BadRequest("A form field is not UTF-8. Nothing was stored.") from error

    def values(self) -> dict[str, Any]:
        """Return the fields. Repeated fields become lists, so validation rejects them."""
        return {name: items if len(items) > 1 else items[0] for name, items in self._fields.items()}

    def _open_file(self, header: MultipartSegment, filename: str) -> UploadFile:
        file = UploadFile(
            content_type=header.content_type or "text/plain",
            filename=filename,
            headers=dict(header.headerlist),
        )
        self._files.append(file)
        return file

    async def close(self) -> None:
        for file in self._files:
            await file.close()

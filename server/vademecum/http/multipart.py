"""The form of an upload, read here before Litestar would: it takes each part for the encoding that the part names, which
may be none, or one (Punycode) that Python reads in a time that grows by the square while nobody else is answered."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from litestar.datastructures import UploadFile
from litestar.utils.scope.state import ScopeState
from multipart import MultipartSegment, ParserError, ParserLimitReached, PushMultipartParser

from vademecum.errors import BadRequest
from vademecum.http.parameters import Req, reject_compressed
from vademecum.http.upload_names import decode_filename

PARTS_MAX = 100
FIELD_MAX = 10_000  # bytes of a part that is no file


async def read_form(request: Req) -> None:
    """For `before_request`. Raises BadRequest."""
    await reject_compressed(request)
    boundary = request.content_type[1].get("boundary", "")
    form = _Form()
    try:
        await _read(request, boundary, form)
    except BaseException:
        await form.close()
        raise
    # Litestar takes what is here already, and closes the files when it has answered.
    ScopeState.from_scope(request.scope).form = form.values()


async def _read(request: Req, boundary: str, form: _Form) -> None:
    stream = request.stream()
    try:
        with PushMultipartParser(boundary, max_segment_count=PARTS_MAX) as parser:
            while not parser.closed:
                chunk = await anext(stream, b"")
                for found in parser.parse(chunk):
                    await form.take(found)
    except ParserLimitReached as error:
        raise BadRequest(
            f"The form has more than {PARTS_MAX} parts, or too long a head of one. Nothing was stored."
        ) from error
    except ParserError as error:
        raise BadRequest(
            "The body is no whole form (multipart/form-data, with its boundary). Nothing was stored."
        ) from error


class _Form:
    """Takes what the parser finds: the head of a part, its bytes piece by piece, and None for its end."""

    def __init__(self) -> None:
        self._fields: defaultdict[str, list[UploadFile | str]] = defaultdict(list)
        self._files: list[UploadFile] = []
        self._name = ""
        self._content: UploadFile | bytearray = bytearray()

    async def take(self, found: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(found, MultipartSegment):
            self._name = found.name or ""
            filename = decode_filename(found)
            self._content = self._file(found, filename) if filename else bytearray()
        elif found is None:
            self._fields[self._name].append(await self._ended())
        elif isinstance(self._content, UploadFile):
            await self._content.write(bytes(found))
        else:
            self._content += found
            if len(self._content) > FIELD_MAX:
                raise BadRequest(
                    f"A field that is no file has at most {FIELD_MAX} bytes. Nothing was stored."
                )

    async def _ended(self) -> UploadFile | str:
        if isinstance(self._content, UploadFile):
            await self._content.seek(0)
            return self._content
        try:
            return self._content.decode()
        except UnicodeDecodeError as error:
            raise BadRequest("A field of the form is not in UTF-8. Nothing was stored.") from error

    def values(self) -> dict[str, Any]:
        """What is there several times is a list, which fits no field."""
        return {name: found if len(found) > 1 else found[0] for name, found in self._fields.items()}

    def _file(self, head: MultipartSegment, filename: str) -> UploadFile:
        file = UploadFile(
            content_type=head.content_type or "text/plain",
            filename=filename,
            headers=dict(head.headerlist),
        )
        self._files.append(file)
        return file

    async def close(self) -> None:
        for file in self._files:
            await file.close()

"""Upload, list, find, borrow, return and delete documents."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

import msgspec
from litestar import Response, delete, get, post, put
from litestar.datastructures import UploadFile
from litestar.params import FromPath, FromQuery, MultipartBody, QueryParameter
from litestar.response import Stream

from vademecum.errors import BadRequest, Busy, Conflict, LimitReached, NotFound, TooLarge, UnreadableFile
from vademecum.http.multipart import read_form
from vademecum.http.parameters import Req, ResultsInAddress
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import Deleted, json_response, response_spec, row_response
from vademecum.model.schema.collections import Document
from vademecum.model.sync.quotas import WARN_FROM
from vademecum.services.documents import borrow as borrowing
from vademecum.services.documents import documents
from vademecum.services.documents.upload import UploadedFile
from vademecum.services.memory.delete import delete_all
from vademecum.services.sync import row_operations
from vademecum.settings import UPLOAD_MAX


class UploadForm(msgspec.Struct, rename="camel"):
    """The form of an upload. If `sessionId` is present, that session borrows the document at once. `id` is an optional new id
    chosen by the client, so that repeating the upload creates no second document."""

    file: UploadFile
    session_id: str | None = None
    id: str | None = None


class DocumentList(msgspec.Struct, rename="camel", kw_only=True):
    count: int
    limit: int
    warn_from: int = WARN_FROM
    documents: list[Document]


class DocumentUploaded(msgspec.Struct):
    document: Document
    existing: bool


class Matches(msgspec.Struct):
    """Documents that a message names, best first. Ask the user before borrowing one."""

    matches: list[Document]


class Suggestions(msgspec.Struct):
    """The documents to delete first, least useful first. `warn` says whether the account is near its limit."""

    count: int
    limit: int
    warn: bool
    suggestions: list[Document]


@post(
    "/v1/documents",
    request_max_body_size=UPLOAD_MAX,
    before_request=read_form,
    opt={"rate": "upload"},
    operation_id="uploadDocument",
    tags=["documents"],
    summary="Upload a file",
    responses=response_spec(DocumentUploaded, 201)
    | problem_specs(NotFound, Conflict, TooLarge, LimitReached, UnreadableFile, Busy),
)
async def upload_route(request: Req, data: MultipartBody[UploadForm]) -> Response[bytes]:
    """Store the text of a file as a document. The file itself is not kept. Identical files are stored only once; for a
    repeated upload `existing` is true. The document can be searched by words at once, and by meaning a little later
    (`status: ready`)."""
    ids = (data.session_id, data.id)
    if not hasattr(data.file.file, "read") or not all(isinstance(given, str | None) for given in ids):
        # Litestar does not validate the types of multipart fields.
        raise BadRequest("`file` must be a file, and `sessionId` and `id` must be ids. Nothing was stored.")
    name = data.file.filename or "document"
    file = UploadedFile(name, data.file.file, data.session_id or None, data.id or None)
    uploaded = await request.services.uploads.upload(request.user.id, file, request.limits)
    return json_response(msgspec.json.encode(uploaded), 201)


def _stream_rows(answer: msgspec.Struct, rows: list[bytes]) -> Stream:
    """Stream `answer` as JSON with the rows in its last field, which must be an empty list.

    Together the rows may have 100 MB, too much to copy into one body.
    """
    empty = msgspec.json.encode(answer)
    assert empty.endswith(b"[]}")

    async def pieces() -> AsyncIterator[bytes]:
        yield empty[:-2]
        for position, row in enumerate(rows):
            yield b"," + row if position else row
        yield empty[-2:]

    return Stream(pieces(), media_type="application/json")


@get(
    "/v1/documents",
    operation_id="listDocuments",
    tags=["documents"],
    summary="List all documents",
    responses=response_spec(DocumentList),
)
async def list_route(request: Req) -> Stream:
    """List the documents of the account without their text, newest first. `limit` is the maximum number of documents of the
    account. Warn the user as soon as `count` reaches `warnFrom`."""
    async with request.open_store() as store:
        rows = await documents.list_documents(store)
    return _stream_rows(DocumentList(count=len(rows), limit=request.limits.documents, documents=[]), rows)


@get(
    "/v1/documents/lookup",
    operation_id="lookUpDocuments",
    tags=["documents"],
    summary="Find documents by name",
    responses=response_spec(Matches),
)
async def lookup_route(
    request: Req,
    name: FromQuery[str],
    session_id: Annotated[str, QueryParameter(name="sessionId")] = "",
) -> Stream:
    """Return the documents that a filename or a whole message names, best match first. Documents that the session has already
    borrowed are left out. Ask the user before the session borrows a document."""
    if not name.strip():
        raise BadRequest("`name` is empty. Send a filename or a message.")
    async with request.open_store() as store:
        rows = await documents.find_by_name(store, name[:10_000], session_id)
    return _stream_rows(Matches([]), rows)


@get(
    "/v1/documents/suggestions",
    operation_id="suggestDeletions",
    tags=["documents"],
    summary="Suggest documents to delete",
    responses=response_spec(Suggestions),
)
async def suggestions_route(request: Req, limit: ResultsInAddress = 5) -> Stream:
    """Suggest documents to delete, least useful first: unused by any session, then not used for a long time, then rarely
    used."""
    async with request.open_store() as store:
        rows = await documents.suggest_cleanup(store, limit)
        count = store.usage.documents
    return _stream_rows(Suggestions(count, request.limits.documents, count >= WARN_FROM, []), rows)


@get(
    "/v1/documents/{document_id:str}",
    operation_id="getDocument",
    tags=["documents"],
    summary="Get one document",
    responses=response_spec(Document) | problem_specs(NotFound),
)
async def get_route(request: Req, document_id: FromPath[str]) -> Response[bytes]:
    """Return the metadata of a document. Its text is in the rows of `vectorEmbeddings`."""
    async with request.open_store() as store:
        return json_response(await row_operations.read(store, "documents", document_id))


@delete(
    "/v1/documents/{document_id:str}",
    status_code=200,
    operation_id="deleteDocument",
    tags=["documents"],
    summary="Delete one document",
    responses=problem_specs(NotFound),
)
async def delete_route(request: Req, document_id: FromPath[str]) -> Deleted:
    """Delete a document with its text and vectors from every device. Facts from the document are kept and marked
    `sourceRemoved`."""
    await request.write(lambda tx: row_operations.delete_unscoped(tx, "documents", document_id))
    return Deleted(1)


@delete(
    "/v1/documents",
    status_code=200,
    operation_id="deleteAllDocuments",
    tags=["documents"],
    summary="Delete all documents",
)
async def delete_all_route(request: Req) -> Deleted:
    """Delete all documents with their texts and vectors from every device. Facts from the documents are kept and marked
    `sourceRemoved`."""
    # Reject the path of a single document with an empty id.
    if not request.scope["raw_path"].endswith(b"/documents"):
        raise BadRequest(
            "Add an id to delete one document, or omit the last `/` to delete all. Nothing was deleted."
        )
    return Deleted(await request.write(partial(delete_all, collection="documents")))


@put(
    "/v1/documents/{document_id:str}/sessions/{session_id:str}",
    operation_id="borrowDocument",
    tags=["documents"],
    summary="Let a session borrow a document",
    responses=response_spec(Document) | problem_specs(NotFound, Conflict),
)
async def borrow_route(
    request: Req, document_id: FromPath[str], session_id: FromPath[str]
) -> Response[bytes]:
    """Let a session borrow a document. A session searches only the documents that it has borrowed; `activeSessions` of a
    document lists its sessions. The request is idempotent."""
    row = await request.write(lambda tx: borrowing.borrow(tx, document_id, session_id))
    return row_response(row, new=False)


@delete(
    "/v1/documents/{document_id:str}/sessions/{session_id:str}",
    status_code=200,
    operation_id="returnDocument",
    tags=["documents"],
    summary="Return a document from a session",
    responses=response_spec(Document) | problem_specs(NotFound),
)
async def return_route(
    request: Req, document_id: FromPath[str], session_id: FromPath[str]
) -> Response[bytes]:
    """Return a borrowed document, so that the session no longer searches it. The document is not deleted; any session can
    borrow it again."""
    row = await request.write(lambda tx: borrowing.return_document(tx, document_id, session_id))
    return row_response(row, new=False)


ROUTES = [
    upload_route,
    list_route,
    lookup_route,
    suggestions_route,
    get_route,
    delete_route,
    delete_all_route,
    borrow_route,
    return_route,
]

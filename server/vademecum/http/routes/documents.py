"""Documents: upload, list, get, delete, borrow and return, lookup by name, what to delete."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

import msgspec
from litestar import Response, delete, get, post, put
from litestar.datastructures import State, UploadFile
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
from vademecum.services.documents.upload import UploadedFile, upload
from vademecum.services.memory.delete import delete_all
from vademecum.services.runtime.container import Services
from vademecum.services.sync import write_row
from vademecum.settings import UPLOAD_MAX


class UploadForm(msgspec.Struct, rename="camel"):
    """`file`: the document; `sessionId`: the session that borrows it at once (optional); `id`: the document's id, new
    and chosen by the client (optional): sent again with the same file it makes no second document."""

    file: UploadFile
    session_id: str | None = None
    id: str | None = None


class DocumentList(msgspec.Struct, rename="camel", kw_only=True):
    count: int
    limit: int
    warn_from: int = WARN_FROM
    documents: list[Document]


class DocumentUploaded(msgspec.Struct):
    """An `Uploaded`, as it is sent."""

    document: Document
    existing: bool


class Matches(msgspec.Struct):
    """Documents of the pool that a message names, best first; ask before borrowing one."""

    matches: list[Document]


class Suggestions(msgspec.Struct):
    """What would be missed least, first."""

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
async def upload_route(request: Req, data: MultipartBody[UploadForm], state: State) -> Response[bytes]:
    """Store a file's text as a document. The text is kept and the file is not. Same bytes twice are stored once:
    `existing` says so. It can be searched by words at once, and by meaning a little later (`status: ready`)."""
    services: Services = state.services
    ids = (data.session_id, data.id)
    if not hasattr(data.file.file, "read") or not all(isinstance(given, str | None) for given in ids):
        # a form's fields are what the client makes of them, whatever the types above say
        raise BadRequest("`file` must be a file, `sessionId` and `id` ids. Nothing was stored.")
    name = data.file.filename or "document"
    file = UploadedFile(name, data.file.read, data.session_id or None, data.id or None)
    uploaded = await upload(services, request.user, file)
    return json_response(msgspec.json.encode(uploaded), 201)


def _stream_rows(answer: msgspec.Struct, found: list[bytes]) -> Stream:
    """`answer`, whose last field is an empty list, with `found` in it: as they are stored, and sent one by one,
    because together they may have 100 MB."""
    empty = msgspec.json.encode(answer)
    assert empty.endswith(b"[]}")

    async def pieces() -> AsyncIterator[bytes]:
        yield empty[:-2]
        for position, row in enumerate(found):
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
async def list_route(request: Req, state: State) -> Stream:
    """Newest first, without their text. `limit` is how many the account may hold; warn from `warnFrom` on."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        listed = await documents.list_documents(store)
    limit = services.limits(request.user).documents
    return _stream_rows(DocumentList(count=len(listed), limit=limit, documents=[]), listed)


@get(
    "/v1/documents/lookup",
    operation_id="lookUpDocuments",
    tags=["documents"],
    summary="Find documents by name",
    responses=response_spec(Matches),
)
async def lookup_route(
    request: Req,
    state: State,
    name: FromQuery[str],
    session_id: Annotated[str, QueryParameter(name="sessionId")] = "",
) -> Stream:
    """Documents that a filename or a whole message names, best first, without those that the session uses already.
    Ask the person before lending one to the session."""
    services: Services = state.services
    if not name.strip():
        raise BadRequest("`name` is empty.")
    async with services.users.open(request.user.id) as store:
        named = await documents.find_by_name(store, name[:10_000], session_id)
    return _stream_rows(Matches([]), named)


@get(
    "/v1/documents/suggestions",
    operation_id="suggestDeletions",
    tags=["documents"],
    summary="Suggest what to delete",
    responses=response_spec(Suggestions),
)
async def suggestions_route(request: Req, state: State, limit: ResultsInAddress = 5) -> Stream:
    """What would be missed least, first: used by no session, not used for long, used seldom."""
    services: Services = state.services
    room = services.limits(request.user).documents
    async with services.users.open(request.user.id) as store:
        suggested = await documents.suggest_cleanup(store, limit)
        held = store.usage.documents
    return _stream_rows(Suggestions(held, room, held >= WARN_FROM, []), suggested)


@get(
    "/v1/documents/{document_id:str}",
    operation_id="getDocument",
    tags=["documents"],
    summary="Get one document",
    responses=response_spec(Document) | problem_specs(NotFound),
)
async def get_route(request: Req, state: State, document_id: FromPath[str]) -> Response[bytes]:
    """What is known of a document. Its text is in the rows of `vectorEmbeddings`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return json_response(await write_row.read(store, "documents", document_id))


@delete(
    "/v1/documents/{document_id:str}",
    status_code=200,
    operation_id="deleteDocument",
    tags=["documents"],
    summary="Delete one document",
    responses=problem_specs(NotFound),
)
async def delete_route(request: Req, state: State, document_id: FromPath[str]) -> Deleted:
    """Its text and vectors go from every device; facts drawn from it stay, marked `sourceRemoved`."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        await store.write(lambda tx: write_row.delete_unscoped(tx, "documents", document_id))
    return Deleted(1)


@delete(
    "/v1/documents",
    status_code=200,
    operation_id="deleteAllDocuments",
    tags=["documents"],
    summary="Delete all documents",
)
async def delete_all_route(request: Req, state: State) -> Deleted:
    """Their texts and vectors go from every device; facts drawn from them stay, marked `sourceRemoved`."""
    if not request.scope["raw_path"].endswith(
        b"/documents"
    ):  # the address of one, made with an id that is empty
        raise BadRequest(
            "To delete one document, name it; to delete all of them, leave out the last `/`. Nothing was deleted."
        )
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        return Deleted(await store.write(partial(delete_all, collection="documents")))


@put(
    "/v1/documents/{document_id:str}/sessions/{session_id:str}",
    operation_id="borrowDocument",
    tags=["documents"],
    summary="Let a session use a document",
    responses=response_spec(Document) | problem_specs(NotFound, Conflict),
)
async def borrow_route(
    request: Req, state: State, document_id: FromPath[str], session_id: FromPath[str]
) -> Response[bytes]:
    """A session searches only what it has borrowed (`activeSessions`). Borrowing twice is borrowing once."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        row = await store.write(lambda tx: borrowing.borrow(tx, document_id, session_id))
    return row_response(row, new=False)


@delete(
    "/v1/documents/{document_id:str}/sessions/{session_id:str}",
    status_code=200,
    operation_id="returnDocument",
    tags=["documents"],
    summary="Take a document out of a session",
    responses=response_spec(Document) | problem_specs(NotFound),
)
async def return_route(
    request: Req, state: State, document_id: FromPath[str], session_id: FromPath[str]
) -> Response[bytes]:
    """The document stays in the pool, where any session can borrow it."""
    services: Services = state.services
    async with services.users.open(request.user.id) as store:
        row = await store.write(lambda tx: borrowing.return_document(tx, document_id, session_id))
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

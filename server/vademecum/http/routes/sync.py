"""Define the sync routes: pull, push and two event streams. Unmodified RxDB clients must be able to use them."""

import asyncio
import math
import weakref
from collections.abc import AsyncIterator
from contextlib import ExitStack

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from vademecum.errors import BadRequest, NotFound, OtherEpoch, Outdated, TooManyStreams, TooNew
from vademecum.http.parameters import PAGE_DEFAULT, Req, RowsOfPage
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import EVENTS, HEARTBEAT, event_stream
from vademecum.model.schema.collections import Collection, Registry
from vademecum.model.sync.transaction import Transaction
from vademecum.services.models.browser_models import dimensions
from vademecum.services.sync.pull import RollbackDetected, check_epoch, pull
from vademecum.services.sync.push import push
from vademecum.services.sync.push_decoding import decode_batch
from vademecum.services.sync.stale_restore import start_new_epoch
from vademecum.services.sync.stream import Subscription

REFUSALS = problem_specs(NotFound, OtherEpoch, Outdated, TooNew)
STREAM_REFUSALS = problem_specs(NotFound, Outdated, TooNew, TooManyStreams)
RETRY_S = 60
DECODE_IN_THREAD_BYTES = 2**16  # decoding a body of this size on the event loop would delay other requests


def find_collection(registry: Registry, name: str, version: int) -> Collection:
    """Return the collection with this name.

    Raises NotFound for an unknown name, Outdated for an older schema version and TooNew for a newer one.
    """
    collection = registry.synced.get(name)
    if collection is None:
        raise NotFound(f"There is no collection {name}.")
    if version < collection.version:
        raise Outdated(
            f"This app is out of date (schema {version}, the server has {collection.version}). Your changes are safe "
            "on this device. Update the app to send them."
        )
    if version > collection.version:
        raise TooNew(
            f"The server does not know schema {version} of {name} yet. Your changes are safe on this device and will be "
            "sent when the server is updated.",
            retry_after_s=RETRY_S,
        )
    return collection


def _parse_integer(name: str, text: str) -> int:
    """Parse an integer, also in float notation, which some clients send for `lwt`. An empty text is 0. Raises BadRequest."""
    try:
        value = float(text or 0)
    except ValueError:
        value = math.nan
    if not value.is_integer() or abs(value) > 2**53:
        raise BadRequest(f"`{name}` must be a whole number. Nothing was read.")
    return int(value)


@get(
    "/v1/sync/{name:str}/{version:int}/pull",
    operation_id="pull",
    tags=["sync"],
    summary="Pull changed rows",
    responses=REFUSALS,
)
async def pull_route(
    request: Req,
    name: FromPath[str],
    version: FromPath[int],
    lwt: FromQuery[str] = "0",
    id: FromQuery[str] = "",
    limit: RowsOfPage = PAGE_DEFAULT,
) -> Response[bytes] | Stream:
    """Return at most `limit` rows after the checkpoint (`lwt`, `id`). A page with fewer rows is the last one. Start without a
    checkpoint and continue with the checkpoint of each response. Each row is in its latest state; deleted rows are included
    (`_deleted`)."""
    find_collection(request.services.registry, name, version)
    seq = _parse_integer("lwt", lwt)
    try:
        page = await pull(request.services.users, request.user.id, name, seq, id, limit)
    except RollbackDetected as proof:
        services = request.services
        await start_new_epoch(services.users, services.background_jobs, request.user.id, (proof.epoch, seq))
        page = await pull(
            request.services.users, request.user.id, name, seq, id, limit
        )  # raises OtherEpoch now
    if isinstance(page, bytes):
        return Response(page, media_type="application/json")
    return Stream(page, media_type="application/json")


@post(
    "/v1/sync/{name:str}/{version:int}/push",
    status_code=200,
    opt={"rate": "push"},
    operation_id="push",
    tags=["sync"],
    summary="Push rows",
    responses=REFUSALS,
)
async def push_route(
    request: Req, name: FromPath[str], version: FromPath[int], epoch: FromQuery[str] = ""
) -> Response[bytes]:
    """Store changed rows. The response contains the rows whose stored state differs from the sent state; `[]` means that all
    rows were accepted. A returned row is either the server's current state (merged, or deleted elsewhere) or a rejected row
    with a `syncError`. A rejected row is returned as sent, or merged if another device changed it in the meantime.
    `assumedMasterState` is the last state that this device received from the server. To delete a row, send it with
    `_deleted: true`."""
    collection = find_collection(request.services.registry, name, version)
    body = await request.body()
    dims = (
        await asyncio.to_thread(dimensions, request.services.settings) if name == "vectorEmbeddings" else {}
    )
    if len(body) < DECODE_IN_THREAD_BYTES:
        batch = decode_batch(collection, body, request.user.id, dims)
    else:
        batch = await asyncio.to_thread(decode_batch, collection, body, request.user.id, dims)
    limits = request.limits

    def work(tx: Transaction) -> bytes:
        return msgspec.json.encode(push(tx, collection, batch, limits))

    async with request.open_store() as store:
        check_epoch(store, epoch)
        answers = await store.write(work)
    return Response(answers, media_type="application/json")


@get(
    "/v1/sync/{name:str}/{version:int}/pullStream",
    media_type=EVENTS,
    operation_id="followCollection",
    tags=["sync"],
    summary="Stream the changes of one collection",
    responses=STREAM_REFUSALS,
)
async def pull_stream_route(request: Req, name: FromPath[str], version: FromPath[int]) -> Stream:
    """Stream each commit of the account as an event while the connection is open. Subscribe before you pull: changes in
    between then arrive twice rather than never. When the server closes the stream, subscribe and pull again.

    A stream of `documents` also has events named `progress`, which contain no rows. Their data, `{documentId, done, of}`,
    counts the embedded chunks of a document, at most twice a second."""
    find_collection(request.services.registry, name, version)
    return _stream(request, frozenset({name}), named=False)


@get(
    "/v1/sync/stream",
    operation_id="followAll",
    tags=["sync"],
    summary="Stream the changes of all collections",
    media_type=EVENTS,
    responses=STREAM_REFUSALS,
)
async def stream_route(request: Req, versions: FromQuery[str] = "") -> Stream:
    """Stream the commits of several collections over one connection, because browsers limit the connections to a server. The
    events are like those of the stream of one collection, plus the collection's name.
    `?versions=documents:1,sessions:1` selects collections and their schema versions."""
    if not versions:
        return _stream(request, frozenset(request.services.registry.synced), named=True)
    names = set()
    for item in versions.split(","):
        name, _, version = item.partition(":")
        if not version.isascii() or not version.isdigit() or len(version) > 9:
            raise BadRequest("`versions` must be a list such as documents:1,sessions:1.")
        find_collection(request.services.registry, name, int(version))
        names.add(name)
    return _stream(request, frozenset(names), named=True)


def _stream(request: Req, names: frozenset[str], *, named: bool) -> Stream:
    request.services.users.check_not_fenced(request.user.id)
    stack = ExitStack()  # subscribe before the headers are sent, so that no commit is missed
    subscription = stack.enter_context(request.services.hub.subscribe(request.user.id, names, named=named))
    events = _events(request, subscription, stack)
    weakref.finalize(events, stack.close)  # needed if the client disconnects before the first event is read
    return event_stream(events)


async def _events(request: Req, subscription: Subscription, stack: ExitStack) -> AsyncIterator[bytes]:
    tokens = request.services.tokens
    with stack:
        yield b": hello\n\n"
        while tokens.is_valid(request.auth):
            try:
                event = await asyncio.wait_for(subscription.next(), request.services.settings.heartbeat_s)
            except TimeoutError:
                event = b""
            if event is None or not tokens.is_valid(request.auth):
                return
            yield event or HEARTBEAT


ROUTES = [pull_route, push_route, pull_stream_route, stream_route]

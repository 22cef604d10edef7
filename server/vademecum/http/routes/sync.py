"""The wire of replication: pull, push, and both streams. An unmodified RxDB client must be able to use it."""

import asyncio
import math
import weakref
from collections.abc import AsyncIterator
from contextlib import ExitStack

import msgspec
from litestar import Response, get, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from vademecum.errors import BadRequest, NotFound, OtherEpoch, Outdated, TooManyStreams, TooNew
from vademecum.http.parameters import PAGE_DEFAULT, Req, RowsOfPage
from vademecum.http.problem_details import problem_specs
from vademecum.http.responses import EVENTS, HEARTBEAT, event_stream
from vademecum.model.records.accounts import Token
from vademecum.model.schema.collections import Collection, Registry
from vademecum.model.sync.transaction import Transaction
from vademecum.services.accounts.tokens import is_valid
from vademecum.services.models.browser_models import dimensions
from vademecum.services.runtime.container import Services
from vademecum.services.sync.pull import RollbackDetected, check_epoch, pull
from vademecum.services.sync.push import push
from vademecum.services.sync.push_decoding import decode_batch
from vademecum.services.sync.stale_restore import start_new_epoch
from vademecum.services.sync.stream import Subscription

REFUSALS = problem_specs(NotFound, OtherEpoch, Outdated, TooNew)
STREAM_REFUSALS = problem_specs(NotFound, Outdated, TooNew, TooManyStreams)
RETRY_S = 60
BIG = 2**16  # bytes; a larger body is decoded in a thread, so that other requests need not wait


def find_collection(registry: Registry, name: str, version: int) -> Collection:
    """The collection, if it is served in this schema version."""
    collection = registry.synced.get(name)
    if collection is None:
        raise NotFound(f"There is no collection {name}.")
    if version < collection.version:
        raise Outdated(
            f"This app is out of date (schema {version}, the server has {collection.version}). Your changes are safe "
            "on this device; update the app to send them."
        )
    if version > collection.version:
        raise TooNew(
            f"The server does not know schema {version} of {name} yet. Your changes are safe on this device and go "
            "up when the server is updated.",
            retry_after_s=RETRY_S,
        )
    return collection


def _parse_integer(name: str, text: str) -> int:
    """`lwt` may come as a float from a client that thinks of it as a time. Empty means 0. Raises BadRequest."""
    try:
        value = float(text or 0)
    except ValueError:
        value = math.nan
    if not value.is_integer() or abs(value) > 2**53:
        raise BadRequest(f"`{name}` must be a whole number.")
    return int(value)


@get(
    "/v1/sync/{name:str}/{version:int}/pull",
    operation_id="pull",
    tags=["sync"],
    summary="Read the rows that changed",
    responses=REFUSALS,
)
async def pull_route(
    request: Req,
    name: FromPath[str],
    version: FromPath[int],
    state: State,
    lwt: FromQuery[str] = "0",
    id: FromQuery[str] = "",
    limit: RowsOfPage = PAGE_DEFAULT,
) -> Response[bytes] | Stream:
    """Rows after the checkpoint (`lwt`, `id`), at most `limit`; a shorter page is the end. Begin with no checkpoint,
    and go on with the one of each answer. A row comes in its latest state, deleted ones included (`_deleted`)."""
    services: Services = state.services
    find_collection(services.registry, name, version)
    seq = _parse_integer("lwt", lwt)
    try:
        page = await pull(services.users, request.user.id, name, seq, id, limit)
    except RollbackDetected as proof:
        await start_new_epoch(services, request.user.id, (proof.epoch, seq))
        page = await pull(services.users, request.user.id, name, seq, id, limit)  # raises OtherEpoch
    if isinstance(page, bytes):
        return Response(page, media_type="application/json")
    return Stream(page, media_type="application/json")


@post(
    "/v1/sync/{name:str}/{version:int}/push",
    status_code=200,
    opt={"rate": "push"},
    operation_id="push",
    tags=["sync"],
    summary="Send rows",
    responses=REFUSALS,
)
async def push_route(
    request: Req, name: FromPath[str], version: FromPath[int], state: State, epoch: FromQuery[str] = ""
) -> Response[bytes]:
    """The answer holds the rows that did not become what was sent: `[]` means that all were accepted. A row of the
    answer is how the server has it now (merged, or deleted elsewhere), or the row with a `syncError` that says why it
    was refused: as sent, or merged where others changed it meanwhile. `assumedMasterState` is the row as this device
    last had it from the server. To delete a row, send it with `_deleted: true`."""
    services: Services = state.services
    collection = find_collection(services.registry, name, version)
    body = await request.body()
    dims = await asyncio.to_thread(dimensions, services.settings) if name == "vectorEmbeddings" else {}
    if len(body) < BIG:
        batch = decode_batch(collection, body, request.user.id, dims)
    else:
        batch = await asyncio.to_thread(decode_batch, collection, body, request.user.id, dims)
    limits = services.limits(request.user)

    def work(tx: Transaction) -> bytes:
        return msgspec.json.encode(push(tx, collection, batch, limits))

    async with services.users.open(request.user.id) as store:
        check_epoch(store, epoch)
        answers = await store.write(work)
    return Response(answers, media_type="application/json")


@get(
    "/v1/sync/{name:str}/{version:int}/pullStream",
    media_type=EVENTS,
    operation_id="followCollection",
    tags=["sync"],
    summary="Follow one collection",
    responses=STREAM_REFUSALS,
)
async def pull_stream_route(
    request: Req, name: FromPath[str], version: FromPath[int], state: State
) -> Stream:
    """Each commit of the account as an event, for as long as the connection is held. Subscribe first, then pull: what
    comes in between arrives twice rather than never. When the server closes the stream, pull and subscribe again.

    A stream of `documents` has events named `progress`, too, which are no rows: `{documentId, done, of}` says how many
    chunks of a document have been embedded, at most twice a second."""
    services: Services = state.services
    find_collection(services.registry, name, version)
    return _stream(services, request, frozenset({name}), named=False)


@get(
    "/v1/sync/stream",
    operation_id="followAll",
    tags=["sync"],
    summary="Follow all collections on one connection",
    media_type=EVENTS,
    responses=STREAM_REFUSALS,
)
async def stream_route(request: Req, state: State, versions: FromQuery[str] = "") -> Stream:
    """As following one, with the collection's name in each event. A browser allows few connections to a server:
    this takes one for all. `?versions=documents:0,sessions:0` chooses collections and states their schema versions."""
    services: Services = state.services
    if not versions:
        return _stream(services, request, frozenset(services.registry.synced), named=True)
    names = set()
    for item in versions.split(","):
        name, _, version = item.partition(":")
        if not version.isascii() or not version.isdigit() or len(version) > 9:
            raise BadRequest("`versions` is a list like documents:0,sessions:0.")
        find_collection(services.registry, name, int(version))
        names.add(name)
    return _stream(services, request, frozenset(names), named=True)


def _stream(services: Services, request: Req, names: frozenset[str], *, named: bool) -> Stream:
    services.users.check_not_fenced(request.user.id)
    stack = ExitStack()  # subscribed now, before the headers go out, so that nothing falls between
    subscription = stack.enter_context(services.hub.subscribe(request.user.id, names, named=named))
    events = _events(services, request.auth, subscription, stack)
    weakref.finalize(events, stack.close)  # if the client is gone before the first event is asked for
    return event_stream(events)


async def _events(
    services: Services, token: Token, subscription: Subscription, stack: ExitStack
) -> AsyncIterator[bytes]:
    with stack:
        yield b": hello\n\n"
        while is_valid(services, token):
            try:
                event = await asyncio.wait_for(subscription.next(), services.settings.heartbeat_s)
            except TimeoutError:
                event = b""
            if event is None or not is_valid(services, token):
                return
            yield event or HEARTBEAT


ROUTES = [pull_route, push_route, pull_stream_route, stream_route]

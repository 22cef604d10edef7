"""The models, so that a browser can make the same vectors: what there is, and the files.

The files need no sign-in. They are published weights and tell nothing of any user; without a cookie a service worker
or a download that goes on where it stopped needs none either, and their address is their content for ever.
"""

import asyncio
from pathlib import PurePath
from typing import Any

import msgspec
from litestar import Request, get, route
from litestar.datastructures import State
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath
from litestar.response.base import ASGIResponse

from vademecum.engines.onnx.manifest import Chunker, Manifest, Prefixes
from vademecum.errors import Busy, NotFound
from vademecum.http.byte_ranges import IMMUTABLE, ServedFile, file_response
from vademecum.http.openapi.routes import PUBLIC
from vademecum.http.problem_details import MEDIA_TYPE, Problem, problem_specs
from vademecum.model.records.accounts import Account, Token
from vademecum.services.models.active_model import OPEN_TIMEOUT_S
from vademecum.services.models.browser_models import find_file, list_models
from vademecum.services.runtime.container import Services

BINARY = "application/octet-stream"
PATH = "/models/{model:str}/{path:path}"


class Model(Manifest, frozen=True, kw_only=True):
    """A manifest as it is on the disk, and its hash: the `model` of every vector it makes."""

    digest: str = msgspec.field(name="hash")
    # Without their defaults, which the API's document could not show: an answer has them always.
    prefixes: Prefixes
    chunker: Chunker


class Models(msgspec.Struct):
    """`current`: the hash of the model that this server embeds and searches with; null: by words only."""

    current: str | None
    models: list[Model]


@get(
    "/v1/models",
    operation_id="listModels",
    tags=["models"],
    summary="List the embedding models",
    responses=problem_specs(Busy),
)
async def models_route(request: Request[Account, Token, State], state: State) -> Models:
    """With each: what goes in front of a text, how it is cut, and its files with length and SHA-256."""
    services: Services = state.services
    embedder = await services.inference.get(OPEN_TIMEOUT_S)
    found = await asyncio.to_thread(list_models, services.settings)
    models = [
        Model(**{name: getattr(offer.manifest, name) for name in Manifest.__struct_fields__}, digest=digest)
        for digest, offer in found.items()
    ]
    return Models(embedder.model if embedder else None, models)


@get(
    PATH,
    opt={"public": True},
    security=PUBLIC,
    media_type=BINARY,
    operation_id="getModelFile",
    tags=["models"],
    summary="Download a file of a model",
    responses={
        200: ResponseSpec(bytes, False, "The file", BINARY),
        206: ResponseSpec(bytes, False, "The part that `Range` names", BINARY),
        416: ResponseSpec(Problem, False, "`RANGE`", MEDIA_TYPE),
        **problem_specs(NotFound),
    },
)
async def file_route(
    request: Request[Any, Any, State], state: State, model: FromPath[str], path: FromPath[PurePath]
) -> ASGIResponse:
    """Never changes, so it may be kept for ever. One `Range` at a time, so that a download can go on where it stopped;
    `ETag` is the file's SHA-256."""
    return await _file(request, state, model, path)


@route(PATH, http_method="HEAD", opt={"public": True, "rate": "read"}, include_in_schema=False)
async def file_head_route(
    request: Request[Any, Any, State], state: State, model: FromPath[str], path: FromPath[PurePath]
) -> ASGIResponse:
    return await _file(request, state, model, path)


async def _file(request: Request[Any, Any, State], state: State, model: str, path: PurePath) -> ASGIResponse:
    services: Services = state.services
    place, file = await asyncio.to_thread(find_file, services.settings, model, path.as_posix().lstrip("/"))
    return file_response(request, ServedFile(place, file.bytes, file.sha256, BINARY, IMMUTABLE))


ROUTES = [models_route, file_route, file_head_route]

"""Serve the embedding models, so that browsers can compute the same vectors.

The files are public, so service workers and resumed downloads need no cookie. They are published weights without user
data, and the content at a URL never changes.
"""

import asyncio
from pathlib import PurePath

import msgspec
from litestar import get, route
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath
from litestar.response.base import ASGIResponse

from vademecum.engines.onnx.manifest import Chunker, Manifest, Prefixes
from vademecum.engines.onnx.pinned_models import fitted_values
from vademecum.errors import Busy, NotFound
from vademecum.http.byte_ranges import IMMUTABLE, ServedFile, file_response
from vademecum.http.openapi.routes import PUBLIC
from vademecum.http.parameters import Req
from vademecum.http.problem_details import MEDIA_TYPE, Problem, problem_specs
from vademecum.services.models.active_model import OPEN_TIMEOUT_S
from vademecum.services.models.browser_models import find_file, list_models

BINARY = "application/octet-stream"
PATH = "/models/{model:str}/{path:path}"


class Model(Manifest, frozen=True, kw_only=True):
    """The manifest of a model and its hash. Each vector stores the hash of its model in the field `model`."""

    digest: str = msgspec.field(name="hash")
    # These fields are redeclared without defaults, so that the OpenAPI document lists them as required.
    prefixes: Prefixes
    chunker: Chunker


class Models(msgspec.Struct):
    """The installed models. `current` is the hash of the model in use; null if the server searches by words only."""

    current: str | None
    models: list[Model]


@get(
    "/v1/models",
    operation_id="listModels",
    tags=["models"],
    summary="List the embedding models",
    responses=problem_specs(Busy),
)
async def models_route(request: Req) -> Models:
    """List the embedding models, each with its prefixes for texts, its chunker, and the length and SHA-256 of its files."""
    embedder = await request.services.inference.get(OPEN_TIMEOUT_S)
    found = await asyncio.to_thread(list_models, request.services.settings)
    models = [_model(digest, offer.manifest) for digest, offer in found.items()]
    return Models(embedder.model if embedder else None, models)


def _model(digest: str, manifest: Manifest) -> Model:
    """Return the manifest with its hash and with the values that this version of the program uses for the model."""
    fields = {name: getattr(manifest, name) for name in Manifest.__struct_fields__}
    return Model(**fields | {"fitted": fitted_values(manifest)}, digest=digest)


@get(
    PATH,
    opt={"public": True},
    security=PUBLIC,
    media_type=BINARY,
    operation_id="getModelFile",
    tags=["models"],
    summary="Download a model file",
    responses={
        200: ResponseSpec(bytes, False, "The file", BINARY),
        206: ResponseSpec(bytes, False, "The part that `Range` names", BINARY),
        416: ResponseSpec(Problem, False, "`RANGE`", MEDIA_TYPE),
        **problem_specs(NotFound),
    },
)
async def file_route(request: Req, model: FromPath[str], path: FromPath[PurePath]) -> ASGIResponse:
    """Return a file of a model. The file never changes, so clients can cache it forever. A `Range` header with one range
    resumes a download. `ETag` is the file's SHA-256."""
    return await _file(request, model, path)


@route(PATH, http_method="HEAD", opt={"public": True, "rate": "read"}, include_in_schema=False)
async def file_head_route(request: Req, model: FromPath[str], path: FromPath[PurePath]) -> ASGIResponse:
    return await _file(request, model, path)


async def _file(request: Req, model: str, path: PurePath) -> ASGIResponse:
    place, file = await asyncio.to_thread(
        find_file, request.services.settings, model, path.as_posix().lstrip("/")
    )
    return file_response(request, ServedFile(place, file.bytes, file.sha256, BINARY, IMMUTABLE))


ROUTES = [models_route, file_route, file_head_route]

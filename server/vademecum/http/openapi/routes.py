"""Serve the OpenAPI 3.1 document at /schema/openapi.json and an interactive page (Swagger UI) at /schema.

The server serves all files of Swagger UI itself. The page makes no requests to other servers, and its content security
policy forbids them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from litestar import Request, Response, Router
from litestar.datastructures import CacheControlHeader
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin
from litestar.openapi.spec import (
    Components,
    License,
    OpenAPI,
    Reference,
    SecurityRequirement,
    SecurityScheme,
    Tag,
)
from litestar.static_files import create_static_files_router

from vademecum import __version__
from vademecum.errors import NotFound
from vademecum.http.auth import SESSION_COOKIE
from vademecum.http.openapi.schema import DESCRIPTION, TAGS, complete_document
from vademecum.http.problem_details import handle_vademecum_error
from vademecum.model.schema.collections import Collection

# `npm run build` creates this folder from web/api/.
BUILT = Path(__file__).parents[2] / "web" / "api"
# A route that needs no credential declares this `security` for the document and `opt={"public": True}` for the server.
PUBLIC: list[SecurityRequirement] = [{}]
SCHEMES: dict[str, SecurityScheme | Reference] = {
    "token": SecurityScheme(
        type="http", scheme="bearer", description="An API token: `vademecum token create EMAIL`."
    ),
    "cookie": SecurityScheme(
        type="apiKey",
        security_scheme_in="cookie",
        name=SESSION_COOKIE,
        description="An HttpOnly cookie, set by `signIn`. Writes must come from the server's own pages.",
    ),
}
_NOT_BUILT = (
    b"<!doctype html><title>Vademecum</title><p>This page is not built yet: run <code>make install</code>."
)


class SwaggerPage(OpenAPIRenderPlugin):
    def __init__(self) -> None:
        super().__init__(path="/")

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        page = BUILT / "index.html"
        return page.read_bytes() if page.is_file() else _NOT_BUILT


def _no_page_of_litestar(response: Response[Any]) -> Response[Any]:
    """Replace Litestar's own 404 page for unknown paths below /schema with problem details."""
    if response.status_code == 404:
        raise NotFound("There is no such page.")
    return response


def _no_such_file(request: Request[Any, Any, Any], _: ValueError) -> Response[Any]:
    return handle_vademecum_error(request, NotFound("There is no such page."))


class Document(OpenAPI):
    """Litestar's OpenAPI document, completed by `complete_document` when it is first requested."""

    collections: Mapping[str, Collection]

    def to_schema(self) -> dict[str, Any]:
        return complete_document(super().to_schema(), self.collections)


@dataclass
class Config(OpenAPIConfig):
    collections: Mapping[str, Collection] = field(default_factory=dict)

    def to_openapi_schema(self) -> OpenAPI:
        document = Document(**vars(super().to_openapi_schema()))
        document.collections = self.collections
        return document


def openapi_config(collections: Mapping[str, Collection]) -> OpenAPIConfig:
    """Return a new OpenAPI configuration for an app. Apps cannot share one, because Litestar adds routes to its router."""
    return Config(
        collections=collections,
        title="Vademecum",
        version=__version__,
        description=DESCRIPTION,
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        components=Components(security_schemes=SCHEMES),
        security=[{"token": []}, {"cookie": []}],
        tags=[Tag(name=name, description=text) for name, text in TAGS.items()],
        use_handler_docstrings=True,
        render_plugins=[JsonRenderPlugin(), SwaggerPage()],
        openapi_router=Router(
            "/schema",
            route_handlers=[],
            include_in_schema=False,
            opt={"public": True},
            after_request=_no_page_of_litestar,
        ),
    )


def swagger_files() -> list[Router]:
    """Return a router for the scripts and styles of the page, or an empty list if they have not been built."""
    if not BUILT.is_dir():
        return []
    public = {"public": True}
    return [
        create_static_files_router(
            "/schema/files",
            [BUILT],
            name="api-page",
            opt=public,
            include_in_schema=False,
            cache_control=CacheControlHeader(no_cache=True),
            exception_handlers={ValueError: _no_such_file},  # raised for a name with a NUL character
        )
    ]

"""What the API can do, as OpenAPI 3.1 at /schema/openapi.json and as a page to try it at /schema.

The page is Swagger UI, served from here: it asks nothing of anybody else, and its policy forbids it to.
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

# Made by `npm run build` from web/api/.
BUILT = Path(__file__).parents[2] / "web" / "api"
# For a route that needs no credential, beside `opt={"public": True}`.
PUBLIC: list[SecurityRequirement] = [{}]
SCHEMES: dict[str, SecurityScheme | Reference] = {
    "token": SecurityScheme(
        type="http", scheme="bearer", description="An API token: `vademecum token create EMAIL`."
    ),
    "cookie": SecurityScheme(
        type="apiKey",
        security_scheme_in="cookie",
        name=SESSION_COOKIE,
        description="HttpOnly, from `signIn`. Writes must come from the server's own pages.",
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
    """Litestar answers unknown paths below /schema with a page of its own; an error here is always a problem."""
    if response.status_code == 404:
        raise NotFound("There is no such page.")
    return response


def _no_such_file(request: Request[Any, Any, Any], _: ValueError) -> Response[Any]:
    return handle_vademecum_error(request, NotFound("There is no such page."))


class Document(OpenAPI):
    """Litestar's, completed when it is first asked for."""

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
    """One for each app: litestar puts the routes into the router."""
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
    """The page's scripts and styles, when they are built."""
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
            exception_handlers={ValueError: _no_such_file},  # a name with a NUL
        )
    ]

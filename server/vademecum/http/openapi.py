"""What the API can do, as OpenAPI 3.1 at /schema/openapi.json and as a page to try it at /schema.

The page is Swagger UI, served from here: it asks nothing of anybody else, and its policy forbids it to.
"""

from pathlib import Path
from typing import Any

from litestar import Request, Response, Router
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.static_files import create_static_files_router

from vademecum import __version__
from vademecum.errors import NotFound

# Made by `npm run build` from web/api/.
BUILT = Path(__file__).parents[1] / "web" / "api"
_NOT_BUILT = (
    b"<!doctype html><title>Vademecum</title><p>This page is not built yet: run <code>make install</code>."
)


class TryIt(OpenAPIRenderPlugin):
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


def openapi_config() -> OpenAPIConfig:
    """One for each app: litestar puts the routes into the router."""
    return OpenAPIConfig(
        title="Vademecum",
        version=__version__,
        description="Documents, their vectors and their memory, in step on every device. Every error is "
        "`application/problem+json` with a stable `code`. Make a token with `vademecum token create EMAIL`.",
        components=Components(security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}),
        security=[{"token": []}],
        use_handler_docstrings=True,
        render_plugins=[JsonRenderPlugin(), TryIt()],
        openapi_router=Router(
            "/schema", route_handlers=[], opt={"public": True}, after_request=_no_page_of_litestar
        ),
    )


def page_files() -> list[Router]:
    """The page's scripts and styles, when they are built."""
    if not BUILT.is_dir():
        return []
    public = {"public": True}
    return [
        create_static_files_router(
            "/schema/files", [BUILT], name="api-page", opt=public, include_in_schema=False
        )
    ]

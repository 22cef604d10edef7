"""The app's pages and what they load, as `npm run build` made them."""

import os
from pathlib import Path
from typing import Any

from litestar import Request, route
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response.base import ASGIResponse

from vademecum.errors import NotFound
from vademecum.http.files import ALWAYS_ASK, IMMUTABLE, Served, answer

BUILT = Path(__file__).parents[1] / "web"
# Not the machine's own table: what it lacks a browser would refuse to run.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".wasm": "application/wasm",
}
_OPTIONS: dict[str, Any] = {
    "http_method": ["GET", "HEAD"],
    "opt": {"public": True, "rate": "read"},
    "include_in_schema": False,
}


def page_routes(built: Path = BUILT) -> list[HTTPRouteHandler]:
    """One route for all assets, whose names change with their content, and one for the pages that there are."""

    @route("/assets/{name:str}", **_OPTIONS)
    async def asset(request: Request[Any, Any, Any], name: FromPath[str]) -> ASGIResponse:
        return _sent(request, built / "assets" / name, IMMUTABLE)

    @route([f"/{path.name}" for path in built.glob("*.html")], **_OPTIONS)
    async def page(request: Request[Any, Any, Any]) -> ASGIResponse:
        return _sent(request, built / request.url.path.lstrip("/"), ALWAYS_ASK)

    return [asset, page] if any(built.glob("*.html")) else [asset]


def _sent(request: Request[Any, Any, Any], path: Path, cache: str) -> ASGIResponse:
    media_type = TYPES.get(path.suffix)
    # Not `path.is_file()`, which raises for a name that is longer than the disk takes.
    if media_type is None or not os.path.isfile(path):  # noqa: PTH113
        raise NotFound("There is no such page.")
    packed = path.with_name(path.name + ".gz")
    zipped = "gzip" in request.headers.get("accept-encoding", "") and packed.is_file()
    sent = packed if zipped else path
    about = sent.stat()
    tag = f"{about.st_size:x}-{about.st_mtime_ns:x}"
    return answer(request, Served(sent, about.st_size, tag, media_type, cache, "gzip" if zipped else ""))

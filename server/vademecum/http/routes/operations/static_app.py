"""Serve the web app that `npm run build` created. All paths that the app routes itself return its start page."""

import os
import re
from pathlib import Path
from typing import Any

from litestar import MediaType, Request, route
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.response.base import ASGIResponse

from vademecum.errors import NotFound
from vademecum.http.byte_ranges import IMMUTABLE, REVALIDATE, ServedFile, file_response
from vademecum.http.security_headers import content_security_policy

BUILT = Path(__file__).parents[3] / "web"
# The operating system's MIME table may lack a type, and browsers refuse to run files with a wrong type.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".zip": "application/zip",
    ".webmanifest": "application/manifest+json",
}
_ZERO = re.compile(r"q\s*=\s*0(\.0*)?")
# The paths that the app routes itself; web/src/ui/Shell.tsx renders each.
APP_PATHS = [
    "/",
    "/index.html",  # the service worker caches this path
    "/s/{session_id:str}",
    "/documents",
    "/documents/{document_id:str}",
    "/projects",
    "/projects/{project_id:str}",
    "/projects/{project_id:str}/{part:str}",
    "/memory",
    "/memory/{part:str}",
    "/settings",
    "/sign-in",
]
# Inline styles are allowed because the component library creates style elements.
_APP_POLICY = content_security_policy(style_src="'self' 'unsafe-inline'", img_src="'self' data: blob:")
_NOT_BUILT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Vademecum</title>
<h1>Vademecum</h1><p>The server is running, but the app is missing. The installed package contains it; in a checkout,
<code>make install</code> builds it. The API works: <a href="/schema">API documentation</a>.</p></html>"""
_OPTIONS: dict[str, Any] = {
    "http_method": ["GET", "HEAD"],
    "opt": {"public": True, "rate": "read"},
    "include_in_schema": False,
}


def app_routes(built: Path = BUILT) -> list[HTTPRouteHandler]:
    """Return the routes for the app's paths, for its assets (whose names change with their content) and for its other files."""
    other_files = [
        path.name for path in built.glob("*.*") if path.suffix in TYPES and path.name != "index.html"
    ]

    @route(APP_PATHS, **_OPTIONS)
    async def app(request: Request[Any, Any, Any]) -> ASGIResponse:
        if not (built / "index.html").is_file():
            return ASGIResponse(body=_NOT_BUILT.encode(), media_type=MediaType.HTML, status_code=503)
        return _file_response(
            request, built / "index.html", REVALIDATE, {"Content-Security-Policy": _APP_POLICY}
        )

    @route("/assets/{name:str}", **_OPTIONS)
    async def asset(request: Request[Any, Any, Any], name: FromPath[str]) -> ASGIResponse:
        return _file_response(request, built / "assets" / name, IMMUTABLE)

    @route([f"/{name}" for name in other_files], **_OPTIONS)
    async def file(request: Request[Any, Any, Any]) -> ASGIResponse:
        return _file_response(request, built / request.url.path.lstrip("/"), REVALIDATE)

    return [app, asset, file] if other_files else [app, asset]


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip, by name or by `*`, with a quality above 0 (RFC 9110, 12.5.3)."""
    allowed: dict[str, bool] = {}
    for item in header.lower().split(","):
        coding, *parameters = (part.strip() for part in item.split(";"))
        allowed[coding] = not any(_ZERO.fullmatch(parameter) for parameter in parameters)
    return allowed.get("gzip", allowed.get("*", False))


def _file_response(
    request: Request[Any, Any, Any], path: Path, cache: str, more: dict[str, str] | None = None
) -> ASGIResponse:
    media_type = TYPES.get(path.suffix)
    # `path.is_file()` would raise for a name that is too long for the file system.
    if media_type is None or not os.path.isfile(path):  # noqa: PTH113
        raise NotFound("There is no such page.")
    packed = path.with_name(path.name + ".gz")
    zipped = accepts_gzip(request.headers.get("accept-encoding", "")) and packed.is_file()
    sent = packed if zipped else path
    about = sent.stat()
    tag = f"{about.st_size:x}-{about.st_mtime_ns:x}"
    encoding = "gzip" if zipped else ""
    return file_response(
        request, ServedFile(sent, about.st_size, tag, media_type, cache, encoding, more or {})
    )

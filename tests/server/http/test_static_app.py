"""The built files of the app: compressed if the browser accepts it, and immutable if the name has a content hash."""

import gzip
import re
from pathlib import Path

import httpx
import pytest
from litestar import Litestar

from server.in_process_server import browser, check_problem, run, serve
from vademecum.http.routes.operations.static_app import BUILT, TYPES, app_routes

ROOT = Path(__file__).parents[3]


def with_pages(tmp_path, scenario):
    async def whole():
        async with serve(tmp_path) as h, browser(h) as anonymous:
            await scenario(anonymous)

    run(whole)


def built(kind):
    return next((BUILT / "assets").glob(kind))


@pytest.mark.parametrize("kind", ["ort-*.wasm", "ort-*.mjs", "backendWorker-*.js"])
def test_asset_is_immutable_and_compressed_on_request(tmp_path, kind):
    async def scenario(anonymous):
        path = built(kind)
        url = f"/assets/{path.name}"
        packed = await anonymous.get(url, headers={"Accept-Encoding": "gzip"})
        plain = await anonymous.get(url, headers={"Accept-Encoding": "identity"})
        assert packed.content == plain.content == path.read_bytes(), (
            "httpx must decompress the asset to the same content"
        )
        assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
        assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
        assert packed.headers["etag"] != plain.headers["etag"] and packed.headers["vary"] == "Accept-Encoding"
        for answer in (packed, plain):
            assert "immutable" in answer.headers["cache-control"]
            assert answer.headers["content-type"] == TYPES[path.suffix]

    with_pages(tmp_path, scenario)


def test_app_page_is_revalidated_and_sent_only_when_changed(tmp_path):
    async def scenario(anonymous):
        page = await anonymous.get("/embedder.html")
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
        again = await anonymous.get("/embedder.html", headers={"If-None-Match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (await anonymous.head("/embedder.html")).status_code == 200

    with_pages(tmp_path, scenario)


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("*", True),
        ("{tag}", True),
        ("W/{tag}", True),
        ('"a", W/"b,c" , W/{tag}', True),
        ('"another"', False),
        ("", False),
    ],
)
def test_unchanged_cached_page_is_not_sent_again(tmp_path, header, known):
    async def scenario(anonymous):
        tag = (await anonymous.get("/embedder.html")).headers["etag"]
        answer = await anonymous.get("/embedder.html", headers={"If-None-Match": header.format(tag=tag)})
        assert answer.status_code == (304 if known else 200)

    with_pages(tmp_path, scenario)


@pytest.mark.parametrize(
    ("header", "packed"),
    [
        ("gzip, deflate, br", True),
        ("deflate;q=1.0, GZIP ; q=0.5", True),
        ("*", True),
        ("br, *;q=0.1", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*;q=0", False),
        ("identity", False),
        ("", False),
        ("notgzip", False),
    ],
)
def test_asset_is_compressed_only_if_accepted(tmp_path, header, packed):
    async def scenario(anonymous):
        url = f"/assets/{built('backendWorker-*.js').name}"
        answer = await anonymous.head(url, headers={"Accept-Encoding": header})
        assert answer.headers.get("content-encoding") == ("gzip" if packed else None)

    with_pages(tmp_path, scenario)


def test_invalid_asset_path_gets_404_problem(tmp_path):
    async def scenario(anonymous):
        packed = built("backendWorker-*.js").name + ".gz"
        for name in (
            "nothing.js",
            "%2e%2e",
            "%2e%2e%2fembedder.html",
            ".hidden.js",
            packed,
            "x" * 300 + ".js",
            "a%00.js",
        ):
            check_problem(await anonymous.get(f"/assets/{name}"), 404, "NOT_FOUND")

    with_pages(tmp_path, scenario)


def test_every_asset_has_a_gzip_copy():
    names = {path.name for path in (BUILT / "assets").iterdir()}
    plain = {name for name in names if not name.endswith(".gz")}
    assert names == plain | {f"{name}.gz" for name in plain} and len(plain) >= 4
    for name in plain:
        assert (
            gzip.decompress((BUILT / "assets" / f"{name}.gz").read_bytes())
            == (BUILT / "assets" / name).read_bytes()
        )


def app_paths():
    """Yield paths for each route of the app: one with its optional `:name?` parts, and one without them."""
    shell = (ROOT / "web" / "src" / "ui" / "Shell.tsx").read_text()
    for path in re.findall(r'<Route path="([^"]+)"', shell):
        parts = path.replace(":", "any-").split("/")
        for most in range(len(parts), 1, -1):
            yield "/".join(parts[:most]).replace("?", "")
            if not parts[most - 1].endswith("?"):
                break


@pytest.mark.parametrize("place", ["/", "/index.html", "/sign-in", *app_paths()])
def test_every_app_path_serves_the_app(tmp_path, place):
    async def scenario(anonymous):
        page = await anonymous.get(place)
        assert page.status_code == 200 and page.content == (BUILT / "index.html").read_bytes()
        policy = page.headers["content-security-policy"]
        assert "script-src 'self' 'wasm-unsafe-eval';" in policy and "img-src 'self' data: blob:" in policy
        assert (await anonymous.get(f"{place}/x/y/z")).status_code == 404, "an unknown path must get 404"

    with_pages(tmp_path, scenario)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sw.js", "text/javascript"),
        ("manifest.webmanifest", "application/manifest+json"),
        ("icon.svg", "image/svg+xml"),
        ("icon-192.png", "image/png"),
    ],
)
def test_installable_app_files_are_served_and_revalidated(tmp_path, name, kind):
    async def scenario(anonymous):
        found = await anonymous.get(f"/{name}")
        assert found.status_code == 200 and found.headers["content-type"].startswith(kind)
        assert found.headers["cache-control"] == "no-cache"

    with_pages(tmp_path, scenario)


def test_page_for_missing_build_explains_what_to_do(tmp_path):
    async def scenario():
        alone = httpx.ASGITransport(Litestar(app_routes(tmp_path)))
        async with httpx.AsyncClient(transport=alone, base_url="http://test") as anonymous:
            page = await anonymous.get("/")
            assert page.status_code == 503 and "make install" in page.text

    run(scenario)

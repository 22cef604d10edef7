"""The built pages: packed when the browser takes that, kept for ever when their name is of their content."""

import gzip

import pytest

from server.house import browser, house, refused, run
from vademecum.http.pages import BUILT, TYPES


def with_pages(tmp_path, scenario):
    async def whole():
        async with house(tmp_path) as h, browser(h) as anyone:
            await scenario(anyone)

    run(whole)


def built(kind):
    (path,) = (BUILT / "assets").glob(kind)
    return path


@pytest.mark.parametrize("kind", ["ort-*.wasm", "ort-*.mjs", "worker-*.js"])
def test_an_asset_is_kept_for_ever_and_packed_for_those_who_take_that(tmp_path, kind):
    async def scenario(anyone):
        path = built(kind)
        url = f"/assets/{path.name}"
        packed = await anyone.get(url, headers={"Accept-Encoding": "gzip"})
        plain = await anyone.get(url, headers={"Accept-Encoding": "identity"})
        assert packed.content == plain.content == path.read_bytes(), "httpx unpacks"
        assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
        assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
        assert packed.headers["etag"] != plain.headers["etag"] and packed.headers["vary"] == "Accept-Encoding"
        for answer in (packed, plain):
            assert "immutable" in answer.headers["cache-control"]
            assert answer.headers["content-type"] == TYPES[path.suffix]

    with_pages(tmp_path, scenario)


def test_a_page_is_asked_for_each_time_and_sent_when_it_is_another(tmp_path):
    async def scenario(anyone):
        page = await anyone.get("/embedder.html")
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
        again = await anyone.get("/embedder.html", headers={"If-None-Match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (await anyone.head("/embedder.html")).status_code == 200

    with_pages(tmp_path, scenario)


def test_what_is_no_asset_is_a_problem(tmp_path):
    async def scenario(anyone):
        packed = built("worker-*.js").name + ".gz"
        for name in (
            "nothing.js",
            "%2e%2e",
            "%2e%2e%2fembedder.html",
            ".hidden.js",
            packed,
            "x" * 300 + ".js",
            "a%00.js",
        ):
            refused(await anyone.get(f"/assets/{name}"), 404, "NOT_FOUND")

    with_pages(tmp_path, scenario)


def test_every_asset_is_there_packed_too():
    names = {path.name for path in (BUILT / "assets").iterdir()}
    plain = {name for name in names if not name.endswith(".gz")}
    assert names == plain | {f"{name}.gz" for name in plain} and len(plain) >= 4
    for name in plain:
        assert (
            gzip.decompress((BUILT / "assets" / f"{name}.gz").read_bytes())
            == (BUILT / "assets" / name).read_bytes()
        )

"""Model routes for browsers: the manifests of the server's models, and resumable downloads of model files."""

import hashlib

import pytest

from server.in_process_server import MODELS, browser, check_problem, run, serve
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.manifest import GRAPH, TOKENIZER, Manifest
from vademecum.http.byte_ranges import requested_range

# The graph is larger than one read of a file.
CONTENT = {GRAPH: bytes(range(256)) * 4000, TOKENIZER: b'{"model": {}}'}
FACTS = {
    "revision": "r",
    "source": "https://example.org/m",
    "licence": "MIT",
    "dims": 8,
    "layers": 1,
    "max_tokens": 64,
}


def install(models, name, content=None):
    """Install a model whose files are fake, because no test runs it, and return its manifest."""
    content = content or CONTENT
    folder = models / name
    folder.mkdir(parents=True)
    for path, data in content.items():
        (folder / path).write_bytes(data)
    files = tuple(manifests.describe(folder / path) for path in content)
    manifest = Manifest(id=name, files=files, **FACTS)
    manifests.save(manifest, folder)
    return manifest


def with_model(tmp_path, scenario):
    """Run a scenario with a client that is not signed in and the URL of a model's files."""

    async def whole():
        async with serve(tmp_path) as h, browser(h, "203.0.113.9") as anonymous:
            manifest = install(h.services.settings.models_folder, "small")
            await scenario(anonymous, f"/models/{manifest.hash}")

    run(whole)


async def test_model_list_includes_hashes_and_vector_parameters(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        manifest = install(h.services.settings.models_folder, "small")
        (model,) = (await ada.call("GET", "/v1/models")).json()["models"]
        assert (model["id"], model["hash"], model["dims"], model["maxTokens"]) == (
            "small",
            manifest.hash,
            8,
            64,
        )
        assert model["prefixes"] == {"query": "", "passage": ""} and model["chunker"]["size"] == 1000
        graph = model["files"][0]
        assert graph == {
            "path": GRAPH,
            "bytes": len(CONTENT[GRAPH]),
            "sha256": hashlib.sha256(CONTENT[GRAPH]).hexdigest(),
        }
        async with browser(h) as anonymous:
            check_problem(await anonymous.get("/v1/models"), 401, "SIGNED_OUT")


async def test_model_list_names_the_current_embedding_model_or_null(tmp_path):
    async with serve(tmp_path) as h:
        install(h.services.settings.models_folder, "small")
        answer = await (await h.person()).call("GET", "/v1/models")
        assert answer.json()["current"] is None and len(answer.json()["models"]) == 1
    async with serve(tmp_path / "two", model=MODELS) as h:
        offer = (await (await h.person()).call("GET", "/v1/models")).json()
        (current,) = [model for model in offer["models"] if model["hash"] == offer["current"]]
        assert current["hash"] == manifests.load(MODELS / current["id"]).hash


async def test_unusable_model_is_not_listed(tmp_path):
    async with serve(tmp_path) as h:
        models = h.services.settings.models_folder
        install(models, "small")
        (models / "broken").mkdir()
        (models / "broken" / "manifest.json").write_text("{}")
        offer = (await (await h.person()).call("GET", "/v1/models")).json()
        assert [model["id"] for model in offer["models"]] == ["small"]


def test_model_file_is_immutable_and_has_digest_etag(tmp_path):
    async def scenario(anonymous, files):
        whole = await anonymous.get(f"{files}/{GRAPH}")
        assert (whole.status_code, whole.content) == (200, CONTENT[GRAPH])
        assert "immutable" in whole.headers["cache-control"] and "set-cookie" not in whole.headers
        etag = whole.headers["etag"]
        assert etag == f'"{hashlib.sha256(CONTENT[GRAPH]).hexdigest()}"'
        response = await anonymous.get(f"{files}/{GRAPH}", headers={"If-None-Match": etag})
        assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag)
        head = await anonymous.head(f"{files}/{GRAPH}", headers={"Range": "bytes=0-9"})
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(CONTENT[GRAPH]))
        assert head.headers["accept-ranges"] == "bytes"

    with_model(tmp_path, scenario)


def test_interrupted_download_resumes_with_a_range(tmp_path):
    async def scenario(anonymous, files):
        url, data = f"{files}/{GRAPH}", CONTENT[GRAPH]
        etag = (await anonymous.head(url)).headers["etag"]
        for asked, first, last in (
            ("0-0", 0, 0),
            ("700000-", 700_000, len(data) - 1),
            ("-300", len(data) - 300, len(data) - 1),
            ("5-999999999", 5, len(data) - 1),
        ):
            rest = await anonymous.get(url, headers={"Range": f"bytes={asked}", "If-Range": etag})
            assert (rest.status_code, rest.content) == (206, data[first : last + 1]), asked
            assert rest.headers["content-range"] == f"bytes {first}-{last}/{len(data)}"
            assert rest.headers["content-length"] == str(last + 1 - first)
        other = await anonymous.get(url, headers={"Range": "bytes=5-", "If-Range": '"another file"'})
        assert (other.status_code, other.content) == (200, data), "a changed file must be sent from the start"
        behind = await anonymous.get(url, headers={"Range": f"bytes={len(data)}-"})
        check_problem(behind, 416, "RANGE")
        assert behind.headers["content-range"] == f"bytes */{len(data)}"

    with_model(tmp_path, scenario)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", None),
        ("bytes=2-5", range(2, 6)),
        ("bytes=2-", range(2, 10)),
        ("bytes=-4", range(6, 10)),
        ("bytes=-40", range(10)),
        ("bytes=9-100", range(9, 10)),
        ("bytes=5-2", None),
        ("bytes=-", None),
        ("bytes=1-2,4-5", None),
        ("items=1-2", None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_invalid_range_header_is_ignored(header, expected):
    assert requested_range(header, 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_range_beyond_end_of_model_file_is_empty(header):
    assert requested_range(header, 10) == range(0) and requested_range(header, 10) is not None


def test_only_model_files_listed_in_a_manifest_are_served(tmp_path):
    async def scenario(anonymous, files):
        for path in (
            f"{files}/manifest.json",
            f"{files}/../small/{TOKENIZER}",
            f"{files}/%2e%2e/%2e%2e/accounts.duckdb",
            f"{files}/..%2f..%2faccounts.duckdb",
            f"{files}//etc/passwd",
            f"{files}/nothing",
            f"/models/{'0' * 64}/{TOKENIZER}",
            f"/models/small/{TOKENIZER}",
        ):
            check_problem(await anonymous.get(path), 404, "NOT_FOUND")
        assert (await anonymous.get(f"{files}/{TOKENIZER}")).content == CONTENT[TOKENIZER]

    with_model(tmp_path, scenario)


def test_model_file_of_unexpected_length_is_not_served(tmp_path):
    async def scenario(anonymous, files):
        (tmp_path / "no-models" / "small" / TOKENIZER).write_bytes(b"{")
        check_problem(await anonymous.get(f"{files}/{TOKENIZER}"), 404, "NOT_FOUND")

    with_model(tmp_path, scenario)

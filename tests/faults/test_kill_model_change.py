"""Kill the server at random moments of a model change under load. The change resumes, and searches stay consistent.

The vectors of the two small models have the same length and differ only in their values. `SEED` repeats the choices of
a run, but not its timing.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import string
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from faults.server_process import ServerProcess
from property.rows import session
from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.lance import MatrixCache, VectorIndex
from vademecum.engines.lance import checkpoint as states
from vademecum.engines.onnx import download
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.records.paths import user_folder
from vademecum.services.data.erase import scan
from vademecum.services.models import staged_vectors

SETTINGS = {"attached_max": "1", "erase_delay_s": "0.2", "search_wait_s": "30"}
ROUNDS = 80 if os.environ.get("SOAK") else 5
CHANGE_S = 2.0  # approximate duration of an uninterrupted model change
TIMEOUT_S = 120.0
QUESTION = "a b c d e f g"
CHANGE_ENDED = (409,)
TOLERANCE = 1e-3  # far below the difference between cosines of the two models


def test_server_kills_during_model_change_repeat_no_staged_block(tmp_path, models):
    asyncio.run(change_under_kills(tmp_path, models))


def test_leftover_staging_folder_of_ended_model_change_is_deleted(tmp_path):
    folder = user_folder(tmp_path, "ada") / staged_vectors.FOLDER
    for keep in (None, "old"):  # at a start without a model change, and during a change back to "old"
        staged_vectors.create_folders(tmp_path, ["ada"], "new")
        staged_vectors.delete_others(tmp_path, "new")
        assert staged_vectors.users_on_old_model(tmp_path, "new") == {"ada"}
        staged_vectors.delete_others(tmp_path, keep)
        assert not folder.exists()
        folder.mkdir()  # simulate a kill between the last two steps of `end`
        staged_vectors.delete_others(tmp_path, keep)
        assert not folder.exists()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("old", "new")):
        source = tmp_path_factory.mktemp(name)
        shape = {"hidden_size": 192, "num_hidden_layers": 12, "intermediate_size": 768}
        download.prepare_from_folder(write_source(source, name, seed, **shape), source, folder)
    return folder


@dataclass
class VectorCache:
    """A cache of one model's vectors, so that each text is embedded only once."""

    embedder: Embedder
    vectors: dict[str, np.ndarray] = field(default_factory=dict)

    async def cosine(self, text: str) -> float:
        """Return the cosine between the text and QUESTION."""
        if QUESTION not in self.vectors:
            self.vectors[QUESTION] = await self.embedder.embed_query(QUESTION)
        if text not in self.vectors:
            self.vectors[text] = (await self.embedder.embed_passages([text]))[0]
        return float(self.vectors[text] @ self.vectors[QUESTION])


@dataclass
class Account:
    id: str
    token: str
    data: Path
    large_document: str = ""
    documents: set[str] = field(default_factory=set)
    # The first bytes of staged files whose document was deleted.
    deleted_vectors: set[bytes] = field(default_factory=set)
    client: httpx.AsyncClient | None = None
    swapped: set[str] = field(default_factory=set)  # ids of blocks that have vectors of the target model
    # Maps path to inode and modification time.
    staged_files: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return user_folder(self.data, self.id)

    def find_staged(self, document_id: str = "") -> list[Path]:
        return list((self.folder / "reembed").glob(f"*/{document_id}*@*[0-9]"))

    async def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request, repeat it while the server responds with 503, and return the final response."""
        assert self.client is not None
        headers = {"Authorization": f"Bearer {self.token}"}
        while (
            response := await self.client.request(method, path, headers=headers, **options)
        ).status_code == 503:
            await asyncio.sleep(0.2)
        assert response.status_code < 300, response.text
        return response

    async def upload(self, rng: Random, paragraphs: int) -> str:
        text = "\n\n".join(
            ". ".join(" ".join(rng.choices(string.ascii_lowercase, k=12)) for _ in range(24))
            for _ in range(paragraphs)
        )
        files = {"file": (f"{rng.getrandbits(40):x}.txt", text.encode())}
        response = await self.call("POST", "/v1/documents", files=files, data={"sessionId": "s1"})
        document_id: str = response.json()["document"]["id"]
        return document_id

    async def blocks(self) -> dict[str, dict[str, Any]]:
        response = await self.call("GET", "/v1/sync/vectorEmbeddings/1/pull?lwt=0&limit=1000")
        rows = response.json()["documents"]
        assert len(rows) < 1000
        return {row["id"]: row for row in rows if not row["_deleted"]}

    async def upload_and_delete(self, rng: Random) -> None:
        """Upload and delete documents until the server is killed."""
        while True:
            self.documents.add(await self.upload(rng, rng.randint(1, 4)))
            staged = sorted(i for i in self.documents if self.find_staged(i))
            if staged or len(self.documents) > 8:
                await self.delete(rng.choice(staged or sorted(self.documents)))

    async def delete(self, document_id: str) -> None:
        contents = [read_if_exists(path) for path in self.find_staged(document_id)]
        self.documents.discard(document_id)
        await self.call("DELETE", f"/v1/documents/{document_id}")
        self.deleted_vectors |= {content[:64] for content in contents if content}

    async def search(self, caches: dict[str, VectorCache]) -> str:
        """Search by meaning, check that all scores come from one model, and return its name."""
        body = {"query": QUESTION, "sessionId": "s1", "mode": "meaning", "k": 5}
        response = (await self.call("POST", "/v1/search", json=body)).json()
        hits = response["results"]
        assert response["scope"]["mode"] == "meaning" and hits, response["scope"]
        matching = [
            name
            for name, cache in caches.items()
            if all([abs(hit["score"] - await cache.cosine(hit["text"])) < TOLERANCE for hit in hits])
        ]
        assert len(matching) == 1, f"scores of no model or of both: {[hit['score'] for hit in hits]}"
        return matching[0]

    async def search_until_killed(self, caches: dict[str, VectorCache]) -> None:
        while True:
            await self.search(caches)


def read_if_exists(path: Path) -> bytes:
    """Return the content, or b"" if a swap has removed the file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


async def change_under_kills(tmp_path: Path, models: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng = Random(seed)
    caches = {name: VectorCache(Embedder(models / name, workers=1)) for name in ("old", "new")}
    server = ServerProcess(tmp_path / "data", models, SETTINGS)
    server.data.mkdir()
    (server.data / "model").write_text("old\n")
    interrupted = rounds = 0
    try:
        accounts = await create_accounts(server, rng)
        while rounds < ROUNDS:
            rounds += 1
            await start(server, accounts)
            for account in accounts:
                await account.search(caches)
            await change_model(server, accounts, rng)
            await load_until_killed(server, accounts, caches, rng)
            for account in accounts:
                check_staged(account)
                await check_index(account, caches, tmp_path / "copy")
            interrupted += any(account.staged_files for account in accounts)
        await start(server, accounts)
        await delete_staged(server, accounts, rng)
        await check_end(server, accounts, caches)
        await close_client(accounts)
    finally:
        server.kill()
        for cache in caches.values():
            cache.embedder.close()
        print(f"{interrupted} of {rounds} kills left staged vectors on the disk")
    assert interrupted > rounds / 4, "too few kills interrupted a change"


async def create_accounts(server: ServerProcess, rng: Random) -> list[Account]:
    client = await server.start()
    accounts = []
    for name in ("ada", "bob"):
        account = Account(*await server.add_user(f"{name}@example.org"), server.data, client=client)
        await account.call("POST", "/v1/sync/sessions/1/push", json=[{"newDocumentState": session("s1")}])
        # Create these first, because the oldest documents are staged first.
        account.documents = {await account.upload(rng, 1) for _ in range(8)}
        account.large_document = await account.upload(rng, 60)
        accounts.append(account)
        while any(row["embedding"] is None for row in (await account.blocks()).values()):
            await asyncio.sleep(0.05)
    server.kill()
    await close_client(accounts)
    return accounts


async def start(server: ServerProcess, accounts: list[Account]) -> None:
    client = await server.start()
    for account in accounts:
        account.client = client


async def change_model(server: ServerProcess, accounts: list[Account], rng: Random) -> None:
    """Start a model change, or sometimes revert, pause or resume the running one. Record swapped blocks."""
    status = await server.admin("GET", "/v1/reembedding")
    other = status["before"] or ("new" if status["current"] == "old" else "old")
    if status["before"] is None or rng.random() < 0.2:
        await server.admin("PUT", "/v1/reembedding", json={"model": other})
        for account in accounts:
            account.swapped.clear()
            account.staged_files.clear()
        return
    verb = rng.choice(("pause", "resume", "resume"))
    await server.admin("POST", f"/v1/reembedding/{verb}", allowed=CHANGE_ENDED)
    target = next(m["hash"] for m in await list_models(accounts[0]) if m["id"] == status["current"])
    for account in accounts:
        blocks = await account.blocks()
        swapped = {block_id for block_id, row in blocks.items() if row["model"] == target}
        assert account.swapped & blocks.keys() <= swapped, "a block got vectors of the old model again"
        account.swapped = swapped


async def list_models(account: Account) -> list[dict[str, Any]]:
    models: list[dict[str, Any]] = (await account.call("GET", "/v1/models")).json()["models"]
    return models


async def load_until_killed(
    server: ServerProcess, accounts: list[Account], caches: dict[str, VectorCache], rng: Random
) -> None:
    tasks = [
        asyncio.create_task(account.upload_and_delete(Random(rng.getrandbits(64)))) for account in accounts
    ]
    tasks += [asyncio.create_task(account.search_until_killed(caches)) for account in accounts]
    await asyncio.sleep(rng.uniform(0.1, CHANGE_S))
    server.kill()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await close_client(accounts)
    for outcome in outcomes:
        assert isinstance(outcome, httpx.TransportError), outcome


async def close_client(accounts: list[Account]) -> None:
    client = accounts[0].client
    assert client is not None
    await client.aclose()


def check_staged(account: Account) -> None:
    """Check that no block that was staged at an earlier kill was embedded again."""
    files = {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in account.find_staged()}
    before = account.staged_files
    repeated = [name for name in files.keys() & before.keys() if files[name] != before[name]]
    assert not repeated, f"these staged blocks were embedded again: {repeated}"
    account.staged_files = files


async def check_index(account: Account, caches: dict[str, VectorCache], copy: Path) -> None:
    """Check that the model that the index names has computed every vector of the index."""
    shutil.rmtree(copy, ignore_errors=True)
    if not (account.folder / "vectors").exists():
        return  # a kill has interrupted the replacement of the index, so there is none to check
    shutil.copytree(account.folder / "vectors", copy)
    saved = states.load(copy)
    if saved is None or saved.model is None:
        return
    cache = next(cache for cache in caches.values() if cache.embedder.model == saved.model)
    await cache.cosine(QUESTION)
    index = VectorIndex.open(copy, saved.model, saved.dims, cache=MatrixCache(0))
    try:
        hits = index.vector_search(
            cache.vectors[QUESTION], [account.large_document, *account.documents], 10_000
        )
        for hit in hits:
            assert abs(hit.score - await cache.cosine(hit.text)) < TOLERANCE, (
                "the index has a vector of another model"
            )
    finally:
        index.close()


async def delete_staged(server: ServerProcess, accounts: list[Account], rng: Random) -> None:
    """Delete a document while its vectors are staged, unless the load has already done so by chance."""
    end = time.monotonic() + TIMEOUT_S
    while not any(account.deleted_vectors for account in accounts):
        assert time.monotonic() < end, server.log_tail()
        status = await server.admin("GET", "/v1/reembedding")
        if status["before"] is None:
            other = "new" if status["current"] == "old" else "old"
            await server.admin("PUT", "/v1/reembedding", json={"model": other})
        elif status["paused"]:
            await server.admin("POST", "/v1/reembedding/resume", allowed=CHANGE_ENDED)
        account = accounts[0]
        for _ in range(4 - len(account.documents)):
            account.documents.add(await account.upload(rng, 4))
        if staged := [i for i in account.documents if account.find_staged(i)]:
            await account.delete(staged[0])


async def check_end(server: ServerProcess, accounts: list[Account], caches: dict[str, VectorCache]) -> None:
    """Check that the change ends and leaves neither its folder nor bytes of deleted documents."""
    if (await server.admin("GET", "/v1/reembedding"))["before"] is not None:
        await server.admin("POST", "/v1/reembedding/resume", allowed=CHANGE_ENDED)
    end = time.monotonic() + TIMEOUT_S
    while (status := await server.admin("GET", "/v1/reembedding"))["before"] is not None:
        assert time.monotonic() < end, f"{status}\n{server.log_tail()}"
        await asyncio.sleep(0.1)
    model = caches[status["current"]].embedder.model
    for account in accounts:
        while {row["model"] for row in (await account.blocks()).values()} != {model}:
            assert time.monotonic() < end, server.log_tail()
            await asyncio.sleep(0.1)
        assert await account.search(caches) == status["current"]
        while any((server.data / "jobs" / "erase").glob(account.id)):
            assert time.monotonic() < end, server.log_tail()
            await asyncio.sleep(0.1)
        assert scan(account.folder, account.deleted_vectors) == 0, (
            "staged vectors of a deleted document remain"
        )
        while (account.folder / "reembed").exists():
            assert time.monotonic() < end, server.log_tail()
            await asyncio.sleep(0.1)

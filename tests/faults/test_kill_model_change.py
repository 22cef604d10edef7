"""Kill -9 at any moment while the model is being changed, under load: it goes on where it was, and no search notices.

The server is a real process with two small models of the same size, so that only the numbers tell their vectors apart.
`SEED` repeats the choices of a run, though not its timing.
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

from faults.server_process import Served
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
LONGEST_S = 2.0  # a whole change takes about that long
DONE_S = 120.0
QUESTION = "a b c d e f g"
OVER = (409,)  # the change has come to its end meanwhile
SAME = 1e-3  # cosines of the two models differ by more


def test_kills_while_the_model_is_changed_cost_a_block_at_most_and_no_search(tmp_path, models):
    asyncio.run(besiege(tmp_path, models))


def test_a_change_that_a_kill_or_the_way_back_has_ended_leaves_no_folder(tmp_path):
    folder = user_folder(tmp_path, "ada") / staged_vectors.FOLDER
    for keep in (None, "old"):  # a start without a change under way, and a change back
        staged_vectors.create_folders(tmp_path, ["ada"], "new")
        staged_vectors.delete_others(tmp_path, "new")
        assert staged_vectors.users_on_old_model(tmp_path, "new") == {"ada"}
        staged_vectors.delete_others(tmp_path, keep)
        assert not folder.exists()
        folder.mkdir()  # all that is left by a kill between the last two steps of `end`
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
class Reader:
    """What a model makes of texts, computed once each."""

    embedder: Embedder
    known: dict[str, np.ndarray] = field(default_factory=dict)

    async def cosine(self, text: str) -> float:
        if QUESTION not in self.known:
            self.known[QUESTION] = await self.embedder.embed_query(QUESTION)
        if text not in self.known:
            self.known[text] = (await self.embedder.embed_passages([text]))[0]
        return float(self.known[text] @ self.known[QUESTION])


@dataclass
class Person:
    id: str
    token: str
    data: Path
    stays: str = ""  # a large document
    documents: set[str] = field(default_factory=set)
    needles: set[bytes] = field(
        default_factory=set
    )  # of what was staged of documents that are surely deleted
    client: httpx.AsyncClient | None = None
    swapped: set[str] = field(default_factory=set)  # blocks that have the target's vectors
    made: dict[str, tuple[int, int]] = field(default_factory=dict)  # staged file -> its inode and time

    @property
    def folder(self) -> Path:
        return user_folder(self.data, self.id)

    def staged(self, document_id: str = "") -> list[Path]:
        return list((self.folder / "reembed").glob(f"*/{document_id}*@*[0-9]"))

    async def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """The answer; of a server that is busy, the one it gives when it is not."""
        assert self.client is not None
        headers = {"Authorization": f"Bearer {self.token}"}
        while (answer := await self.client.request(method, path, headers=headers, **more)).status_code == 503:
            await asyncio.sleep(0.2)
        assert answer.status_code < 300, answer.text
        return answer

    async def upload(self, rng: Random, paragraphs: int) -> str:
        text = "\n\n".join(
            ". ".join(" ".join(rng.choices(string.ascii_lowercase, k=12)) for _ in range(24))
            for _ in range(paragraphs)
        )
        files = {"file": (f"{rng.getrandbits(40):x}.txt", text.encode())}
        answer = await self.call("POST", "/v1/documents", files=files, data={"sessionId": "s1"})
        document_id: str = answer.json()["document"]["id"]
        return document_id

    async def blocks(self) -> dict[str, dict[str, Any]]:
        answer = await self.call("GET", "/v1/sync/vectorEmbeddings/0/pull?lwt=0&limit=1000")
        rows = answer.json()["documents"]
        assert len(rows) < 1000
        return {row["id"]: row for row in rows if not row["_deleted"]}

    async def come_and_go(self, rng: Random) -> None:
        """Upload and delete until the server dies."""
        while True:
            self.documents.add(await self.upload(rng, rng.randint(1, 4)))
            begun = sorted(i for i in self.documents if self.staged(i))
            if begun or len(self.documents) > 8:
                await self.delete(rng.choice(begun or sorted(self.documents)))

    async def delete(self, document_id: str) -> None:
        needles = {data[:64] for path in self.staged(document_id) if (data := read(path))}
        self.documents.discard(document_id)
        await self.call("DELETE", f"/v1/documents/{document_id}")
        self.needles |= needles

    async def search(self, readers: dict[str, Reader]) -> str:
        """A question by meaning is answered by the vectors of one model; returns which."""
        body = {"query": QUESTION, "sessionId": "s1", "mode": "meaning", "k": 5}
        found = (await self.call("POST", "/v1/search", json=body)).json()
        assert found["scope"]["mode"] == "meaning" and found["results"], found["scope"]
        fits = [
            name
            for name, reader in readers.items()
            if all([abs(hit["score"] - await reader.cosine(hit["text"])) < SAME for hit in found["results"]])
        ]
        assert len(fits) == 1, f"hits of no model or of both: {[hit['score'] for hit in found['results']]}"
        return fits[0]

    async def search_on(self, readers: dict[str, Reader]) -> None:
        while True:
            await self.search(readers)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # swapped by now
        return b""


async def besiege(tmp_path: Path, models: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng = Random(seed)
    readers = {name: Reader(Embedder(models / name, workers=1)) for name in ("old", "new")}
    served = Served(tmp_path / "data", models, SETTINGS)
    served.data.mkdir()
    (served.data / "model").write_text("old\n")
    half_way = rounds = 0
    try:
        people = await begin(served, rng)
        while rounds < ROUNDS:
            rounds += 1
            await start(served, people)
            for person in people:
                await person.search(readers)
            await change(served, people, rng)
            await load_until_killed(served, people, readers, rng)
            for person in people:
                check_staged(person)
                await check_index(person, readers, tmp_path / "copy")
            half_way += any(person.made for person in people)
        await start(served, people)
        await delete_staged(served, people, rng)
        await check_end(served, people, readers)
        await close(people)
    finally:
        served.kill()
        for reader in readers.values():
            reader.embedder.close()
        print(f"killed {rounds} times, {half_way} with staged vectors on the disk")
    assert half_way > rounds / 4, "the kills came when nothing was half-way"


async def begin(served: Served, rng: Random) -> list[Person]:
    client = await served.start()
    people = []
    for name in ("ada", "bob"):
        person = Person(*await served.add_user(f"{name}@example.org"), served.data, client=client)
        await person.call("POST", "/v1/sync/sessions/0/push", json=[{"newDocumentState": session("s1")}])
        person.documents = {await person.upload(rng, 1) for _ in range(8)}  # the oldest are staged first
        person.stays = await person.upload(rng, 60)
        people.append(person)
        while any(row["embedding"] is None for row in (await person.blocks()).values()):
            await asyncio.sleep(0.05)
    served.kill()
    await close(people)
    return people


async def start(served: Served, people: list[Person]) -> None:
    client = await served.start()
    for person in people:
        person.client = client


async def change(served: Served, people: list[Person], rng: Random) -> None:
    """Begin a change if none is under way, now and then go back, pause or resume; look who is swapped."""
    status = await served.admin("GET", "/v1/reembedding")
    other = status["before"] or ("new" if status["current"] == "old" else "old")
    if status["before"] is None or rng.random() < 0.2:
        await served.admin("PUT", "/v1/reembedding", json={"model": other})
        for person in people:
            person.swapped.clear()
            person.made.clear()
        return
    verb = rng.choice(("pause", "resume", "resume"))
    await served.admin("POST", f"/v1/reembedding/{verb}", allowed=OVER)
    target = next(m["hash"] for m in await listed(people[0]) if m["id"] == status["current"])
    for person in people:
        blocks = await person.blocks()
        now = {block_id for block_id, row in blocks.items() if row["model"] == target}
        assert person.swapped & blocks.keys() <= now, (
            "a block was given the vectors of the model before again"
        )
        person.swapped = now


async def listed(person: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await person.call("GET", "/v1/models")).json()["models"]
    return found


async def load_until_killed(
    served: Served, people: list[Person], readers: dict[str, Reader], rng: Random
) -> None:
    tasks = [asyncio.create_task(person.come_and_go(Random(rng.getrandbits(64)))) for person in people]
    tasks += [asyncio.create_task(person.search_on(readers)) for person in people]
    await asyncio.sleep(rng.uniform(0.1, LONGEST_S))
    served.kill()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await close(people)
    for ended in outcomes:
        assert isinstance(ended, httpx.TransportError), ended


async def close(people: list[Person]) -> None:
    client = people[0].client
    assert client is not None
    await client.aclose()


def check_staged(person: Person) -> None:
    """What stood on the disk at a kill is never made again: the same file stands there until the swap."""
    now = {str(path): (path.stat().st_ino, path.stat().st_mtime_ns) for path in person.staged()}
    again = [name for name in now.keys() & person.made.keys() if now[name] != person.made[name]]
    assert not again, f"embedded twice: {again}"
    person.made = now


async def check_index(person: Person, readers: dict[str, Reader], copy: Path) -> None:
    """Every vector of the index that the kill has left is of the model that the index says."""
    shutil.rmtree(copy, ignore_errors=True)
    if not (person.folder / "vectors").exists():
        return  # killed while the new one took its place
    shutil.copytree(person.folder / "vectors", copy)
    saved = states.load(copy)
    if saved is None or saved.model is None:
        return
    reader = next(reader for reader in readers.values() if reader.embedder.model == saved.model)
    await reader.cosine(QUESTION)
    index = VectorIndex.open(copy, saved.model, saved.dims, cache=MatrixCache(0))
    try:
        hits = index.vector_search(reader.known[QUESTION], [person.stays, *person.documents], 10_000)
        for hit in hits:
            assert abs(hit.score - await reader.cosine(hit.text)) < SAME, "a vector of another model"
    finally:
        index.close()


async def delete_staged(served: Served, people: list[Person], rng: Random) -> None:
    """If by chance no document was deleted while its vectors were staged, delete one now."""
    end = time.monotonic() + DONE_S
    while not any(person.needles for person in people):
        assert time.monotonic() < end, served.tail()
        status = await served.admin("GET", "/v1/reembedding")
        if status["before"] is None:
            other = "new" if status["current"] == "old" else "old"
            await served.admin("PUT", "/v1/reembedding", json={"model": other})
        elif status["paused"]:
            await served.admin("POST", "/v1/reembedding/resume", allowed=OVER)
        person = people[0]
        for _ in range(4 - len(person.documents)):
            person.documents.add(await person.upload(rng, 4))
        if staged := [document_id for document_id in person.documents if person.staged(document_id)]:
            await person.delete(staged[0])


async def check_end(served: Served, people: list[Person], readers: dict[str, Reader]) -> None:
    """The change comes to its end, and nothing of it is left, nor of what was deleted meanwhile."""
    if (await served.admin("GET", "/v1/reembedding"))["before"] is not None:
        await served.admin("POST", "/v1/reembedding/resume", allowed=OVER)
    end = time.monotonic() + DONE_S
    while (status := await served.admin("GET", "/v1/reembedding"))["before"] is not None:
        assert time.monotonic() < end, f"{status}\n{served.tail()}"
        await asyncio.sleep(0.1)
    model = readers[status["current"]].embedder.model
    for person in people:
        while {row["model"] for row in (await person.blocks()).values()} != {model}:
            assert time.monotonic() < end, served.tail()
            await asyncio.sleep(0.1)
        assert await person.search(readers) == status["current"]
        while any((served.data / "jobs" / "erase").glob(person.id)):
            assert time.monotonic() < end, served.tail()
            await asyncio.sleep(0.1)
        assert scan(person.folder, person.needles) == 0, "staged vectors of a deleted document"
        while (person.folder / "reembed").exists():
            assert time.monotonic() < end, served.tail()
            await asyncio.sleep(0.1)

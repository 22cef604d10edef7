"""A whole server during a model change: a gate that pauses the new model, and checks of the vectors in use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from folder_listing import paths_below
from property.rows import session
from server.in_process_server import Harness, Person, serve
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.records.paths import user_folder
from vademecum.model.schema import vector_codec
from wait_until import soon

WORDS = ("roof", "lease", "garden", "winter", "boiler", "letter", "window", "rent")
TEXT = "\n\n".join(f"{n} {word} {' and '.join(WORDS)}. " * 12 for n, word in enumerate(WORDS * 8))


class Gate:
    """Record the texts that the new model embeds. After `after` calls, block further ones until `open` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.after = after
        self.seen: list[tuple[str, ...]] = []
        self.open = asyncio.Event()
        passages = Embedder.embed_passages

        async def gated(embedder: Embedder, texts: list[str]) -> vector_codec.Vectors:
            if embedder.manifest.id == "new":
                if len(self.seen) >= self.after:
                    await self.open.wait()
                self.seen.append(tuple(texts))
            return await passages(embedder, texts)

        monkeypatch.setattr(Embedder, "embed_passages", gated)

    async def reached(self) -> None:
        await soon(lambda: len(self.seen) >= self.after)


@asynccontextmanager
async def opened(data: Path, installed: Path, **settings: object) -> AsyncIterator[Harness]:
    data.mkdir(parents=True, exist_ok=True)
    if not (data / "model").exists():
        (data / "model").write_text("old\n")
    async with serve(data, model=installed, **settings) as h:
        yield h


async def use(h: Harness, name: str) -> None:
    await h.services.model_change.use(name, h.services.accounts.accounts)


async def with_document(h: Harness, account_id: str = "") -> Person:
    person = await h.person(account_id=account_id)
    await person.push("sessions", session("s1"))
    assert (await person.upload("a.txt", TEXT)).status_code == 201
    await h.drain_jobs(person)
    return person


async def used_by(person: Person) -> set[str]:
    return {block["model"] for block in (await person.live("vectorEmbeddings")).values()}


async def until_used(person: Person, model: str) -> None:
    """Wait until this model has computed all stored vectors of the person."""

    async def is_so() -> bool:
        return await used_by(person) == {model}

    await soon(is_so)


async def check_meaning(h: Harness, person: Person, name: str) -> None:
    """Check that the server uses this model and that the best result's score is the cosine of the model's vectors."""
    embedder = await h.services.inference.for_user(person.id)
    assert embedder is not None and embedder.manifest.id == name
    found = (await person.search("a letter about the boiler", mode="meaning"))["results"]
    asked = await embedder.embed_query("a letter about the boiler")
    text = found[0]["text"]
    cosine = float((await embedder.embed_passages([text]))[0] @ asked)
    assert found[0]["score"] == pytest.approx(cosine, abs=1e-4)


def staged(data: Path, person: Person) -> list[Path]:
    return [
        path for path in paths_below(user_folder(data, person.id) / "reembed") if path.match("reembed/*/*@*")
    ]

"""Damaged records: the account gets an explanation, its readable rows are recovered, and other accounts work."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from property.rows import fact
from server.in_process_server import Harness, Person, check_problem, reconnect, run, serve
from vademecum.model.records.paths import user_folder
from wait_until import soon

QUESTION = {"query": "river", "sessionId": "s1"}
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/v1/sync/facts/0/pull?lwt=0&limit=100", {}),
    ("POST", "/v1/sync/facts/0/push", {"json": [{"newDocumentState": fact("new")}]}),
    ("POST", "/v1/search", {"json": QUESTION}),
    ("POST", "/v1/documents", {"files": {"file": ("a.txt", b"text")}, "data": {"sessionId": "s1"}}),
    ("POST", "/v1/context", {"json": QUESTION}),
    ("POST", "/v1/answer", {"json": QUESTION}),
    ("GET", "/v1/export", {}),
    ("GET", "/v1/documents", {}),
]
ASSISTANT = {"assistant_url": "http://127.0.0.1:9", "assistant_model": "never asked"}
HEADER = 3 * 4096
BLOCK = 16_384


def move_in(h: Harness, *people: Person) -> None:
    for one in people:
        reconnect(h, one)


def file_of(data: Path, person: Person) -> Path:
    return user_folder(data, person.id) / "records.duckdb"


def flip(path: Path, rng: random.Random, every: int = 1) -> None:
    """Flip one random bit in every `every`-th block of the file, after its header."""
    content = bytearray(path.read_bytes())
    for start in range(HEADER, len(content), BLOCK * every):
        content[start + rng.randrange(min(BLOCK, len(content) - start))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def test_damaged_accounts_do_not_block_an_intact_account(tmp_path: Path) -> None:
    rng = random.Random(8)

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            people = [await h.person() for _ in range(9)]
            for one in people:
                await one.add("facts", *(fact(f"f{n}", value=f"{n} " * 300) for n in range(20)))
        *damaged, well = people
        for number, one in enumerate(damaged):
            path = file_of(tmp_path, one)
            if number % 4 == 3:
                os.truncate(path, path.stat().st_size // 2)
            else:
                flip(path, rng)
        async with serve(tmp_path, **ASSISTANT) as h:
            move_in(h, *people)

            async def use(one: Person, number: int) -> None:
                for turn in range(len(REQUESTS)):  # each account meets its damage with another request
                    method, path, more = REQUESTS[(number + turn) % len(REQUESTS)]
                    detail = check_problem(await one.call(method, path, **more), 503, "FENCED")["detail"]
                    assert str(file_of(tmp_path, one)) in detail

            async def work() -> None:
                await well.add("facts", fact("new"))
                assert len(await well.live("facts")) == 21
                assert await well.upload("a.txt", "The kingfisher nests in the river bank.")
                assert (await well.search("kingfisher"))["results"]
                assert (await well.call("GET", "/ready")).status_code == 200

            async with asyncio.timeout(60):
                await asyncio.gather(*map(use, damaged, range(8)), work())

    run(scenario)


def test_replacing_an_accounts_file_fences_it_until_recovery(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.add("facts", fact("f1"))
            async with h.services.users.open(ada.id) as store:
                await store.checkpoint()
            path = file_of(tmp_path, ada)
            copy = path.with_name("copy")
            copy.write_bytes(path.read_bytes())
            copy.replace(path)
            answer = await ada.call("POST", "/v1/sync/facts/0/push", json=[{"newDocumentState": fact("f2")}])
            assert (answer.status_code, answer.json()["code"]) == (503, "FENCED")

            async def recovered() -> bool:
                return h.services.users.fences.reason(ada.id) is None

            await soon(recovered)
            await ada.add("facts", fact("f2"))
            assert set(await ada.live("facts")) == {"f1", "f2"}
        async with serve(tmp_path) as h:
            move_in(h, ada)
            assert set(await ada.live("facts")) == {"f1", "f2"}

    run(scenario)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_flipped_bit_in_one_accounts_file_does_not_affect_other_accounts(
    tmp_path: Path, seed: int, sweep_case: Callable[[str], AbstractContextManager[None]]
) -> None:
    rng = random.Random(seed)

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            for one in (ada, bob):
                for n in range(40):
                    await one.add("facts", fact(f"f{n}", value=f"{n} " * 100))
        path = file_of(tmp_path, ada)
        content = bytearray(path.read_bytes())
        content[rng.randrange(HEADER, len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        async with serve(tmp_path, statement_read_s=1) as h:
            move_in(h, ada, bob)
            async with asyncio.timeout(60):
                for n in range(4):
                    answer = await ada.call("GET", "/v1/sync/facts/0/pull?lwt=0&limit=100")
                    if answer.status_code != 200:
                        check_problem(answer, 503, "FENCED")
                    await bob.add("facts", fact(f"new{n}"))
                assert len(await bob.live("facts")) == 44

    with sweep_case("bit flips in an account's file"):
        run(scenario)

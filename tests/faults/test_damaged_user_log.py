"""Damage to a user's write-ahead log while the server is down: what it costs, and whom.

Each user of one server suffers another damage, all at once, between a kill and the next start. Their rows came in
two parts: `kept` was folded into the file by an ordinary stop, `logged` stands in the log alone, one commit a row,
with the length of the log after each acknowledgement. So for every place of damage it is known which commits were
whole before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
import pytest

from faults.server_process import PLAIN, Served
from faults.writing_devices import Json, User, session
from vademecum.engines.duckdb.paths import RECORDS_FILE
from vademecum.model.records.paths import user_folder

KEPT, LOGGED = 5, 8
Damage = Callable[[bytes, list[int]], bytes]  # (the log, its length after each commit) -> what is left of it


def cut_at(commits: int, extra: int = 0) -> Damage:
    """The first so many commits, and `extra` bytes of the next (or, negative, less of the last)."""
    return lambda log, ends: log[: ends[commits] + extra]


def flip(commit: int, share: float) -> Damage:
    """All bits of four bytes inside the commit with this number (from 1), so far into it."""

    def damage(log: bytes, ends: list[int]) -> bytes:
        start, end = ends[commit - 1], ends[commit]
        at = min(start + int((end - start) * share), end - 4)
        return log[:at] + bytes(b ^ 0xFF for b in log[at : at + 4]) + log[at + 4 :]

    return damage


def zeros_from(commits: int) -> Damage:
    """As a file system leaves it that knew the new length but not the content."""
    return lambda log, ends: log[: ends[commits]] + bytes(len(log) - ends[commits])


def append(garbage: bytes) -> Damage:
    return lambda log, ends: log + garbage


@dataclass(frozen=True)
class Case:
    """`whole`: how many of the logged commits stand before it."""

    damage: Damage
    whole: int


CASES = {
    "torn one byte before the end of the last commit": Case(cut_at(LOGGED, -1), LOGGED - 1),
    "torn in the middle of the last commit": Case(cut_at(LOGGED - 1, 300), LOGGED - 1),
    "torn one byte into the last commit": Case(cut_at(LOGGED - 1, 1), LOGGED - 1),
    "cut between two commits": Case(cut_at(5), 5),
    "cut inside the third commit": Case(cut_at(2, 40), 2),
    "cut inside its own header": Case(lambda log, ends: log[:10], 0),
    "empty": Case(lambda log, ends: b"", 0),
    "bits flipped at the start of the last commit": Case(flip(LOGGED, 0.01), LOGGED - 1),
    "bits flipped in the middle of the last commit": Case(flip(LOGGED, 0.5), LOGGED - 1),
    "bits flipped at the end of the last commit": Case(flip(LOGGED, 1.0), LOGGED - 1),
    "bits flipped in an early commit": Case(flip(3, 0.5), 2),
    "zeros in the place of the last commit": Case(zeros_from(LOGGED - 1), LOGGED - 1),
    "zeros after the last commit": Case(append(bytes(4096)), LOGGED),
    "garbage after the last commit": Case(append(Random(7).randbytes(3000)), LOGGED),
    "a few bytes of garbage after the last commit": Case(append(b"\x11\x22\x33"), LOGGED),
    "nothing but zeros": Case(lambda log, ends: bytes(len(log)), 0),
    "nothing but garbage": Case(lambda log, ends: Random(8).randbytes(len(log)), 0),
}


@dataclass
class Victim:
    user: User
    log: Path
    ends: list[int] = field(default_factory=list)
    kept: dict[str, Json] = field(default_factory=dict)
    logged: list[Json] = field(default_factory=list)
    answer: httpx.Response | None = None  # to the first pull after the damage

    @property
    def rows(self) -> dict[str, Json]:
        assert self.answer is not None
        return {row["id"]: row for row in self.answer.json()["documents"]}

    def allowed(self, commits: int) -> dict[str, Json]:
        return self.kept | {row["id"]: row for row in self.logged[:commits]}


@dataclass
class Ruin:
    """What became of everybody, asked once for all tests: the same damage need not be done seventeen times."""

    victims: dict[str, Victim]
    whole: list[Victim]  # users that nothing was done to
    ready: int
    before: dict[str, dict[str, Json]] = field(default_factory=dict)
    after: dict[str, dict[str, Json]] = field(default_factory=dict)
    missed: dict[str, set[str]] = field(default_factory=dict)
    epochs: dict[str, list[str]] = field(default_factory=dict)  # before the damage and after each start


async def victim(served: Served, name: str) -> Victim:
    user_id, token = await served.add_user(f"{name}@example.org")
    return Victim(
        User(name, user_id, token, "", 0), user_folder(served.data, user_id) / f"{RECORDS_FILE}.wal"
    )


async def write(one: Victim, number: int) -> Json:
    row = session(f"s{number}", Random(f"{one.user.email}-{number}"))
    await one.user.store("sessions", row)
    assert one.user.wrong == []
    return row


async def fill(served: Served, everybody: list[Victim]) -> None:
    """`kept` goes into the file with an ordinary stop; `logged` stands in the log when the server is killed."""
    for one in everybody:
        one.kept = {row["id"]: row for row in [await write(one, n) for n in range(KEPT)]}
    served.stop()
    client = await served.start()
    for one in everybody:
        one.user.client = client
        assert not one.log.exists(), "the stop has folded it in"
        await one.user.puller.catch_up(one.user)
        for number in range(LOGGED):
            one.logged.append(await write(one, KEPT + number))
            one.ends.append(one.log.stat().st_size)
        await one.user.puller.catch_up(one.user)
    await client.aclose()
    served.kill()


async def bring_ruin(folder: Path) -> Ruin:
    served = Served(folder / "data", folder / "no-models", {"erase_delay_s": "600"})
    try:
        await (await served.start()).aclose()
        victims = {name: await victim(served, f"victim{n}") for n, name in enumerate(CASES)}
        spared = [await victim(served, f"spared{n}") for n in range(2)]
        everybody = [*victims.values(), *spared]
        client = httpx.AsyncClient(base_url=served.door.url, timeout=30, verify=PLAIN)
        for one in everybody:
            one.user.client = client
        await fill(served, everybody)
        await client.aclose()
        for name, one in victims.items():
            one.log.write_bytes(CASES[name].damage(one.log.read_bytes(), [0, *one.ends]))
        return await aftermath(served, Ruin(victims, spared, 0))
    finally:
        served.kill()


async def aftermath(served: Served, ruin: Ruin) -> Ruin:
    """Start on the damage, ask, write on, die again, and ask again."""
    everybody = {**ruin.victims, **{one.user.email: one for one in ruin.whole}}
    client = await served.start()
    for name, one in everybody.items():
        one.user.client = client
        one.answer = await one.user.call("GET", "/v1/sync/sessions/0/pull?lwt=0&limit=1000")
        if one.answer.status_code == 200:
            ruin.epochs[name] = [epoch_of(one.user.puller.checkpoints["sessions"]), await epoch(one)]
            for number in range(100, 103):
                await write(one, number)
            ruin.before[name] = await sessions_of(one)
    ruin.ready = (await client.get("/ready")).status_code
    await client.aclose()
    served.kill()
    client = await served.start()
    for name, one in everybody.items():
        one.user.client = client
        if name in ruin.before:
            ruin.after[name] = await sessions_of(one)
            ruin.epochs[name].append(await epoch(one))
    for name in ruin.before:
        ruin.missed[name] = await missed_by_a_device(everybody[name])
    await client.aclose()
    return ruin


def epoch_of(checkpoint: Json) -> str:
    return str(checkpoint["id"]).partition(".")[0]


async def epoch(one: Victim) -> str:
    return epoch_of((await one.user.call("GET", "/v1/sync/sessions/0/pull?limit=1")).json()["checkpoint"])


async def sessions_of(one: Victim) -> dict[str, Json]:
    answer = await one.user.call("GET", "/v1/sync/sessions/0/pull?lwt=0&limit=1000")
    assert answer.status_code == 200, answer.text
    return {row["id"]: row for row in answer.json()["documents"]}


async def missed_by_a_device(one: Victim) -> set[str]:
    """Rows that a device does not get which had pulled everything before the damage. A new epoch tells it to begin
    again, and then it misses nothing."""
    was = one.user.puller.checkpoints["sessions"]
    answer = await one.user.call(
        "GET", f"/v1/sync/sessions/0/pull?lwt={was['lwt']}&id={was['id']}&limit=1000"
    )
    if answer.status_code == 409:
        assert answer.json()["code"] == "EPOCH"
        return set()
    known = {key.partition("/")[2] for key in one.user.puller.seen}
    return set(await sessions_of(one)) - known - {row["id"] for row in answer.json()["documents"]}


@pytest.fixture(scope="module")
def ruin(tmp_path_factory) -> Ruin:
    return asyncio.run(bring_ruin(tmp_path_factory.mktemp("ruin")))


def test_the_server_starts_and_users_without_damage_have_everything(ruin):
    assert ruin.ready == 200
    for one in ruin.whole:
        assert one.rows == one.allowed(LOGGED)


@pytest.mark.parametrize("name", CASES)
def test_the_user_is_served_or_told_clearly(ruin, name):
    answer = ruin.victims[name].answer
    assert answer is not None
    if answer.status_code != 200:
        problem = answer.json()
        assert (problem["code"], problem["error"]) == ("BROKEN", True)
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert "cannot be opened" in problem["detail"] and "restore" in problem["detail"], (
            "what to do is said"
        )


@pytest.mark.parametrize("name", CASES)
def test_nothing_of_before_the_last_checkpoint_is_lost_and_no_row_comes_from_nowhere(ruin, name):
    one = ruin.victims[name]
    if one.answer.status_code == 200:
        assert one.rows in [one.allowed(commits) for commits in range(LOGGED + 1)], "a prefix of the commits"
    else:
        assert one.log.with_name(RECORDS_FILE).stat().st_size > 0, "the file is left as it was"


@pytest.mark.parametrize("name", CASES)
def test_every_commit_that_was_whole_before_the_damage_is_there(ruin, name):
    one = ruin.victims[name]
    assert one.answer.status_code == 200, one.answer.text
    assert one.rows == one.allowed(CASES[name].whole)


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_after_the_repair_survives_the_next_crash(ruin, name):
    one = ruin.victims[name]
    assert one.answer.status_code == 200, one.answer.text
    assert len(ruin.before[name]) == len(one.rows) + 3
    assert ruin.after[name] == ruin.before[name]


def test_a_device_that_had_seen_what_was_lost_misses_nothing_that_comes_later(ruin):
    """`seq` never goes back: a device whose checkpoint lies beyond the damage gets what is written after it, or is
    told (409 EPOCH) to begin again."""
    assert {name: rows for name, rows in ruin.missed.items() if rows} == {}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.whole < LOGGED])
def test_loss_of_acknowledged_rows_begins_one_new_epoch(ruin, name):
    before, *after = ruin.epochs[name]
    assert before not in after and len(set(after)) == 1


def test_kill_without_damage_keeps_the_epoch(ruin):
    for one in ruin.whole:
        assert len(set(ruin.epochs[one.user.email])) == 1

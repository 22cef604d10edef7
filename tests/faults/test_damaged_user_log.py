"""Damage accounts' write-ahead logs while no server runs. Only commits after the damage may be lost.

After a kill and before the next start, the test damages the log of each account in a different way. A normal stop has
checkpointed the first rows of each account into its file. The other rows are only in the log, with one commit per row.
The test records the length of the log after each commit, so each case states how many commits precede its damage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
import pytest

from faults.device_workload import Json, User, session
from faults.server_process import NO_TLS, ServerProcess
from vademecum.engines.duckdb.paths import RECORDS_FILE
from vademecum.model.records.paths import user_folder

CHECKPOINTED, LOGGED = 5, 8  # numbers of rows in the file and in the log
# A function of the log and its length after each commit that returns the damaged log.
Damage = Callable[[bytes, list[int]], bytes]


def cut_at(commits: int, extra: int = 0) -> Damage:
    """Truncate the log after `commits` commits and `extra` further bytes. A negative `extra` cuts off more."""
    return lambda log, ends: log[: ends[commits] + extra]


def flip(commit: int, share: float) -> Damage:
    """Invert four bytes of a commit (numbered from 1). `share`: their position as a fraction of the commit's length."""

    def damage(log: bytes, ends: list[int]) -> bytes:
        start, end = ends[commit - 1], ends[commit]
        at = min(start + int((end - start) * share), end - 4)
        return log[:at] + bytes(b ^ 0xFF for b in log[at : at + 4]) + log[at + 4 :]

    return damage


def zeros_from(commits: int) -> Damage:
    """Replace all later commits by zeros, like a file system that stored the new length without the content."""
    return lambda log, ends: log[: ends[commits]] + bytes(len(log) - ends[commits])


def append(garbage: bytes) -> Damage:
    return lambda log, ends: log + garbage


@dataclass(frozen=True)
class Case:
    damage: Damage
    intact: int  # the number of logged commits before the damage


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
    "zeros instead of the last commit": Case(zeros_from(LOGGED - 1), LOGGED - 1),
    "zeros after the last commit": Case(append(bytes(4096)), LOGGED),
    "garbage after the last commit": Case(append(Random(7).randbytes(3000)), LOGGED),
    "a few bytes of garbage after the last commit": Case(append(b"\x11\x22\x33"), LOGGED),
    "nothing but zeros": Case(lambda log, ends: bytes(len(log)), 0),
    "nothing but garbage": Case(lambda log, ends: Random(8).randbytes(len(log)), 0),
}


@dataclass
class Account:
    user: User
    log: Path
    ends: list[int] = field(default_factory=list)
    checkpointed: dict[str, Json] = field(default_factory=dict)
    logged: list[Json] = field(default_factory=list)
    response: httpx.Response | None = None  # response to the first pull after the damage

    @property
    def rows(self) -> dict[str, Json]:
        assert self.response is not None
        return {row["id"]: row for row in self.response.json()["documents"]}

    def rows_after(self, commits: int) -> dict[str, Json]:
        """Return the rows after this number of logged commits."""
        return self.checkpointed | {row["id"]: row for row in self.logged[:commits]}


@dataclass
class Outcome:
    """The results of the run for all accounts, collected once for all tests. Maps have the case or the email as key."""

    damaged: dict[str, Account]
    undamaged: list[Account]
    ready: int
    before: dict[str, dict[str, Json]] = field(default_factory=dict)
    after: dict[str, dict[str, Json]] = field(default_factory=dict)
    missed: dict[str, set[str]] = field(default_factory=dict)
    # The epoch before the damage, then after each start.
    epochs: dict[str, list[str]] = field(default_factory=dict)


async def create_account(server: ServerProcess, name: str) -> Account:
    user_id, token = await server.add_user(f"{name}@example.org")
    log = user_folder(server.data, user_id) / f"{RECORDS_FILE}.wal"
    return Account(User(name, user_id, token, "", 0), log)


async def row_operations(account: Account, number: int) -> Json:
    row = session(f"s{number}", Random(f"{account.user.email}-{number}"))
    await account.user.store("sessions", row)
    assert account.user.errors == []
    return row


async def write_rows(server: ServerProcess, accounts: list[Account]) -> None:
    """Write rows that a normal stop checkpoints, then rows that are only in the log when the server is killed."""
    for account in accounts:
        account.checkpointed = {
            row["id"]: row for row in [await row_operations(account, n) for n in range(CHECKPOINTED)]
        }
    server.stop()
    client = await server.start()
    for account in accounts:
        account.user.client = client
        assert not account.log.exists(), "the stop did not checkpoint the log"
        await account.user.pull_device.catch_up(account.user)
        for number in range(LOGGED):
            account.logged.append(await row_operations(account, CHECKPOINTED + number))
            account.ends.append(account.log.stat().st_size)
        await account.user.pull_device.catch_up(account.user)
    await client.aclose()
    server.kill()


async def damage_logs(folder: Path) -> Outcome:
    server = ServerProcess(folder / "data", folder / "no-models", {"erase_delay_s": "600"})
    try:
        await (await server.start()).aclose()
        damaged = {name: await create_account(server, f"damaged{n}") for n, name in enumerate(CASES)}
        undamaged = [await create_account(server, f"undamaged{n}") for n in range(2)]
        accounts = [*damaged.values(), *undamaged]
        client = httpx.AsyncClient(base_url=server.door.url, timeout=30, verify=NO_TLS)
        for account in accounts:
            account.user.client = client
        await write_rows(server, accounts)
        await client.aclose()
        for name, account in damaged.items():
            account.log.write_bytes(CASES[name].damage(account.log.read_bytes(), [0, *account.ends]))
        return await restart_twice(server, Outcome(damaged, undamaged, 0))
    finally:
        server.kill()


async def restart_twice(server: ServerProcess, outcome: Outcome) -> Outcome:
    """Start the server on the damaged logs, read and write, kill it, start it again and read."""
    accounts = {**outcome.damaged, **{account.user.email: account for account in outcome.undamaged}}
    client = await server.start()
    for name, account in accounts.items():
        account.user.client = client
        account.response = await account.user.call("GET", "/v1/sync/sessions/1/pull?lwt=0&limit=1000")
        if account.response.status_code == 200:
            outcome.epochs[name] = [
                epoch_of(account.user.pull_device.checkpoints["sessions"]),
                await current_epoch(account),
            ]
            for number in range(100, 103):
                await row_operations(account, number)
            outcome.before[name] = await sessions_of(account)
    outcome.ready = (await client.get("/ready")).status_code
    await client.aclose()
    server.kill()
    client = await server.start()
    for name, account in accounts.items():
        account.user.client = client
        if name in outcome.before:
            outcome.after[name] = await sessions_of(account)
            outcome.epochs[name].append(await current_epoch(account))
    for name in outcome.before:
        outcome.missed[name] = await rows_missed_by_device(accounts[name])
    await client.aclose()
    return outcome


def epoch_of(checkpoint: Json) -> str:
    return str(checkpoint["id"]).partition(".")[0]


async def current_epoch(account: Account) -> str:
    return epoch_of((await account.user.call("GET", "/v1/sync/sessions/1/pull?limit=1")).json()["checkpoint"])


async def sessions_of(account: Account) -> dict[str, Json]:
    response = await account.user.call("GET", "/v1/sync/sessions/1/pull?lwt=0&limit=1000")
    assert response.status_code == 200, response.text
    return {row["id"]: row for row in response.json()["documents"]}


async def rows_missed_by_device(account: Account) -> set[str]:
    """Return the rows that are missing on a device that had pulled all rows before the damage.

    After a new epoch, the device pulls from zero, so no row is missing.
    """
    checkpoint = account.user.pull_device.checkpoints["sessions"]
    path = f"/v1/sync/sessions/1/pull?lwt={checkpoint['lwt']}&id={checkpoint['id']}&limit=1000"
    response = await account.user.call("GET", path)
    if response.status_code == 409:
        assert response.json()["code"] == "EPOCH"
        return set()
    seen = {key.partition("/")[2] for key in account.user.pull_device.seen}
    return set(await sessions_of(account)) - seen - {row["id"] for row in response.json()["documents"]}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory) -> Outcome:
    return asyncio.run(damage_logs(tmp_path_factory.mktemp("damage")))


def test_accounts_with_undamaged_logs_keep_all_rows(outcome):
    assert outcome.ready == 200
    for account in outcome.undamaged:
        assert account.rows == account.rows_after(LOGGED)


@pytest.mark.parametrize("name", CASES)
def test_commits_logged_before_the_damage_survive(outcome, name):
    account = outcome.damaged[name]
    assert account.response.status_code == 200, account.response.text
    assert account.rows == account.rows_after(CASES[name].intact)


@pytest.mark.parametrize("name", CASES)
def test_writes_after_the_repair_survive_a_crash(outcome, name):
    account = outcome.damaged[name]
    assert len(outcome.before[name]) == len(account.rows) + 3
    assert outcome.after[name] == outcome.before[name]


def test_device_ahead_of_damaged_server_misses_no_later_row(outcome):
    """Such a device has a checkpoint after the damage. It must receive later rows or 409 EPOCH."""
    assert {name: rows for name, rows in outcome.missed.items() if rows} == {}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.intact < LOGGED])
def test_loss_of_acknowledged_rows_begins_exactly_one_epoch(outcome, name):
    before, *after = outcome.epochs[name]
    assert before not in after and len(set(after)) == 1


def test_server_kill_without_log_damage_keeps_the_epoch(outcome):
    for account in outcome.undamaged:
        assert len(set(outcome.epochs[account.user.email])) == 1

"""Damage to the log of the accounts' file: nobody who was let in stays out, and nobody who was shut out comes back.

The first half does every kind of damage to a log that holds several changes, as an older version left it, or a crash
between two steps of one change. The second kills a real server and takes its whole log away: what it had acknowledged
does not lie there.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from cli.command_runner import Home
from faults.server_process import Served
from faults.test_damaged_user_log import CASES, KEPT, LOGGED
from server.in_process_server import T, house, run
from vademecum.engines.duckdb.instance import Instance
from vademecum.services.accounts.accounts import create
from vademecum.services.accounts.tokens import issue

FILE = "accounts.duckdb"
CUT = [
    name for name in CASES if name.startswith("bits flipped")
]  # others may look like a log that ends early
PASSWORD, NEWER = "correct horse battery", "another horse battery"


@dataclass
class Crashed:
    """A data folder as a kill leaves it: `tokens` of accounts in the file, and `logged` accounts in the log alone."""

    data: Path
    tokens: list[str]
    kept: set[str]
    logged: list[str]
    ends: list[int]  # the length of the log after each of these

    @property
    def log(self) -> Path:
        return self.data / f"{FILE}.wal"

    def copy(self, data: Path, name: str) -> Crashed:
        """With this damage done to it."""
        shutil.copytree(self.data, data)
        crashed = Crashed(data, self.tokens, self.kept, self.logged, self.ends)
        crashed.log.write_bytes(CASES[name].damage(self.log.read_bytes(), [0, *self.ends]))
        return crashed


async def fill(data: Path) -> list[str]:
    async with house(data) as h:
        accounts = [await create(h.services, f"kept{n}@example.org", "JIGGA") for n in range(KEPT)]
        return [await issue(h.services, account, "api", "test", None) for account in accounts]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory) -> Crashed:
    folder = tmp_path_factory.mktemp("crashed")
    found = Crashed(folder / "crashed", asyncio.run(fill(folder / "data")), set(), [], [])
    found.kept = {f"kept{n}@example.org" for n in range(KEPT)}
    instance = Instance()
    try:
        alias = instance.attach(folder / "data" / FILE)
        for n in range(LOGGED):
            found.logged.append(f"logged{n}@example.org")
            row = [f"id{n}", found.logged[-1], "hash" * 200, T]  # long enough for every kind of damage
            instance.cursor().execute(
                f"INSERT INTO {alias}.main.accounts VALUES (?, ?, 'FREE', false, ?, ?)", row
            )
            found.ends.append((folder / "data" / f"{FILE}.wal").stat().st_size)
        shutil.copytree(folder / "data", found.data)
    finally:
        instance.close()
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_server_starts_with_every_account_and_token_of_before_the_damage(crashed, tmp_path, name):
    damaged = crashed.copy(tmp_path / "data", name)

    async def scenario():
        async with house(damaged.data) as h:
            emails = {account.email for account in h.services.accounts.accounts.values()}
            assert emails == damaged.kept | set(damaged.logged[: CASES[name].whole])
            for token in damaged.tokens:
                transport = httpx.ASGITransport(h.app)
                headers = {"Authorization": f"Bearer {token}"}
                async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                    assert (await client.get("/v1/me", headers=headers)).status_code == 200
            later = await create(h.services, "later@example.org", "FREE")
        async with house(damaged.data) as h:
            assert {a.email for a in h.services.accounts.accounts.values()} == emails | {later.email}

    run(scenario)


@pytest.mark.parametrize("name", CASES)
def test_a_log_that_had_to_be_cut_is_kept_whole_and_an_operator_is_told(crashed, tmp_path, name):
    damaged = crashed.copy(tmp_path / "data", name)
    content = damaged.log.read_bytes()
    kept = damaged.log.with_name(damaged.log.name + ".damaged")

    async def scenario():
        with capture_logs() as said:
            async with house(damaged.data):
                pass
        told = [line for line in said if line["event"] == "log repaired"]
        assert bool(told) == kept.exists() and (told or name not in CUT)
        if told:
            assert kept.read_bytes() == content
            (line,) = told
            assert line["log_level"] == "warning"
            for word in (damaged.log.name, kept.name, "may be missing", "acknowledged", "again"):
                assert word in line["detail"]

    run(scenario)


def test_a_restore_and_the_doctor_work_on_a_damaged_log(crashed, tmp_path):
    name = "bits flipped in the middle of the last commit"
    damaged = crashed.copy(tmp_path / "data", name)
    healthy = Home(tmp_path / "other")
    healthy.add("other@example.org")
    healthy.ok("backup", tmp_path / "copy")
    home = Home(damaged.data)
    done = home.ok("restore", tmp_path / "copy", "--yes", "--json").json
    assert done["accounts"] == 1 and done["skipped"] == []
    emails = {account["email"] for account in home.ok("user", "list", "--json").json}
    assert emails == damaged.kept | set(damaged.logged[: LOGGED - 1]) | {"other@example.org"}
    (logs,) = [one for one in home.run("doctor", "--json").json if one["check"] == "logs"]
    assert not logs["ok"] and f"{FILE}.wal.damaged" in logs["detail"]


def test_the_doctor_says_what_its_own_opening_has_repaired(crashed, tmp_path):
    damaged = crashed.copy(tmp_path / "data", "bits flipped in an early commit")
    looked = Home(damaged.data).run("doctor", "--json")
    (logs,) = [one for one in looked.json if one["check"] == "logs"]
    assert looked.code == 1 and not logs["ok"]


def test_reading_the_accounts_of_a_backup_changes_nothing_in_it(crashed, tmp_path):
    async def scenario():
        async with house(tmp_path / "data") as h:
            before = (crashed.data / FILE).read_bytes()
            adopted = await h.services.accounts.adopt_missing(crashed.data / FILE, set(), set())
            assert adopted.count == KEPT
            assert (crashed.data / FILE).read_bytes() == before
            assert not list((tmp_path / "data").glob(f"{FILE}.new*"))

    run(scenario)


# --- what was acknowledged does not lie in the log ----------------------------------------------------------------


@dataclass
class Changes:
    """What a server had acknowledged when it was killed."""

    removed: str  # an email
    added: str  # a token of an account made last
    revoked: str  # a token
    signed_out: str  # a cookie
    signed_in: str


async def sign_in(client: httpx.AsyncClient, email: str, password: str) -> httpx.Response:
    client.cookies.clear()
    return await client.post("/v1/sign-in", json={"email": email, "password": password})


async def change(served: Served, client: httpx.AsyncClient) -> Changes:
    for name in ("ada", "bob"):
        body = {"email": f"{name}@example.org", "password": PASSWORD, "tier": "JIGGA"}
        account = await served.admin("POST", "/v1/accounts", json=body)
    revoked = await served.admin("POST", "/v1/tokens", "ada@example.org", json={"name": "lost"})
    await sign_in(client, "ada@example.org", PASSWORD)
    signed_out = client.cookies["vademecum"]
    await client.post("/v1/sign-out")
    await served.admin("DELETE", f"/v1/tokens/{revoked['token']['id']}", "ada@example.org")
    await served.admin("DELETE", f"/v1/accounts/{account['userId']}")
    await sign_in(client, "ada@example.org", PASSWORD)
    body = {"current": PASSWORD, "new": NEWER}
    assert (await client.post("/v1/password", json=body)).status_code == 200
    _, added = await served.add_user("last@example.org")
    return Changes("bob@example.org", added, revoked["secret"], signed_out, client.cookies["vademecum"])


async def answers(client: httpx.AsyncClient, secret: str, *, cookie: bool = False) -> int:
    client.cookies.clear()
    headers = {"Cookie": f"vademecum={secret}"} if cookie else {"Authorization": f"Bearer {secret}"}
    return (await client.get("/v1/me", headers=headers)).status_code


def test_without_its_log_a_killed_server_knows_every_acknowledged_grant_and_revocation(tmp_path):
    async def scenario():
        served = Served(tmp_path / "data", tmp_path / "no-models")
        try:
            async with aclosing(await served.start()) as client:
                made = await change(served, client)
            served.kill()
            (served.data / f"{FILE}.wal").unlink(missing_ok=True)
            async with aclosing(await served.start()) as client:
                assert await answers(client, made.added) == 200
                assert await answers(client, made.signed_in, cookie=True) == 200
                assert await answers(client, made.revoked) == 401
                assert await answers(client, made.signed_out, cookie=True) == 401
                assert (await sign_in(client, made.removed, PASSWORD)).status_code == 401
                assert (await sign_in(client, "ada@example.org", PASSWORD)).status_code == 401
                assert (await sign_in(client, "ada@example.org", NEWER)).status_code == 200
        finally:
            served.kill()

    run(scenario)

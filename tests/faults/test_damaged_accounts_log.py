"""Damage the log of the accounts file. No granted access may be lost, and no revoked access may return.

The tests of the first half damage a log that contains several changes. An older version, or a crash between two steps
of a change, leaves such a log. The second half kills a server and deletes its log. That log contains no acknowledged
change.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs

from cli.command_runner import Home
from faults.server_process import ServerProcess
from faults.test_damaged_user_log import CASES, CHECKPOINTED, LOGGED
from server.in_process_server import T, run, serve
from vademecum.engines.duckdb.instance import Instance

FILE = "accounts.duckdb"
# Kinds of damage that the server detects. With any other damage, the log may look like a shorter valid log.
REPAIRED = [name for name in CASES if name.startswith("bits flipped")]
PASSWORD, NEW_PASSWORD = "correct horse battery", "another horse battery"


@dataclass
class CrashedFolder:
    """A data folder after a kill. `tokens` has a token of each account in the file."""

    data: Path
    tokens: list[str]
    checkpointed: set[str]  # emails of the accounts in the file
    logged: list[str]  # emails of the accounts that are only in the log
    ends: list[int]  # the length of the log after each of `logged`

    @property
    def log(self) -> Path:
        return self.data / f"{FILE}.wal"

    def copy(self, data: Path, name: str) -> CrashedFolder:
        """Copy the folder and damage the copy's log."""
        shutil.copytree(self.data, data)
        copy = replace(self, data=data)
        copy.log.write_bytes(CASES[name].damage(self.log.read_bytes(), [0, *self.ends]))
        return copy


async def create_accounts(data: Path) -> list[str]:
    """Create the accounts and return a token of each."""
    async with serve(data) as h:
        accounts = [
            await h.services.account_service.create(f"kept{n}@example.org", "JIGGA")
            for n in range(CHECKPOINTED)
        ]
        return [await h.services.tokens.issue(account, "api", "test", None) for account in accounts]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory) -> CrashedFolder:
    folder = tmp_path_factory.mktemp("crashed")
    tokens = asyncio.run(create_accounts(folder / "data"))
    emails = {f"kept{n}@example.org" for n in range(CHECKPOINTED)}
    result = CrashedFolder(folder / "crashed", tokens, emails, [], [])
    instance = Instance()
    try:
        alias = instance.attach(folder / "data" / FILE)
        for n in range(LOGGED):
            result.logged.append(f"logged{n}@example.org")
            # The hash is long, so that every kind of damage fits into the commit.
            row = [f"id{n}", result.logged[-1], "hash" * 200, T]
            instance.cursor().execute(
                f"INSERT INTO {alias}.main.accounts VALUES (?, ?, 'FREE', false, ?, ?)", row
            )
            result.ends.append((folder / "data" / f"{FILE}.wal").stat().st_size)
        shutil.copytree(folder / "data", result.data)
    finally:
        instance.close()
    return result


@pytest.mark.parametrize("name", CASES)
def test_accounts_and_tokens_logged_before_the_damage_survive(crashed, tmp_path, name):
    damaged = crashed.copy(tmp_path / "data", name)

    async def scenario():
        async with serve(damaged.data) as h:
            emails = {account.email for account in h.services.accounts.accounts.values()}
            assert emails == damaged.checkpointed | set(damaged.logged[: CASES[name].intact])
            for token in damaged.tokens:
                transport = httpx.ASGITransport(h.app)
                headers = {"Authorization": f"Bearer {token}"}
                async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                    assert (await client.get("/v1/me", headers=headers)).status_code == 200
            later = await h.services.account_service.create("later@example.org", "FREE")
        async with serve(damaged.data) as h:
            assert {a.email for a in h.services.accounts.accounts.values()} == emails | {later.email}

    run(scenario)


@pytest.mark.parametrize("name", CASES)
def test_truncated_accounts_log_is_copied_and_reported(crashed, tmp_path, name):
    damaged = crashed.copy(tmp_path / "data", name)
    content = damaged.log.read_bytes()
    copy = damaged.log.with_name(damaged.log.name + ".damaged")

    async def scenario():
        with capture_logs() as lines:
            async with serve(damaged.data):
                pass
        reports = [line for line in lines if line["event"] == "log repaired"]
        assert bool(reports) == copy.exists() and (reports or name not in REPAIRED)
        if reports:
            assert copy.read_bytes() == content
            (line,) = reports
            assert line["log_level"] == "warning"
            for word in (damaged.log.name, copy.name, "may be missing", "acknowledged", "repeat it"):
                assert word in line["detail"]

    run(scenario)


def test_restore_and_doctor_work_with_a_damaged_accounts_log(crashed, tmp_path):
    name = "bits flipped in the middle of the last commit"
    damaged = crashed.copy(tmp_path / "data", name)
    healthy = Home(tmp_path / "other")
    healthy.add("other@example.org")
    healthy.ok("backup", tmp_path / "copy")
    home = Home(damaged.data)
    result = home.ok("restore", tmp_path / "copy", "--yes", "--json").json
    assert result["accounts"] == 1 and result["skipped"] == []
    emails = {account["email"] for account in home.ok("user", "list", "--json").json}
    assert emails == damaged.checkpointed | set(damaged.logged[: LOGGED - 1]) | {"other@example.org"}
    (logs,) = [check for check in home.run("doctor", "--json").json if check["check"] == "logs"]
    assert not logs["ok"] and f"{FILE}.wal.damaged" in logs["detail"]


def test_doctor_reports_that_it_repaired_the_accounts_log(crashed, tmp_path):
    damaged = crashed.copy(tmp_path / "data", "bits flipped in an early commit")
    result = Home(damaged.data).run("doctor", "--json")
    (logs,) = [check for check in result.json if check["check"] == "logs"]
    assert result.code == 1 and not logs["ok"]


def test_reading_accounts_of_a_backup_leaves_it_unchanged(crashed, tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            before = (crashed.data / FILE).read_bytes()
            adopted = await h.services.accounts.adopt_missing(crashed.data / FILE, set(), set())
            assert adopted.count == CHECKPOINTED
            assert (crashed.data / FILE).read_bytes() == before
            assert not list((tmp_path / "data").glob(f"{FILE}.new*"))

    run(scenario)


# --- acknowledged changes without the log ---------------------------------------------------------------------------


@dataclass
class Changes:
    """Changes that a server acknowledged before it was killed."""

    removed: str  # email of the removed account
    added: str  # token of the account that was created last
    revoked: str  # the revoked token
    signed_out: str  # session cookie of the browser that signed out
    signed_in: str


async def sign_in(client: httpx.AsyncClient, email: str, password: str) -> httpx.Response:
    client.cookies.clear()
    return await client.post("/v1/sign-in", json={"email": email, "password": password})


async def make_changes(server: ServerProcess, client: httpx.AsyncClient) -> Changes:
    for name in ("ada", "bob"):
        body = {"email": f"{name}@example.org", "password": PASSWORD, "tier": "JIGGA"}
        account = await server.admin("POST", "/v1/accounts", json=body)
    revoked = await server.admin("POST", "/v1/tokens", "ada@example.org", json={"name": "lost"})
    await sign_in(client, "ada@example.org", PASSWORD)
    signed_out = client.cookies["vademecum"]
    await client.post("/v1/sign-out")
    await server.admin("DELETE", f"/v1/tokens/{revoked['token']['id']}", "ada@example.org")
    await server.admin("DELETE", f"/v1/accounts/{account['userId']}")
    await sign_in(client, "ada@example.org", PASSWORD)
    body = {"current": PASSWORD, "new": NEW_PASSWORD}
    assert (await client.post("/v1/password", json=body)).status_code == 200
    _, added = await server.add_user("last@example.org")
    return Changes("bob@example.org", added, revoked["secret"], signed_out, client.cookies["vademecum"])


async def me_status(client: httpx.AsyncClient, secret: str, *, cookie: bool = False) -> int:
    """Return the status of `GET /v1/me` with a token or a cookie."""
    client.cookies.clear()
    headers = {"Cookie": f"vademecum={secret}"} if cookie else {"Authorization": f"Bearer {secret}"}
    return (await client.get("/v1/me", headers=headers)).status_code


def test_acknowledged_access_changes_survive_loss_of_accounts_log(tmp_path):
    async def scenario():
        server = ServerProcess(tmp_path / "data", tmp_path / "no-models")
        try:
            async with aclosing(await server.start()) as client:
                changes = await make_changes(server, client)
            server.kill()
            (server.data / f"{FILE}.wal").unlink(missing_ok=True)
            async with aclosing(await server.start()) as client:
                assert await me_status(client, changes.added) == 200
                assert await me_status(client, changes.signed_in, cookie=True) == 200
                assert await me_status(client, changes.revoked) == 401
                assert await me_status(client, changes.signed_out, cookie=True) == 401
                assert (await sign_in(client, changes.removed, PASSWORD)).status_code == 401
                assert (await sign_in(client, "ada@example.org", PASSWORD)).status_code == 401
                assert (await sign_in(client, "ada@example.org", NEW_PASSWORD)).status_code == 200
        finally:
            server.kill()

    run(scenario)

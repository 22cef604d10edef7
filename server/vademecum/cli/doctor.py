"""`vademecum doctor`: everything that could be wrong with a data folder, and what to do about it."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.data_lock import try_lock
from vademecum.cli.options import data_option, json_option, settings_for_new_folder
from vademecum.engines.onnx import manifest
from vademecum.engines.onnx.errors import ModelError
from vademecum.errors import VademecumError
from vademecum.model.agents.spool_layout import REJECTED, SPOOL
from vademecum.services.accounts import local_auth
from vademecum.services.agents import spool_files
from vademecum.services.models import active_model as using
from vademecum.settings import Settings

if TYPE_CHECKING:
    from vademecum.engines.llm.client import Endpoint


OVERDUE_S = 600  # after which an erasure that is due is late


class Finding(NamedTuple):
    check: str
    ok: bool
    detail: str


@click.command()
@data_option
@json_option
def doctor(data: Path, as_json: bool) -> None:
    """Check the data folder and the server, and say how to fix each problem.

    The command opens the file of each account as the server does, which repairs a log that a crash has damaged. Then it
    reads the whole file and verifies its checksums. Requests of that account wait meanwhile. Nothing else is changed.

    \b
    Example: vademecum doctor --json
    """
    findings = list(_examine(settings_for_new_folder(data)))
    if as_json:
        click.echo(msgspec.json.encode([f._asdict() for f in findings]).decode())
    else:
        for finding in findings:
            click.echo(f"{'ok ' if finding.ok else 'NO '} {finding.check}: {finding.detail}")
    sys.exit(0 if all(f.ok for f in findings) else 1)


def _examine(settings: Settings) -> Iterator[Finding]:
    data = settings.data
    if not data.is_dir():
        yield Finding("data folder", False, f"there is no {data}: `vademecum serve` begins one")
        return
    yield Finding("data folder", os.access(data, os.W_OK), str(data))
    if not (data / "accounts.duckdb").exists():
        from vademecum.engines.duckdb.paths import missing_accounts_message  # with all that it needs

        lost = missing_accounts_message(data)
        yield Finding("accounts", False, lost or "none yet: `vademecum serve` begins this folder")
        return
    free = shutil.disk_usage(data).free
    yield Finding("free disk", free > 2**30, f"{free / 2**30:.1f} GB free; a backup and an erasure need room")
    mode = data.stat().st_mode & 0o077
    yield Finding(
        "privacy", mode == 0, "only you can read it" if mode == 0 else f"others can read it: chmod 700 {data}"
    )
    with try_lock(data) as mine:
        door = local_auth.read(data)
        running = not mine
    yield Finding("server", True, f"running at {door.url}" if running and door else "not running")
    yield _examine_spool(data, running)  # before what may take it up
    yield _examine_users(settings)
    yield _examine_erasures(data)
    yield _examine_left(data, running)  # after a start, which erases them
    yield _examine_logs(data)  # after the opening of every file, which is what repairs them
    yield _examine_rollbacks(data)
    yield _examine_ledgers(data)
    yield _examine_model(settings, running)
    yield _examine_assistant(settings)
    if running:
        yield _examine_proxies(settings)
        yield _examine_clients(settings)


def _examine_proxies(settings: Settings) -> Finding:
    """Whether everybody seems to come from one address, because a proxy does not say from where they come."""
    try:
        crowded = run_with_client(settings, lambda client: client.call("GET", "/v1/local/crowded"))
    except VademecumError as error:  # such as a server of an earlier version
        return Finding("proxies", True, f"unknown: {error.message}")
    if not crowded:
        return Finding("proxies", True, "no address uses more than the rate limits of one")
    return Finding(
        "proxies",
        False,
        f"{', '.join(crowded)} used more than the rate limits of one address. If a proxy runs there, have it send "
        "X-Forwarded-For and name it with --trusted-proxies; until then all who come through it share 20 times the limits",
    )


def _examine_clients(settings: Settings) -> Finding:
    """Whether clients know more than the records, which an unsigned checkpoint does not prove."""
    try:
        ahead = run_with_client(settings, lambda client: client.call("GET", "/v1/local/ahead"))
    except VademecumError as error:  # such as a server of an earlier version
        return Finding("clients", True, f"unknown: {error.message}")
    if not ahead:
        return Finding("clients", True, "none is ahead of the records")
    said = ", ".join(f"{email} ({count} requests)" for email, count in ahead.items())
    return Finding(
        "clients",
        False,
        f"clients with an unsigned checkpoint are ahead of the records: {said}. If these records were put back from a copy, "
        "run `vademecum epoch EMAIL`: devices then send what the copy lacks",
    )


def _examine_logs(data: Path) -> Finding:
    damaged = [*data.glob("*.damaged"), *(data / "users").glob("*/*/*.damaged")]
    if not damaged:
        return Finding("logs", True, "whole")
    kept = ", ".join(str(path.relative_to(data)) for path in damaged)
    return Finding(
        "logs",
        False,
        f"{len(damaged)} damaged by a crash and cut; what stood before the damage is safe. The whole is kept, "
        f"for you to copy, until the next erasure of its account: {kept}",
    )


def _examine_rollbacks(data: Path) -> Finding:
    """Name the accounts whose records turned out to lack acknowledged changes."""
    found = sorted((data / "ledger").glob("*.put-back"))
    if not found:
        return Finding(
            "lost changes", True, "all records had every acknowledged change when they were opened"
        )
    said = ", ".join(f"{path.stem} ({path.read_text(encoding='utf-8')})" for path in found)
    paths = " ".join(str(path.relative_to(data)) for path in found)
    return Finding(
        "lost changes",
        False,
        f"records lacked acknowledged changes, because an old copy was put back or the disk lost the end of a write-ahead "
        f"log: {said}. What was erased was erased again, and devices send what is missing when they sync. If nobody put "
        f"a copy back, check the disk. When you have read this, remove {paths}",
    )


def _examine_ledgers(data: Path) -> Finding:
    """Name the damaged lines of the files that say what was erased."""
    from vademecum.engines.duckdb.erasure_ledger import (
        ErasureLedger,
    )  # half of the server, for the doctor alone

    damaged = []
    for path in sorted((data / "ledger").glob("*.jsonl")):
        try:
            numbers = ErasureLedger(path).damaged_lines()
        except OSError as error:
            damaged.append(f"{path.relative_to(data)} ({error.strerror})")
            continue
        if numbers:
            damaged.append(f"{path.relative_to(data)} line {', '.join(map(str, numbers))}")
    if not damaged:
        return Finding("ledger", True, "every line of what was erased is sound")
    return Finding(
        "ledger",
        False,
        f"damaged and ignored: {'; '.join(damaged)}. What these lines said to be erased may come back when an older backup "
        "is restored: look through the account after that. When you have read this, remove the lines while no server runs",
    )


def _examine_spool(data: Path, running: bool) -> Finding:
    """What agents' hooks have left, and why it is still there."""
    waiting = list(spool_files.waiting(data / SPOOL))
    unread = spool_files.unreadable(data / SPOOL)
    aside = spool_files.set_aside(data / SPOOL)
    usual = "the server takes them up within seconds" if running else "no server runs to take them up"
    said = [
        f"{one.events} of {one.email} wait since {datetime.fromtimestamp(one.since):%Y-%m-%d %H:%M}: "
        f"{one.why or usual}"
        for one in waiting
    ]
    if aside:
        said.append(f"{aside} were set aside in {data / SPOOL / REJECTED}: no events of an account")
    ok = not unread and not any(one.why for one in waiting)
    return Finding("events of agents", ok, "; ".join(said + unread) or "none wait")


def _examine_users(settings: Settings) -> Finding:
    try:
        accounts, problems = run_with_client(settings, _verify_accounts)
    except VademecumError as error:
        return Finding("users", False, error.message)
    if problems:
        return Finding("users", False, " ".join(problems))
    return Finding("users", True, f"{accounts} accounts, every segment of their files is sound")


async def _verify_accounts(client: ApiClient) -> tuple[int, list[str]]:
    """Return how many accounts there are, and a sentence about each that has a problem."""
    accounts = await client.call("GET", "/v1/accounts")
    problems = []
    for account in accounts:
        problem = account["problem"]
        if problem is None:
            body = {"userId": account["userId"]}
            problem = (await client.call("POST", "/v1/local/verify", json=body))["problem"]
        if problem:
            problems.append(f"{account['email']}: {problem}")
    return len(accounts), problems


def _examine_erasures(data: Path) -> Finding:
    from vademecum.services.data.erase import room_needed  # half of the server, for the doctor alone

    free = shutil.disk_usage(data).free
    marks = data / "jobs" / "erase"
    late = time.time() - OVERDUE_S
    overdue = [mark.name for mark in marks.glob("*") if mark.stat().st_mtime < late]
    wanting = {user_id: needed for user_id in overdue if (needed := room_needed(data, user_id)) > free}
    if not wanting:
        return Finding(
            "erasure", True, f"{len(overdue)} overdue, the server does it" if overdue else "none is overdue"
        )
    said = ", ".join(f"{user_id} needs {math.ceil(needed / 1e6)} MB" for user_id, needed in wanting.items())
    return Finding("erasure", False, f"not yet erased: {said}, and {free // 10**6} MB of the disk are free")


def _examine_left(data: Path, running: bool) -> Finding:
    from vademecum.engines.duckdb.paths import user_folder  # half of the server, for the doctor alone
    from vademecum.services.accounts.deleted_accounts import look

    left = look(data)
    if left.unsure:
        return Finding("who has left", False, left.unsure)
    folders = [user_folder(data, account_id) for account_id in sorted(left.digests)]
    stays = ", ".join(str(folder.relative_to(data)) for folder in folders if folder.exists())
    said = f"each start of the server tries to erase it, and cannot: remove by hand {stays}"
    if running:  # since when it is there nobody knows: no start may have tried yet
        said = f"not erased yet, the server tries again: {stays}"
    return Finding("who has left", not stays, said if stays else "nothing of them is left")


def _examine_model(settings: Settings, running: bool) -> Finding:
    """Say what the running server uses, which may look in another folder of models than this command."""
    try:
        folder = using.current(settings)
        if running:
            served = run_with_client(settings, lambda client: client.call("GET", "/v1/models"))
            name = next((m["id"] for m in served["models"] if m["hash"] == served["current"]), None)
            if name is None and folder is not None:
                return Finding(
                    "model",
                    False,
                    f"{folder} is installed, but the running server uses none. It looks for one every few seconds; if "
                    f"this stays, it looks in another folder: start it with VADEMECUM_MODELS={folder.parent}",
                )
            if name is not None and (folder is None or folder.name != name):
                return Finding("model", True, f"{name}, in use by the running server")
        if folder is None:
            return Finding("model", False, f"none: search by words only. {using.advice(settings)}")
        manifest.verify(folder)
    except (VademecumError, ModelError) as error:
        return Finding("model", False, error.message)
    return Finding("model", True, f"{folder.name}, whole")


def _examine_assistant(settings: Settings) -> Finding:
    """Asks the endpoint itself: its own words are not repeated, nor is the key."""
    from vademecum.services.chat.answer import create_endpoint  # half of the server, for the doctor alone

    endpoint = create_endpoint(settings)
    if endpoint is None:
        return Finding(
            "assistant", True, "none set up, answers are quotations: VADEMECUM_ASSISTANT_URL names one"
        )
    asked = f"{endpoint.model} at {endpoint.base}"

    try:
        asyncio.run(_check(endpoint))
    except VademecumError as error:
        return Finding("assistant", False, f"{asked}: {error.message}")
    return Finding("assistant", True, f"{asked}, reachable, has the model")


async def _check(endpoint: Endpoint) -> None:
    try:
        await endpoint.check()
    finally:
        await endpoint.close()

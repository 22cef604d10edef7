"""`vademecum doctor`: check the data folder and the server, and say how to fix each problem."""

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
from vademecum.engines.onnx import manifest, pinned_models
from vademecum.engines.onnx.errors import ModelError
from vademecum.errors import VademecumError
from vademecum.model.agents.spool_layout import REJECTED_FOLDER, SPOOL
from vademecum.services.accounts import local_auth
from vademecum.services.agents import spool_files
from vademecum.services.models import active_model
from vademecum.settings import Settings

if TYPE_CHECKING:
    from vademecum.engines.llm.client import Endpoint


OVERDUE_S = 600  # an erasure is overdue this many seconds after it was requested


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
    reads the whole file and verifies its checksums. During this check, requests of that account wait. Nothing else is
    changed.

    \b
    Example: vademecum doctor --json
    """
    findings = []
    for finding in _examine(settings_for_new_folder(data)):
        findings.append(finding)
        if not as_json:  # at once, because a file that hangs ends the command
            click.echo(f"{'ok ' if finding.ok else 'NO '} {finding.check}: {finding.detail}")
    if as_json:
        click.echo(msgspec.json.encode([f._asdict() for f in findings]).decode())
    sys.exit(0 if all(f.ok for f in findings) else 1)


def _examine(settings: Settings) -> Iterator[Finding]:
    data = settings.data
    if not data.is_dir():
        yield Finding("data folder", False, f"{data} does not exist. Run `vademecum serve` to create it")
        return
    yield Finding("data folder", os.access(data, os.W_OK), str(data))
    if not (data / "accounts.duckdb").exists():
        from vademecum.engines.duckdb.paths import missing_accounts_message  # deferred: the import is slow

        message = missing_accounts_message(data)
        yield Finding("accounts", False, message or "none yet. Run `vademecum serve` to create the owner")
        return
    free = shutil.disk_usage(data).free
    yield Finding("free disk", free > 2**30, f"{free / 2**30:.1f} GB free. Backups and erasures need space")
    is_private = data.stat().st_mode & 0o077 == 0
    yield Finding(
        "privacy",
        is_private,
        "only you can read it" if is_private else f"others can read it. Run `chmod 700 {data}`",
    )
    with try_lock(data) as is_locked:
        auth = local_auth.read(data)
        running = not is_locked
    yield Finding("server", True, f"running at {auth.url}" if running and auth else "not running")
    yield _examine_spool(data, running)  # before the checks below, because they ingest the spool
    yield _examine_marks(data)  # before `_examine_users`, which starts the app, which repairs the marks
    yield _examine_users(settings)
    yield _examine_erasures(data)
    yield _examine_deleted_accounts(data, running)  # after `_examine_users`, whose app erases them
    yield _examine_logs(data)  # after `_examine_users` has opened every account, which repairs its log
    yield _examine_rollbacks(data)
    yield _examine_ledgers(data)
    yield _examine_model(settings, running)
    yield _examine_assistant(settings)
    if running:
        yield _examine_proxies(settings)
        yield _examine_clients(settings)
        yield _examine_languages(settings)


def _examine_proxies(settings: Settings) -> Finding:
    """Report addresses that may be proxies, because they exceeded the rate limits of a single address."""
    try:
        crowded = run_with_client(settings, lambda client: client.call("GET", "/v1/local/crowded"))
    except VademecumError as error:  # for example because the server has an earlier version
        return Finding("proxies", True, f"unknown: {error.message}")
    if not crowded:
        return Finding("proxies", True, "no address exceeds the limits of one client")
    return Finding(
        "proxies",
        False,
        f"{', '.join(crowded)} exceeded the rate limits of one address. If a proxy runs there, let it send X-Forwarded-For "
        "and name it with --trusted-proxies. Until then, its clients together have 20 times the limits of one address",
    )


def _examine_clients(settings: Settings) -> Finding:
    """Report accounts with requests whose unsigned checkpoints are ahead of the records.

    An unsigned checkpoint is only a hint; a signed one would be proof.
    """
    try:
        counts_by_email = run_with_client(settings, lambda client: client.call("GET", "/v1/local/ahead"))
    except VademecumError as error:  # for example because the server has an earlier version
        return Finding("clients", True, f"unknown: {error.message}")
    if not counts_by_email:
        return Finding("clients", True, "none is ahead of the records")
    counts = ", ".join(f"{email} ({count} requests)" for email, count in counts_by_email.items())
    return Finding(
        "clients",
        False,
        f"clients with an unsigned checkpoint are ahead of the records: {counts}. If you restored these records from a "
        "copy by hand, run `vademecum epoch EMAIL`, so that devices upload what the copy lacks",
    )


def _examine_languages(settings: Settings) -> Finding:
    """Recommend the multilingual model if an account's documents are mostly in other languages than English."""
    try:
        emails = run_with_client(settings, lambda client: client.call("GET", "/v1/local/foreign"))
    except VademecumError as error:  # for example because the server has an earlier version
        return Finding("languages", True, f"unknown: {error.message}")
    if not emails:
        return Finding("languages", True, "the model in use suits the documents")
    known = pinned_models.MULTILINGUAL_E5_SMALL
    size = round(sum(file.bytes for file in known.files) / 1e6)
    return Finding(
        "languages",
        True,
        f"most documents of {', '.join(emails)} are not in English. `vademecum models pull {known.id}` ({size} MB) and "
        f"`vademecum models use {known.id}` let search find them by meaning",
    )


def _examine_logs(data: Path) -> Finding:
    damaged = [*data.glob("*.damaged"), *(data / "users").glob("*/*/*.damaged")]
    if not damaged:
        return Finding("logs", True, "not damaged")
    paths = ", ".join(str(path.relative_to(data)) for path in damaged)
    return Finding(
        "logs",
        False,
        f"{len(damaged)} damaged by a crash and truncated. Everything before the damage is safe. The damaged originals are "
        f"kept until the account's next erasure, so copy them if you need them: {paths}",
    )


def _examine_rollbacks(data: Path) -> Finding:
    """Report the accounts whose records lacked acknowledged changes when the server opened them."""
    found = sorted((data / "ledger").glob("*.put-back"))
    if not found:
        return Finding("lost changes", True, "none")
    details = ", ".join(f"{path.stem} ({path.read_text(encoding='utf-8')})" for path in found)
    paths = " ".join(str(path.relative_to(data)) for path in found)
    return Finding(
        "lost changes",
        False,
        f"records lacked acknowledged changes, because an old copy was restored by hand or the disk lost the end of a "
        f"write-ahead log: {details}. Erased rows were erased again, and devices upload missing rows when they sync. If "
        f"nobody restored a copy, check the disk. Then delete {paths}",
    )


def _examine_marks(data: Path) -> Finding:
    """Report damaged lines and missing marks in `ledger/marks`, which stores the high-water mark of each account."""
    from vademecum.engines.duckdb import marks, migrations, opening  # deferred: the import is slow
    from vademecum.services.runtime.composition import migrations_folder

    try:
        count = marks.count_damaged_lines(data)
        template = opening.template_path(data, migrations.load(migrations_folder()))
        users = marks.find_users_without_mark(data, template)
    except OSError as error:
        return Finding("marks", False, f"ledger/marks cannot be read: {error.strerror}. Check the disk")
    if count:
        return Finding(
            "marks",
            False,
            f"ledger/marks has {count} damaged {'line' if count == 1 else 'lines'}, so the loss of the newest changes of "
            "some accounts would not be noticed. Check the disk. The server repairs the file when it starts",
        )
    if users:
        return Finding(
            "marks",
            False,
            f"ledger/marks lacks {len(users)} {'account' if len(users) == 1 else 'accounts'}: {', '.join(users)}. The "
            "server could not detect an earlier loss of their newest changes. If you did not delete the file, check "
            "the disk, and run `vademecum epoch EMAIL` if changes may be missing, so that devices upload them. The "
            "server adds an account when it opens it",
        )
    return Finding("marks", True, "complete")


def _examine_ledgers(data: Path) -> Finding:
    """Report the numbers of the damaged lines of the erasure ledgers."""
    from vademecum.engines.duckdb.erasure_ledger import ErasureLedger  # deferred: the import is slow

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
        return Finding("ledger", True, "no damaged lines")
    return Finding(
        "ledger",
        False,
        f"damaged lines are ignored: {'; '.join(damaged)}. Rows that they list as erased may return when you restore an "
        "older backup, so review the account after a restore. Stop the server and delete these lines",
    )


def _examine_spool(data: Path, running: bool) -> Finding:
    """Count the agent events that wait and those that were rejected, and say why events wait."""
    spool = data / SPOOL
    waiting = list(spool_files.find_waiting(spool))
    unreadable = spool_files.find_unreadable(spool)
    rejected = spool_files.count_rejected(spool)
    default_reason = (
        "the server ingests them within seconds" if running else "they are ingested when a server runs"
    )
    details = [
        f"{one.events} of {one.email} waiting since {datetime.fromtimestamp(one.since):%Y-%m-%d %H:%M}: "
        f"{one.reason or default_reason}"
        for one in waiting
    ]
    if rejected:
        details.append(f"{rejected} in {spool / REJECTED_FOLDER} are invalid or have no account")
    ok = not unreadable and not any(one.reason for one in waiting)
    return Finding("agent events", ok, "; ".join(details + unreadable) or "none wait")


def _examine_users(settings: Settings) -> Finding:
    try:
        accounts, problems = run_with_client(settings, _verify_accounts)
    except VademecumError as error:
        return Finding("users", False, error.message)
    if problems:
        return Finding("users", False, " ".join(problems))
    return Finding("users", True, f"{accounts} accounts, no damaged segments")


async def _verify_accounts(client: ApiClient) -> tuple[int, list[str]]:
    """Return two values: the number of accounts, and a sentence about each account that has a problem."""
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
    from vademecum.engines.duckdb.paths import room_to_rewrite  # deferred: the import is slow

    free = shutil.disk_usage(data).free
    oldest = time.time() - OVERDUE_S
    overdue = [mark.name for mark in (data / "jobs" / "erase").glob("*") if mark.stat().st_mtime < oldest]
    needed = {user_id: size for user_id in overdue if (size := room_to_rewrite(data, user_id)) > free}
    if not needed:
        detail = f"{len(overdue)} overdue, the server will complete them" if overdue else "none is overdue"
        return Finding("erasure", True, detail)
    details = ", ".join(f"{user_id} needs {math.ceil(size / 1e6)} MB" for user_id, size in needed.items())
    return Finding(
        "erasure", False, f"not yet erased: {details}, but only {free // 10**6} MB are free. Free disk space"
    )


def _examine_deleted_accounts(data: Path, running: bool) -> Finding:
    from vademecum.model.records.paths import user_folder  # deferred: the import is slow
    from vademecum.services.accounts.deleted_accounts import read_deleted_accounts

    deleted = read_deleted_accounts(data)
    if deleted.problem:
        return Finding("deleted accounts", False, deleted.problem)
    folders = [user_folder(data, account_id) for account_id in sorted(deleted.digests)]
    remaining = ", ".join(str(folder.relative_to(data)) for folder in folders if folder.exists())
    if not remaining:
        return Finding("deleted accounts", True, "completely erased")
    if running:  # not a failure: the running server may not have tried the erasure yet
        return Finding("deleted accounts", False, f"not erased yet; the server tries again: {remaining}")
    return Finding("deleted accounts", False, f"the server cannot erase them. Delete by hand: {remaining}")


def _examine_model(settings: Settings, running: bool) -> Finding:
    """Report the model in use.

    A running server is asked, because it may use another models folder than this command.
    """
    try:
        folder = active_model.find_folder(settings)
        if running:
            served = run_with_client(settings, lambda client: client.call("GET", "/v1/models"))
            name = next((m["id"] for m in served["models"] if m["hash"] == served["current"]), None)
            if name is None and folder is not None:
                return Finding(
                    "model",
                    False,
                    f"{folder} is installed, but the running server uses no model. It checks every few seconds. If this "
                    f"persists, it checks another folder: restart it with VADEMECUM_MODELS={folder.parent}",
                )
            if name is not None and (folder is None or folder.name != name):
                return Finding("model", True, f"{name}, in use by the running server")
        if folder is None:
            return Finding(
                "model", False, f"none, so search uses words only. {active_model.install_hint(settings)}"
            )
        manifest.verify(folder)
    except (VademecumError, ModelError) as error:
        return Finding("model", False, error.message)
    return Finding("model", True, f"{folder.name}, complete")


def _examine_assistant(settings: Settings) -> Finding:
    """Check that the assistant's endpoint answers and has the model.

    Print neither the endpoint's messages nor the key.
    """
    from vademecum.services.chat.answer import create_endpoint  # deferred: the import is slow

    endpoint = create_endpoint(settings)
    if endpoint is None:
        return Finding(
            "assistant", True, "not set up, answers are quotations. Set VADEMECUM_ASSISTANT_URL to use one"
        )
    name = f"{endpoint.model} at {endpoint.base}"
    try:
        asyncio.run(_check(endpoint))
    except VademecumError as error:
        return Finding("assistant", False, f"{name}: {error.message}")
    return Finding("assistant", True, f"{name}, reachable, has the model")


async def _check(endpoint: Endpoint) -> None:
    try:
        await endpoint.check()
    finally:
        await endpoint.close()

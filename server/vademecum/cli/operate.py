"""`vademecum backup`, `restore`, `models`, `doctor`: for whoever runs the server."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from vademecum.cli.door import at_desk
from vademecum.cli.lock import locked
from vademecum.cli.options import data_option, json_option, settings_for, settings_to_begin
from vademecum.engines.onnx import fetch, known, manifest
from vademecum.engines.onnx.errors import ModelError
from vademecum.errors import VademecumError
from vademecum.services import local, spool_files
from vademecum.services import models as using
from vademecum.settings import Settings

if TYPE_CHECKING:
    from vademecum.engines.llm.endpoint import Endpoint

MODEL = click.argument("name", type=click.Choice(list(known.KNOWN)))


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@data_option
@json_option
def backup(target: Path, data: Path, as_json: bool) -> None:
    """Write a verified copy of accounts and records into the new folder TARGET, while the server goes on.

    The search index and the models are not in it: they are made again.
    """
    body = {"path": str(target.resolve())}
    done = at_desk(settings_for(data), lambda desk: desk.call("POST", "/v1/local/backup", json=body))
    records = sum(name.endswith("/records.duckdb") for name in done["files"])
    text = f"{_accounts(records)}, and all {len(done['users'])} accounts, verified: {target}"
    click.echo(msgspec.json.encode(done).decode() if as_json else text)


@click.command()
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
@json_option
def restore(source: Path, yes: bool, data: Path, as_json: bool) -> None:
    """Put the backup SOURCE in place of the records that are here.

    Devices start again from zero and push what they hold, so nothing that a device has is lost. What was erased
    since the backup stays erased. Accounts that are here stay as they are; missing ones come back, except those
    that were removed.
    """
    if not yes:
        click.confirm(f"Replace the records in {data} by those of {source}?", abort=True)
    body = {"path": str(source.resolve())}
    done = at_desk(settings_to_begin(data), lambda desk: desk.call("POST", "/v1/local/restore", json=body))
    if as_json:
        click.echo(msgspec.json.encode(done).decode())
        return
    click.echo(
        f"{_accounts(done['users'])}, as of {done['backupAt']}; {done['erasedAgain']} rows that were erased since stay erased. "
        "Devices that sync will merge what they hold."
    )
    for email in done["skipped"]:
        click.echo(f"{email} was not restored: an account with that email and other data is here.", err=True)


def _accounts(number: int) -> str:
    """Backup and restore count the same thing: an account that never kept anything has no records."""
    return f"Records of {number} account{'' if number == 1 else 's'}"


@click.group()
def models() -> None:
    """The model that search by meaning uses."""


@models.command("list")
@data_option
@json_option
def list_models(data: Path, as_json: bool) -> None:
    """Models that are known, installed, in use; while one replaces another, how far that is."""
    settings = settings_for(data)
    current = using.current(settings)
    plan = using.load_plan(settings)
    rows = [
        {
            "id": name,
            "licence": model.licence,
            "installed": fetch.installed(model, settings.models_folder, deep=False),
            "inUse": current is not None and current.name == name,
            "beingReplaced": plan is not None and plan.before == name,
        }
        for name, model in known.KNOWN.items()
    ]
    if as_json:
        click.echo(msgspec.json.encode(rows).decode())
        return
    for row in rows:
        states = {"in use": "inUse", "being replaced": "beingReplaced", "installed": "installed"}
        state = next((words for words, field in states.items() if row[field]), "-")
        click.echo(f"{row['id']:20} {row['licence']:12} {state}")
    if plan is not None:
        click.echo(_change(at_desk(settings, lambda desk: desk.call("GET", "/v1/reembedding"))))


@models.command("pull")
@click.argument("name", required=False, type=click.Choice(list(known.KNOWN)))
@data_option
def pull(name: str | None, data: Path) -> None:
    """Download a model from the hub (or take it from its package), check it, and build it.

    Without a NAME: e5-small-v2 from the hub, or, where that cannot be reached, all-minilm-l6-v2 from its package, if
    that is installed.
    """
    settings = settings_to_begin(data)
    try:
        model = known.get(name or using.PREFERRED[0])
        _pull(model, settings.models_folder)
    except ModelError as error:
        if name or fetch.offline_folder() is None:
            raise
        click.echo(f"The model hub: {error}", err=True)
        model = known.ALL_MINILM
        _pull(model, settings.models_folder)
    click.echo(f"{model.id} is installed in {settings.models_folder / model.id}.")
    if local.read(settings.data) is not None:
        click.echo("A server that runs without a model uses it when it is started again.", err=True)


def _pull(model: known.Known, folder: Path) -> None:
    """From the package, which asks nobody, if it is the package's model; else from the hub."""
    from rich.console import Console  # what shows no progress goes without it
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(model.id, total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        source = fetch.offline_folder() if model is known.ALL_MINILM else None
        if source is not None:
            fetch.prepare_from_folder(model, source, folder, report)
        else:
            fetch.pull(model, folder, progress=report)


@models.command("use")
@MODEL
@data_option
def use(name: str, data: Path) -> None:
    """Use another model. All vectors are made anew in the background while the server runs; until an account's are
    whole it is searched by the old ones. Naming the old model goes back."""
    settings = settings_for(data)
    if not fetch.installed(known.get(name), settings.models_folder, deep=False):
        raise ModelError(
            f"{name} is not installed. `vademecum models pull {name}` brings it. Nothing was changed."
        )
    body = {"model": name}
    click.echo(_change(at_desk(settings, lambda desk: desk.call("PUT", "/v1/reembedding", json=body))))


@models.command("pause")
@data_option
def pause(data: Path) -> None:
    """Make no more new vectors for now. What is done is kept."""
    settings = settings_for(data)
    click.echo(_change(at_desk(settings, lambda desk: desk.call("POST", "/v1/reembedding/pause"))))


@models.command("resume")
@data_option
def resume(data: Path) -> None:
    """Go on making new vectors."""
    settings = settings_for(data)
    click.echo(_change(at_desk(settings, lambda desk: desk.call("POST", "/v1/reembedding/resume"))))


def _change(status: dict[str, Any]) -> str:
    """How far a change of the model is, in words."""
    if status["before"] is None:
        return f"{status['current']} is in use."
    users, blocks = status["users"], status["blocks"]
    paused = ", paused; `vademecum models resume` goes on" if status["paused"] else ""
    return (
        f"{status['before']} -> {status['current']}: {blocks['done']} of {blocks['of']} blocks, "
        f"{users['done']} of {users['of']} accounts{paused}"
    )


@models.command("verify")
@data_option
def verify(data: Path) -> None:
    """Check every byte of the installed models."""
    settings = settings_for(data)
    damaged = False
    for name in known.KNOWN:
        if (settings.models_folder / name).exists():
            try:
                manifest.verify(settings.models_folder / name)
                click.echo(f"{name}: whole")
            except ModelError as error:
                damaged = True
                click.echo(f"{name}: {error} `vademecum models pull {name}` brings it anew.", err=True)
    sys.exit(1 if damaged else 0)


class Finding(NamedTuple):
    check: str
    ok: bool
    detail: str


@click.command()
@data_option
@json_option
def doctor(data: Path, as_json: bool) -> None:
    """Look at everything that could be wrong and say what to do.

    Opens every account's file as the server does: a log that a crash has damaged is repaired by that. Nothing else is
    changed.
    """
    findings = list(_examine(settings_to_begin(data)))
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
        yield Finding("accounts", False, "none yet: `vademecum serve` begins this folder")
        return
    free = shutil.disk_usage(data).free
    yield Finding("free disk", free > 2**30, f"{free / 2**30:.1f} GB free; a backup and an erasure need room")
    mode = data.stat().st_mode & 0o077
    yield Finding(
        "privacy", mode == 0, "only you can read it" if mode == 0 else f"others can read it: chmod 700 {data}"
    )
    with locked(data) as mine:
        door = local.read(data)
        running = not mine
    yield Finding("server", True, f"running at {door.url}" if running and door else "not running")
    yield _examine_spool(data, running)  # before what may take it up
    yield _examine_users(settings)
    yield _examine_logs(data)  # after the opening of every file, which is what repairs them
    yield _examine_model(settings)
    yield _examine_assistant(settings)


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


def _examine_spool(data: Path, running: bool) -> Finding:
    """What agents' hooks have left, and why it is still there."""
    waiting = list(spool_files.waiting(data / "spool"))
    aside = spool_files.set_aside(data / "spool")
    usual = "the server takes them up within seconds" if running else "no server runs to take them up"
    said = [
        f"{one.events} of {one.email} wait since {datetime.fromtimestamp(one.since):%Y-%m-%d %H:%M}: "
        f"{one.why or usual}"
        for one in waiting
    ]
    if aside:
        said.append(
            f"{aside} were set aside in {data / 'spool' / spool_files.REJECTED}: no events of an account"
        )
    return Finding("events of agents", not any(one.why for one in waiting), "; ".join(said) or "none wait")


def _examine_users(settings: Settings) -> Finding:
    try:
        accounts = at_desk(settings, lambda desk: desk.call("GET", "/v1/accounts"))
    except VademecumError as error:
        return Finding("users", False, error.message)
    problems = [account["problem"] for account in accounts if account["problem"]]
    if problems:
        return Finding("users", False, " ".join(problems))
    return Finding("users", True, f"{len(accounts)} accounts, every file opens")


def _examine_model(settings: Settings) -> Finding:
    folder = using.current(settings)
    if folder is None:
        return Finding("model", False, f"none: search by words only. {using.advice(settings)}")
    try:
        manifest.verify(folder)
    except ModelError as error:
        return Finding("model", False, str(error))
    return Finding("model", True, f"{folder.name}, whole")


def _examine_assistant(settings: Settings) -> Finding:
    """Asks the endpoint itself: its own words are not repeated, nor is the key."""
    from vademecum.services.answer import endpoint_of  # half of the server, for the doctor alone

    endpoint = endpoint_of(settings)
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

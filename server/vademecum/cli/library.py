"""`vademecum import`, `search` and `forget`: a user's documents from the command line."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from vademecum.app import now_iso
from vademecum.cli.door import Desk, at_desk
from vademecum.cli.options import data_option, json_option, settings_for
from vademecum.errors import BadRequest, VademecumError
from vademecum.model.collections import ID_PATTERN

user_option = click.option("--user", "email", required=True, help="Whose documents: the account's email.")
session_option = click.option(
    "--session", required=True, help="The session that borrows them; made if it is new."
)
SENTENCE = "forget everything"
ID = re.compile(ID_PATTERN)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _files(paths: Iterable[Path]) -> list[Path]:
    """Files as named, and those below named folders; hidden ones are left out."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        found += [p for p in inside if not any(part.startswith(".") for part in p.relative_to(path).parts)]
    return found


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@user_option
@session_option
@click.option("--wait/--no-wait", default=True, help="Wait until all are embedded.", show_default=True)
@data_option
@json_option
def import_(paths: tuple[Path, ...], email: str, session: str, wait: bool, data: Path, as_json: bool) -> None:
    """Import files and folders of files.

    A file that cannot be read is named, with the reason, and the others go on. The text is kept, the file is not.
    """

    async def work(desk: Desk) -> list[dict[str, Any]]:
        await _ensure_session(desk, email, session)
        results = []
        with _progress() as progress:
            files = _files(paths)
            task = progress.add_task("Importing", total=len(files))
            for file in files:
                results.append(await _upload(desk, email, session, file))
                progress.advance(task)
            if wait:
                await _embedded(
                    desk, email, {r["documentId"] for r in results if "documentId" in r}, progress
                )
        return results

    results = at_desk(settings_for(data), work)
    failed = [r for r in results if "error" in r]
    if as_json:
        click.echo(msgspec.json.encode(results).decode())
    else:
        for result in failed:
            click.echo(f"{result['file']}: {result['error']}", err=True)
        click.echo(f"{len(results) - len(failed)} of {len(results)} files imported.")
    sys.exit(1 if failed else 0)


async def _ensure_session(desk: Desk, email: str, session: str) -> None:
    if not ID.fullmatch(session):
        raise BadRequest(
            f"“{session}” cannot name a session: letters A to Z, digits, and . _ ~ - may, up to 100 of them. "
            "Nothing was imported."
        )
    now = now_iso()
    row = {
        "id": session,
        "createdAt": now,
        "updatedAt": now,
        "_deleted": False,
        "title": session,
        "mode": "analysis",
    }
    answers = await desk.call("POST", "/v1/sync/sessions/0/push", email, json=[{"newDocumentState": row}])
    for answer in answers:
        if "syncError" in answer:
            raise VademecumError(f"The session {session} was refused: {answer['syncError']['message']}")
        if answer.get("_deleted"):
            raise VademecumError(f"The session {session} was deleted. Choose another name.")


async def _upload(desk: Desk, email: str, session: str, file: Path) -> dict[str, Any]:
    try:
        content = await asyncio.to_thread(file.read_bytes)
        answer = await desk.call(
            "POST", "/v1/documents", email, files={"file": (file.name, content)}, data={"sessionId": session}
        )
    except (VademecumError, OSError) as error:
        return {"file": str(file), "error": str(error)}
    return {"file": str(file), "documentId": answer["document"]["id"], "existing": answer["existing"]}


async def _embedded(desk: Desk, email: str, ids: set[str], progress: Progress) -> None:
    """Waits for these documents; others may be pending for as long as a device keeps their text to itself."""
    task = None
    while True:
        everything = (await desk.call("GET", "/v1/documents", email))["documents"]
        documents = [d for d in everything if d["id"] in ids]
        pending = sum(d["status"] == "pending" for d in documents)
        if task is None:
            task = progress.add_task("Embedding", total=len(documents))
        progress.update(task, completed=len(documents) - pending)
        if not pending:
            return
        await asyncio.sleep(0.3)


@click.command()
@click.argument("query")
@user_option
@click.option("--session", required=True, help="The session whose documents are searched.")
@click.option("-k", default=5, show_default=True, help="How many passages.")
@click.option(
    "--mode", type=click.Choice(["hybrid", "meaning", "words"]), default="hybrid", show_default=True
)
@data_option
@json_option
def search(query: str, email: str, session: str, k: int, mode: str, data: Path, as_json: bool) -> None:
    """Find the passages that fit a question best, with document and page."""
    body = {"query": query, "sessionId": session, "k": k, "mode": mode}
    found = at_desk(settings_for(data), lambda desk: desk.call("POST", "/v1/search", email, json=body))
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    if not found["scope"]["documentIds"]:
        click.echo(
            f"The session {session} has borrowed no documents, so there is nothing to search.", err=True
        )
    if not found["scope"]["complete"]:
        click.echo("The index is still being made: ask again in a moment for all there is.", err=True)
    for number, result in enumerate(found["results"], start=1):
        page = f", page {result['page']}" if result["page"] is not None else ""
        click.secho(f"{number}. {result['filename']}{page}", bold=True)
        click.echo(f"   {' '.join(result['text'].split())[:400]}\n")


@click.command()
@user_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
@json_option
def forget(email: str, yes: bool, data: Path, as_json: bool) -> None:
    """Forget everything of a user: every document, conversation, fact and memory, here and on all devices."""
    if not yes and click.prompt(f'Everything of {email} will be erased. Type "{SENTENCE}"') != SENTENCE:
        raise click.Abort
    body = {"confirm": SENTENCE}
    receipt = at_desk(settings_for(data), lambda desk: desk.call("POST", "/v1/forget", email, json=body))
    if as_json:
        click.echo(msgspec.json.encode(receipt).decode())
        return
    click.echo(
        f"Erased {receipt['rows']} rows, {receipt['files']} files, {receipt['bytes']} bytes of content at {receipt['at']}. "
        f"Looked for {receipt['checked']} pieces of it afterwards, found {receipt['leftovers']}. {receipt['note']}"
    )

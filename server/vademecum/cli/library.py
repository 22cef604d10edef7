"""`vademecum search` and `forget`: a user's documents from the command line."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from vademecum.cli.door import at_desk
from vademecum.cli.options import data_option, json_option, settings_for, user_option

SENTENCE = "forget everything"


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

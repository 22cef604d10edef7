"""`vademecum search`: find the passages that match a question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from vademecum.cli.api_client import run_with_client
from vademecum.cli.excerpt import excerpt
from vademecum.cli.options import data_option, json_option, settings_for, user_option
from vademecum.errors import BadRequest
from vademecum.model.schema.json_values import SearchMode
from vademecum.model.text.display_text import printable_line


@click.command()
@click.argument("query")
@user_option
@click.option("--session", required=True, help="The session whose documents to search.")
@click.option("-k", "--limit", default=5, show_default=True, help="Maximum number of passages.")
@click.option("--mode", type=click.Choice(get_args(SearchMode)), default="hybrid", show_default=True)
@data_option
@json_option
def search(query: str, email: str, session: str, limit: int, mode: str, data: Path, as_json: bool) -> None:
    """Find the passages that match a question best, with document and page.

    \b
    Example: vademecum search "who pays?" --user ada@example.org --session thesis
    """
    if not query.strip():
        raise BadRequest("The question is empty.")
    body = {"query": query, "sessionId": session, "k": limit, "mode": mode}
    found = run_with_client(
        settings_for(data), lambda client: client.call("POST", "/v1/search", email, json=body)
    )
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    for note in describe_limits(found["scope"]):
        click.echo(note, err=True)
    for number, result in enumerate(found["results"], start=1):
        page = f", page {result['page']}" if result["page"] is not None else ""
        click.secho(f"{number}. {printable_line(result['filename'])}{page}", bold=True)
        click.echo(f"   {excerpt(printable_line(result['text']), query)}\n")


def describe_limits(scope: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence about each reason why the search may have missed passages."""
    total, pending = len(scope["documentIds"]), scope.get("pending", 0)
    if not total:
        yield f"The session {scope['sessionId']} includes no documents, so there is nothing to search."
    if not scope["complete"]:
        yield "The index is not complete yet. Search again in a moment for all results."
    if pending and scope["mode"] != "words":
        verb, pronoun = ("is", "it is") if pending == 1 else ("are", "they are")
        yield f"{pending} of {total} documents {verb} not embedded yet, so {pronoun} found by words only."

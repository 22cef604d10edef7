"""`vademecum forget`: everything of a user is erased, with a receipt."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from vademecum.cli.door import at_desk
from vademecum.cli.options import data_option, json_option, settings_for
from vademecum.model.said import FORGET_EVERYTHING


@click.command()
@click.option("--user", "email", required=True, help="Whose account is emptied: its email.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
@json_option
def forget(email: str, yes: bool, data: Path, as_json: bool) -> None:
    """Forget everything of a user: every document, conversation, fact and memory, here and on all devices."""
    asked = f'Everything of {email} will be erased. Type "{FORGET_EVERYTHING}"'
    if not yes and click.prompt(asked) != FORGET_EVERYTHING:
        raise click.Abort
    body = {"confirm": FORGET_EVERYTHING}
    receipt = at_desk(settings_for(data), lambda desk: desk.call("POST", "/v1/forget", email, json=body))
    if as_json:
        click.echo(msgspec.json.encode(receipt).decode())
        return
    click.echo(
        f"Erased {receipt['rows']} rows, {receipt['files']} files, {receipt['bytes']} bytes of content at {receipt['at']}. "
        f"Looked for {receipt['checked']} pieces of it afterwards, found {receipt['leftovers']}. {receipt['note']}"
    )

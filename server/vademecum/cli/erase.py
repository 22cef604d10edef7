"""`vademecum erase`: remove the bytes of deleted rows from the disk at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.options import data_option, json_option, settings_for
from vademecum.cli.user import find_account


@click.command()
@click.option("--user", "email", help="Erase only in the account with this email.")
@data_option
@json_option
def erase(email: str | None, data: Path, as_json: bool) -> None:
    """Remove deleted rows from the disk now, for example before you copy the disk or give it away.

    A deleted row is no longer visible, but its bytes stay in the files until the server rewrites them: a minute after a
    delete (--erase-delay-s of `serve`), a day after an edit. This command rewrites the files at once. It deletes no
    rows: to delete, use the app, `forget` (everything of a user) or `user remove` (the account, too). Backups are not
    changed.

    \b
    Example: vademecum erase --user ada@example.org
    """

    async def work(client: ApiClient) -> Any:
        if email is not None:
            await find_account(client, email)
        return await client.call("POST", "/v1/local/erase", json={"email": email})

    result = run_with_client(settings_for(data), work)
    if as_json:
        click.echo(msgspec.json.encode(result).decode())
    elif result["accounts"]:
        click.echo(f"Erased the deleted rows of {result['accounts']} accounts.")
    else:
        click.echo("Nothing to erase: all deleted rows are erased already.")

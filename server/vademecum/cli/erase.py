"""`vademecum erase`: what was deleted leaves the disk now, not in its time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.options import data_option, json_option, settings_for
from vademecum.cli.user import find


@click.command()
@click.option("--user", "email", help="Only of this account: its email.")
@data_option
@json_option
def erase(email: str | None, data: Path, as_json: bool) -> None:
    """Take what was deleted off the disk now, before a disk is copied or given away.

    What is deleted is gone for everybody at once, but its bytes stay in the files until these are written anew: a
    minute after a delete (--erase-delay-s of `serve`), a day after an edit. This does not wait for that, and deletes
    nothing itself: for that there are the app, `forget` (all that a user has) and `user remove` (the account, too).
    Backups are not changed.
    """

    async def work(client: ApiClient) -> Any:
        if email is not None:
            await find(client, email)
        return await client.call("POST", "/v1/local/erase", json={"email": email})

    done = run_with_client(settings_for(data), work)
    if as_json:
        click.echo(msgspec.json.encode(done).decode())
    elif done["accounts"]:
        click.echo(f"What was deleted has left the disk, of {done['accounts']} accounts.")
    else:
        click.echo("Nothing was due: what was deleted has left the disk before.")

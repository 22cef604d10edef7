"""`vademecum epoch`: make all devices of an account upload their rows again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.options import data_option, json_option, settings_for
from vademecum.cli.user import find_account


@click.command()
@click.argument("email", required=False)
@click.option("--all", "for_all", is_flag=True, help="Start a new epoch for every account.")
@data_option
@json_option
def epoch(email: str | None, for_all: bool, data: Path, as_json: bool) -> None:
    """Start a new sync epoch for the account EMAIL, as a restore does.

    Use it if an old copy of the data folder was restored by hand and the server did not detect it. Devices then sync from the
    start and upload the rows that the server lacks. Nothing is deleted.

    \b
    Example: vademecum epoch ada@example.org
    """
    if (email is None) != for_all:
        raise click.UsageError("Name one account, or use --all.")

    async def work(client: ApiClient) -> Any:
        if email is not None:
            await find_account(client, email)
        return await client.call("POST", "/v1/local/epoch", json={"email": email})

    result = run_with_client(settings_for(data), work)
    count = result["accounts"]
    text = f"Started a new epoch for {count} account{'' if count == 1 else 's'}. Their devices sync from the start."
    click.echo(msgspec.json.encode(result).decode() if as_json else text)
    for account in result["failed"]:
        click.echo(f"Not started: {account['email']}. {account['problem']}", err=True)
    if result["failed"]:
        raise SystemExit(1)

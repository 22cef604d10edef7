"""`vademecum backup` and `vademecum restore`: copy all records, verify the copy, and restore it."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from vademecum.cli.api_client import run_with_client
from vademecum.cli.options import data_option, json_option, settings_for, settings_for_new_folder


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@data_option
@json_option
def backup(target: Path, data: Path, as_json: bool) -> None:
    """Write a verified copy of accounts and records into the new folder TARGET, while the server goes on.

    The backup does not contain the search index and the models, because the server can rebuild them. Accounts with damaged
    records are skipped and listed, and the exit code is 1.

    \b
    Example: vademecum backup /mnt/usb/vademecum
    """
    body = {"path": os.path.realpath(target)}  # `resolve` fails at a link that leads to itself
    done = run_with_client(
        settings_for(data), lambda client: client.call("POST", "/v1/local/backup", json=body)
    )
    records = sum(name.endswith("/records.duckdb") for name in done["files"])
    text = f"{_accounts(records)}, and all {len(done['users'])} accounts, verified: {target}"
    click.echo(msgspec.json.encode(done).decode() if as_json else text)
    for one in done["damaged"]:
        click.echo(f"Not backed up: {one['email']}. {one['problem']}", err=True)
    if done["damaged"]:
        raise SystemExit(1)


@click.command()
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--user", metavar="EMAIL", help="Restore only this account. The server keeps serving the others."
)
@data_option
@json_option
def restore(source: Path, yes: bool, user: str | None, data: Path, as_json: bool) -> None:
    """Replace the current records with the backup SOURCE.

    Devices then sync from the start and upload their rows, so nothing that a device has is lost. Rows erased since the
    backup stay erased. Accounts that exist stay as they are. Missing accounts are restored, unless they were removed.

    \b
    Example: vademecum restore /mnt/usb/vademecum --user ada@example.org
    """
    if not yes:
        whose = f"of {user} " if user else ""
        click.confirm(f"Replace the records {whose}in {data} by those of {source}?", abort=True)
    body = {"path": str(source.resolve())} | ({"email": user} if user else {})
    path = "/v1/local/restore-one" if user else "/v1/local/restore"
    done = run_with_client(settings_for_new_folder(data), lambda client: client.call("POST", path, json=body))
    if as_json:
        click.echo(msgspec.json.encode(done).decode())
        return
    click.echo(
        f"{_accounts(done['users'])}, as of {done['backupAt']}; {done['erasedAgain']} rows that were erased since stay erased. "
        "Devices that sync will merge what they hold."
    )
    for email in done["skipped"]:
        click.echo(f"{email} was not restored: an account with that email and other data is here.", err=True)
    for said in _removed(done["removed"]):
        click.echo(said, err=True)


def _removed(accounts: list[dict[str, str | None]]) -> list[str]:
    """Who was left out because of a removal: by the address, if it is known, else by what the backup's folders say."""
    said = [
        f"{one['email']} was not restored: the account that the backup has was removed since, and that is for good. The "
        "one here is a new one."
        for one in accounts
        if one["email"]
    ]
    nameless = [str(one["id"]) for one in accounts if not one["email"]]
    if nameless:
        said.append(
            f"Not restored, because they were removed since, and that is for good: {', '.join(nameless)}."
        )
    return said


def _accounts(number: int) -> str:
    """Backup and restore count the same thing: an account that never kept anything has no records."""
    return f"Records of {number} account{'' if number == 1 else 's'}"

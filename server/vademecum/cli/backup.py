"""`vademecum backup` and `restore`: a verified copy of all records, and the way back."""

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

    The search index and the models are not in it: they are made again. Accounts whose records are damaged are left out and
    named, and the exit code is 1.
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
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--user", metavar="EMAIL", help="Restore this account only; the others are served meanwhile.")
@data_option
@json_option
def restore(source: Path, yes: bool, user: str | None, data: Path, as_json: bool) -> None:
    """Put the backup SOURCE in place of the records that are here.

    Devices start again from zero and push what they hold, so nothing that a device has is lost. What was erased
    since the backup stays erased. Accounts that are here stay as they are; missing ones come back, except those
    that were removed.
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

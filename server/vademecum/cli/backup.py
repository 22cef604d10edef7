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
    """Write a verified copy of accounts and records into the new folder TARGET, without stopping the server.

    The backup does not contain the search index, which the server can rebuild, or the models, which can be installed
    again. If the records of accounts are damaged, the command skips and lists these accounts and exits with 1.

    \b
    Example: vademecum backup /mnt/usb/vademecum
    """
    # `Path.resolve` would fail for a link that points to itself.
    body = {"path": os.path.realpath(target)}
    result = run_with_client(
        settings_for(data), lambda client: client.call("POST", "/v1/local/backup", json=body)
    )
    records = sum(name.endswith("/records.duckdb") for name in result["files"])
    count = _count_accounts(len(result["users"]))
    text = f"Backed up and verified {count}, {records} with records: {target}"
    click.echo(msgspec.json.encode(result).decode() if as_json else text)
    for account in result["damaged"]:
        click.echo(f"Not backed up: {account['email']}. {account['problem']}", err=True)
    if result["damaged"]:
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
    backup stay erased. Existing accounts keep their password and tier. Missing accounts are restored, unless they were
    removed.

    \b
    Example: vademecum restore /mnt/usb/vademecum --user ada@example.org
    """
    if not yes:
        whose = f"of {user} " if user else ""
        click.confirm(f"Replace the records {whose}in {data} with those of {source}?", abort=True)
    body = {"path": str(source.resolve())} | ({"email": user} if user else {})
    path = "/v1/local/restore-one" if user else "/v1/local/restore"
    result = run_with_client(
        settings_for_new_folder(data), lambda client: client.call("POST", path, json=body)
    )
    if as_json:
        click.echo(msgspec.json.encode(result).decode())
        return
    click.echo(
        f"Restored the records of {_count_accounts(result['users'])} as of {result['backupAt']}. {result['erasedAgain']} rows erased since then "
        "stay erased. Devices upload the rows that the backup lacks when they sync."
    )
    for email in result["skipped"]:
        click.echo(f"{email} was not restored: another account has this email.", err=True)
    for message in _describe_removed(result["removed"]):
        click.echo(message, err=True)


def _describe_removed(accounts: list[dict[str, str | None]]) -> list[str]:
    """Return messages about the accounts that were not restored because they were removed.

    A message names an account by its email if that is known, else by its id.
    """
    messages = [
        f"{account['email']} was not restored: that account was removed permanently after the backup. The current one is new."
        for account in accounts
        if account["email"]
    ]
    ids = [str(account["id"]) for account in accounts if not account["email"]]
    if ids:
        messages.append(
            f"Not restored, because they were removed permanently after the backup: {', '.join(ids)}."
        )
    return messages


def _count_accounts(count: int) -> str:
    return f"{count} account{'' if count == 1 else 's'}"

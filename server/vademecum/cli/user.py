"""`vademecum user …`: manage the accounts of the server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.data_lock import find_running_server
from vademecum.cli.options import data_option, json_option, settings_for, settings_for_new_folder
from vademecum.errors import BadRequest, NotFound
from vademecum.model.sync.quotas import Limits, Tier
from vademecum.model.text.display_text import printable_line
from vademecum.settings import Settings

TIERS = click.Choice(get_args(Tier), case_sensitive=False)


@click.group()
def user() -> None:
    """Add, list, change and remove accounts."""


async def find_account(client: ApiClient, email: str) -> dict[str, Any]:
    found = await client.call("GET", "/v1/accounts", params={"email": email})
    if not found:
        raise NotFound(f"There is no account {email}. `vademecum user list` lists all accounts.")
    account: dict[str, Any] = found[0]
    return account


@user.command("add")
@click.argument("email")
@click.option("--tier", type=TIERS, help="The limits of the account. The command asks if you leave it out.")
@click.option("--password-stdin", is_flag=True, help="Read a password from standard input.")
@data_option
@json_option
def add(email: str, tier: str | None, password_stdin: bool, data: Path, as_json: bool) -> None:
    """Add an account. Without a password, its user signs in with a link (`user link`) or an API token.

    \b
    Example: vademecum user add ada@example.org --tier JIGGA
    """
    settings = settings_for_new_folder(data)
    tier = tier or _choose_tier(settings, can_ask=not password_stdin and sys.stdin.isatty())
    body = {"email": email, "tier": tier.upper()}
    if password_stdin:
        body["password"] = sys.stdin.readline().rstrip("\n")
    created = run_with_client(settings, lambda client: client.call("POST", "/v1/accounts", json=body))
    if as_json:
        click.echo(msgspec.json.encode(created).decode())
        return
    click.echo(f"{created['email']} ({created['tier']}) {created['userId']}")
    click.echo(_describe_limits(msgspec.convert(created["limits"], Limits)))


def _choose_tier(settings: Settings, *, can_ask: bool) -> str:
    """Ask the user for the tier. Raises BadRequest if `can_ask` is false."""
    tiers = [f"{tier}: {_describe_limits(limits)}" for tier, limits in settings.tiers.items()]
    if not can_ask:
        raise BadRequest(f"Choose a tier with --tier. {' '.join(tiers)} Nothing was changed.")
    for line in tiers:
        click.echo(line, err=True)
    answer: str = click.prompt("Tier", type=TIERS, err=True)
    return answer


def _describe_limits(limits: Limits) -> str:
    """Describe in a sentence what an account with these limits can do."""
    size = f"{limits.documents} documents of up to {limits.file_bytes >> 20} MB, {limits.storage_bytes >> 20} MB in all"
    if not limits.searches_documents:
        return f"{size}; documents are synced, but questions do not search them."
    authoritative = ", also in authoritative mode" if limits.authoritative else ""
    return f"{size}; questions search the documents{authoritative}."


@user.command("list")
@data_option
@json_option
def list_(data: Path, as_json: bool) -> None:
    """List the accounts and how much they store."""
    accounts = run_with_client(settings_for(data), lambda client: client.call("GET", "/v1/accounts"))
    if as_json:
        click.echo(msgspec.json.encode(accounts).decode())
        return
    for account in accounts:
        usage = account["usage"]
        stored = (
            f"{usage['documents']:4} documents {usage['bytes'] / 2**20:8.1f} MB"
            if usage
            else account["problem"]
        )
        role = "administrator" if account["admin"] else ""
        click.echo(f"{printable_line(account['email']):40} {account['tier']:6} {stored} {role}".rstrip())


@user.command("tier")
@click.argument("email")
@click.argument("tier", type=TIERS)
@data_option
def tier_(email: str, tier: str, data: Path) -> None:
    """Change an account's tier."""

    async def work(client: ApiClient) -> Any:
        account = await find_account(client, email)
        return await client.call("PATCH", f"/v1/accounts/{account['userId']}", json={"tier": tier.upper()})

    run_with_client(settings_for(data), work)
    click.echo(f"{email} now has the tier {tier.upper()}.")


@user.command("admin")
@click.argument("email")
@click.option("--no", is_flag=True, help="Make it an ordinary account again.")
@data_option
def admin(email: str, no: bool, data: Path) -> None:
    """Make an account an administrator, who may add, change and remove accounts by the API.

    The server always has at least one administrator: add another before you demote or remove the last.

    \b
    Example: vademecum user admin ada@example.org
    """

    async def work(client: ApiClient) -> Any:
        account = await find_account(client, email)
        body = {"userId": account["userId"], "admin": not no}
        return await client.call("POST", "/v1/local/administrator", json=body)

    run_with_client(settings_for(data), work)
    click.echo(f"{email} is {'no longer' if no else 'now'} an administrator.")


@user.command("link")
@click.argument("email")
@data_option
def link(email: str, data: Path) -> None:
    """Print a one-time sign-in link for a new account or for a user who forgot the password.

    This removes the account's password, if it has one, and signs the account out in all browsers.

    \b
    Example: vademecum user link ada@example.org
    """

    async def work(client: ApiClient) -> Any:
        account = await find_account(client, email)
        return await client.call("PATCH", f"/v1/accounts/{account['userId']}", json={"resetPassword": True})

    settings = settings_for(data)
    running = find_running_server(settings.data)
    # Without a running server, use the address that a server with these settings would have.
    expected = settings.origin or f"http://{settings.host}:{settings.port}"
    address = (running.public or running.url) if running else expected
    click.echo(address + run_with_client(settings, work)["link"])


@user.command("remove")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@data_option
def remove(email: str, yes: bool, data: Path) -> None:
    """Remove an account and erase all its data.

    \b
    Example: vademecum user remove ada@example.org
    """
    if not yes:
        click.confirm(f"Remove {email} and erase all of its documents and memory?", abort=True)

    async def work(client: ApiClient) -> Any:
        account = await find_account(client, email)
        return await client.call("DELETE", f"/v1/accounts/{account['userId']}")

    run_with_client(settings_for(data), work)
    click.echo(f"Removed {email} with all its data. Existing backups are not changed.")

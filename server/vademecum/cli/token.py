"""`vademecum token …`: with what programs sign in."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from vademecum.cli.api_client import run_with_client
from vademecum.cli.options import data_option, json_option, settings_for
from vademecum.model.text.sanitize import visible


@click.group()
def token() -> None:
    """Create, list and revoke API tokens."""


@token.command("create")
@click.argument("email")
@click.option("--name", default="api", show_default=True, help="What it is for.")
@data_option
def create(email: str, name: str, data: Path) -> None:
    """Create a token and print it, alone: it is shown this once."""
    body = {"name": name}
    made = run_with_client(
        settings_for(data), lambda client: client.call("POST", "/v1/tokens", email, json=body)
    )
    click.echo(made["secret"])


@token.command("list")
@click.argument("email")
@data_option
@json_option
def list_tokens(email: str, data: Path, as_json: bool) -> None:
    """List an account's tokens, without their secrets."""
    found = run_with_client(settings_for(data), lambda client: client.call("GET", "/v1/tokens", email))
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    for one in found:
        click.echo(f"{one['id']}  {one['createdAt'][:10]}  {visible(one['name'])}")


@token.command("revoke")
@click.argument("email")
@click.argument("token_id")
@data_option
def revoke(email: str, token_id: str, data: Path) -> None:
    """Revoke a token; its open streams end at once."""
    run_with_client(settings_for(data), lambda client: client.call("DELETE", f"/v1/tokens/{token_id}", email))
    click.echo("Revoked.")

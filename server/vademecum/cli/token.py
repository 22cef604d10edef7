"""`vademecum token …`: manage the API tokens with which programs sign in."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from vademecum.cli.api_client import run_with_client
from vademecum.cli.options import data_option, json_option, settings_for
from vademecum.model.text.display_text import printable_line


@click.group()
def token() -> None:
    """Create, list and revoke API tokens."""


@token.command("create")
@click.argument("email")
@click.option("--name", default="api", show_default=True, help="A name that says what the token is for.")
@data_option
def create(email: str, name: str, data: Path) -> None:
    """Create an API token and print it. It is shown only once.

    \b
    Example: vademecum token create ada@example.org --name laptop
    """
    body = {"name": name}
    created = run_with_client(
        settings_for(data), lambda client: client.call("POST", "/v1/tokens", email, json=body)
    )
    click.echo(created["secret"])


@token.command("list")
@click.argument("email")
@data_option
@json_option
def list_tokens(email: str, data: Path, as_json: bool) -> None:
    """List an account's tokens, without their secrets."""
    tokens = run_with_client(settings_for(data), lambda client: client.call("GET", "/v1/tokens", email))
    if as_json:
        click.echo(msgspec.json.encode(tokens).decode())
        return
    for token_row in tokens:
        click.echo(f"{token_row['id']}  {token_row['createdAt'][:10]}  {printable_line(token_row['name'])}")


@token.command("revoke")
@click.argument("email")
@click.argument("token_id")
@data_option
def revoke(email: str, token_id: str, data: Path) -> None:
    """Revoke a token. Its open streams end immediately."""
    run_with_client(settings_for(data), lambda client: client.call("DELETE", f"/v1/tokens/{token_id}", email))
    click.echo("Revoked.")

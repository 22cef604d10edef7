"""The commands of `vademecum`, as a person is shown them. One file a group of commands; each is an HTTP call against the app (see `door`)."""

from __future__ import annotations

import os

import click

from vademecum import __version__
from vademecum.cli import context, hooks, importing, library, mcp, operate, serve, users
from vademecum.errors import VademecumError


class Group(click.Group):
    """Shows commands in the order in which a person needs them, and a refusal as one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except VademecumError as error:
            raise click.ClickException(error.message) from error


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Your documents and the memory of your conversations, on every device.

    \b
    Start:     vademecum serve
    Somebody:  vademecum user add ada@example.org --tier JIGGA
    Documents: vademecum import ~/papers --user ada@example.org --session thesis
    Ask:       vademecum search "who pays?" --user ada@example.org --session thesis

    All data is in one folder (--data, or VADEMECUM_DATA): back up that one. Every command works whether or not the
    server is running.
    """
    os.umask(0o077)  # whatever a command makes is its owner's to read


for command in (
    serve.serve,
    users.user,
    users.token,
    importing.import_,
    library.search,
    library.forget,
    hooks.record,
    context.context,
    mcp.mcp,
    operate.backup,
    operate.restore,
    operate.models,
    operate.doctor,
):
    main.add_command(command)

"""Define the group of `vademecum` commands. Most commands call the API (see `api_client`)."""

from __future__ import annotations

import errno
import os
from importlib import import_module

import click

from vademecum import __version__
from vademecum.errors import VademecumError

# Maps each command to its module below `vademecum.cli`, in the order of the help: from the first steps to maintenance.
COMMANDS = {
    "serve": "serve.serve",
    "user": "user",
    "token": "token",
    "import": "import_",
    "search": "search",
    "forget": "forget",
    "erase": "erase",
    "record": "agents.record_help",
    "context": "agents.context",
    "claim": "agents.claim",
    "mcp": "agents.mcp",
    "backup": "backup",
    "restore": "backup",
    "epoch": "epoch",
    "models": "models",
    "doctor": "doctor",
}


class Group(click.Group):
    """A command group that imports a command only when it is used, because imports dominate the startup time.

    A VademecumError or OSError is shown as a message without a traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"vademecum.cli.{COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except VademecumError as error:
            raise click.ClickException(error.message) from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader closed the pipe: click exits without a message
                raise
            if error.filename is not None:
                raise click.ClickException(f"{error.filename}: {error.strerror}.") from error
            raise click.ClickException(
                f"The output could not be written ({error.strerror}). Your request may have been carried out: check before "
                "you repeat it."
            ) from error


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Your documents and the memory of your conversations, on every device.

    \b
    Start:     vademecum serve
    Account:   vademecum user add ada@example.org --tier JIGGA
    Documents: vademecum import ~/papers --user ada@example.org --session thesis
    Search:    vademecum search "who pays?" --user ada@example.org --session thesis

    All data is in one folder (--data, or VADEMECUM_DATA). Back it up with `vademecum backup`. Every command works
    whether or not the server is running.
    """
    os.umask(0o077)  # only the operating system's user who runs the command may read new files

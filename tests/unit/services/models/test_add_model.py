"""Adding a BERT model of any origin: its values are fitted before it is installed."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import BPE

from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.embedder import Embedder
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.manifest import FittedValues, Prefixes
from vademecum.engines.onnx.model_sources import add_unpinned_model
from vademecum.engines.onnx.pinned_models import E5_SMALL, UnpinnedModel
from vademecum.services.models import fit_model

MODEL = UnpinnedModel(
    id="mine", source="a USB stick", licence="MIT", prefixes=Prefixes(query="query: ", passage="passage: ")
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the published files of a BERT model with random weights."""
    folder = tmp_path_factory.mktemp("source")
    write_source(folder, seed=1)
    return folder


def fit(folder: Path) -> FittedValues:
    embedder = Embedder(folder)
    try:
        return asyncio.run(fit_model.fit(embedder))
    finally:
        embedder.close()


def test_model_whose_vectors_find_nothing_gets_weight_zero(source: Path, tmp_path: Path) -> None:
    folder = add_unpinned_model(source, MODEL, tmp_path.joinpath, fit)
    installed = manifests.verify(folder)
    assert (installed.source, installed.licence, installed.prefixes) == ("a USB stick", "MIT", MODEL.prefixes)
    assert installed.revision == manifests.sha256(source / "model.safetensors")
    fitted = installed.fitted
    assert fitted is not None and fitted.fitted_on == "fit data 1: 713 pairs, 905 rows, 394 questions"
    assert (fitted.chunk_weight, fitted.turn_weight, fitted.same_memory, fitted.languages) == (0, 0, None, ())
    assert (fitted.chunk_ndcg, fitted.turn_ndcg) == (fitted.chunk_ndcg_words, fitted.turn_ndcg_words)
    assert [one.language for one in fitted.language_ndcg] == ["en", "de", "es", "fr", "zh"]
    embedder = Embedder(folder)
    assert (embedder.chunk_weight, embedder.turn_weight, embedder.same_memory) == (0, 0, None)
    embedder.close()


def test_model_is_installed_only_after_the_fit(source: Path, tmp_path: Path) -> None:
    def fail(folder: Path) -> FittedValues:
        assert manifests.verify(folder).fitted is None and not (tmp_path / "mine").exists()
        raise ModelError("The fit failed.")

    with pytest.raises(ModelError, match="The fit failed"):
        add_unpinned_model(source, MODEL, tmp_path.joinpath, fail)
    assert list(tmp_path.iterdir()) == []


def test_adding_a_different_model_under_an_existing_name_is_refused(source: Path, tmp_path: Path) -> None:
    def add(model: UnpinnedModel, folder: Path = source) -> Path:
        return add_unpinned_model(
            folder, model, tmp_path.joinpath, lambda _: FittedValues(fitted_on="nothing")
        )

    installed = manifests.load(add(MODEL))
    assert manifests.load(add(MODEL)) == installed
    with pytest.raises(ModelError, match="contains another model"):
        add(msgspec.structs.replace(MODEL, prefixes=Prefixes()))
    assert manifests.load(tmp_path / "mine") == installed
    other = Path(shutil.copytree(source, tmp_path / "source"))
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    with_file(other, "tokenizer.json", tokenizer)
    with pytest.raises(ModelError, match="contains another model"):
        add(MODEL, other)
    assert manifests.load(tmp_path / "mine") == installed
    for name in (E5_SMALL.id, "", "..", ".hidden", "a/b", "Mine", "m" * 65):
        with pytest.raises(ModelError, match="cannot be the name"):
            add(msgspec.structs.replace(MODEL, id=name))


@pytest.mark.parametrize("manifest", ["{}", "[", None])
def test_model_with_a_damaged_manifest_is_replaced(
    source: Path, tmp_path: Path, manifest: str | None
) -> None:
    with_file(tmp_path, "mine/manifest.json", manifest or "")
    if manifest is None:
        without(tmp_path, "mine/manifest.json")
    fitted = FittedValues(fitted_on="nothing")
    installed = add_unpinned_model(source, MODEL, tmp_path.joinpath, lambda _: fitted)
    assert manifests.verify(installed).fitted == fitted


def without(folder: Path, name: str) -> None:
    (folder / name).unlink()


def with_file(folder: Path, name: str, content: object) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def change(folder: Path, name: str, **fields: object) -> None:
    with_file(folder, name, json.loads((folder / name).read_text()) | fields)


def with_word(folder: Path, token: int) -> None:
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    model["vocab"]["ab"] = token
    change(folder, "tokenizer.json", model=model)


def without_model_type(folder: Path) -> None:
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    del model["type"]
    change(folder, "tokenizer.json", model=model)


def with_weight(folder: Path, value: float) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.0.attention.self.query.bias"][3] = value
    save_file(weights, folder / "model.safetensors")


def with_unknown_numbers(folder: Path) -> None:
    header = json.dumps({"a": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


def with_modules(folder: Path, *names: str) -> None:
    modules = [{"idx": n, "type": f"sentence_transformers.models.{name}"} for n, name in enumerate(names)]
    with_file(folder, "modules.json", modules)


def with_pooling(folder: Path, *modes: str) -> None:
    known = ("mean_tokens", "cls_token", "max_tokens")
    config = {f"pooling_mode_{mode}": mode in modes for mode in known}
    with_file(folder, "1_Pooling/config.json", {"word_embedding_dimension": 32, **config})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: without(folder, "tokenizer.json"), "does not contain tokenizer.json"),
        (lambda folder: with_pooling(folder, "cls_token"), "found pooling_mode_cls_token"),
        (lambda folder: with_pooling(folder, "mean_tokens", "max_tokens"), "found pooling_mode_max_tokens, "),
        (lambda folder: with_modules(folder, "Transformer", "Pooling", "Dense"), "found Dense"),
        (lambda folder: with_file(folder, "modules.json", "{"), "modules.json cannot be read"),
        (lambda folder: with_file(folder, "tokenizer.json", Tokenizer(BPE()).to_str()), "tokenizer is BPE"),
        (lambda folder: with_file(folder, "tokenizer.json", "{}"), "tokenizer cannot be read"),
        (lambda folder: with_file(folder, "config.json", {"model_type": "xlm"}), "not the configuration"),
        (lambda folder: with_file(folder, "modules.json", {"a": 1}), "modules.json cannot be read"),
        (lambda folder: with_file(folder, "modules.json", ["a"]), "modules.json cannot be read"),
        (lambda folder: with_file(folder, "modules.json", "null"), "modules.json cannot be read"),
        (
            lambda folder: with_file(folder, "1_Pooling/config.json", '{"a":' * 200_000),
            r"config.json cannot be read",
        ),
        (lambda folder: with_file(folder, "1_Pooling/config.json", [1]), r"config.json cannot be read"),
        (lambda folder: change(folder, "config.json", num_attention_heads=0), "not the configuration"),
        (lambda folder: change(folder, "tokenizer.json", normalizer=None), "only BertNormalizer is"),
        (
            lambda folder: change(folder, "tokenizer.json", pre_tokenizer={"type": "Whitespace"}),
            "has Whitespace where only BertPreTokenizer is",
        ),
        (lambda folder: with_word(folder, 99_999), "tokenizer has 100000 tokens, the configuration has 120"),
        (without_model_type, "tokenizer cannot be read"),
        (lambda folder: with_weight(folder, np.nan), "bias has numbers that are infinite or not a number"),
        (lambda folder: with_weight(folder, -np.inf), "bias has numbers that are infinite or not a number"),
        (with_unknown_numbers, "not a readable safetensors file"),
        (lambda folder: with_file(folder, "model.safetensors", "x"), "not a readable safetensors file"),
    ],
)
def test_model_that_cannot_be_built_is_refused(source: Path, tmp_path: Path, damage, says: str) -> None:
    folder = Path(shutil.copytree(source, tmp_path / "source"))
    damage(folder)
    with pytest.raises(ModelError, match=says):
        add_unpinned_model(folder, MODEL, (tmp_path / "models").joinpath, fit)
    assert not (tmp_path / "models" / "mine").exists()


def test_mean_pooling_and_normalization_are_accepted(source: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(source, tmp_path / "source"))
    with_modules(folder, "Transformer", "Pooling", "Normalize")
    with_pooling(folder, "mean_tokens")
    fitted = FittedValues(fitted_on="nothing")
    installed = add_unpinned_model(folder, MODEL, tmp_path.joinpath, lambda _: fitted)
    assert manifests.load(installed).fitted == fitted


def test_tokenizer_with_more_tokens_than_vectors_is_refused(source: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(source, tmp_path / "source"))
    config = json.loads((folder / "config.json").read_text())
    with_file(folder, "config.json", config | {"vocab_size": 20})
    with pytest.raises(ModelError, match="the configuration has 20"):
        add_unpinned_model(folder, MODEL, tmp_path.joinpath, fit)

"""Fitting the search weights and the deduplication threshold of a model."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from vademecum.engines.onnx import pinned_models
from vademecum.engines.onnx.embedder import Embedder
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import ALL_MINILM, E5_SMALL, PinnedModel
from vademecum.model.memory.deduplication import may_be_duplicate
from vademecum.services.models import fit_model
from vademecum.services.models.fit_model import Pair

ROOT = Path(__file__).parents[4]
HELD_OUT = ROOT / "tests" / "unit" / "model" / "memory" / "held_out_pairs.json"
PAIRS = fit_model.load_pairs()
OTHERS = [pair for pair in PAIRS if pair.kind != "same"]
MODELS = {
    ALL_MINILM: Path(os.environ.get("VADEMECUM_TEST_MODELS") or ROOT / ".cache" / "models"),
    E5_SMALL: Path(os.environ.get("VADEMECUM_TEST_E5") or ROOT / ".cache" / "e5"),
}


def open_model(known: PinnedModel) -> Embedder:
    return Embedder(MODELS[known] / known.id)


def test_fit_data_is_complete() -> None:
    by_language = Counter(pair.lang for pair in PAIRS)
    assert set(by_language) == {"en", "de", "es", "fr", "zh"} and min(by_language.values()) >= 90
    assert len({(pair.old, pair.new) for pair in PAIRS}) == len(PAIRS) >= 700
    for one in (*fit_model.load_passages().values(), fit_model.load_turns()):
        assert len(one.ids) == len(one.rows) == len(one.embedded)
        assert {gold for question in one.questions for gold in question.gold} <= set(one.ids)


def test_guards_reject_all_pairs_of_another_meaning() -> None:
    assert fit_model.merged_pairs([(1.0, pair) for pair in OTHERS], threshold=0) == []


def test_threshold_lies_above_a_contradiction_that_the_guards_miss() -> None:
    missed = Pair("en", "update", "Ada lost her job at the bank.", "Ada has lost her job at the bank.")
    assert may_be_duplicate(missed.new, missed.old)
    low = [(0.5, pair) for pair in OTHERS]
    assert fit_model.fit_threshold([*low, (0.4, missed)]) == 0.5
    assert fit_model.fit_threshold([*low, (0.955, missed)]) == 0.96
    with pytest.raises(ModelError, match="does not separate") as error:
        fit_model.fit_threshold([*low, (1.0, missed)])
    assert error.value.code == "MODEL_FIT"


@pytest.mark.parametrize("known", MODELS, ids=lambda known: known.id)
def test_no_held_out_contradiction_is_merged(known: PinnedModel) -> None:
    """The pairs were written by someone who had not seen the data of the fit. The guards already reject them."""
    pairs = json.loads(HELD_OUT.read_bytes())
    assert Counter(pair["label"] for pair in pairs) == {"entailment": 330, "contradiction": 330}
    candidates = [pair for pair in pairs if may_be_duplicate(pair["new"], pair["old"])]
    embedder = open_model(known)
    texts = [text for pair in candidates for text in (pair["old"], pair["new"])]
    vectors = asyncio.run(embedder.embed_passages(texts))
    embedder.close()
    assert embedder.same_memory is not None
    merged = [
        pair
        for pair, old, new in zip(candidates, vectors[::2], vectors[1::2], strict=True)
        if float(old @ new) >= embedder.same_memory
    ]
    assert [pair for pair in merged if pair["label"] == "contradiction"] == []


@pytest.mark.skipif("SOAK" not in os.environ, reason="embedding all texts takes half a minute")
@pytest.mark.parametrize("known", MODELS, ids=lambda known: known.id)
def test_pinned_values_are_those_of_the_fit(known: PinnedModel) -> None:
    embedder = open_model(known)
    fitted = asyncio.run(fit_model.fit(embedder))
    embedder.close()
    assert pinned_models.fitted_values(embedder.manifest) == fitted

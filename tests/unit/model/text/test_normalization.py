"""Normalization matches the shared cases (tests/conformance/normalization.json), is idempotent, and takes linear time.

A case's `text` is a string, or a list of [string, times] to be joined. `.venv/bin/python
tests/unit/model/text/test_normalization.py` rewrites the expected values; read the difference before you commit it.
"""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.text.normalization import (
    MAX_MARK_RUN,
    normalize,
    prepare_for_tokenizer,
    prepare_for_unigram,
)
from vademecum.model.text.unicode14 import map_assigned

CASES = Path(__file__).parents[3] / "conformance" / "normalization.json"


PREPARATIONS = {"forTokenizer": prepare_for_tokenizer, "forUnigram": prepare_for_unigram}
Text = str | list[tuple[str, int]]


def spelled(text: Text) -> str:
    return text if isinstance(text, str) else "".join(piece * times for piece, times in text)


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(CASES.read_text())
    return found


@pytest.mark.parametrize("case", cases() if CASES.exists() else [], ids=lambda case: case["name"])
def test_normalization_matches_shared_cases(case: dict[str, Any]) -> None:
    text = normalize(spelled(case["text"]))
    assert text == spelled(case["normalized"])
    for field, prepare in PREPARATIONS.items():
        assert prepare(text) == spelled(case[field])


JOINING = "a\u0301\u0323\u1100\u1161\u11a8\uac00\u200b\ufeff\u0915\u093c\u0958\u09c7\u09be\u30ab\u3099\U00011f02\u0378\U000110b9\U000110ba"


@pytest.mark.parametrize("piece", [1, 2, 31])
@given(text=st.text(st.one_of(st.sampled_from(JOINING), st.characters(codec=None)), max_size=90))
def test_normalizing_in_pieces_gives_the_same_result(piece: int, text: str) -> None:
    whole = normalize(text)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr("vademecum.model.text.normalization.MAX_PIECE_LENGTH", piece)
        assert normalize(text) == whole


@pytest.mark.parametrize(
    "unit", ["\U00011f02", "\u0378\u0301", "\u30ab\u3099", "\U0001f468\u200d", "\u1100\u1161\u11a8"]
)
def test_long_text_is_normalized_in_short_pieces(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []

    def measured(text: str, change: Callable[[str], str]) -> str:
        lengths.append(len(text))
        return map_assigned(text, change)

    monkeypatch.setattr("vademecum.model.text.normalization.map_assigned", measured)
    normalize(unit * 500_000)
    assert max(lengths) < 200_000


@given(st.text(st.characters(codec=None), max_size=60))
def test_normalized_text_is_a_fixed_point(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    assert not set(once) & set("\r\0\u2028\u2029\x85\x0b\x0c\ufeff\u200b\x1c\x1f")
    if unicodedata.unidata_version == "14.0.0":
        assert once == unicodedata.normalize("NFC", once)
    once.encode("utf-8")


def test_joined_parts_stay_normalized() -> None:
    pieces = ["e", "\u0301 a", "\u1100", "\u1161", "x\r", "\ny"]
    joined = "\n\n".join(map(normalize, pieces))
    assert normalize(joined) == joined


def test_surrogates_are_converted_as_in_javascript() -> None:
    assert normalize("\ud83d\ude00") == "😀"
    assert normalize("\ud83d\ud83d\ude00\ude00x\ud800") == "\ufffd😀\ufffdx\ufffd"


def test_a_million_marks_take_linear_time() -> None:
    began = time.thread_time()
    text = normalize("e" + "\u0301\u0327" * 500_000)
    assert len(text) <= MAX_MARK_RUN + 1
    assert time.thread_time() - began < 15, "normalization takes more than linear time"


def as_pieces(source: Text, change: Callable[[str], str], wanted: str) -> Text:
    """Return `wanted` in repeated pieces, as in its source, if the changed pieces form it; otherwise unchanged."""
    if isinstance(source, str):
        return wanted
    pieces = [(change(piece), times) for piece, times in source]
    return pieces if len(wanted) > 1000 and spelled(pieces) == wanted else wanted


def rewrite() -> None:
    found = cases()
    for case in found:
        text = normalize(spelled(case["text"]))
        case["normalized"] = as_pieces(case["text"], normalize, text)
        for field, prepare in PREPARATIONS.items():
            case[field] = as_pieces(
                case["text"], lambda piece, prepare=prepare: prepare(normalize(piece)), prepare(text)
            )
    rows = ",\n".join(json.dumps(case, ensure_ascii=True) for case in found)
    CASES.write_text(f"[\n{rows}\n]\n")


if __name__ == "__main__":
    rewrite()

"""Chunking matches the shared cases (tests/conformance/chunking.json), keeps its invariants, and takes linear time.

A part's `text` is a string or a list of [string, times]. `units` is the length of the document's normalized text in
UTF-16 units. `chunks` are [start, length, page, section], where start and length select a chunk's text.
`.venv/bin/python tests/unit/model/documents/test_chunking.py` rewrites the expected values. Read the diff before you
commit it.
"""

from __future__ import annotations

import json
import os
import re
import time
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.model.documents.chunking import BUDGET, SIZE, Chunk, chunk, cost, document_text, utf16_length

CASES = Path(__file__).parents[3] / "conformance" / "chunking.json"


SOAK = bool(os.environ.get("SOAK"))
MANY = 300_000 if SOAK else 80_000
LONG = 10_000  # UTF-16 units; only a part of longer shared cases is chunked, because they repeat one piece


@dataclass(frozen=True)
class Part:
    text: str
    page: int | None = None
    section: str | None = None


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(CASES.read_text())
    return found


def parts_of(case: dict[str, Any]) -> list[Part]:
    def spelled(text: str | list[tuple[str, int]]) -> str:
        return text if isinstance(text, str) else "".join(piece * times for piece, times in text)

    return [Part(spelled(part["text"]), part.get("page"), part.get("section")) for part in case["parts"]]


def rows(chunks: list[Chunk]) -> list[list[object]]:
    return [[piece.start, utf16_length(piece.text), piece.page, piece.section] for piece in chunks]


def hold_promises(parts: list[Part]) -> list[Chunk]:
    encoded = document_text(parts).encode("utf-16-le")
    chunks = chunk(parts)

    def units(start: int, length: int) -> str:
        return encoded[2 * start : 2 * (start + length)].decode("utf-16-le")

    end = 0
    rest = []
    for number, piece in enumerate(chunks):
        length = utf16_length(piece.text)
        assert piece.index == number
        assert piece.text == units(piece.start, length)
        assert piece.start >= end, "chunks overlap"
        assert piece.text.strip("\t\n \xa0\u3000") == piece.text != ""
        assert length <= SIZE
        assert sum(cost(ord(one)) * times for one, times in Counter(piece.text).items()) <= BUDGET
        parted = end == piece.start and end > 0
        assert not (parted and unicodedata.category(piece.text[0]).startswith("M")), (
            "a combining mark was cut off"
        )
        rest.append(units(end, piece.start - end))
        end = piece.start + length
    rest.append(units(end, len(encoded) // 2 - end))
    assert not "".join(rest).strip(
        "\t\n \xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
    )
    return chunks


@pytest.mark.parametrize("case", cases() if CASES.exists() else [], ids=lambda case: case["name"])
def test_chunks_match_shared_cases(case: dict[str, Any]) -> None:
    if case["units"] > LONG and not SOAK:
        hold_the_beginning(case)
        return
    parts = parts_of(case)
    assert utf16_length(document_text(parts)) == case["units"]
    assert rows(hold_promises(parts)) == case["chunks"]


def hold_the_beginning(case: dict[str, Any]) -> None:
    """Check that a fifth of a long text gives the same chunks as the whole text, except at its end."""
    (part,) = case["parts"]
    text = [[piece, times // 5 if times > 5 else times] for piece, times in part["text"]]
    parts = parts_of({"parts": [part | {"text": text}]})
    found = rows(hold_promises(parts))
    assert len(found) > 4 and found[:-2] == case["chunks"][: len(found) - 2]


piece = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "\n\n",
            ". ",
            "。",
            "」",
            "\r\n",
            "e\u0301",
            "。\u0301",
            "👩🏽\u200d🚀",
            "🇩🇪",
            "한국어",
            "\u3000",
            "\u0344",
        ]
    ),
    st.builds(
        lambda unit, times: unit * times,
        st.sampled_from(["word ", "x", "的", " ", "\n", "🇫🇷"]),
        st.integers(1, 700),
    ),
)
texts = st.lists(piece, max_size=12).map("".join)
documents = st.lists(
    st.builds(Part, texts, st.sampled_from([None, 1, 2]), st.sampled_from([None, "A", "B"])), max_size=5
)


@given(documents)
def test_chunk_properties_hold_for_random_documents(parts: list[Part]) -> None:
    hold_promises(parts)


@given(documents)
def test_no_chunk_crosses_a_page_boundary(parts: list[Part]) -> None:
    spans = []
    at = 0
    for part in parts:
        length = utf16_length(document_text([part]))
        spans.append((at, at + length, part.page))
        at += length + 2
    for found in chunk(parts):
        touched = {
            page
            for first, last, page in spans
            if first < found.start + utf16_length(found.text) and found.start < last
        }
        assert touched == {found.page}


def test_chunks_end_at_the_strongest_boundary() -> None:
    words = "word " * 60
    paragraphs = f"{words}\n\n{words}one. two\n{words}{words}"
    assert chunk([Part(paragraphs)])[0].text == words.rstrip()
    sentences = "Nine words make a sentence of some length here. " * 40
    assert all(found.text.endswith("here.") for found in chunk([Part(sentences)]))
    lines = "a,line,of,a,table\n" * 200
    assert all(found.text.endswith("table") for found in chunk([Part(lines)]))
    assert all(re.fullmatch("(word ?)+", found.text) for found in chunk([Part("word " * 1000)]))


def test_last_chunk_is_not_tiny() -> None:
    lengths = [len(found.text) for found in chunk([Part("word " * 210)])]
    assert len(lengths) == 2
    assert min(lengths) > SIZE // 4


def test_section_after_a_long_section_starts_a_chunk() -> None:
    parts = [Part("alpha " * 80, None, "A"), Part("beta " * 10, None, "B"), Part("gamma " * 10, None, "C")]
    assert [(found.section, found.text[:4]) for found in chunk(parts)] == [("A", "alph"), ("B", "beta")]


@pytest.mark.parametrize("code", range(0x100))
def test_character_cost_does_not_depend_on_other_characters(code: int) -> None:
    """The cost of Latin-1 texts is computed by separate code."""
    alike = [chunk([Part(chr(code) * 1100 + other * 300)])[0].text for other in ("b", "\u0411")]
    assert alike[0] == alike[1].replace("\u0411", "b")


@pytest.mark.parametrize(
    "unit",
    [
        "👩🏽\u200d🚀",
        "🇩🇪",
        "e\u0301\u0327",
        "\u1112\u1161\u11ab",
        "❤\ufe0f",
        "🏴\U000e0067\U000e007f",
        "क\u093f",
    ],
)
def test_grapheme_clusters_are_not_split(unit: str) -> None:
    for found in chunk([Part("x" + unit * 2000)]):
        assert re.fullmatch(f"x?({re.escape(document_text([Part(unit)]))})+", found.text)


@pytest.mark.parametrize(
    "text",
    [
        "x" * (4 * MANY),
        "的" * MANY,
        " \n" * (2 * MANY),
        "a\n\n" * (MANY // 2),
        "x" * 700 + " " * (4 * MANY) + ". y" * 1000,
        "🇩🇪" * (MANY // 2),
        "👩\u200d" * (MANY // 2),
        "e" + "\u0301\u0327" * MANY,
        "." * MANY,
        "」" * MANY,
    ],
    ids=lambda text: f"{text[:2]!a}",
)
def test_chunking_takes_linear_time(text: str) -> None:
    began = time.thread_time()
    hold_promises([Part(text)])
    assert time.thread_time() - began < (10 if SOAK else 5), "chunking takes more than linear time"


def test_many_sections_on_one_page_take_linear_time() -> None:
    began = time.thread_time()
    chunk([Part("x", None, str(number)) for number in range(MANY // 2)])
    assert time.thread_time() - began < 5


def rewrite() -> None:
    found = cases()
    for case in found:
        parts = parts_of(case)
        case["units"], case["chunks"] = utf16_length(document_text(parts)), rows(hold_promises(parts))
    text = ",\n".join(json.dumps(case, ensure_ascii=True) for case in found)
    CASES.write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    rewrite()

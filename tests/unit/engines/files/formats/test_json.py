"""JSON is unchanged except for escapes and Base64 data."""

import base64
import json
import random

import pytest

from unit.engines.files.file_reader import text_of


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (r"K\u00f6ln", "Köln"),
        (r"\u4e2d\u6587", "中文"),
        (r"\ud83d\ude00\uD83D\uDE00!", "😀😀!"),
        (r"C:\\u00f6", r"C:\\u00f6"),  # an escaped backslash, not an escape sequence
        (r"\\\u00f6", r"\\ö"),
        (
            r"\u0022 \u005c \u000a \u007f",
            r"\u0022 \u005c \u000a \u007f",
        ),  # decoded, they would break the JSON
        (r"\ud83d and \ude00", r"\ud83d and \ude00"),  # lone surrogates
        (r"a\nb\tc", r"a\nb\tc"),
    ],
)
def test_json_escapes_become_characters(written, read_as):
    assert text_of(f'{{"town": "{written}"}}'.encode(), "a.json") == f'{{"town": "{read_as}"}}'


def test_json_lines_are_detected_as_json():
    assert (
        text_of(b'{"town": "K\\u00f6ln"}\n{"town": "Bonn"}', "a.jsonl")
        == '{"town": "Köln"}\n{"town": "Bonn"}'
    )


BASE64 = base64.b64encode(random.Random(0).randbytes(3000)).decode()


def test_base64_data_is_removed():
    notebook = {
        "cells": [{"source": ["plot(rents)"], "data": {"image/png": BASE64, "text": "A rising line"}}]
    }
    assert text_of(json.dumps(notebook).encode(), "a.ipynb") == json.dumps(notebook).replace(BASE64, "…")
    page = f"# Rents\n\n![A rising line](data:image/png;base64,{BASE64})\n\nPaid.\n"
    assert text_of(page.encode(), "a.md") == page.strip("\n").replace(BASE64, "…")


def test_long_word_is_not_taken_for_base64():
    genes = {"gene": "ACGT" * 300, "digits": "0123456789" * 60, "path": "a/b" * 300}
    assert text_of(json.dumps(genes).encode(), "a.json") == json.dumps(genes)

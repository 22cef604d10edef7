"""Unicode 14 frozen: the tables say what it says, the browser has the same, and what came later is left alone."""

import random
import re
import unicodedata
from pathlib import Path

import pytest

from vademecum.model.text import ranking
from vademecum.model.text.normalization import normalise
from vademecum.model.text.ranking import fold, terms
from vademecum.model.text.unicode14 import (
    KNOWN,
    MARKS,
    blank_unknown,
    change_known,
    of_short,
    one_of,
    stretches,
)

BROWSER = Path(__file__).parents[4] / "web" / "src" / "core" / "text"
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def held(ranges: str) -> set[str]:
    ends = ([int(end, 16) for end in item.split("-")] for item in ranges.split())
    return {chr(code) for first, *rest in ends for code in range(first, (rest or [first])[0] + 1)}


@pytest.mark.parametrize(
    "table", [MARKS, f"{MARKS} 41 {ranking.ACCENTS} {ranking.INVISIBLE}", "0-41", "10ffff"]
)
def test_one_of_says_the_characters_of_a_table_and_no_others(table: str) -> None:
    """Tables that overlap, too, in any order."""
    some = re.compile(one_of(table))
    assert {character for character in CHARACTERS if some.fullmatch(character)} == {
        character for character in held(table) if not "\ud800" <= character < "\ue000"
    }


@pytest.mark.parametrize(
    ("source", "name", "table"),
    [
        ("unicode14.ts", "MARKS", MARKS),
        ("unicode14.ts", "KNOWN", KNOWN),
        ("ranking.ts", "ACCENTS", ranking.ACCENTS),
        ("ranking.ts", "INVISIBLE", ranking.INVISIBLE),
    ],
)
def test_the_browser_has_the_same_table(source: str, name: str, table: str) -> None:
    """The cases cannot show every character."""
    literal = (BROWSER / source).read_text().partition(f"const {name} =")[2].partition(";")[0]
    assert "".join(re.findall('"([^"]*)"', literal)) == table


def test_the_tables_are_those_of_unicode_14() -> None:
    """A newer Python knows more, and may only know more."""
    marks = {character for character in CHARACTERS if unicodedata.category(character)[0] == "M"}
    assigned = {character for character in CHARACTERS if unicodedata.category(character) != "Cn"}
    assert held(MARKS) <= marks
    assert held(KNOWN) <= assigned
    if unicodedata.unidata_version == "14.0.0":
        assert held(MARKS) == marks
        assert held(KNOWN) == assigned


def test_what_is_dropped_from_words_is_known() -> None:
    """Else it would keep the letters beside it apart."""
    assert held(ranking.ACCENTS) | held(ranking.INVISIBLE) <= held(KNOWN)


def test_nothing_that_has_no_shape_parts_a_word() -> None:
    shapeless = [c for c in held(KNOWN) if unicodedata.category(c) == "Cf" and c not in VISIBLE]
    assert len(shapeless) > 100
    assert [c for c in shapeless if terms(f"ab{c}cd") != ["abcd"]] == []


VISIBLE = held("600-605 6dd 70f 890-891 8e2 fff9-fffb 110bd 110cd 13430-13438")
"""Format characters that have a shape, or stand around other text."""


def test_what_unicode_14_does_not_know_is_not_changed_and_keeps_apart() -> None:
    later = "\U00010efd\ua7cb"
    assert change_known("a b", "<{}>".format) == "<a b>"
    assert change_known(f"a{later}b{later}", "<{}>".format) == f"<a>{later}<b>{later}<>"
    assert blank_unknown(f"a{later}b") == "a b"
    assert fold(f"É{later}É") == f"e{later}e"
    assert terms(f"ab{later}cd") == ["ab", "cd"]


# What composes with a neighbour, or is folded by where it stands: marks, final sigma, Hangul and kana in pieces.
NEIGHBOURLY = "abE kΣσ .,\u0300\u0323\u0345\u200d\u00adéİſﬁά\u1112\u1161\u11ab각かｶ\u3099ﾞ漢\u0915\u093c\u0e33\U0001f469½"


def test_a_text_taken_to_pieces_is_spelt_and_folded_as_in_one() -> None:
    some = random.Random(14)
    for _ in range(5_000):
        text = "".join(some.choices(NEIGHBOURLY, k=some.randrange(1, 40)))
        assert "".join(stretches(text)) == text
        assert normalise(text) == unicodedata.normalize("NFC", text)
        assert fold(text) == ranking._fold_known(text)


def test_what_is_remembered_of_short_texts_is_what_was_made_and_long_ones_are_not_kept() -> None:
    made: list[str] = []

    def make(text: str) -> str:
        made.append(text)
        return text.upper()

    upper = of_short(make)
    for text in ("word", "word", "w" * 100, "w" * 100):
        assert upper(text) == text.upper()
    assert made == ["word", "w" * 100, "w" * 100]

"""The Unicode 14 tables are correct and equal to the browser's. Characters of later versions are not changed."""

import random
import re
import unicodedata
from pathlib import Path

import pytest

from vademecum.model.text import tokenize as rules
from vademecum.model.text.normalization import normalize
from vademecum.model.text.tokenize import fold, tokenize
from vademecum.model.text.unicode14 import (
    ASSIGNED,
    MARKS,
    blank_unassigned,
    cache_short_texts,
    map_assigned,
    regex_for_ranges,
    split_ascii,
)

BROWSER = Path(__file__).parents[4] / "web" / "src" / "core" / "text"
CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def characters_of(ranges: str) -> set[str]:
    ends = ([int(end, 16) for end in item.split("-")] for item in ranges.split())
    return {chr(code) for first, *rest in ends for code in range(first, (rest or [first])[0] + 1)}


@pytest.mark.parametrize("table", [MARKS, f"{MARKS} 41 {rules.ACCENTS} {rules.INVISIBLE}", "0-41", "10ffff"])
def test_regex_matches_exactly_the_ranges(table: str) -> None:
    """Ranges may overlap and be in any order."""
    pattern = re.compile(regex_for_ranges(table))
    assert {character for character in CHARACTERS if pattern.fullmatch(character)} == {
        character for character in characters_of(table) if not "\ud800" <= character < "\ue000"
    }


@pytest.mark.parametrize(
    ("source", "name", "table"),
    [
        ("unicode14.ts", "MARKS", MARKS),
        ("unicode14.ts", "ASSIGNED", ASSIGNED),
        ("tokenize.ts", "ACCENTS", rules.ACCENTS),
        ("tokenize.ts", "INVISIBLE", rules.INVISIBLE),
    ],
)
def test_browser_has_the_same_unicode_tables(source: str, name: str, table: str) -> None:
    """The shared cases cannot cover every character."""
    literal = (BROWSER / source).read_text().partition(f"const {name} =")[2].partition(";")[0]
    assert "".join(re.findall('"([^"]*)"', literal)) == table


def test_unicode_tables_equal_those_of_unicode_14() -> None:
    """A newer Python may only have more characters than the tables."""
    marks = {character for character in CHARACTERS if unicodedata.category(character)[0] == "M"}
    assigned = {character for character in CHARACTERS if unicodedata.category(character) != "Cn"}
    assert characters_of(MARKS) <= marks
    assert characters_of(ASSIGNED) <= assigned
    if unicodedata.unidata_version == "14.0.0":
        assert characters_of(MARKS) == marks
        assert characters_of(ASSIGNED) == assigned


def test_dropped_characters_are_assigned() -> None:
    """Folding cannot drop an unassigned character, because the tokenizer already splits words there."""
    assert characters_of(rules.ACCENTS) | characters_of(rules.INVISIBLE) <= characters_of(ASSIGNED)


def test_invisible_characters_do_not_split_words() -> None:
    shapeless = [c for c in characters_of(ASSIGNED) if unicodedata.category(c) == "Cf" and c not in VISIBLE]
    assert len(shapeless) > 100
    assert [c for c in shapeless if tokenize(f"ab{c}cd") != ["abcd"]] == []


VISIBLE = characters_of("600-605 6dd 70f 890-891 8e2 fff9-fffb 110bd 110cd 13430-13438")
"""Format characters that are visible or enclose other text."""


def test_unassigned_characters_are_kept_and_separate_words() -> None:
    later = "\U00010efd\ua7cb"
    assert map_assigned("a b", "<{}>".format) == "<a b>"
    assert map_assigned(f"a{later}b{later}", "<{}>".format) == f"<a>{later}<b>{later}<>"
    assert blank_unassigned(f"a{later}b") == "a b"
    assert fold(f"É{later}É") == f"e{later}e"
    assert tokenize(f"ab{later}cd") == ["ab", "cd"]


# Characters whose result depends on their neighbors: marks, final sigma, parts of Hangul and kana.
CONTEXTUAL = "abE kΣσ .,\u0300\u0323\u0345\u200d\u00adéİſﬁά\u1112\u1161\u11ab각かｶ\u3099ﾞ漢\u0915\u093c\u0e33\U0001f469½"


def test_splitting_text_does_not_change_results() -> None:
    chance = random.Random(14)
    for _ in range(5_000):
        text = "".join(chance.choices(CONTEXTUAL, k=chance.randrange(1, 40)))
        assert "".join(split_ascii(text)) == text
        assert normalize(text) == unicodedata.normalize("NFC", text)
        assert fold(text) == rules._fold_assigned(text)


def test_results_are_cached_only_for_short_texts() -> None:
    calls: list[str] = []

    def upper_case(text: str) -> str:
        calls.append(text)
        return text.upper()

    upper = cache_short_texts(upper_case)
    for text in ("word", "word", "w" * 100, "w" * 100):
        assert upper(text) == text.upper()
    assert calls == ["word", "w" * 100, "w" * 100]

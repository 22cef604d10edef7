"""Spelling variants of a name give the same derived ID, on every device."""

import re

import pytest

from vademecum.model.schema.collections import ID_PATTERN
from vademecum.model.schema.derived_ids import entity_id, join_notes, normalize_name, relationship_id

SPELLINGS = [
    ("Zoë Miller", " ZOE\tMILLER ", True),
    ("Zoë Miller", "Zoe\u0308  Miller", True),
    ("ＡＣＭＥ", "acme", True),
    ("Straße", "STRASSE", True),
    ("C", "C++", False),
    ("C#", "C++", False),
    ("Ada", "Adam", False),
    ("Ada Bea", "AdaBea", False),
]


@pytest.mark.parametrize(("one", "other", "same"), SPELLINGS)
def test_entity_id_ignores_case_width_spaces_and_composition(one: str, other: str, same: bool) -> None:
    assert (normalize_name(one) == normalize_name(other)) is same
    assert (entity_id("p1", "person", one) == entity_id("p1", "person", other)) is same


@pytest.mark.parametrize("name", ["", " \n", "\u200b\ufeff", "\u0301"])
def test_name_without_visible_characters_is_empty(name: str) -> None:
    assert normalize_name(name) == ""


def test_different_attributes_give_different_ids() -> None:
    entities = [("p", "place", "x"), ("p", "person", "x"), ("q", "place", "x"), ("p", "place", "y")]
    edges = [("a", "b", "of"), ("b", "a", "of"), ("a", "b", "Of"), ("a", "b", "of "), ("a", "b", "of\n")]
    made = {entity_id(*entity) for entity in entities} | {relationship_id(*edge) for edge in edges}
    assert len(made) == len(entities) + len(edges)
    assert all(re.fullmatch(ID_PATTERN, row_id) for row_id in made)


def test_derived_ids_never_change() -> None:
    """Changing the derivation would duplicate every entity."""
    assert entity_id("p1", "person", "Zoë Miller") == "09a8594ec0a91f11b72dbff830ea4983"
    assert relationship_id("a", "b", "knows") == "e923ff693c7e14e9451000cba00a0528"


@pytest.mark.parametrize(
    ("known", "said", "before", "joined"),
    [
        ("has a boat", "eats no nuts", None, "has a boat\neats no nuts"),
        ("has a boat", "has a boat", None, "has a boat"),
        ("has a party", "art", None, "has a party\nart"),
        (None, None, None, None),
        ("", "a", None, "a"),
        ("a", None, None, "a"),
        ("secret\nboat", "boat", "secret\nboat", "boat"),
        ("theirs\nold", "new", "old", "theirs\nnew"),
    ],
)
def test_notes_are_merged_line_by_line(
    known: str | None, said: str | None, before: str | None, joined: str | None
) -> None:
    assert join_notes(known, said, before) == joined

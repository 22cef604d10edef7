"""Secrets are found and redacted; names, hashes and ordinary text stay unchanged."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.model.secrets.secret_cases import JWT, MUST, MUST_NOT, PEM, made
from vademecum.model.secrets import HIDDEN, find, hide, is_bare, redact


@pytest.mark.parametrize(("text", "secret"), MUST, ids=[text for text, _ in MUST])
def test_secret_is_redacted_without_changing_other_text(text: str, secret: str) -> None:
    whole = text.format(secret)
    hidden = redact(whole)
    assert secret not in hidden and HIDDEN in hidden
    pieces = [piece for piece in re.split(r"[\s/]+", secret) if len(piece) > 3]
    assert not any(piece in hidden for piece in pieces), hidden
    before, after = text.format("\0").split("\0")
    assert hidden == f"{before}{HIDDEN}{after}"


@pytest.mark.parametrize("text", MUST_NOT)
def test_lookalike_of_a_secret_is_unchanged(text: str) -> None:
    assert redact(text) == text, [(text[s.start : s.end], s.kind) for s in find(text)]


def test_all_secrets_of_a_text_are_redacted() -> None:
    keys = [made("ghp_", 36), made("sk_live_", 30), JWT]
    hidden = redact(f"{keys[0]} and {keys[1]}, password: {keys[2]}")
    assert hidden == f"{HIDDEN} and {HIDDEN}, password: {HIDDEN}"


def test_truncated_private_key_is_redacted_to_the_end() -> None:
    assert redact(f"Mine: {PEM[:90]}") == f"Mine: {HIDDEN}"


@pytest.mark.parametrize("most", range(3, 60))
def test_truncation_leaves_no_part_of_a_secret(most: int) -> None:
    key = made("ghp_", 36)
    text = f"The key {key} is new."
    hidden, count = hide(text, most)
    assert key[:6] not in hidden and key[-6:] not in hidden
    assert count == (most > len("The key "))
    assert hidden == redact(text)[: len(hidden)]


def test_redaction_adds_no_text_from_beyond_limit() -> None:
    first, second = made("ghp_", 200), made("glpat-", 1900)
    assert hide(f"{first} {second}", 210) == (f"{HIDDEN} {HIDDEN}", 2)
    assert hide(f"{first} and on", 206) == (f"{HIDDEN} a", 1)


def test_text_with_only_a_secret_is_bare() -> None:
    assert is_bare(redact(made("ghp_", 36))) and is_bare(redact("Password: hunter2!"))
    assert not is_bare(redact("The password of the router is hunter2")) and not is_bare("Ada")


@given(st.text(max_size=300))
def test_spans_of_secrets_are_ordered_disjoint_and_in_bounds(text: str) -> None:
    at = 0
    for span in find(text):
        assert at <= span.start < span.end <= len(text)
        at = span.end


@given(st.text(alphabet="ab \n", max_size=60), st.text(alphabet="ab \n", max_size=60))
def test_known_key_is_found_at_any_position(before: str, after: str) -> None:
    key = made("ghp_", 36)
    assert redact(f"{before} {key} {after}") == f"{before} {HIDDEN} {after}"

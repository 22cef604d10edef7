"""The patterns of secrets take linear time for any text, and their hints prevent no match."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from itertools import chain, islice
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.model.secrets.secret_cases import MUST, MUST_NOT
from vademecum.model import secrets
from vademecum.model.secrets import entropy, find, keyword_rules, redact, token_patterns
from vademecum.model.secrets.hinted_regex import Pattern, folded

SOAK = bool(os.environ.get("SOAK"))
HOSTILE = ["eyJ", "eyJ.", "eyJaaaaaaaa.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "://a:", "://", "a", "aA1", "password",
           "password:", "password is ", "password is", "sk-", "sk-a", "Bearer ", "Bearer a", "xoxb-", "SG.", "SG.aaaaaaaaaaaaaaaa", "=", " ", "\"", "0123456789:",
           "api key", "hooks.slack.com/services/", "/", "1/", "A1b/", "пароль", "\u0301", "ghp_", "-", "pin is 1", "0x", "--", "--a", " --a", " --token ", " -u a:", " -u a", "sshpass -p ", "curl ", "curl -u", "curl -ua:", "curl -uuuu", "curl -u a ", "ssh-keygen ", "ssh-keygen -N ", "ssh-keygen -N '", "htpasswd ",
           "Cookie: a=", "cookie:", "Cookie: a=bbbb;", "curl -b ", "--cookie a", "echo ", "echo a|", "echo a|sudo ", "echo 'a' | sudo -", "printf %s ", "sudo -S <<<", "chpasswd ", "zip ", "zip -P ", "ldapa -w '", "gh secret set ", "smbclient -U a", "set -x ", "set -x token", "config set ", "setenv secret ", "openssl ", "openssl -k ",
           "htpasswd -b ", "htpasswd -b '", "http://", "http://a1", "https://aaaaaaaa1a", "https://aaaaaaa1:", "-b ",
           "set a ", "set a b password of a b ", "nmcli ", "kubectl secret ", "7z -p", "wpa_passphrase ", "net use /user:a ", "vault login ", "requirepass ", "identified with a ", "create user ", "alter user a password '", "<a", "<password>", "login a ", "login a password "]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_line_takes_linear_time(piece: str) -> None:
    """Quadratic time would be 10^9 steps and take much longer than the limit, which is many times the linear time."""
    line = piece * ((2**20 if SOAK else 2**15) // len(piece))
    redact(line[:100])  # compile the patterns before the time is measured
    began = time.process_time()
    redact(line)
    assert time.process_time() - began < (60 if SOAK else 2)


def patterns() -> list[Pattern]:
    held = [
        value
        for module in (secrets, token_patterns, keyword_rules, entropy)
        for value in vars(module).values()
    ]
    return [
        one
        for one in (*held, *token_patterns._KEYS.values(), *token_patterns._COOKIES)
        if isinstance(one, Pattern)
    ]


def walk(parsed: Any, inside: bool, last: bool) -> None:
    """Check that each repeat is bounded, possessive or at the end of its pattern, and not inside another repeat."""
    items = list(parsed)
    for at, (op, args) in enumerate(items):
        end = last and at == len(items) - 1
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, within = args
            assert not (inside and most > 1), "a repeat within a repeat"
            assert most <= 300 or end or op is sre.POSSESSIVE_REPEAT, "an unbounded repeat in the middle"
            walk(within, inside or most > 1, False)
        elif op is sre.SUBPATTERN:
            walk(args[-1], inside, end)
        elif op is sre.BRANCH:
            for branch in args[1]:
                walk(branch, inside, end)
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            walk(args[1], inside, False)
        elif op is sre.ATOMIC_GROUP:
            walk(args, inside, end)


def test_backtracking_of_each_pattern_is_bounded() -> None:
    assert len(patterns()) >= 30
    for pattern in patterns():
        walk(parser.parse(pattern.source, pattern.flags), False, True)


def sample(parsed: Any, rng: random.Random) -> str:
    """Return a text that the pattern may match: a random path through the pattern, ignoring its lookarounds."""
    return "".join(part(op, args, rng) for op, args in parsed)


def part(op: Any, args: Any, rng: random.Random) -> str:
    if op is sre.LITERAL:
        return chr(args)
    if op is sre.BRANCH:
        return sample(rng.choice(args[1]), rng)
    if op is sre.SUBPATTERN:
        return sample(args[-1], rng)
    if op is sre.IN:
        return one_of(args[0] if args[0][0] is sre.NEGATE else rng.choice(args), rng)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        least, most, within = args
        return "".join(sample(within, rng) for _ in range(rng.randint(least, min(most, least + 4))))
    return ""


def one_of(member: tuple[Any, Any], rng: random.Random) -> str:
    op, args = member
    if op is sre.CATEGORY:
        return {sre.CATEGORY_DIGIT: "7", sre.CATEGORY_SPACE: " "}.get(args, rng.choice("a7"))
    return rng.choice("a7") if op is sre.NEGATE else chr(rng.randint(*args) if op is sre.RANGE else args)


@pytest.mark.parametrize("pattern", [one for one in patterns() if one.hints != ("",)], ids=lambda one: one.source[:40])  # fmt: skip
def test_each_match_contains_a_hint_of_its_pattern(pattern: Pattern) -> None:
    rng, parsed = random.Random(7), parser.parse(pattern.source, pattern.flags)
    texts = chain((text.format(secret) for text, secret in MUST), (sample(parsed, rng) for _ in range(1000)))
    found = (match[0] for text in texts for match in pattern.compiled().finditer(text))
    matches = list(islice(found, None if SOAK else 200))
    assert len(matches) >= 100
    for match in matches:
        assert pattern.is_hinted(match) and (not pattern.flags & re.IGNORECASE or pattern.is_hinted(match.upper())), match  # fmt: skip


def test_hint_is_found_in_all_case_variants() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    hints = {hint for pattern in patterns() if pattern.flags & re.IGNORECASE for hint in pattern.hints}
    for letter in set("".join(hints)):
        for form in re.findall(re.escape(letter), everything, re.IGNORECASE):
            assert folded(form) == letter, (letter, form)


PIECES = [piece for text, secret in MUST for piece in text.format(secret).split()] + " ".join(
    MUST_NOT
).split()


def by_every_pattern(text: str) -> list[secrets.Span]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pattern, "is_hinted", lambda self, text: True)
        return find(text)


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from([" ", "\n", ": ", "=", ""]))
def test_prefilter_finds_the_same_secrets_as_all_patterns_in_joined_pieces(
    pieces: list[str], between: str
) -> None:
    text = between.join(pieces)
    assert find(text) == by_every_pattern(text)


def test_prefilter_finds_the_same_secrets_as_all_patterns_in_repository() -> None:
    root = Path(__file__).parents[4]
    ours = ("server/vademecum/**/*.py", "tests/**/*.py") if SOAK else ("server/vademecum/model/**/*.py",)
    files = [
        file for some in (*ours, "*.md", "tests/unit/model/**/test_[os]*.py") for file in root.glob(some)
    ]
    texts = [text.format(secret) for text, secret in MUST] + MUST_NOT + [file.read_text() for file in files]
    assert len(texts) > (300 if SOAK else 170)
    for text in texts:
        for asked in (text, text.upper()):
            assert find(asked) == by_every_pattern(asked)

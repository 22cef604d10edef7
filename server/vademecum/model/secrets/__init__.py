"""Find and redact secrets in a text: keys, passwords and tokens.

Secrets are neither stored nor sent to a language model.

A secret is detected by its format (a known prefix, PEM, JWT), by its name (`password: …`, in several languages), or by
its entropy: a long run of characters that nobody would type. In unclear cases names and hashes stay, and random runs
are redacted. Every pattern takes linear time for any text: its repetitions are bounded, possessive or at the end, and
are not nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from vademecum.model.secrets.entropy import by_look
from vademecum.model.secrets.hinted_regex import Pattern, Span, folded
from vademecum.model.secrets.keyword_rules import CALLED, by_name
from vademecum.model.secrets.token_patterns import by_shape

__all__ = ["BEYOND", "HIDDEN", "Span", "find", "hide", "hide_in_path", "is_bare", "redact"]

HIDDEN = "[redacted]"
BEYOND = 1000  # the number of characters searched after the cut, to detect a secret across the cut
MARK = 4  # length of a hash in hexadecimal digits; 16 bits distinguish files but do not reveal a password

_LETTER = Pattern(r"[^\W_]")


def find(text: str) -> list[Span]:
    """Return the secrets of a text in order, without overlaps."""
    known = _find_by_format_or_name(text)
    return _disjoint([*known, *_exclude_overlapping(by_look(text), known)])


def redact(text: str) -> str:
    """Return the text with `HIDDEN` in place of each secret."""
    return hide(text, len(text))[0]


def hide(text: str, max_length: int) -> tuple[str, int]:
    """Return the first `max_length` characters with `HIDDEN` in place of each secret, and the number of redacted secrets.

    A secret that begins before the cut is redacted as a whole, because the part before the cut alone would not be
    detected.
    """
    return _replace_spans(text, max_length, find(text[: max_length + BEYOND]), lambda _: HIDDEN)


def hide_in_path(path: str, max_length: int) -> tuple[str, int]:
    """Redact a path or an id as `hide` does, each part of the path separately.

    Entropy is not considered, because names of builds and ids are random anyway. A redacted part keeps a short hash, so
    that different files stay different. The hash is too short to guess the secret.
    """
    return _replace_spans(path, max_length, _find_in_parts(path[: max_length + BEYOND]), _marked)


def is_bare(redacted: str) -> bool:
    """Return whether a redacted text contains nothing except secrets and their names."""
    rest = CALLED.compiled().sub("", folded(redacted.replace(HIDDEN, "")))
    return not _LETTER.compiled().search(rest)


def _find_by_format_or_name(text: str) -> list[Span]:
    """Return the secrets that are detected by their format or name."""
    return _disjoint([*by_shape(text), *by_name(text)])


def _find_in_parts(path: str) -> list[Span]:
    found, at = [], 0
    for part in path.split("/"):
        found += [Span(at + span.start, at + span.end, span.kind) for span in _find_by_format_or_name(part)]
        at += len(part) + 1
    return found


def _replace_spans(
    text: str, max_length: int, spans: list[Span], instead: Callable[[str], str]
) -> tuple[str, int]:
    """Return the first `max_length` characters with each secret replaced by `instead`, and the number of redacted secrets."""
    parts, at = [], 0
    spans = [span for span in spans if span.start < max_length]
    for span in spans:
        parts += [text[at : span.start], instead(text[span.start : span.end])]
        at = span.end
    return "".join([*parts, text[at:max_length]]), len(spans)


def _marked(secret: str) -> str:
    from hashlib import sha256  # loads slowly, and few paths contain a secret

    return f"{HIDDEN}{sha256(secret.encode(errors='replace')).hexdigest()[:MARK]}"


def _disjoint(spans: Iterable[Span]) -> list[Span]:
    """Merge overlapping spans. A merged span has the kind of its first part."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if found and span.start < found[-1].end:
            first = found.pop()
            found.append(Span(first.start, max(first.end, span.end), first.kind))
        else:
            found.append(span)
    return found


def _exclude_overlapping(runs: Iterable[Span], known: list[Span]) -> Iterator[Span]:
    """Yield the runs that overlap no span in `known`. Where they overlap, the known span has more accurate ends.

    Both inputs are in order.
    """
    remaining = iter(known)
    nearest = next(remaining, None)
    for run in runs:
        while nearest and nearest.end <= run.start:
            nearest = next(remaining, None)
        if not nearest or nearest.start >= run.end:
            yield run

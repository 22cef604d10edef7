"""Secrets in a text: keys, passwords and tokens, so that they are neither remembered nor sent to a language model.

Three ways to know one: by its own shape (a known prefix, PEM, JWT), by what it is called (`password: …`, in several
languages), and by being a long run that no one would type (entropy). Where it is unclear, a name or a hash is left and
a random run is hidden. Every pattern takes time in proportion to the text, whatever the text: repeats are bounded,
possessive or at the end, and none lies within another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from vademecum.model.secrets.entropy import by_look
from vademecum.model.secrets.hinted_regex import Pattern, Span, folded
from vademecum.model.secrets.keyword_rules import CALLED, by_name
from vademecum.model.secrets.token_patterns import by_shape

__all__ = ["BEYOND", "HIDDEN", "Span", "find", "hide", "hide_in_path", "is_bare", "redact"]

HIDDEN = "[redacted]"
BEYOND = 1000  # characters after a cut that are looked at, so that a secret which it divides is known
MARK = 4  # hexadecimal digits: 16 bits tell files apart and fit far too many passwords to tell one

_LETTER = Pattern(r"[^\W_]")


def find(text: str) -> list[Span]:
    """The secrets of a text, in order, without overlaps."""
    known = _known(text)
    return _disjoint([*known, *_apart(by_look(text), known)])


def redact(text: str) -> str:
    """The text with a word in place of each secret."""
    return hide(text, len(text))[0]


def hide(text: str, most: int) -> tuple[str, int]:
    """The first `most` characters with a word in place of each secret, and how many secrets that were. One that begins
    there is hidden although it ends beyond: a half that is left over would not be known for what it is."""
    return _without(text, most, find(text[: most + BEYOND]), lambda _: HIDDEN)


def hide_in_path(path: str, most: int) -> tuple[str, int]:
    """The same of a path or an id, each part by itself. Looks say nothing there: builds and ids are random by nature.
    Two files stay two: what is hidden leaves a mark, too short to guess it by."""
    return _without(path, most, _known_in_parts(path[: most + BEYOND]), _marked)


def is_bare(redacted: str) -> bool:
    """Whether hiding the secrets has left nothing that could be worth remembering."""
    rest = CALLED.compiled().sub("", folded(redacted.replace(HIDDEN, "")))
    return not _LETTER.compiled().search(rest)


def _known(text: str) -> list[Span]:
    """The secrets that are known by their shape or name."""
    return _disjoint([*by_shape(text), *by_name(text)])


def _known_in_parts(path: str) -> list[Span]:
    found, at = [], 0
    for part in path.split("/"):
        found += [Span(at + span.start, at + span.end, span.kind) for span in _known(part)]
        at += len(part) + 1
    return found


def _without(text: str, most: int, spans: list[Span], instead: Callable[[str], str]) -> tuple[str, int]:
    """The first `most` characters with something instead of each secret, and how many begin there."""
    kept, at = [], 0
    spans = [span for span in spans if span.start < most]
    for span in spans:
        kept += [text[at : span.start], instead(text[span.start : span.end])]
        at = span.end
    return "".join([*kept, text[at:most]]), len(spans)


def _marked(secret: str) -> str:
    from hashlib import sha256  # is slow to load, and few paths hold a secret

    return f"{HIDDEN}{sha256(secret.encode(errors='replace')).hexdigest()[:MARK]}"


def _disjoint(spans: Iterable[Span]) -> list[Span]:
    """Overlapping ones as one, called what its first part is called."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if found and span.start < found[-1].end:
            first = found.pop()
            found.append(Span(first.start, max(first.end, span.end), first.kind))
        else:
            found.append(span)
    return found


def _apart(runs: Iterable[Span], known: list[Span]) -> Iterator[Span]:
    """The runs that are no part, and have no part, of what is known already: its ends are known better. Both in order."""
    ahead = iter(known)
    near = next(ahead, None)
    for run in runs:
        while near and near.end <= run.start:
            near = next(ahead, None)
        if not near or near.start >= run.end:
            yield run

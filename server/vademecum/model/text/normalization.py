"""One spelling for every text, the same in Python and JavaScript, before it is cut, counted or embedded.

The rule, in this order: ill-formed UTF-16 and NUL become U+FFFD; every line separator becomes "\\n"; BOM and
zero-width space go; a run of more than 30 combining marks is cut to 30; NFC; the run is cut again (NFC may
lengthen one). The result is a fixed point: normalising it again changes nothing. Positions of chunks count
UTF-16 units of *this* text, so any change of rule or table is a new `NORMALISER`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from vademecum.model.text.unicode14 import MARKS, change_known, of_short, one_of, stretches

NORMALISER = 1
MARK_RUN = 30
"""No language stacks more. Without a bound NFC is quadratic: 80,000 marks in a row took five seconds."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_MARK = one_of(MARKS)
_LONG_RUN = re.compile(f"({_MARK}{{{MARK_RUN}}}){_MARK}+")
# NFKD makes marks of the voicing signs of narrow kana, too, the only ones that are none before.
_MARK_TO_BE = one_of(f"{MARKS} ff9e-ff9f")
_LONG_RUN_TO_BE = re.compile(f"({_MARK_TO_BE}{{{MARK_RUN}}}){_MARK_TO_BE}+")
# Latin letters and the signs of its texts are spelt in one way only: of most texts nothing else has to be looked at.
_PLAIN = re.compile("[\x01-\x0a\x0e-\x1b\x20-\x84\x86-\u02ff\u2010-\u2027\u2030-\u205e]*")
_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_DROPPED = re.compile("[\ufeff\u200b]")
# What may belong to the character before it: all but marks and the halves of Hangul syllables stands by itself.
_BEGINNING = re.compile(rf"(?!{_MARK})[^\ufeff\u200b\u1161-\u1175\u11a8-\u11c2]")
PIECE = 100_000
_ASTRAL_HAN = re.compile("([\U00020000-\U0003ffff])")


def normalise(text: str) -> str:
    """The one spelling of `text`."""
    if _PLAIN.fullmatch(text):
        return text
    if _SURROGATE.search(text):
        # Pairs kept as two code points join, as they always are in JavaScript; what is left over is replaced.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _LINE_END.sub("\n", text.replace("\0", "\ufffd"))
    if text.isascii():
        return text
    pieces = stretches(text)
    pieces[1::2] = map(_spelling, pieces[1::2])
    return "".join(pieces)


@of_short
def _spelling(text: str) -> str:
    return "".join(map(_spelt, _pieces(text)))


def _pieces(text: str) -> Iterator[str]:
    """Pieces that are spelt each by itself as they are together: one call for millions of characters would hold up all
    other threads for seconds."""
    at = 0
    while found := _BEGINNING.search(text, at + PIECE):
        yield text[at : found.start()]
        at = found.start()
    yield text[at:]


def _spelt(text: str) -> str:
    text = _LONG_RUN.sub(r"\1", _DROPPED.sub("", text))
    return _LONG_RUN.sub(r"\1", change_known(text, _compose))


def _compose(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def bounded(text: str) -> str:
    """No run of marks longer than `normalise` leaves, so that NFKD and NFKC take time in proportion: what another
    program pushed need not be normalised."""
    return text if text.isascii() else _LONG_RUN_TO_BE.sub(r"\1", text)


def for_tokenizer(text: str) -> str:
    """Mend what the Python and JavaScript tokenizers spell differently. Only on the way into one, never stored.

    JavaScript lower-cases a final capital sigma to another letter than Rust does, and its tokenizer does not set
    ideographs outside the basic plane apart.
    """
    if text.isascii():
        return text
    return _ASTRAL_HAN.sub(r" \1 ", text.replace("\u03a3", "\u03c3"))

"""Normalize text, the same in Python and JavaScript, before it is chunked, counted or embedded.

The rule, in this order: ill-formed UTF-16 and NUL become U+FFFD; every line separator becomes "\\n"; BOM and zero-width
space are removed; a run of more than 30 combining marks is cut to 30; NFC; runs are cut again, since NFC may lengthen
one. The result is a fixed point: normalizing it again changes nothing. Positions of chunks count UTF-16 units of the
normalized text, so any change of the rule or of a table needs a new `NORMALIZER_VERSION`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from vademecum.model.text.unicode14 import (
    MARKS,
    cache_short_texts,
    map_assigned,
    regex_for_ranges,
    split_ascii,
)

NORMALIZER_VERSION = 1
MAX_MARK_RUN = 30
"""The maximum number of consecutive combining marks.

No language uses more marks. Without a limit, NFC takes quadratic time: 80,000 marks took five seconds.
"""
MAX_PIECE_LENGTH = 100_000

_SURROGATE = re.compile("[\ud800-\udfff]")
_MARK = regex_for_ranges(MARKS)
_LONG_RUN = re.compile(f"({_MARK}{{{MAX_MARK_RUN}}}){_MARK}+")
# NFKD turns the halfwidth kana voicing signs into marks, and no other characters.
_COMPAT_MARK = regex_for_ranges(f"{MARKS} ff9e-ff9f")
_LONG_COMPAT_RUN = re.compile(f"({_COMPAT_MARK}{{{MAX_MARK_RUN}}}){_COMPAT_MARK}+")
# Characters that the rule leaves unchanged. Most texts in Latin script contain only such characters.
_UNCHANGED = re.compile("[\x01-\x0a\x0e-\x1b\x20-\x84\x86-\u02ff\u2010-\u2027\u2030-\u205e]*")
_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
_DROPPED = re.compile("[\ufeff\u200b]")
# A character that never composes with the previous one: anything but marks, Hangul vowels and Hangul finals.
_STARTER = re.compile(rf"(?!{_MARK})[^\ufeff\u200b\u1161-\u1175\u11a8-\u11c2]")
_ASTRAL_HAN = re.compile("([\U00020000-\U0003ffff])")
# Blanks, control characters, joiners, the replacement character, and the mark that stands for a blank in word pieces.
_BLANKS = re.compile(
    "[\\x00-\\x20\\x7f-\\xa0\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u2581\u3000\ufeff\ufffd]+"
)
_NO_WIDE_TILDE = re.compile("[^\uff5e]+")


def normalize(text: str) -> str:
    """Return the normalized form of a text."""
    if _UNCHANGED.fullmatch(text):
        return text
    if _SURROGATE.search(text):
        # Join surrogate pairs that are two code points, so that both languages agree. Replace lone surrogates.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _LINE_END.sub("\n", text.replace("\0", "\ufffd"))
    if text.isascii():
        return text
    pieces = split_ascii(text)
    pieces[1::2] = map(_normalize_non_ascii, pieces[1::2])
    return "".join(pieces)


@cache_short_texts
def _normalize_non_ascii(text: str) -> str:
    return "".join(map(_normalize_piece, _pieces(text)))


def _pieces(text: str) -> Iterator[str]:
    """Split a text into pieces that can be composed separately.

    One NFC call for millions of characters would hold the GIL for seconds.
    """
    start = 0
    while match := _STARTER.search(text, start + MAX_PIECE_LENGTH):
        yield text[start : match.start()]
        start = match.start()
    yield text[start:]


def _normalize_piece(text: str) -> str:
    text = _LONG_RUN.sub(r"\1", _DROPPED.sub("", text))
    return _LONG_RUN.sub(r"\1", map_assigned(text, _compose))


def _compose(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def limit_mark_runs(text: str) -> str:
    """Cut runs of combining marks to `MAX_MARK_RUN`, so that NFKD and NFKC take linear time.

    The text may not be normalized, because other programs push rows, too.
    """
    return text if text.isascii() else _LONG_COMPAT_RUN.sub(r"\1", text)


def prepare_for_tokenizer(text: str) -> str:
    """Rewrite text so that the Python and JavaScript tokenizers treat it alike. The result is never stored.

    JavaScript lower-cases a final capital sigma differently from Rust, and its tokenizer does not separate ideographs
    outside the basic multilingual plane.
    """
    if text.isascii():
        return text
    return _ASTRAL_HAN.sub(r" \1 ", text.replace("\u03a3", "\u03c3"))


def prepare_for_unigram(text: str) -> str:
    """Rewrite text as the normalizer that the multilingual tokenizers publish does. The result is never stored.

    The rule is NFKC, except that a fullwidth tilde stays, and one space for each run of blanks. The tokenizer's own
    normalizer is removed (`engines/onnx/download.py`), because libraries implement it with different Unicode versions.
    """
    if not text.isascii():
        text = map_assigned(limit_mark_runs(text), _compose_compatible)
    return _BLANKS.sub(" ", text).strip(" ")


def _compose_compatible(text: str) -> str:
    return _NO_WIDE_TILDE.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)

"""Decode text of unknown encoding. Try in order: BOM, UTF-8, a declared encoding, letter frequency, statistics."""

from __future__ import annotations

import re
from contextlib import suppress

from vademecum.engines.files.charset.letter_frequency import detect_by_letters
from vademecum.engines.files.charset.utf16 import decode_utf16
from vademecum.engines.files.result import Unreadable

# UTF-32 precedes UTF-16, because a UTF-32 BOM may begin with the UTF-16 BOM.
_BOMS = (
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
SAMPLE = 1_000_000  # number of bytes from which the encoding is guessed
# A character and a backspace, which man pages use to print bold and underlined text.
_STRUCK_OVER = re.compile(r"[^\n\x08]\x08")
# Control characters that are rare in text, such as BEL. Tabs, line ends and ESC do not count.
_CONTROL = re.compile(r"[\0-\x07\x0e-\x1a]")
_CONTROL_BYTE = re.compile(rb"[\0-\x07\x0e-\x1a]")
CONTROLS_SHARE = 0.02
# An escape sequence of ISO-2022-JP, which mail uses. After it, two ASCII bytes form one character.
_JAPANESE = re.compile(rb"\x1b\$[@B]")
_LABEL = re.compile(rb"(?:encoding|charset|coding)[:= ]{1,10}[\"']?([a-z0-9_-]+)", re.I)
# Names of encodings that web pages use and Python does not accept.
_ENCODINGS = {
    "windows-874": "cp874",
    "dos-874": "cp874",
    "windows-949": "cp949",
    "iso-8859-8-i": "iso8859-8",
    "koi8-ru": "koi8-u",
    "x-mac-roman": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-euc-jp": "euc-jp",
    "x-gbk": "gbk",
    "x-x-big5": "big5",
    **{f"x-cp125{n}": f"cp125{n}" for n in range(9)},
}


def decode(data: bytes) -> str:
    """Return the text of bytes in an unknown encoding. Raises Unreadable if they are not text.

    A few control characters, as in a log, are replaced with spaces. Many control characters show that the data is not
    text.
    """
    text = _decode_with_bom(data)
    if text is None:
        text = _decode_without_bom(data)
    plain, controls = _CONTROL.subn(" ", _STRUCK_OVER.sub("", text))
    if controls > max(1, len(text) * CONTROLS_SHARE):
        raise Unreadable("UNSUPPORTED_TYPE")
    return plain.replace("\b", " ")


def _decode_with_bom(data: bytes) -> str | None:
    announced = [encoding for mark, encoding in _BOMS if data.startswith(mark)]
    for encoding in announced:
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    if announced:
        raise Unreadable("DAMAGED")
    return None


def _decode_without_bom(data: bytes) -> str:
    if _JAPANESE.search(data):
        with suppress(UnicodeDecodeError):
            return data.decode("iso2022_jp_ext")
    with suppress(UnicodeDecodeError):
        text = data.decode()
        has_many_nulls = text.count("\0") > max(1, len(text) * CONTROLS_SHARE)
        return (has_many_nulls and decode_utf16(data)) or text
    if b"\0" in data:
        if (found := decode_utf16(data)) is not None:
            return found
        # Do not guess: statistics would mistake audio, images and programs for text in some language.
        raise Unreadable("UNSUPPORTED_TYPE")
    return _decode_by_guess(data)


def _decode_by_guess(data: bytes) -> str:
    # Imported here because loading language statistics is slow and most files do not need them.
    from charset_normalizer import from_bytes
    from charset_normalizer.utils import any_specified_encoding

    encoding = next((codec for name in _LABEL.findall(data[:8192]) if (codec := _find_codec(name))), None)
    if encoding is None and any_specified_encoding(data) in (None, "utf_8"):
        text = data.decode("utf-8", "replace")
        if _is_mostly_utf8(text):
            return text
        sample = data[:SAMPLE]
        encoding = detect_by_letters(sample, is_plain=not _CONTROL_BYTE.search(sample))
    if encoding is None:
        best = from_bytes(data[:SAMPLE]).best()
        if best is None:
            raise Unreadable("UNSUPPORTED_TYPE")
        encoding = best.encoding
    return data.decode(encoding, "replace")


def _find_codec(name: bytes) -> str | None:
    return _ENCODINGS.get(name.decode("ascii").lower())


def _is_mostly_utf8(text: str) -> bool:
    """Return whether a text that was decoded as UTF-8 is UTF-8 with a few invalid bytes.

    Data in another encoding has many invalid sequences and few valid ones.
    """
    invalid = text.count("\ufffd")
    valid = sum(1 for c in text if c > "\x7f") - invalid
    return invalid * 2 <= valid

"""Decode the name of an uploaded file: `filename`, `filename*` (RFC 5987, 2231) and MIME encoded words (RFC 2047).

Browsers send `filename` in UTF-8. Older HTTP libraries and mail gateways use the other forms for non-ASCII names.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from urllib.parse import unquote_to_bytes

from multipart import MultipartSegment

# Allow only charsets that Python decodes in linear time. Punycode, for example, takes quadratic time.
_CHARSET = re.compile(
    r"(?:utf-?8|us-ascii|iso-?8859-\d{1,2}|windows-125\d|cp125\d|shift_?jis|euc-(?:jp|kr)|iso-2022-jp|gb2312|gbk|gb18030"
    r"|big5|koi8-[ru])",
    re.IGNORECASE,
)
_EXTENDED = re.compile(r";\s*filename\*\s*=\s*\"?([\w-]{1,20})'[\w-]{0,35}'([^;\"\s]*)", re.IGNORECASE)
_PART = re.compile(r';\s*filename\*(\d{1,2})(\*?)\s*=\s*(?:"([^"]*)"|([^;"\s]*))', re.IGNORECASE)
_WORD = re.compile(r"=\?([\w-]{1,20})(?:\*[\w-]{1,35})?\?([bq])\?([^? ]*)\?=(?:\s+(?==\?))?", re.IGNORECASE)


def decode_filename(part: MultipartSegment) -> str | None:
    """Return the name of the part's file, or None if the part is a field. `filename*` wins over `filename`."""
    header = part.header("Content-Disposition", "")
    return _extended(header) or _continued(header) or (part.filename and _mime_words(part.filename))


def _extended(header: str) -> str | None:
    found = _EXTENDED.search(header)
    return _decode(unquote_to_bytes(found[2]), found[1]) if found else None


def _continued(header: str) -> str | None:
    """Join and decode the pieces of a continued name (`filename*0*=…; filename*1=…`). The first piece has the charset."""
    pieces = sorted((int(n), bool(star), quoted or plain) for n, star, quoted, plain in _PART.findall(header))
    if not pieces or [n for n, _, _ in pieces] != list(range(len(pieces))):
        return None
    charset = "utf-8"
    if pieces[0][1] and pieces[0][2].count("'") >= 2:
        charset, _, first = pieces[0][2].split("'", 2)
        pieces[0] = (0, True, first)
    return _decode(
        b"".join(unquote_to_bytes(text) if star else text.encode() for _, star, text in pieces), charset
    )


def _mime_words(name: str) -> str:
    """Decode the MIME encoded words of a name. A word that cannot be decoded stays unchanged."""
    return _WORD.sub(lambda found: _decode_word(*found.groups()) or found[0], name)


def _decode_word(charset: str, encoding: str, text: str) -> str | None:
    try:
        data = (
            base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
            if encoding in "bB"
            else quopri.decodestring(text.encode("ascii"), header=True)
        )
    except (ValueError, binascii.Error):
        return None
    return _decode(data, charset)


def _decode(data: bytes, charset: str) -> str | None:
    if not _CHARSET.fullmatch(charset):
        return None
    try:
        return data.decode(charset)
    except (UnicodeDecodeError, LookupError):
        return None

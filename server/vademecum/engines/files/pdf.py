"""PDF: a part a page. A file of pictures, or one whose letters have no names, is refused, not stored as if it were text."""

from __future__ import annotations

import re
import unicodedata

import pypdfium2 as pdfium

from vademecum.engines.files.parsed import PDF, Limits, Parsed, Part, Unreadable

_PASSWORD = 4  # pdfium's FPDF_ERR_PASSWORD
GARBLED_SHARE = 0.2
_DIVIDED = re.compile(r"(?<=\w)[\x02\ufffe](?=\w)")  # pdfium's mark of a hyphen at a line's end


def parse(data: bytes, limits: Limits) -> Parsed:
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        locked = getattr(error, "err_code", None) == _PASSWORD or "password" in str(error).lower()
        raise Unreadable("ENCRYPTED" if locked else "DAMAGED") from error
    try:
        count = len(document)
        if count > limits.pages:
            raise Unreadable("TOO_EXPANSIVE")
        parts = []
        for number in range(count):
            text = _page(document, number)
            if text.strip():
                parts.append(Part(text, page=number + 1))
    finally:
        document.close()
    text = "".join(part.text for part in parts)
    if _garbled(text[:500_000]):  # asked first: letters without names are no letters, and yet no picture
        raise Unreadable("GARBLED")
    if sum(c.isalnum() for c in text) < 3:
        raise Unreadable("NO_TEXT")
    return Parsed(PDF, parts, count)


def _page(document: pdfium.PdfDocument, number: int) -> str:
    try:
        page = document[number]
        textpage = page.get_textpage()
        text: str = textpage.get_text_bounded()
        textpage.close()
        page.close()
    except pdfium.PdfiumError:  # one broken page does not cost the others
        return ""
    return _DIVIDED.sub("", text).replace("\ufffe", "").replace("\r\n", "\n")


def _garbled(text: str) -> bool:
    """Glyphs without a map come out as private-use, control or replacement characters."""
    visible = [c for c in text if not c.isspace()]
    odd = sum(1 for c in visible if c == "\ufffd" or unicodedata.category(c) in ("Cc", "Co", "Cn", "Cs"))
    return odd > max(2, len(visible) * GARBLED_SHARE)

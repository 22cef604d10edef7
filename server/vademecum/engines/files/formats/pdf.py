"""Parse PDF into one part per page, with the values of form fields below the printed text.

Scanned files, and files whose glyphs have no Unicode mapping, are rejected.
"""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Iterator, Set

import pypdfium2 as pdfium
from pypdfium2 import raw

from vademecum.engines.files.result import PDF, Limits, Parsed, Part, Unreadable

_PASSWORD = 4  # pdfium's FPDF_ERR_PASSWORD
# Types of form fields that contain text. Hidden fields and password fields are skipped.
_TEXT_FIELDS = {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
_HIDDEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD_FIELD = 1 << 13
GARBLED_SHARE = 0.2
_MARK = "\x02"  # pdfium's mark for a hyphen at the end of a line; some functions return _OTHER_MARK
_OTHER_MARK = "\ufffe"
# The lengths are limited and a match begins where a word begins, because long runs of letters would take quadratic
# time.
_SPLIT_WORD = re.compile(rf"(?<!\w)(\w{{1,40}}){_MARK}(\w{{1,40}})")
_HYPHENATED = re.compile(r"(?<!\w)\w{1,40}-\w{1,40}(?!\w)")
GAP_MIN = 0.5  # the minimum gap between words, relative to a letter's size


def parse(data: bytes, limits: Limits) -> Parsed:
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == _PASSWORD or "password" in str(error).lower()
        raise Unreadable("ENCRYPTED" if is_locked else "DAMAGED") from error
    try:
        document.init_forms()  # must precede loading a page, or its fields are empty
        count = len(document)
        if count > limits.pages:
            raise Unreadable("TOO_EXPANSIVE")
        pages = [_read_page(document, number) for number in range(count)]
    finally:
        document.close()
    hyphenated = {word.lower() for text in pages for word in _HYPHENATED.findall(text)}
    joined = [_join_split_words(text, hyphenated) for text in pages]
    parts = [Part(text, page=number) for number, text in enumerate(joined, start=1) if text.strip()]
    text = "".join(part.text for part in parts)
    # Check this before NO_TEXT: unmapped glyphs are not alphanumeric, but the file is not a scan.
    if _is_garbled(text[:500_000]):
        raise Unreadable("GARBLED")
    if sum(c.isalnum() for c in text) < 3:
        raise Unreadable("NO_TEXT")
    return Parsed(PDF, parts, count)


def _read_page(document: pdfium.PdfDocument, number: int) -> str:
    try:
        page = document[number]
        textpage = page.get_textpage()
        text = _printed_text(textpage)
        textpage.close()
        values = list(_field_values(document, page))
        page.close()
    except pdfium.PdfiumError:  # treat a damaged page as empty, so that the other pages are read
        return ""
    return "\n".join([text.replace("\r\n", "\n"), *values])


def _printed_text(textpage: pdfium.PdfTextPage) -> str:
    """Return the text within the page bounds.

    pdfium's bounded text lacks spaces between some distant words, for example on rotated pages and in tables. Its
    complete text has these spaces, but also spaces within words. So a space of the complete text is added only if the
    glyphs around it are apart.
    """
    bounded: str = textpage.get_text_bounded().replace(_OTHER_MARK, _MARK)
    complete: str = textpage.get_text_range().replace(_OTHER_MARK, _MARK)
    if len(complete) != textpage.count_chars() or "".join(complete.split()) != "".join(bounded.split()):
        return bounded
    pieces: list[str] = []
    at, last = 0, -1
    for number, letter in enumerate(complete):
        if letter.isspace():
            continue
        start = at
        while bounded[at].isspace():
            at += 1
        is_glued = at == start and 0 <= last < number - 1
        pieces += [" " if is_glued and _have_gap(textpage, last, number) else bounded[start:at], letter]
        at, last = at + 1, number
    return "".join(pieces) + bounded[at:]


def _have_gap(textpage: pdfium.PdfTextPage, one: int, next_one: int) -> bool:
    """Return whether two letters, given by index, are too far apart for one word. The page may be rotated."""
    left, bottom, right, top = textpage.get_charbox(one)
    next_left, next_bottom, next_right, next_top = textpage.get_charbox(next_one)
    gap = max(next_left - right, left - next_right, next_bottom - top, bottom - next_top)
    size = max(right - left, top - bottom, next_right - next_left, next_top - next_bottom)
    return bool(gap > GAP_MIN * size)


def _join_split_words(text: str, hyphenated: Set[str]) -> str:
    """Join words that are split at the end of a line.

    Keep the hyphen if `hyphenated` contains the hyphenated word, or if the second part does not begin with a lowercase
    letter.
    """

    def join(split: re.Match[str]) -> str:
        first, rest = split.groups()
        keeps = not rest[0].islower() or f"{first}-{rest}".lower() in hyphenated
        return f"{first}-{rest}" if keeps else first + rest

    return _SPLIT_WORD.sub(join, text).replace(_MARK, "")


def _field_values(document: pdfium.PdfDocument, page: pdfium.PdfPage) -> Iterator[str]:
    """Yield the values of visible form fields."""
    if document.formenv is None:
        return
    form = document.formenv
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        field = raw.FPDFPage_GetAnnot(page, number)
        is_visible = not raw.FPDFAnnot_GetFlags(field) & _HIDDEN
        is_readable = not raw.FPDFAnnot_GetFormFieldFlags(form, field) & _PASSWORD_FIELD
        if is_visible and is_readable and raw.FPDFAnnot_GetFormFieldType(form, field) in _TEXT_FIELDS:
            length = raw.FPDFAnnot_GetFormFieldValue(form, field, None, 0)
            buffer = ctypes.create_string_buffer(length)
            raw.FPDFAnnot_GetFormFieldValue(
                form, field, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), length
            )
            value = buffer.raw[:length].decode("utf-16-le", "replace").rstrip("\0")
            if value.strip():
                yield value.replace("\r\n", "\n").replace("\r", "\n")
        raw.FPDFPage_CloseAnnot(field)


def _is_garbled(text: str) -> bool:
    """Return whether too large a share of the text is private-use, control, unassigned or replacement characters.

    Glyphs without a Unicode mapping are extracted as these.
    """
    visible = [c for c in text if not c.isspace()]
    odd = sum(1 for c in visible if c == "\ufffd" or unicodedata.category(c) in ("Cc", "Co", "Cn", "Cs"))
    return odd > max(2, len(visible) * GARBLED_SHARE)

"""PDF: a part a page, with what was filled in below what is printed. A file of pictures, or one whose letters have no
names, is refused, not stored as if it were text."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Iterator, Set

import pypdfium2 as pdfium
from pypdfium2 import raw

from vademecum.engines.files.result import PDF, Limits, Parsed, Part, Unreadable

_PASSWORD = 4  # pdfium's FPDF_ERR_PASSWORD
# Fields of words; what is ticked has none. Of these, those that nobody sees, or that hide what is typed.
_FILLED = {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
_UNSEEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD_FIELD = 1 << 13
GARBLED_SHARE = 0.2
_MARK = "\x02"  # pdfium's, of a hyphen at a line's end; in some of its answers it is the other one
_OTHER_MARK = "\ufffe"
# Bounded, and begun where a word begins: of letters without an end every one would else be looked at from every other.
_DIVIDED = re.compile(rf"(?<!\w)(\w{{1,40}}){_MARK}(\w{{1,40}})")
_HYPHENATED = re.compile(r"(?<!\w)\w{1,40}-\w{1,40}(?!\w)")
APART = 0.5  # of a letter's size; what is further from the letter before begins a word


def parse(data: bytes, limits: Limits) -> Parsed:
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        locked = getattr(error, "err_code", None) == _PASSWORD or "password" in str(error).lower()
        raise Unreadable("ENCRYPTED" if locked else "DAMAGED") from error
    try:
        document.init_forms()  # before the first page, or its fields say nothing
        count = len(document)
        if count > limits.pages:
            raise Unreadable("TOO_EXPANSIVE")
        pages = [_page(document, number) for number in range(count)]
    finally:
        document.close()
    hyphenated = {word.lower() for text in pages for word in _HYPHENATED.findall(text)}
    whole = [_undivided(text, hyphenated) for text in pages]
    parts = [Part(text, page=number) for number, text in enumerate(whole, start=1) if text.strip()]
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
        text = _printed(textpage)
        textpage.close()
        filled = list(_filled(document, page))
        page.close()
    except pdfium.PdfiumError:  # one broken page does not cost the others
        return ""
    return "\n".join([text.replace("\r\n", "\n"), *filled])


def _printed(textpage: pdfium.PdfTextPage) -> str:
    """What stands within the page. pdfium leaves out what stands beside it, but glues words together that are far apart,
    as on a turned page or in a table; asked for all there is, it tells them apart, and letters of one word as well."""
    bounded: str = textpage.get_text_bounded().replace(_OTHER_MARK, _MARK)
    every: str = textpage.get_text_range().replace(_OTHER_MARK, _MARK)
    if len(every) != textpage.count_chars() or "".join(every.split()) != "".join(bounded.split()):
        return bounded
    said: list[str] = []
    at, last = 0, -1
    for number, letter in enumerate(every):
        if letter.isspace():
            continue
        begun = at
        while bounded[at].isspace():
            at += 1
        is_glued = at == begun and 0 <= last < number - 1
        said += [" " if is_glued and _stand_apart(textpage, last, number) else bounded[begun:at], letter]
        at, last = at + 1, number
    return "".join(said) + bounded[at:]


def _stand_apart(textpage: pdfium.PdfTextPage, one: int, next_one: int) -> bool:
    """Of letters, by their numbers. However the page is turned."""
    left, bottom, right, top = textpage.get_charbox(one)
    next_left, next_bottom, next_right, next_top = textpage.get_charbox(next_one)
    gap = max(next_left - right, left - next_right, next_bottom - top, bottom - next_top)
    size = max(right - left, top - bottom, next_right - next_left, next_top - next_bottom)
    return bool(gap > APART * size)


def _undivided(text: str, hyphenated: Set[str]) -> str:
    """Words that a line's end divides as one; with their hyphen if they are written so elsewhere, or do not go on in small
    letters."""

    def joined(divided: re.Match[str]) -> str:
        first, rest = divided.groups()
        keeps = not rest[0].islower() or f"{first}-{rest}".lower() in hyphenated
        return f"{first}-{rest}" if keeps else first + rest

    return _DIVIDED.sub(joined, text).replace(_MARK, "")


def _filled(document: pdfium.PdfDocument, page: pdfium.PdfPage) -> Iterator[str]:
    """What stands in the fields of a form."""
    if document.formenv is None:
        return
    form = document.formenv
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        field = raw.FPDFPage_GetAnnot(page, number)
        is_seen = not raw.FPDFAnnot_GetFlags(field) & _UNSEEN
        is_open = not raw.FPDFAnnot_GetFormFieldFlags(form, field) & _PASSWORD_FIELD
        if is_seen and is_open and raw.FPDFAnnot_GetFormFieldType(form, field) in _FILLED:
            length = raw.FPDFAnnot_GetFormFieldValue(form, field, None, 0)
            said = ctypes.create_string_buffer(length)
            raw.FPDFAnnot_GetFormFieldValue(
                form, field, ctypes.cast(said, ctypes.POINTER(raw.FPDF_WCHAR)), length
            )
            value = said.raw[:length].decode("utf-16-le", "replace").rstrip("\0")
            if value.strip():
                yield value.replace("\r\n", "\n").replace("\r", "\n")
        raw.FPDFPage_CloseAnnot(field)


def _garbled(text: str) -> bool:
    """Glyphs without a map come out as private-use, control or replacement characters."""
    visible = [c for c in text if not c.isspace()]
    odd = sum(1 for c in visible if c == "\ufffd" or unicodedata.category(c) in ("Cc", "Co", "Cn", "Cs"))
    return odd > max(2, len(visible) * GARBLED_SHARE)

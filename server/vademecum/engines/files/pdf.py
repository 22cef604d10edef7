"""PDF: a part a page, with what was filled in below what is printed. A file of pictures, or one whose letters have no
names, is refused, not stored as if it were text."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Iterator

import pypdfium2 as pdfium
from pypdfium2 import raw

from vademecum.engines.files.parsed import PDF, Limits, Parsed, Part, Unreadable

_PASSWORD = 4  # pdfium's FPDF_ERR_PASSWORD
# Fields of words; what is ticked has none. Of these, those that nobody sees, or that hide what is typed.
_FILLED = {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
_UNSEEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD_FIELD = 1 << 13
GARBLED_SHARE = 0.2
_DIVIDED = re.compile(r"(?<=\w)[\x02\ufffe](?=\w)")  # pdfium's mark of a hyphen at a line's end


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
        filled = list(_filled(document, page))
        page.close()
    except pdfium.PdfiumError:  # one broken page does not cost the others
        return ""
    printed = _DIVIDED.sub("", text).replace("\ufffe", "").replace("\r\n", "\n")
    return "\n".join([printed, *filled])


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

"""Format the numbers of cells as the workbook shows them: percentages, leading zeros, currencies and dates.

Other numbers keep their stored digits, without rounding, padding and thousands separators, so that a search finds them.
web/src/parsers/formats/ooxml/number_formats.ts has the same rules for the web app.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Any, NamedTuple

from vademecum.engines.files.formats.ooxml.currencies import CURRENCY, SYMBOLS
from vademecum.engines.files.formats.ooxml.date_formats import NumberFormat, date_format

_FORMAT_MAX = 255  # maximum length of a format in characters, as in Excel
_DECIMALS_MAX = 30  # maximum number of decimals, as in Excel
# Built-in formats by id. Built-in currency formats are left out, because they depend on the country.
_BUILT_IN = {
    "9": "0%",
    "10": "0.00%",
    "14": "mm-dd-yy",
    "15": "d-mmm-yy",
    "16": "d-mmm",
    "17": "mmm-yy",
    "18": "h:mm AM/PM",
    "19": "h:mm:ss AM/PM",
    "20": "h:mm",
    "21": "h:mm:ss",
    "22": "m/d/yy h:mm",
    "45": "mm:ss",
    "46": "[h]:mm:ss",
    "47": "mmss.0",
}
_EXCEL = Context(prec=15, rounding=ROUND_HALF_UP)  # Excel shows at most 15 significant digits
_WIDE = Context(prec=64, rounding=ROUND_HALF_UP)
_PERCENT_MAX = 10**15
_MARK = "¤"
# Matches the parts of a format other than digits, dates and times. Groups 1 to 3 are currencies in three notations.
# Group 4 is other literal text. Padding, colors, locales and AM/PM have no group.
_PIECE = re.compile(
    rf'"[ \xa0]*({CURRENCY})[ \xa0]*"'
    rf"|\[\$[ \xa0]*(?:({CURRENCY})[ \xa0]*(?=[\]-]))?[^\]]*\]"
    rf"|\\?([{SYMBOLS}])"
    r'|("[^"]*"?|\\.?)'
    r"|[_*].?|\[(?![<>=]|(?:[hH]{1,2}|[mM]{1,2}|[sS]{1,2})\])[^\]]*\]?|[aA][mM]/[pP][mM]|[aA]/[pP]",
    re.DOTALL,
)
_DIGIT, _DECIMALS = re.compile("[0#?]|General"), re.compile(rf"\.([0#?]{{0,{_DECIMALS_MAX}}})")
_SCALED = re.compile("[0#?],+(?![0#?,])")  # each comma after the digits divides by a thousand
_ZEROS = re.compile(f" *(0{{2,{_DECIMALS_MAX}}}) *")
_INTEGER = re.compile("(-?)([0-9]+)")


class _Section(NamedTuple):
    """The first section of a format. `pattern` is the format without literals, with currencies replaced by a mark."""

    pattern: str
    currency: str


def read_number_formats(styles: Any, since_1904: bool) -> list[NumberFormat]:
    """Return the number format of each cell style, in the order in which cells refer to styles by index."""
    own = {
        node.get("numFmtId"): node.get("formatCode", "") for node in styles.iterfind("{*}numFmts/{*}numFmt")
    }
    formats = {number: _parse_format(code, since_1904) for number, code in (_BUILT_IN | own).items()}
    return [formats.get(style.get("numFmtId"), format_plain) for style in styles.iterfind("{*}cellXfs/{*}xf")]


def _parse_format(code: str, since_1904: bool) -> NumberFormat:
    if len(code) > _FORMAT_MAX:
        return format_plain
    section = _parse_section(code)
    return date_format(section.pattern, since_1904) or _number_format(section)


def format_plain(_number: float, plain: str) -> str:
    return plain


def spell_number(number: float) -> str:
    """Return a number without a format, with 15 significant digits as Excel shows them."""
    if isinstance(number, int):
        return str(number)
    shown = float(_EXCEL.create_decimal_from_float(number))
    text = str(shown if math.isfinite(shown) else number).removesuffix(".0")
    return "0" if text == "-0" else text


def _parse_section(code: str) -> _Section:
    currencies: list[str] = []

    def replace_literal(found: re.Match[str]) -> str:
        currency = found[1] or found[2] or found[3]
        if currency:
            currencies.append(currency)
            return _MARK
        return " " if found[4] else ""

    pattern = _PIECE.sub(replace_literal, code).partition(";")[0]
    return _Section(pattern, currencies[0] if _MARK in pattern else "")


def _number_format(section: _Section) -> NumberFormat:
    """Return the format of a number section. Conditional sections ([<1]0%) and scaled ones keep the stored digits."""
    pattern, currency = section
    digit, zeros = _DIGIT.search(pattern), _ZEROS.fullmatch(pattern)
    if not digit or "[" in pattern or _SCALED.search(pattern):
        return format_plain
    if pattern.count("%") == 1:
        decimals = _DECIMALS.search(pattern)
        return partial(_format_percentage, len(decimals[1]) if decimals else 0)
    if zeros:
        return partial(_pad_zeros, len(zeros[1]))
    if currency and pattern.index(_MARK) < digit.start():
        return partial(_prefix_currency, currency if re.search(f"[{SYMBOLS}]$", currency) else f"{currency} ")
    return partial(_append_currency, f" {currency}") if currency else format_plain


def _format_percentage(decimals: int, number: float, plain: str) -> str:
    if abs(number) >= _PERCENT_MAX:
        return plain
    unit = Decimal(1).scaleb(-decimals)
    shown = _EXCEL.create_decimal(number).scaleb(2).quantize(unit, context=_WIDE)
    return f"{shown if shown else abs(shown):f}%"


def _pad_zeros(digits: int, _number: float, plain: str) -> str:
    integer = _INTEGER.fullmatch(plain)
    return integer[1] + integer[2].zfill(digits) if integer else plain


def _prefix_currency(currency: str, _number: float, plain: str) -> str:
    return f"-{currency}{plain[1:]}" if plain.startswith("-") else currency + plain


def _append_currency(currency: str, _number: float, plain: str) -> str:
    return plain + currency

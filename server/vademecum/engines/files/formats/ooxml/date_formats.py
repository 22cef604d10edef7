"""Format the dates, times and durations of a workbook.

A cell stores them as a number of days. Only the cell's format shows that the number is a date or time.
web/src/parsers/formats/ooxml/date_formats.ts has the same rules for the web app.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

NumberFormat = Callable[[float, str], str]
"""Formats a number. Arguments: the number, and its text without a format."""

_DAYS_MAX = 2_958_465  # 31 December 9999, the last day that Excel supports
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_SIZES = {"h": _HOUR, "m": _MINUTE, "s": _SECOND}
_EPOCH = datetime.date(1899, 12, 30).toordinal()
_EPOCH_1904 = datetime.date(1904, 1, 1).toordinal()
_LAST = datetime.date.max.toordinal()
_ELAPSED = re.compile(r"\[([hH]{1,2}|[mM]{1,2}|[sS]{1,2})\]")
_TIME, _SECONDS, _FRACTION = re.compile("[hHsS]"), re.compile("[sS]"), re.compile(r"[sS]\]?[.,]0")
_DAY_OR_YEAR, _MONTH = re.compile("[dDyY]|[mM]{3}"), re.compile("[mM]")


class _VisibleParts(NamedTuple):
    """The visible parts of a date and time. If `exact`, milliseconds are shown; otherwise seconds are rounded as in Excel."""

    day: bool
    time: bool
    seconds: bool
    exact: bool


def date_format(pattern: str, since_1904: bool) -> NumberFormat | None:
    """Return the date or time format of a pattern without literals; None if it is not a date or time format."""
    seconds, exact = bool(_SECONDS.search(pattern)), bool(_FRACTION.search(pattern))
    elapsed = _ELAPSED.search(pattern)
    if elapsed:
        return partial(_format_duration, elapsed[1].lower(), seconds, exact)
    time = bool(_TIME.search(pattern))
    day = bool(_DAY_OR_YEAR.search(pattern)) or (not time and bool(_MONTH.search(pattern)))
    return (
        partial(_format_date, _VisibleParts(day, time, seconds, exact or not time), since_1904)
        if day or time
        else None
    )


def _format_duration(largest: str, seconds: bool, exact: bool, days: float, plain: str) -> str:
    if abs(days) > _DAYS_MAX:
        return plain
    length = _milliseconds(abs(days), exact)
    return ("-" if days < 0 and length else "") + _format_time(length, largest, seconds)


def _format_date(parts: _VisibleParts, since_1904: bool, days: float, plain: str) -> str:
    if abs(days) > _DAYS_MAX:
        return plain
    day, time = divmod(_milliseconds(days, parts.exact), _DAY)
    clock = _format_time(time, "hh", parts.seconds) if parts.time else ""
    if not parts.day or (day == 0 and not since_1904):  # Excel's day 0 is not a date
        return clock or plain
    if 0 < day < 60 and not since_1904:
        day += 1  # for days before the 29 February 1900 that Excel counts by mistake
    ordinal = day + (_EPOCH_1904 if since_1904 else _EPOCH)
    if not 0 < ordinal <= _LAST:
        return plain
    return f"{datetime.date.fromordinal(ordinal)} {clock}".rstrip()


def _milliseconds(days: float, exact: bool) -> int:
    length = math.floor(days * _DAY + 0.5)
    return length if exact else (length + _SECOND // 2) // _SECOND * _SECOND


def _format_time(length: int, largest: str, seconds: bool) -> str:
    """Return a time such as "27:05".

    `largest` is the letter of the first unit, repeated for each minimum digit, such as "hh". If `seconds` is true,
    seconds are shown even if they are 0.
    """
    size = _SIZES[largest[0]]
    shown = [str(length // size).zfill(len(largest))]
    if size > _MINUTE:
        shown.append(f"{length // _MINUTE % 60:02}")
    if size > _SECOND and (seconds or length % _MINUTE):
        shown.append(f"{length // _SECOND % 60:02}")
    fraction = length % _SECOND
    return ":".join(shown) + (f".{fraction:03}".rstrip("0") if fraction else "")

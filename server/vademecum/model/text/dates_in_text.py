"""Days: on which one a row was said, and which ones a question names, in marks that find the one by the other.

What was said seldom names its own day. So the marks of that day stand beside a row's words in the index; no text has them
by chance, as it has a `7` or a `may`. Days are those of UTC; months are known by their English names, and `2026-11-24`
and `24.11.2026` everywhere. Marks order what is found, and exclude nothing: who says "yesterday" soon after midnight, or
far from Greenwich, may mean the day beside it. The browser has the same (`web/src/core/text/dates_in_text.ts`, cases in `tests/conformance/days.json`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

_GAP = "[ \\t\\r\\n\u00a0]"  # what is a blank differs from language to language
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_MONTH = r"(?P<month>0?[1-9]|1[0-2])"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"
# What one of them has read is not read again by those after it. `May` and `March` alone may be no months.
_FORMS = [
    re.compile(rf"(?<![\w.,-])(?:{form})(?![\w-])", re.ASCII | re.IGNORECASE)
    for form in (
        rf"{_YEAR}-{_MONTH}-{_DAY}",
        rf"{_DAY}\.{_GAP}?{_MONTH}\.{_GAP}?{_YEAR}",
        rf"{_DAY}\.?{_GAP}+(?:of{_GAP}+)?{_NAME}(?:,?{_GAP}+{_YEAR})?",
        rf"{_NAME}{_GAP}+{_DAY}(?:,?{_GAP}+{_YEAR})?",
        rf"{_NAME},?{_GAP}+(?:of{_GAP}+)?{_YEAR}",
        rf"(?:in|of|last|since|during|until|before|after){_GAP}+{_NAME}",
        _YEAR,
    )
]

_FROM_NOW = re.compile(
    rf"(?<![\w-])(?:(?P<near>today|yesterday)|(?P<which>this|last){_GAP}+(?P<span>week|month|year))(?![\w-])",
    re.ASCII | re.IGNORECASE,
)


def of_moment(moment: str) -> str:
    """The marks of the day of a row's time: the day and the month with and without the year, and the year."""
    year, month, day = moment[:4], moment[5:7], moment[8:10]
    return f"day{year}{month}{day} day{month}{day} month{year}{month} month{month} year{year}"


def asked(question: str, now: str) -> str:
    """The marks of the days that a question names: of each as narrow as it is named and, of a date, its month, so that what
    was said about then fits better than the rest. Empty if it names none. `now`: a time as rows have it."""
    marks: dict[str, None] = {}  # each once, in order
    for found in _FROM_NOW.finditer(question):
        marks.update(dict.fromkeys(_from_now(found.groupdict(), date.fromisoformat(now[:10]))))

    def read(found: re.Match[str]) -> str:
        marks.update(dict.fromkeys(_named(found.groupdict())))
        return " "

    for form in _FORMS:
        question = form.sub(read, question)
    return " ".join(marks)


def _named(said: dict[str, str | None]) -> list[str]:
    year, name = said.get("year") or "", said.get("name")
    month = said.get("month") or (str(_MONTHS.index(name[:3].lower()) + 1) if name else "")
    if not month:
        return [f"year{year}"]
    whole = year + month.zfill(2)
    day = said.get("day")
    return [f"day{whole}{day.zfill(2)}", f"month{whole}"] if day else [f"month{whole}"]


def _from_now(said: dict[str, str | None], today: date) -> Iterator[str]:
    """A week begins with its Monday, and this one has come as far as today."""
    near, span = (said.get("near") or "").lower(), (said.get("span") or "").lower()
    is_last = (said.get("which") or "").lower() == "last"
    monday = today - timedelta(days=today.weekday())
    if near:
        yield f"day{today - timedelta(days=near == 'yesterday'):%Y%m%d}"
    elif span == "week":
        first, count = (monday - timedelta(days=7), 7) if is_last else (monday, today.weekday() + 1)
        yield from (f"day{first + timedelta(days=at):%Y%m%d}" for at in range(count))
    elif span == "month":
        yield f"month{today.replace(day=1) - timedelta(days=is_last):%Y%m}"
    else:
        yield f"year{today.year - is_last}"

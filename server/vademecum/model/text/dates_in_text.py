"""Create date terms, which match a question that names a date with the rows of that date.

A text seldom names the day on which it was written. So the index adds date terms to a row's words, such as
`day20261124` and `month11`. Unlike `7` or `may`, such terms do not occur in texts by chance. Days are in UTC. Month
names are English; `2026-11-24` and `24.11.2026` are also read. Date terms only raise scores and exclude no rows,
because a user who writes "yesterday" soon after midnight or far from Greenwich may mean the adjacent day. The browser
mirrors this file (`web/src/core/text/dates_in_text.ts`; shared cases: `tests/conformance/dates_in_text.json`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

_GAP = "[ \\t\\r\\n\u00a0]"  # not \s, which differs between Python and JavaScript
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_MONTH = r"(?P<month>0?[1-9]|1[0-2])"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})"
# Forms of dates, applied in this order. Each form removes its matches from the text. A month name alone does not match,
# because `May` and `March` are also ordinary words.
_DATE_FORMS = [
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
_RELATIVE_DATE = re.compile(
    rf"(?<![\w-])(?:(?P<day>today|yesterday)|(?P<which>this|last){_GAP}+(?P<span>week|month|year))(?![\w-])",
    re.ASCII | re.IGNORECASE,
)


def date_terms(timestamp: str) -> str:
    """Return the date terms of a row's timestamp: day and month with and without the year, and the year."""
    year, month, day = timestamp[:4], timestamp[5:7], timestamp[8:10]
    return f"day{year}{month}{day} day{month}{day} month{year}{month} month{month} year{year}"


def query_date_terms(query: str, now: str) -> str:
    """Return the date terms of the dates that a query names, or "". `now`: the timestamp of the query.

    Each date is as precise as the query states it. A day also gives its month, so rows of that month rank higher, too.
    """
    terms: dict[str, None] = {}  # ordered, without duplicates
    for match in _RELATIVE_DATE.finditer(query):
        terms.update(dict.fromkeys(_relative_terms(match.groupdict(), date.fromisoformat(now[:10]))))
    for form in _DATE_FORMS:
        for match in form.finditer(query):
            terms.update(dict.fromkeys(_absolute_terms(match.groupdict())))
        query = form.sub(" ", query)
    return " ".join(terms)


def _absolute_terms(groups: dict[str, str | None]) -> list[str]:
    year, name = groups.get("year") or "", groups.get("name")
    month = groups.get("month") or (str(_MONTHS.index(name[:3].lower()) + 1) if name else "")
    if not month:
        return [f"year{year}"]
    prefix = year + month.zfill(2)
    day = groups.get("day")
    return [f"day{prefix}{day.zfill(2)}", f"month{prefix}"] if day else [f"month{prefix}"]


def _relative_terms(groups: dict[str, str | None], today: date) -> Iterator[str]:
    """Yield the terms of a relative date. Weeks begin on Monday; this week ends today."""
    day, span = (groups.get("day") or "").lower(), (groups.get("span") or "").lower()
    is_last = (groups.get("which") or "").lower() == "last"
    monday = today - timedelta(days=today.weekday())
    if day:
        yield f"day{today - timedelta(days=day == 'yesterday'):%Y%m%d}"
    elif span == "week":
        first, count = (monday - timedelta(days=7), 7) if is_last else (monday, today.weekday() + 1)
        yield from (f"day{first + timedelta(days=offset):%Y%m%d}" for offset in range(count))
    elif span == "month":
        yield f"month{today.replace(day=1) - timedelta(days=is_last):%Y%m}"
    else:
        yield f"year{today.year - is_last}"

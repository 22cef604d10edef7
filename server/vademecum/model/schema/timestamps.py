"""Compute with timestamps of rows: ISO 8601 in UTC with milliseconds."""

from __future__ import annotations

import datetime
from math import inf

DAY_S = 86_400
_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def later(moment: str, seconds: float) -> str:
    """Return the timestamp that many `seconds` after `moment`.

    Raises ValueError if `moment` is invalid, and OverflowError if the result is out of range.
    """
    result = _parse(moment) + datetime.timedelta(seconds=seconds)
    return result.isoformat(timespec="milliseconds") + "Z"


def seconds_until(due: str, now: str) -> float:
    """Return the seconds from `now` to `due`, negative if `due` has passed."""
    return (_parse(due) - _parse(now)).total_seconds()


def age_days(then: str, now: str) -> float:
    """Return the age in days, negative for the future.

    The age of an invalid date, which a device may push, is infinite.
    """
    try:
        passed = datetime.datetime.fromisoformat(now) - datetime.datetime.fromisoformat(then)
    except ValueError:
        return inf
    return passed.total_seconds() / DAY_S


def day(moment: str) -> str:
    """Return the UTC date of a timestamp, as YYYY-MM-DD."""
    return moment[:10]


def until_midnight_s(now: str) -> float:
    """Return the seconds until the next midnight, UTC."""
    return DAY_S + seconds_until(f"{day(now)}T00:00:00.000Z", now)


def _parse(moment: str) -> datetime.datetime:
    return datetime.datetime.strptime(moment, _FORMAT)

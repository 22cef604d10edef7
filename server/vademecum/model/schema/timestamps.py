"""Moments as rows have them, ISO 8601 in UTC with milliseconds, and how far they are apart."""

from __future__ import annotations

import datetime
from math import inf

DAY_S = 86_400
_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def later(moment: str, seconds: float) -> str:
    """Raises OverflowError behind the last moment there is, ValueError for what is none."""
    found = _parsed(moment) + datetime.timedelta(seconds=seconds)
    return found.isoformat(timespec="milliseconds") + "Z"


def seconds_until(due: str, now: str) -> float:
    """Negative when it is past."""
    return (_parsed(due) - _parsed(now)).total_seconds()


def age_days(then: str, now: str) -> float:
    """Negative when it is still to come. What no calendar has, which a device may have pushed, is as old as can be."""
    try:
        passed = datetime.datetime.fromisoformat(now) - datetime.datetime.fromisoformat(then)
    except ValueError:
        return inf
    return passed.total_seconds() / DAY_S


def day(moment: str) -> str:
    """In UTC."""
    return moment[:10]


def until_midnight_s(now: str) -> float:
    """How long this day, UTC, still is."""
    return DAY_S + seconds_until(f"{day(now)}T00:00:00.000Z", now)


def _parsed(moment: str) -> datetime.datetime:
    return datetime.datetime.strptime(moment, _FORMAT)

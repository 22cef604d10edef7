"""Limit request rates with a token bucket for each kind of request of each account or address.

A full bucket allows the requests of one minute, and it refills at a constant rate. The limiter also delays sign-ins:
each wrong password doubles the delay before the next attempt, up to a minute. `clock` is monotonic.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

from vademecum.errors import RateLimited
from vademecum.settings import Rates

BUCKETS_MAX = 50_000
CROWDED_MAX = 100  # the maximum number of addresses in `crowded`
DELAY_MAX_S = 60.0
FAILURES_FREE = 2  # the number of failures of an address that cause no delay
FORGET_FAILURES_S = 3600.0  # failures are forgotten this long after the last delay has ended


class RateLimiter:
    def __init__(self, rates: Rates, clock: Callable[[], float]) -> None:
        self._rates = rates
        self._clock = clock
        self.crowded: set[str] = set()
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def take(self, kind: str, key: str, factor: int = 1) -> None:
        """Take one request of this kind from the bucket of `key`. Raises RateLimited if the bucket is empty.

        `factor`: multiplies the limit of an address that many people may share. Addresses that exceed the limit of a
        single person are added to `crowded`.
        """
        base_rate: int = getattr(self._rates, kind)
        per_minute = base_rate * factor
        now = self._clock()
        level, at = self._buckets.pop((kind, key), (float(per_minute), now))
        level = min(per_minute, level + (now - at) * per_minute / 60)
        if level < 1:
            self._buckets[kind, key] = (level, now)
            wait = max(1, math.ceil((1 - level) * 60 / per_minute))
            raise RateLimited(
                f"Too many requests. Nothing is lost. Try again in {wait} s.", retry_after_s=wait
            )
        self._buckets[kind, key] = (level - 1, now)
        if factor > 1 and per_minute - level > base_rate and len(self.crowded) < CROWDED_MAX:
            self.crowded.add(key)
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)

    def check_failures(self, key: str) -> None:
        """Raise RateLimited during the delay after failed sign-ins."""
        count, until = self._failures.get(key, (0, 0.0))
        wait = math.ceil(until - self._clock())
        if count and wait > 0:
            raise RateLimited(
                f"Several sign-ins failed. Try again in {wait} s, use a browser that has signed in to this account "
                "before, or ask the administrator for a sign-in link.",
                retry_after_s=wait,
            )

    def record_failure(self, key: str, free: int = FAILURES_FREE) -> int:
        """Count a failed sign-in. Return the number of failures. After `free` failures, each one doubles the delay."""
        now = self._clock()
        count, until = self._failures.pop(key, (0, now))
        count = 1 if now - until > FORGET_FAILURES_S else count + 1
        delay = 0.0 if count <= free else min(DELAY_MAX_S, 2.0 ** min(count - free - 1, 10))
        self._failures[key] = (count, now + delay)
        if len(self._failures) > BUCKETS_MAX:
            self._failures.popitem(last=False)
        return count

    def clear_failures(self, key: str) -> None:
        self._failures.pop(key, None)

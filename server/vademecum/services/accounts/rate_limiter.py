"""Rate limits: a bucket of tokens for each account, and each address, and each kind of request.

A bucket holds a minute's worth and fills evenly. Each wrong password doubles the wait before the next try, up to a
minute, for the address, for the account and for the known browser that it came from. Tests may replace the monotonic
clock.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

from vademecum.errors import RateLimited
from vademecum.settings import Rates

BUCKETS_MAX = 50_000
CROWDED_MAX = 100
DELAY_MAX_S = 60.0
FAILURES_FREE = 2  # failures of an address that cause no delay
FORGET_FAILURES_S = 3600.0  # a failure counts no longer than this after the last one


class Limiter:
    def __init__(self, rates: Rates, clock: Callable[[], float]) -> None:
        self._rates = rates
        self._clock = clock
        self.crowded: set[str] = set()
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def take(self, kind: str, who: str, factor: int = 1) -> None:
        """Raise RateLimited when `who` has used up this minute's requests of this kind. `factor`: times the budget of one
        address, for one that many people may share. `crowded` lists those that need it."""
        single: int = getattr(self._rates, kind)
        per_minute = single * factor
        now = self._clock()
        level, at = self._buckets.pop((kind, who), (float(per_minute), now))
        level = min(per_minute, level + (now - at) * per_minute / 60)
        if level < 1:
            self._buckets[kind, who] = (level, now)
            wait = max(1, math.ceil((1 - level) * 60 / per_minute))
            raise RateLimited(
                f"Too many requests. Try again in {wait} s; nothing is lost.", retry_after_s=wait
            )
        self._buckets[kind, who] = (level - 1, now)
        if factor > 1 and per_minute - level > single and len(self.crowded) < CROWDED_MAX:
            self.crowded.add(who)
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)

    def check_failures(self, who: str) -> None:
        """Raise RateLimited while the delay after failed sign-ins lasts."""
        count, until = self._failures.get(who, (0, 0.0))
        wait = math.ceil(until - self._clock())
        if count and wait > 0:
            raise RateLimited(
                f"Several sign-ins failed. Try again in {wait} s, use a browser that has signed in to this account "
                "before, or ask the administrator for a sign-in link.",
                retry_after_s=wait,
            )

    def failed(self, who: str, free: int = FAILURES_FREE) -> int:
        """Count a failure and return how many there were. After the first `free` ones the delay doubles each time."""
        now = self._clock()
        count, until = self._failures.pop(who, (0, now))
        count = 1 if now - until > FORGET_FAILURES_S else count + 1
        delay = 0.0 if count <= free else min(DELAY_MAX_S, 2.0 ** min(count - free - 1, 10))
        self._failures[who] = (count, now + delay)
        if len(self._failures) > BUCKETS_MAX:
            self._failures.popitem(last=False)
        return count

    def succeeded(self, who: str) -> None:
        self._failures.pop(who, None)

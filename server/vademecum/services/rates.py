"""Rate limits: a bucket of tokens for each account, and each address, and each kind of request.

A bucket holds a minute's worth and fills evenly. Sign-in also slows down by itself: each failure of an address
doubles its next wait, up to a minute. Time is given by a monotonic clock that tests may replace.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

from vademecum.errors import RateLimited
from vademecum.settings import Rates

BUCKETS_MAX = 50_000
DELAY_MAX_S = 60.0


class Limiter:
    def __init__(self, rates: Rates, clock: Callable[[], float]) -> None:
        self._rates = rates
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def take(self, kind: str, who: str) -> None:
        """Raises RateLimited when `who` has used up this minute's requests of this kind."""
        per_minute: int = getattr(self._rates, kind)
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
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)

    def check_failures(self, who: str) -> None:
        """Raises RateLimited while the wait after failed sign-ins lasts."""
        count, until = self._failures.get(who, (0, 0.0))
        wait = until - self._clock()
        if count and wait > 0:
            raise RateLimited(
                f"Several sign-ins failed. Try again in {math.ceil(wait)} s.", retry_after_s=math.ceil(wait)
            )

    def failed(self, who: str) -> None:
        count = self._failures.pop(who, (0, 0.0))[0] + 1
        delay = 0.0 if count < 3 else min(DELAY_MAX_S, 2.0 ** min(count - 3, 10))
        self._failures[who] = (count, self._clock() + delay)
        if len(self._failures) > BUCKETS_MAX:
            self._failures.popitem(last=False)

    def succeeded(self, who: str) -> None:
        self._failures.pop(who, None)

"""An LRU cache of index rows that all users share.

The cache never exceeds its bound in bytes; a value larger than the bound is not cached.
"""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any

DEFAULT_BYTES = 256 << 20


class MatrixCache:
    """A bounded map from an index to its rows in memory. Safe to use from any thread."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self.max_bytes = max_bytes
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable) -> Any | None:
        """Return the cached value and mark it as most recently used, or return None."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Hashable, value: Any, size: int) -> bool:
        """Cache a value of `size` bytes. Return False if it is larger than the bound."""
        with self._lock:
            self._remove(key)
            if size > self.max_bytes:
                return False
            while self._bytes + size > self.max_bytes:
                self._remove(next(iter(self._entries)))
            self._entries[key] = (value, size)
            self._bytes += size
            return True

    def drop(self, key: Hashable) -> None:
        """Drop the key from the cache."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: Hashable) -> None:
        _, size = self._entries.pop(key, (None, 0))
        self._bytes -= size

    @property
    def bytes(self) -> int:
        """Return the size of all cached values in bytes."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

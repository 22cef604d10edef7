"""A cursor whose statements have deadlines. A watchdog calls `check`, which interrupts a statement that is late."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import duckdb

GRACE_S = 5.0  # a thread that does not return within this time after an interrupt counts as stuck
BYTES_PER_S = 2**20  # the minimum speed at which even slow disks attach, copy or checkpoint a file
READS = ("SELECT", "FROM", "WITH", "SET")
# Statements that are never interrupted, because their outcome would be unknown. These statements end a transaction or
# run outside a transaction, so they could not be rolled back.
UNSAFE = ("COMMIT", "ROLLBACK", "CHECKPOINT", "ATTACH", "DETACH", "COPY")


@dataclass(frozen=True)
class Deadlines:
    """The maximum duration of a statement, in seconds."""

    read_s: float = 10.0
    write_s: float = 30.0

    def by_size(self, size: int) -> float:
        """Return the limit for a statement that reads or writes a file of `size` bytes."""
        return self.write_s + size / BYTES_PER_S


class Cursor:
    """A DuckDB cursor that one thread uses and the watchdog checks."""

    def __init__(self, raw: duckdb.DuckDBPyConnection, deadlines: Deadlines) -> None:
        self._raw = raw
        self._deadlines = deadlines
        self._lock = Lock()
        self._least_s = 0.0
        self._deadline: float | None = None  # deadline of the running statement
        self._in_transaction = False
        self._may_interrupt = False

    def execute(self, query: str | duckdb.Statement, values: Sequence[Any] | None = None) -> Cursor:
        verb = (query if isinstance(query, str) else query.query).lstrip()[:12].split(maxsplit=1)[0].upper()
        is_read = verb in READS
        if verb == "BEGIN":
            self._in_transaction = True
        elif verb in ("COMMIT", "ROLLBACK"):
            self._in_transaction = False
        limit_s = self._deadlines.read_s if is_read else self._deadlines.write_s
        # A write outside a transaction commits automatically, so its outcome would be unknown after an interrupt.
        may_interrupt = is_read or (self._in_transaction and verb not in UNSAFE)
        with self._timed(limit_s, may_interrupt=may_interrupt):
            if values is None:
                self._raw.execute(query)
            else:
                self._raw.execute(query, values)
        return self

    def fetchall(self) -> list[Any]:
        with self._timed(self._deadlines.read_s, may_interrupt=True):
            return self._raw.fetchall()

    def fetchone(self) -> Any:
        with self._timed(self._deadlines.read_s, may_interrupt=True):
            return self._raw.fetchone()

    def extract_statements(self, query: str) -> list[duckdb.Statement]:
        return self._raw.extract_statements(query)

    def close(self) -> None:
        self._raw.close()

    @contextmanager
    def allowing(self, least_s: float) -> Iterator[None]:
        """Give every statement inside the block at least `least_s` seconds."""
        before, self._least_s = self._least_s, max(self._least_s, least_s)
        try:
            yield
        finally:
            self._least_s = before

    @contextmanager
    def _timed(self, limit_s: float, *, may_interrupt: bool) -> Iterator[None]:
        with self._lock:
            self._may_interrupt = may_interrupt
            self._deadline = time.monotonic() + max(limit_s, self._least_s)
        try:
            yield
        finally:
            with self._lock:
                self._deadline = None

    def check(self, now: float) -> bool:
        """Interrupt the running statement if it is late. Return whether it is so late that its thread counts as stuck.

        DuckDB drops an interrupt that arrives before the statement has begun, so each check interrupts again. The lock
        ensures that the interrupt cannot reach the next statement.
        """
        with self._lock:
            if self._deadline is None or now < self._deadline:
                return False
            if self._may_interrupt:
                self._raw.interrupt()
            return now > self._deadline + GRACE_S

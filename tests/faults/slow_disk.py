"""Slow down disk calls in a server process, so that a test can kill it in the middle of a quick operation."""

import os
import time

UNLINK_S = 0.01
FSYNC_S = 0.5


def slow_down_unlink() -> None:
    unlink = os.unlink

    def slow(*given: object, **more: object) -> None:
        time.sleep(UNLINK_S)
        unlink(*given, **more)  # type: ignore[arg-type]

    os.unlink = slow  # type: ignore[assignment]


def slow_down_fsync() -> None:
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        time.sleep(FSYNC_S)
        fsync(descriptor)

    os.fsync = slow

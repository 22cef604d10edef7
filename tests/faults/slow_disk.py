"""What a server does to itself before it serves, so that it can be killed in the middle of something quick."""

import os
import time

UNLINK_S = 0.01
FSYNC_S = 0.5


def unlink_slowly() -> None:
    unlink = os.unlink

    def slow(*given: object, **more: object) -> None:
        time.sleep(UNLINK_S)
        unlink(*given, **more)  # type: ignore[arg-type]

    os.unlink = slow  # type: ignore[assignment]


def fsync_slowly() -> None:
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        time.sleep(FSYNC_S)
        fsync(descriptor)

    os.fsync = slow

"""Run code without root's permission to read any file, so that tests of permissions work as root."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_VERSION = 0x20080522  # of capget(2)
_OVERRIDES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@contextmanager
def without_root_access() -> Iterator[None]:
    """Remove root's file access capabilities from this thread and the threads that it starts."""
    if os.geteuid() != 0:
        yield
        return
    header, rights = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    _call("capget", header, rights)
    before = rights[0]
    rights[0] = before & ~_OVERRIDES
    _call("capset", header, rights)
    try:
        yield
    finally:
        rights[0] = before
        _call("capset", header, rights)


def _call(name: str, *arguments: Any) -> None:
    result = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    assert result == 0, os.strerror(ctypes.get_errno())

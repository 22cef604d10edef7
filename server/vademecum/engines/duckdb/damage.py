"""Classify DuckDB errors as a damaged file, a failing disk or a temporary problem."""

from __future__ import annotations

import errno
import os

import duckdb

from vademecum.errors import is_full

INVALIDATED = "database has been invalidated because of a previous fatal error"
SCARCE = tuple(os.strerror(one) for one in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN))
# Causes outside the file that only a person can remove: permissions, another process, another file type, a newer version.
OUTSIDE = (
    *(os.strerror(one) for one in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ELOOP)),
    "Could not set lock on file",
    "storage version number",
)


class ReplacedError(duckdb.IOException):
    """Another file has replaced the attached one on the disk, so a commit would be lost."""

    def __init__(self) -> None:
        super().__init__("it was replaced or removed while the server had it open")


def reason(error: duckdb.Error) -> str | None:
    """Return a clause that says what is wrong with the file, or None if the error does not concern the file."""
    message = str(error).strip().partition("\n")[0]
    if is_full(error) or INVALIDATED in message:  # a full disk, or an error of another file
        return None
    if isinstance(error, duckdb.FatalException):
        return f"the disk failed while it was written ({message})"
    if isinstance(error, duckdb.IOException):
        if is_scarce(error) or any(cause in message for cause in OUTSIDE):
            return None
        return f"it cannot be read or written ({message})"
    if (
        isinstance(error, duckdb.InternalException | duckdb.SerializationException)
        or type(error) is duckdb.Error
    ):
        return f"it is damaged ({message})"
    return None


def is_scarce(error: duckdb.Error) -> bool:
    """Return whether the process or the machine currently lacks file handles or memory."""
    return any(cause in str(error) for cause in SCARCE)


def is_passing(error: duckdb.Error) -> bool:
    """Return whether the statement did not cause the error, so that the caller may retry the statement."""
    kinds = duckdb.OperationalError | duckdb.InterruptException | duckdb.FatalException
    return isinstance(error, kinds) or reason(error) is not None


def may_invalidate(error: duckdb.Error) -> bool:
    """Return whether DuckDB may reject all further statements on all files after this error."""
    return isinstance(error, duckdb.FatalException | duckdb.InternalException)

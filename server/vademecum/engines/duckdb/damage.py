"""Which errors of DuckDB mean a damaged file or a failing disk, and which pass by themselves."""

from __future__ import annotations

import errno
import os

import duckdb

from vademecum.errors import is_full

INVALIDATED = "database has been invalidated because of a previous fatal error"
SCARCE = tuple(os.strerror(one) for one in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN))
# Causes outside the file, which only a person can remove: rights, another process, another kind of file, a newer version.
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
    """Return what is wrong with the file, in a clause, or None if the error says nothing about it."""
    said = str(error).strip().partition("\n")[0]
    if is_full(error) or INVALIDATED in said:  # another file's fault
        return None
    if isinstance(error, duckdb.FatalException):
        return f"the disk failed while it was written ({said})"
    if isinstance(error, duckdb.IOException):
        if is_scarce(error) or any(cause in said for cause in OUTSIDE):
            return None
        return f"it cannot be read or written ({said})"
    if (
        isinstance(error, duckdb.InternalException | duckdb.SerializationException)
        or type(error) is duckdb.Error
    ):
        return f"it is damaged ({said})"
    return None


def is_scarce(error: duckdb.Error) -> bool:
    """Return whether the process or the machine has too few file handles or too little memory just now."""
    return any(cause in str(error) for cause in SCARCE)


def is_passing(error: duckdb.Error) -> bool:
    """Return whether the caller may try again: the statement itself is not at fault."""
    kinds = duckdb.OperationalError | duckdb.InterruptException | duckdb.FatalException
    return isinstance(error, kinds) or reason(error) is not None


def may_invalidate(error: duckdb.Error) -> bool:
    """Return whether DuckDB may have refused all further statements on all files."""
    return isinstance(error, duckdb.FatalException | duckdb.InternalException)

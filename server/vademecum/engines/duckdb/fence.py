"""Fences mark accounts whose records file must not be opened, each with a reason.

A fence is a file, `<data>/ledger/fenced/<user id>`, so it survives a restart of the server and a replacement of the
user's folder. While the file exists, all requests of that account are rejected; other accounts are not affected.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import structlog

from vademecum.errors import Fenced
from vademecum.fsync import sync_folder

RETRY_S = 60
_log = structlog.get_logger("vademecum.fence")


def fence_folder(data: Path) -> Path:
    return data / "ledger" / "fenced"


class Fences:
    """All fences of a data folder. `file_of` and `name_of` return the records file and the email of an account."""

    def __init__(self, data: Path, file_of: Callable[[str], Path], name_of: Callable[[str], str]) -> None:
        self._folder = fence_folder(data)
        self._file_of = file_of
        self._name_of = name_of
        self._reasons = _stored(self._folder)
        # Called with the account's id after the account was fenced.
        self.on_fence: Callable[[str], None] = lambda user_id: None

    def fence(self, user_id: str, reason: str) -> None:
        """Reject all requests of this account from now on.

        If the fence's file cannot be written, the fence ends with the process.
        """
        if self._reasons.get(user_id) == reason:
            return
        self._reasons[user_id] = reason
        self.on_fence(user_id)
        _log.error("account fenced", account=user_id, file=str(self._file_of(user_id)), reason=reason)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / user_id).open("w", encoding="utf-8") as file:
                file.write(reason)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self._folder)
        except OSError as error:
            _log.error("a fence could not be saved", account=user_id, exc_info=error)

    def reason(self, user_id: str) -> str | None:
        """Return the reason why the account is fenced, or None if it is not fenced."""
        return self._reasons.get(user_id)

    def lift(self, user_id: str) -> None:
        """Remove the fence, so that the account can be opened again. Raises OSError if the file cannot be removed."""
        (self._folder / user_id).unlink(missing_ok=True)
        if self._reasons.pop(user_id, None) is not None:
            _log.warning("fence lifted", account=user_id)

    def fenced(self) -> dict[str, str]:
        """Map the id of each fenced account to the reason."""
        return dict(self._reasons)

    def check(self, user_id: str) -> None:
        """Raise Fenced if the account is fenced."""
        reason = self._reasons.get(user_id)
        if reason is not None:
            raise self.refusal(user_id, reason)

    def refusal(self, user_id: str, reason: str) -> Fenced:
        name = self._name_of(user_id)
        return Fenced(
            f"The records of {name} cannot be used: {reason}. The file is {self._file_of(user_id)}. Other accounts are "
            "not affected, and unsent changes stay on the devices. If this message persists for more than a few "
            f"minutes, run `vademecum restore BACKUP --user {name}` on the server.",
            retry_after_s=RETRY_S,
        )


def _stored(folder: Path) -> dict[str, str]:
    """Map the user id of each fence on the disk to its reason. A fence whose reason cannot be read is still valid."""
    reasons = {}
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        try:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            text = f"its fence cannot be read ({error.strerror})"
        reasons[path.name] = text or "it was damaged"
    return reasons

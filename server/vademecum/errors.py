"""Define all errors that callers see, as one tree. Error codes are stable; messages may change.

VademecumError
├── BadRequest         BAD_REQUEST        the request itself cannot be understood
├── SignedOut          SIGNED_OUT         no valid cookie or token
├── Forbidden          FORBIDDEN          the account is not allowed to do this
│   └── TierTooLow     TIER               the account's tier does not include it
├── NotFound           NOT_FOUND          the row is unknown or belongs to another account
├── Conflict           CONFLICT           the current state does not allow it
│   ├── OtherEpoch     EPOCH              the store was restored; start again from zero
│   ├── Duplicate      DUPLICATE          another row has this unique value
│   └── Gone           GONE               the row was deleted; a deletion wins over a change
├── TooLarge           TOO_LARGE          a body, file or row exceeds its limit
├── LimitReached       DOCUMENT_LIMIT …   the account has reached a quota
├── UnreadableFile     NO_TEXT …          no text can be read from the file
├── NothingToSummarise NO_DATA            there is nothing to summarize yet
├── Outdated           OUTDATED           the client's schema is older than the one served
├── TooNew             TOO_NEW            the client's schema is newer: wait and retry
├── Busy               BUSY               a bounded queue is full: wait `retry_after_s` and retry
│   ├── NotYetErased                      the disk lacks the free space that the erasure needs
│   ├── RateLimited    RATE_LIMITED
│   │   └── TooManyStreams STREAM_LIMIT  the account has too many live streams
│   ├── AssistantBusy  ASSISTANT_BUSY     the assistant's endpoint asks to wait
│   └── Stopping       STOPPING           the server is being stopped
├── AssistantError     ASSISTANT          the language model gave no answer
│   ├── NoAssistant    NO_ASSISTANT       no model is set up
│   ├── AssistantUnreachable ASSISTANT_UNREACHABLE  its endpoint does not answer
│   │   └── AssistantSilent              the endpoint accepted the question and sent nothing
│   ├── AssistantKeyRefused  ASSISTANT_KEY          the endpoint rejects the server's key
│   ├── ModelUnknown   ASSISTANT_MODEL    the endpoint does not have the model
│   ├── AssistantBroke ASSISTANT_FAILED   the endpoint failed, broke off, or sent no valid answer
│   └── AnswerTooSlow  ASSISTANT_TIMEOUT  the answer exceeded the time limit
└── Broken             BROKEN             the data folder needs repair; the message says how
    └── Fenced         FENCED             this account's records are damaged; other accounts are served
"""

from __future__ import annotations

import errno
import math
import os

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_NOW = (
    "The server cannot write to its disk or read from it at the moment. The disk may be full. No acknowledged change "
    "is lost. Try again in a moment. If that does not help, inform the server's administrator."
)
NOT_NOW_S = 15


class VademecumError(Exception):
    """An error with a stable `code` and a message for people: what happened, what is safe, what to do."""

    code = "ERROR"

    def __init__(self, message: str, *, code: str | None = None, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.retry_after_s = retry_after_s


class BadRequest(VademecumError):
    code = "BAD_REQUEST"


class SignedOut(VademecumError):
    code = "SIGNED_OUT"


class Forbidden(VademecumError):
    code = "FORBIDDEN"


class TierTooLow(Forbidden):
    code = "TIER"


class NotFound(VademecumError):
    code = "NOT_FOUND"


def no_such(collection: str) -> NotFound:
    """Return the error for a missing row.

    Unknown, deleted and waiting rows and rows of other accounts get the same error, so it reveals nothing about them.
    """
    noun = f"{collection[:-3]}y" if collection.endswith("ies") else collection.removesuffix("s")
    return NotFound(f"There is no such {noun}.")


class Conflict(VademecumError):
    code = "CONFLICT"


class OtherEpoch(Conflict):
    """The request names an epoch other than the current one. `epoch`: the current epoch."""

    code = "EPOCH"

    def __init__(self, message: str, *, epoch: str = "") -> None:
        super().__init__(message)
        self.epoch = epoch


class Duplicate(Conflict):
    code = "DUPLICATE"


class Gone(Conflict):
    code = "GONE"


class TooLarge(VademecumError):
    code = "TOO_LARGE"


class LimitReached(VademecumError):
    code = "DOCUMENT_LIMIT"


class UnreadableFile(VademecumError):
    code = "UNREADABLE"


class NothingToSummarise(VademecumError):
    code = "NO_DATA"


class Outdated(VademecumError):
    code = "OUTDATED"


class TooNew(VademecumError):
    code = "TOO_NEW"


class Busy(VademecumError):
    code = "BUSY"


def is_full(error: Exception) -> bool:
    """Return whether the error reports a full disk, in `errno` or only in its message, as some libraries do."""
    message = str(error).lower()
    return getattr(error, "errno", None) in FULL or any(
        os.strerror(number).lower() in message for number in FULL
    )


def lacks_room(error: VademecumError) -> bool:
    """Return whether the cause of the error (`__cause__`) reports a full disk."""
    return error.__cause__ is not None and isinstance(error.__cause__, Exception) and is_full(error.__cause__)


def not_now() -> Busy:
    return Busy(NOT_NOW, retry_after_s=NOT_NOW_S)


class NotYetErased(Busy):
    def __init__(self, needed: int) -> None:
        self.needed = needed
        super().__init__(
            f"The deleted data is not yet erased from the disk, because that needs {math.ceil(needed / 1e6)} MB of "
            "free space. Nobody can read it any more, and the server tries again until it is erased.",
            retry_after_s=NOT_NOW_S,
        )


class RateLimited(Busy):
    code = "RATE_LIMITED"


class TooManyStreams(RateLimited):
    code = "STREAM_LIMIT"


class AssistantBusy(Busy):
    code = "ASSISTANT_BUSY"


class Stopping(Busy):
    code = "STOPPING"


class AssistantError(VademecumError):
    code = "ASSISTANT"


class NoAssistant(AssistantError):
    code = "NO_ASSISTANT"


class AssistantUnreachable(AssistantError):
    code = "ASSISTANT_UNREACHABLE"


class AssistantSilent(AssistantUnreachable):
    pass


class AssistantKeyRefused(AssistantError):
    code = "ASSISTANT_KEY"


class ModelUnknown(AssistantError):
    code = "ASSISTANT_MODEL"


class AssistantBroke(AssistantError):
    code = "ASSISTANT_FAILED"


class ReplyNotJson(AssistantBroke):
    """The model did not reply with the JSON that it was asked for."""


class AnswerTooSlow(AssistantError):
    code = "ASSISTANT_TIMEOUT"


class Broken(VademecumError):
    code = "BROKEN"


class Fenced(Broken):
    code = "FENCED"

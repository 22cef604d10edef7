"""Configure logging: one JSON object per line on standard error, or readable text on a terminal.

Logs contain no user content, no query strings and no email addresses. For an exception they contain its type and
traceback locations. The message is logged only for errors of this program, because a library's message may quote a row.
"""

from __future__ import annotations

import logging
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import structlog

from vademecum.errors import VademecumError

QUIET = ("httpx", "httpcore", "uvicorn.access", "litestar")


def configure(level: int = logging.INFO) -> None:
    """Configure logging for a server process.

    Loggers of libraries use the same format. The verbose loggers in QUIET log only warnings and errors.
    """
    on_terminal = sys.stderr.isatty()
    renderer: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer()
    )
    shared: list[structlog.types.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _trace,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(_SafeStderr()),  # type: ignore[arg-type] # one write per line, because other processes write here too
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    logging.captureWarnings(True)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


class _SafeStderr:
    """Standard error without write errors: a full disk or a closed pipe must not fail the code that logs."""

    def write(self, text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()


def _trace(_: object, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    """Replace `exc_info` with `exception`, a list of the error and its causes. The original cause comes last.

    Each entry has a type and traceback locations.
    """
    found = event.pop("exc_info", None)
    if found is True:
        found = sys.exc_info()
    error = found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        event["exception"] = [_describe_error(one) for one in _chain(error)]
    return event


def _chain(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    return chain


def _describe_error(error: BaseException) -> dict[str, object]:
    frames = traceback.extract_tb(error.__traceback__)
    at = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames]
    words = {"message": error.message} if isinstance(error, VademecumError) else {}
    return {"type": type(error).__name__, **words, "at": at}

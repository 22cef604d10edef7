"""Logs: one JSON object a line on standard error (words on a terminal). No content, no query strings, no addresses of
people: what happened, not to whose text. So of an error its type and where it arose are logged, and its words only
when they are ours: those of a library may quote a row.
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
    """For a process that serves; libraries' own loggers join in, the talkative ones from warnings on."""
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
        logger_factory=structlog.WriteLoggerFactory(_Bearing()),  # type: ignore[arg-type] # one write a line: others write here too
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    logging.captureWarnings(True)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


class _Bearing:
    """Standard error. That its disk is full, or nobody listens any more, is no reason to fail whoever says something."""

    def write(self, text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()


def _trace(_: object, __: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    """Puts `exception` in the place of `exc_info`: innermost cause last, each a type and the lines that led to it."""
    found = event.pop("exc_info", None)
    if found is True:
        found = sys.exc_info()
    error = found[1] if isinstance(found, tuple) else found
    if isinstance(error, BaseException):
        event["exception"] = [_described(one) for one in _chain(error)]
    return event


def _chain(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    return chain


def _described(error: BaseException) -> dict[str, object]:
    frames = traceback.extract_tb(error.__traceback__)
    at = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames]
    words = {"message": error.message} if isinstance(error, VademecumError) else {}
    return {"type": type(error).__name__, **words, "at": at}

"""Logs: one JSON object a line on standard error (words on a terminal). No content, no query strings, no addresses of
people: what happened, not to whose text.
"""

from __future__ import annotations

import logging
import sys

import structlog

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
    ]
    traces = [] if on_terminal else [structlog.processors.dict_tracebacks]
    structlog.configure(
        processors=[*shared, *traces, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)

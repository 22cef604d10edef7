"""The process that reads one file: limits first, then bytes from standard input, a result to standard output.

Run by `sandbox` alone. Whatever happens here, the parent sees a result, a refusal, or a dead child.
"""

from __future__ import annotations

import resource
import sys
from typing import Any

import msgspec

from vademecum.engines.files.parsed import Limits, Parsed, Unreadable


class Task(msgspec.Struct):
    filename: str
    limits: Limits
    data: bytes


class Outcome(msgspec.Struct):
    """Either `parsed`, or the `code` of a refusal."""

    parsed: Parsed | None = None
    code: str = ""


def confine(limits: Limits) -> None:
    seconds = int(limits.seconds) + 1
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def read(task: Task) -> Parsed:
    """Sniff and parse. Raises Unreadable, or whatever a library raises on a hostile file."""
    from vademecum.engines.files.sniff import OOXML, sniff

    kind = sniff(task.data, task.filename)
    parsed: Parsed = _parser(kind, list(OOXML.values()))(task, kind)
    if sum(len(part.text) for part in parsed.parts) > task.limits.text_chars:
        raise Unreadable("TOO_EXPANSIVE")
    if not any(part.text.strip() for part in parsed.parts):
        raise Unreadable("EMPTY")
    return parsed


def _parser(kind: str, ooxml: list[str]) -> Any:
    """Only the library that is needed is imported: a text file must not wait for four others."""
    if kind == "application/pdf":
        from vademecum.engines.files import pdf

        return lambda task, _: pdf.parse(task.data, task.limits)
    if kind in ooxml:
        from vademecum.engines.files import office

        parse = (office.parse_docx, office.parse_pptx, office.parse_xlsx)[ooxml.index(kind)]
        return lambda task, _: parse(task.data, task.limits)
    if kind in ("text/html", "application/epub+zip", "application/vnd.oasis.opendocument.text"):
        from vademecum.engines.files import markup

        parse = {"text/html": markup.parse_html, "application/epub+zip": markup.parse_epub}.get(
            kind, markup.parse_odt
        )
        return lambda task, _: parse(task.data, task.limits)
    from vademecum.engines.files import text

    if kind == "text/markdown":
        return lambda task, _: text.parse_markdown(task.data)
    if kind == "text/rtf":
        return lambda task, _: text.parse_rtf(task.data, task.limits)
    return lambda task, found: text.parse_plain(task.data, found)


def main() -> None:
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Task)
    confine(task.limits)
    try:
        outcome = Outcome(parsed=read(task))
    except Unreadable as error:
        outcome = Outcome(code=error.code)
    except MemoryError:
        outcome = Outcome(code="PARSE_MEMORY")
    except Exception:  # the libraries' own errors are many, and all mean this
        outcome = Outcome(code="DAMAGED")
    sys.stdout.buffer.write(msgspec.msgpack.encode(outcome))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

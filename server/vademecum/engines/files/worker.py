"""The process that reads one file: limits first, then bytes from standard input, a result to standard output.

Run by `subprocess_runner` alone. Whatever happens here, the parent sees a result, a refusal, or a dead child.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import msgspec

from vademecum.engines.files.result import (
    DOCX,
    EPUB,
    ODT,
    PDF,
    PPTX,
    SECTION_MAX,
    XLSX,
    Limits,
    Parsed,
    Unreadable,
)

# By what `sniff` says: the file here, and its function. What is not named is read as plain text.
_PARSERS = {
    PDF: ("formats.pdf", "parse"),
    DOCX: ("formats.ooxml.docx", "parse"),
    PPTX: ("formats.ooxml.pptx", "parse"),
    XLSX: ("formats.ooxml.xlsx", "parse"),
    ODT: ("formats.odt", "parse"),
    EPUB: ("formats.html_epub", "parse_epub"),
    "text/html": ("formats.html_epub", "parse_html"),
    "text/markdown": ("formats.text", "parse_markdown"),
    "application/json": ("formats.text", "parse_json"),
    "text/csv": ("formats.text", "parse_csv"),
    "text/tab-separated-values": ("formats.text", "parse_tsv"),
    "text/rtf": ("formats.text", "parse_rtf"),
}
# What the loader, the system, lxml and Python say when there is none left; the last two where even the reason is lost.
_NO_MEMORY = (
    "failed to map segment",
    "cannot allocate memory",
    "memory allocation failed",
    "out of memory",
    "unknown error",
    "without exception set",
)

NICE = 10


class Task(msgspec.Struct):
    filename: str
    limits: Limits
    data: bytes


class Outcome(msgspec.Struct):
    """Either `parsed`, or the `code` of a refusal."""

    parsed: Parsed | None = None
    code: str = ""


def die_first() -> None:
    """Have the kernel kill this process, and not the server, when the machine runs out of memory."""
    with suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def confine(limits: Limits) -> None:
    seconds = int(limits.seconds) + 1
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    # Two limits, because at the second one the system kills in the same way as for want of memory.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def read(task: Task) -> Parsed:
    """Sniff and parse. Raises Unreadable, or whatever a library raises on a hostile file."""
    from vademecum.engines.files.file_type import sniff

    kind = sniff(task.data, task.filename)
    parsed = _parse(kind, task)
    characters = sum(len(part.text) for part in parsed.parts)
    if characters > task.limits.text_chars or len(parsed.parts) > task.limits.parts:
        raise Unreadable("TOO_EXPANSIVE")
    if not any(part.text.strip() for part in parsed.parts):
        raise Unreadable("EMPTY")
    for part in parsed.parts:  # it is told with each part again
        part.section = part.section and part.section[:SECTION_MAX]
    return parsed


def _parse(kind: str, task: Task) -> Parsed:
    """Only the library that is needed is imported: a text file must not wait for the others."""
    module, verb = _PARSERS.get(kind, ("formats.text", "parse_plain"))
    parse = getattr(import_module(f"vademecum.engines.files.{module}"), verb)
    parsed: Parsed = parse(task.data, kind) if verb == "parse_plain" else parse(task.data, task.limits)
    return parsed


def refusal(error: BaseException) -> str:
    """The code for what went wrong. The want of memory has many faces, and what follows from it looks like damage."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or any(w in str(cause).lower() for w in _NO_MEMORY):
            return "PARSE_MEMORY"
        cause = cause.__cause__ or cause.__context__
    if not isinstance(error, Unreadable) and _is_full():
        return "PARSE_MEMORY"
    return error.code if isinstance(error, Unreadable) else "DAMAGED"  # the libraries' own errors are many


def _is_full() -> bool:
    """Has this process ever had nearly all the address space that it may have?"""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    try:
        found = re.search(r"VmPeak:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    except MemoryError:
        return True
    except OSError:
        return False
    return found is not None and int(found.group(1)) * 1024 > 0.9 * limit > 0


def answer(task: Task) -> bytearray:
    said = bytearray()  # written into: where memory ends, `encode` crashes and this raises
    encoder = msgspec.msgpack.Encoder()
    try:
        encoder.encode_into(Outcome(parsed=read(task)), said)
    except Exception as error:
        encoder.encode_into(Outcome(code=refusal(error)), said)
    return said


def main() -> None:
    os.nice(NICE)  # requests and questions come first
    # openpyxl would load numpy, at the cost of memory and time, for types that no file has
    sys.modules["numpy"] = None  # type: ignore[assignment]
    die_first()
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Task)
    confine(task.limits)
    sys.stdout.buffer.write(answer(task))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

"""Read an open file, parse it within resource limits, and write the result to standard output.

Only `subprocess_runner` starts this process, and sends an `Order` to its standard input. The server receives a result
or an error code, or notices that the process died.
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

# Maps a MIME type to the module and function that parse it. All other types are read as plain text.
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
# Out-of-memory messages of the loader, the system, lxml and Python. The last two messages appear if there is no memory
# for the actual message.
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


class Order(msgspec.Struct):
    """The file to parse. `file`: the descriptor of the open file, which the process inherits."""

    filename: str
    limits: Limits
    file: int


class Outcome(msgspec.Struct):
    """The result of parsing: `parsed`, or the `code` of the reason why the file is unreadable."""

    parsed: Parsed | None = None
    code: str = ""


def prefer_oom_kill() -> None:
    """Have the kernel kill this process, and not the server, when the machine runs out of memory."""
    with suppress(OSError):  # only Linux has this setting
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def set_resource_limits(limits: Limits) -> None:
    """Set the resource limits of this process."""
    seconds = int(limits.seconds) + 1
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    # At the soft limit the kernel sends SIGXCPU, which means a timeout. The hard limit is higher, because there it
    # sends SIGKILL, which the parent takes for out of memory.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def parse_file(task: Task) -> Parsed:
    """Detect the type and parse. Raises Unreadable, or any exception of a library on a hostile file."""
    from vademecum.engines.files.file_type import detect_type

    mime_type = detect_type(task.data, task.filename)
    parsed = _parse_as(mime_type, task)
    characters = sum(len(part.text) for part in parsed.parts)
    if characters > task.limits.text_chars or len(parsed.parts) > task.limits.parts:
        raise Unreadable("TOO_EXPANSIVE")
    if not any(part.text.strip() for part in parsed.parts):
        raise Unreadable("EMPTY")
    for part in parsed.parts:  # limit the length, because the section is sent with each part
        part.section = part.section and part.section[:SECTION_MAX]
    return parsed


def _parse_as(mime_type: str, task: Task) -> Parsed:
    """Parse the file, importing only the library for its type, so that a text file does not wait for other imports."""
    module, function = _PARSERS.get(mime_type, ("formats.text", "parse_plain"))
    parse = getattr(import_module(f"vademecum.engines.files.{module}"), function)
    parsed: Parsed = (
        parse(task.data, mime_type) if function == "parse_plain" else parse(task.data, task.limits)
    )
    return parsed


def error_code(error: BaseException) -> str:
    """Return the error code of an exception. Out-of-memory errors have many forms, some of which look like damage."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or any(message in str(cause).lower() for message in _NO_MEMORY):
            return "PARSE_MEMORY"
        cause = cause.__cause__ or cause.__context__
    if not isinstance(error, Unreadable) and _is_memory_used_up():
        return "PARSE_MEMORY"
    return error.code if isinstance(error, Unreadable) else "DAMAGED"  # any other error of a library


def _is_memory_used_up() -> bool:
    """Return whether this process ever used more than 90 % of its address space limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    try:
        peak = re.search(r"VmPeak:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    except MemoryError:
        return True
    except OSError:
        return False
    return peak is not None and int(peak.group(1)) * 1024 > 0.9 * limit > 0


def run_task(task: Task) -> bytearray:
    output = bytearray()  # for `encode_into`, because `encode` crashes when memory runs out
    encoder = msgspec.msgpack.Encoder()
    try:
        encoder.encode_into(Outcome(parsed=parse_file(task)), output)
    except Exception as error:
        encoder.encode_into(Outcome(code=error_code(error)), output)
    return output


def main() -> None:
    os.nice(NICE)  # lowers the priority of this process below the server's
    # Keep openpyxl from importing numpy, which takes memory and time and is needed only for types that no file
    # contains.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    prefer_oom_kill()
    order = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Order)
    with os.fdopen(order.file, "rb") as file:
        file.seek(0)
        task = Task(order.filename, order.limits, file.read())
    set_resource_limits(task.limits)
    sys.stdout.buffer.write(run_task(task))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

"""Parse an agent's hook event into an action: its kind, its file and a short description, never a file's content.

Events are hook payloads of Claude Code (SessionStart, UserPromptSubmit, PostToolUse, PostToolUseFailure, Stop,
SessionEnd), or decisions in this program's format: `{"kind": "decision", "content": …, "cwd": …}`. This module redacts
secrets before other code sees the text. For an action on a file that usually holds secrets, no text is kept. An event
may have fields of any type.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Mapping
from itertools import islice

from vademecum.model.secrets import hide, hide_in_path
from vademecum.model.secrets.sensitive_files import holds_secrets

CONTENT_MAX = 8000
PART_MAX = 1000  # maximum length in characters of a tool's input and of an error message
EXCERPT_MAX = 300  # maximum length in characters of the old text of an edit and of the new text
OPENING_MAX = 200  # maximum length in characters of the quoted beginning of a written file
VALUES_MAX = 50  # values of an unknown tool's input that are read; `PART_MAX` characters show fewer
LABEL_MAX = 200  # maximum length in characters of a tool's name and of a session's id

READS = ("Read", "NotebookRead")
WRITES = ("Write",)
EDITS = ("Edit", "MultiEdit", "NotebookEdit")
SEARCHES = ("Grep", "Glob", "LS", "WebSearch", "WebFetch")
KINDS = {
    tool: kind
    for kind, tools in (("read", READS), ("write", WRITES), ("edit", EDITS), ("search", SEARCHES))
    for tool in tools
}


class AgentAction(namedtuple("AgentAction", ("kind", "content", "redactions", "path", "tool", "session"))):
    """An action of an agent. `path`: the path as the agent wrote it, with its secrets redacted, or empty."""

    __slots__ = ()


class RedactingText:
    """Truncates texts, redacts their secrets and counts the redactions."""

    def __init__(self) -> None:
        self.redactions = 0
        self._values_left = VALUES_MAX

    def text(self, value: object, max_length: int = PART_MAX) -> str:
        """Return a value as text of at most `max_length` characters.

        A value that is not a string becomes JSON. Its strings are redacted first, because JSON escapes disguise
        secrets.
        """
        if value is None:
            return ""
        text = value if isinstance(value, str) else json.dumps(self._redact(value), ensure_ascii=False)
        redacted, count = hide(text, max_length)
        self.redactions += count
        return redacted + ("…" if len(text) > max_length else "")

    def path(self, value: object, max_length: int) -> str:
        """Return a redacted path or id."""
        redacted, count = hide_in_path(_string(value), max_length)
        self.redactions += count
        return redacted

    def _redact(self, value: object) -> object:
        self._values_left -= 1
        if self._values_left < 0:
            return "…"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self._redact(item) for key, item in islice(value.items(), VALUES_MAX)}
        return [self._redact(item) for item in value[:VALUES_MAX]] if isinstance(value, list) else value


def parse_action(event: Mapping[str, object]) -> AgentAction | None:
    """Return the action of a hook event, or None if the event is not recorded."""
    redacting, name = RedactingText(), event.get("hook_event_name")
    if event.get("kind") == "decision":
        return _from_field(redacting, event, "decision", "content")
    if name == "UserPromptSubmit":
        return _from_field(redacting, event, "prompt", "prompt")
    if name == "SessionStart":
        return _create(redacting, event, "session", f"started: {redacting.text(event.get('source'))}")
    if name == "Stop":
        message = redacting.text(event.get("last_assistant_message"))
        return _create(redacting, event, "session", f"stopped: {message}")
    if name == "SessionEnd":
        return _create(redacting, event, "session", f"ended: {redacting.text(event.get('reason'))}")
    if name in ("PostToolUse", "PostToolUseFailure"):
        return _from_tool(redacting, event, failed=name == "PostToolUseFailure")
    return None


def _from_field(
    redacting: RedactingText, event: Mapping[str, object], kind: str, field: str
) -> AgentAction | None:
    content = redacting.text(event.get(field), CONTENT_MAX)
    return _create(redacting, event, kind, content) if content.strip() else None


def _from_tool(redacting: RedactingText, event: Mapping[str, object], failed: bool) -> AgentAction:
    tool, arguments = _string(event.get("tool_name")), event.get("tool_input")
    kind = KINDS.get(tool, "command")
    arguments = arguments if isinstance(arguments, dict) else {}
    path = "" if kind == "search" else _string(arguments.get("file_path") or arguments.get("notebook_path"))
    sensitive_path = path or _string(arguments.get("path"))
    if tool != "Bash" and holds_secrets(sensitive_path):
        content = _describe_without_text(tool, arguments)
        return _create(redacting, event, "error" if failed else kind, content, sensitive_path, tool)
    content = _describe(redacting, tool, arguments)
    if failed:
        kind, content = "error", f"{content}\n{redacting.text(event.get('error'))}".strip()
    return _create(redacting, event, kind, content, path, tool)


def _describe(redacting: RedactingText, tool: str, arguments: Mapping[str, object]) -> str:
    if tool == "Bash":
        return redacting.text(arguments.get("command"), CONTENT_MAX - PART_MAX - 10)
    if tool in READS:
        return _describe_lines(arguments)
    if tool in WRITES:
        return _describe_write(redacting, _string(arguments.get("content")))
    if tool in EDITS:
        return _describe_edit(redacting, arguments)
    if tool in SEARCHES:
        query = arguments.get("pattern") or arguments.get("query") or arguments.get("url")
        where = arguments.get("path") or arguments.get("glob")
        return redacting.text(query) + (f" in {redacting.text(where)}" if where else "")
    return f"{redacting.text(tool, LABEL_MAX)} {redacting.text(dict(arguments))}"


def _describe_without_text(tool: str, arguments: Mapping[str, object]) -> str:
    """Describe an action on a file that holds secrets.

    The error message is omitted, too, because it may quote the file.
    """
    if tool in READS:
        return _describe_lines(arguments)
    return f"{_byte_count(arguments.get('content'))} bytes" if tool in WRITES else "a file of secrets"


def _describe_lines(arguments: Mapping[str, object]) -> str:
    first, count = arguments.get("offset"), arguments.get("limit")
    if not isinstance(first, int) and not isinstance(count, int):
        return "the whole file"
    start = first if isinstance(first, int) else 1
    return f"lines {start}–{start + count - 1}" if isinstance(count, int) else f"from line {start}"


def _describe_write(redacting: RedactingText, content: str) -> str:
    """Return the size and the first two lines, which often state the file's purpose."""
    opening = "\n".join(content[: 2 * OPENING_MAX].lstrip().splitlines()[:2])
    return f"{_byte_count(content)} bytes\n{redacting.text(opening, OPENING_MAX)}".strip()


def _byte_count(content: object) -> int:
    return len(_string(content).encode(errors="replace"))


def _describe_edit(redacting: RedactingText, arguments: Mapping[str, object]) -> str:
    """Return the beginnings of the old and the new text of the first edit."""
    edits = arguments.get("edits")
    edits = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    first = edits[0] if edits else arguments
    before = redacting.text(first.get("old_string"), EXCERPT_MAX)
    after = redacting.text(first.get("new_string") or first.get("new_source"), EXCERPT_MAX)
    more = f"{len(edits)} edits, the first:\n" if len(edits) > 1 else ""
    return f"{more}- {before}\n+ {after}"


def _create(
    redacting: RedactingText,
    event: Mapping[str, object],
    kind: str,
    content: str,
    path: str = "",
    tool: str = "",
) -> AgentAction:
    session = redacting.path(event.get("session_id") or event.get("session"), LABEL_MAX)
    path, tool = redacting.path(path, PART_MAX), redacting.text(tool, LABEL_MAX)
    return AgentAction(kind, content[:CONTENT_MAX], redacting.redactions, path, tool, session)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""

"""What is kept of an agent's hook event: which kind of act, on which file, and a few words; never a file's content.

Events are Claude Code's hook payloads (SessionStart, UserPromptSubmit, PostToolUse, PostToolUseFailure, Stop,
SessionEnd), or our own `{"kind": "decision", "content": …, "cwd": …}`. Secrets are hidden here, before anything else
sees the text; of a file that is kept for its secrets no word stays. Nothing of an event is believed to have the type it should have.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Mapping
from itertools import islice

from vademecum.model.secrets import hide, hide_in_path
from vademecum.model.secrets.sensitive_files import holds_secrets

CONTENT_MAX = 8000
PART_MAX = 1000  # of what a tool was given, and of what went wrong
EXCERPT_MAX = 300  # of each side of an edit
OPENING_MAX = 200  # of a written file
VALUES_MAX = 50  # of what an unknown tool was given: far more than are shown
LABEL_MAX = 200  # of names that others give: a tool's, a session's

READS = ("Read", "NotebookRead")
WRITES = ("Write",)
EDITS = ("Edit", "MultiEdit", "NotebookEdit")
SEARCHES = ("Grep", "Glob", "LS", "WebSearch", "WebFetch")
KINDS = {
    tool: kind
    for kind, tools in (("read", READS), ("write", WRITES), ("edit", EDITS), ("search", SEARCHES))
    for tool in tools
}


class Act(namedtuple("Act", ("kind", "content", "redactions", "path", "tool", "session"))):
    """`path`: as the agent named it, or empty."""

    __slots__ = ()


class Words:
    """Parts of a text, each cut and with its secrets hidden."""

    def __init__(self) -> None:
        self.redactions = 0
        self._left = VALUES_MAX

    def said(self, value: object, most: int = PART_MAX) -> str:
        """A value as text. What is no text is written as JSON, its texts hidden first: quoting would disguise them."""
        if value is None:
            return ""
        text = value if isinstance(value, str) else json.dumps(self._hidden(value), ensure_ascii=False)
        hidden, count = hide(text, most)
        self.redactions += count
        return hidden + ("…" if len(text) > most else "")

    def named(self, value: object, most: int) -> str:
        """A path or an id."""
        hidden, count = hide_in_path(_text(value), most)
        self.redactions += count
        return hidden

    def _hidden(self, value: object) -> object:
        self._left -= 1
        if self._left < 0:
            return "…"
        if isinstance(value, str):
            return self.said(value)
        if isinstance(value, dict):
            return {key: self._hidden(within) for key, within in islice(value.items(), VALUES_MAX)}
        return [self._hidden(within) for within in value[:VALUES_MAX]] if isinstance(value, list) else value


def act(event: Mapping[str, object]) -> Act | None:
    """None for an event of which nothing is kept."""
    words, name = Words(), event.get("hook_event_name")
    if event.get("kind") == "decision":
        return _said(words, event, "decision", "content")
    if name == "UserPromptSubmit":
        return _said(words, event, "prompt", "prompt")
    if name == "SessionStart":
        return _act(words, event, "session", f"started: {words.said(event.get('source'))}")
    if name == "Stop":
        return _act(words, event, "session", f"stopped: {words.said(event.get('last_assistant_message'))}")
    if name == "SessionEnd":
        return _act(words, event, "session", f"ended: {words.said(event.get('reason'))}")
    if name in ("PostToolUse", "PostToolUseFailure"):
        return _tool(words, event, failed=name == "PostToolUseFailure")
    return None


def _said(words: Words, event: Mapping[str, object], kind: str, field: str) -> Act | None:
    content = words.said(event.get(field), CONTENT_MAX)
    return _act(words, event, kind, content) if content.strip() else None


def _tool(words: Words, event: Mapping[str, object], failed: bool) -> Act:
    tool, given = _text(event.get("tool_name")), event.get("tool_input")
    kind = KINDS.get(tool, "command")
    given = given if isinstance(given, dict) else {}
    path = "" if kind == "search" else _text(given.get("file_path") or given.get("notebook_path"))
    if tool != "Bash" and holds_secrets(path or _text(given.get("path"))):
        kind = "error" if failed else kind
        return _act(words, event, kind, _size(tool, given), path or _text(given.get("path")), tool)
    content = _content(words, tool, given)
    if failed:
        kind, content = "error", f"{content}\n{words.said(event.get('error'))}".strip()
    return _act(words, event, kind, content, path, tool)


def _content(words: Words, tool: str, given: Mapping[str, object]) -> str:
    if tool == "Bash":
        return words.said(given.get("command"), CONTENT_MAX - PART_MAX - 10)
    if tool in READS:
        return _lines(given)
    if tool in WRITES:
        return _written(words, _text(given.get("content")))
    if tool in EDITS:
        return _edited(words, given)
    if tool in SEARCHES:
        asked = given.get("pattern") or given.get("query") or given.get("url")
        where = given.get("path") or given.get("glob")
        return words.said(asked) + (f" in {words.said(where)}" if where else "")
    return f"{words.said(tool, LABEL_MAX)} {words.said(dict(given))}"


def _size(tool: str, given: Mapping[str, object]) -> str:
    """All that is kept of what was done to a file of secrets: what went wrong there may quote it, too."""
    if tool in READS:
        return _lines(given)
    return f"{_bytes(given.get('content'))} bytes" if tool in WRITES else "a file of secrets"


def _lines(given: Mapping[str, object]) -> str:
    first, count = given.get("offset"), given.get("limit")
    if not isinstance(first, int) and not isinstance(count, int):
        return "the whole file"
    start = first if isinstance(first, int) else 1
    return f"lines {start}–{start + count - 1}" if isinstance(count, int) else f"from line {start}"


def _written(words: Words, content: str) -> str:
    """How much, and its first two lines, which often say what it is."""
    opening = "\n".join(content[: 2 * OPENING_MAX].lstrip().splitlines()[:2])
    return f"{_bytes(content)} bytes\n{words.said(opening, OPENING_MAX)}".strip()


def _bytes(content: object) -> int:
    return len(_text(content).encode(errors="replace"))


def _edited(words: Words, given: Mapping[str, object]) -> str:
    """What was there and what is there now, at the beginning of the first change."""
    edits = given.get("edits")
    edits = [one for one in edits if isinstance(one, dict)] if isinstance(edits, list) else []
    first = edits[0] if edits else given
    before = words.said(first.get("old_string"), EXCERPT_MAX)
    after = words.said(first.get("new_string") or first.get("new_source"), EXCERPT_MAX)
    more = f"{len(edits)} edits, the first:\n" if len(edits) > 1 else ""
    return f"{more}- {before}\n+ {after}"


def _act(
    words: Words, event: Mapping[str, object], kind: str, content: str, path: str = "", tool: str = ""
) -> Act:
    session = words.named(event.get("session_id") or event.get("session"), LABEL_MAX)
    path, tool = words.named(path, PART_MAX), words.said(tool, LABEL_MAX)
    return Act(kind, content[:CONTENT_MAX], words.redactions, path, tool, session)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

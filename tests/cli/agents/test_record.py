"""`vademecum record` records an agent's actions without disturbing it."""

import json
import os
import re
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from cli.agents.hooked_agent import PROJECT
from cli.command_runner import COMMAND, ROOT

SOAK = bool(os.environ.get("SOAK"))


def tool(name, failed=None, **given):
    event = {"tool_name": name, "tool_input": given, "tool_use_id": "t1"}
    if failed is None:
        return "PostToolUse", {
            **event,
            "tool_response": {"stdout": "CONTENTS", "file": {"content": "CONTENTS"}},
        }
    return "PostToolUseFailure", {**event, "error": failed, "is_interrupt": False}


EVENTS = {
    "a session begins": (("SessionStart", {"source": "startup", "model": "m"}), {"kind": "session", "content": "started: startup"}),
    "a session ends": (("SessionEnd", {"reason": "clear"}), {"kind": "session", "content": "ended: clear"}),
    "a turn ends": (("Stop", {"stop_hook_active": False, "last_assistant_message": "Done: 3 tests."}), {"kind": "session", "content": "stopped: Done: 3 tests."}),
    "a prompt": (("UserPromptSubmit", {"prompt": "Mach’s schöner – 日記"}), {"kind": "prompt", "content": "Mach’s schöner – 日記"}),
    "a read": (tool("Read", file_path="{cwd}/a.py"), {"kind": "read", "path": "src/a.py", "content": "the whole file"}),
    "a read of lines": (tool("Read", file_path="../b.md", offset=10, limit=5), {"kind": "read", "path": "b.md", "content": "lines 10–14"}),
    "a write": (tool("Write", file_path="{cwd}/a.py", content='"""Ü."""\nimport os\nCONTENTS = 1\n'), {"kind": "write", "path": "src/a.py", "content": '33 bytes\n"""Ü."""\nimport os'}),
    "an edit": (tool("Edit", file_path="/etc/hosts", old_string="one", new_string="two"), {"kind": "edit", "path": "/etc/hosts", "content": "- one\n+ two"}),
    "several edits": (tool("MultiEdit", file_path="{home}/x", edits=[{"old_string": "one", "new_string": "two"}, {"old_string": "CONTENTS"}]), {"kind": "edit", "path": "~/x", "content": "2 edits, the first:\n- one\n+ two"}),
    "an edit of a notebook": (tool("NotebookEdit", notebook_path="{cwd}/n.ipynb", new_source="x = 1"), {"kind": "edit", "path": "src/n.ipynb", "content": "- \n+ x = 1"}),
    "a command": (tool("Bash", command="make test", description="d"), {"kind": "command", "content": "make test"}),
    "a search in files": (tool("Grep", pattern="def main", path="src"), {"kind": "search", "content": "def main in src"}),
    "a search for files": (tool("Glob", pattern="**/*.py"), {"kind": "search", "content": "**/*.py"}),
    "a search of the web": (tool("WebSearch", query="duckdb wal"), {"kind": "search", "content": "duckdb wal"}),
    "a page of the web": (tool("WebFetch", url="https://example.org", prompt="sum it up"), {"kind": "search", "content": "https://example.org"}),
    "an unknown tool": (tool("mcp__x__y", size=3, text="hi"), {"kind": "command", "content": 'mcp__x__y {"size": 3, "text": "hi"}'}),
    "a command that failed": (tool("Bash", failed="Exit code 2", command="make test"), {"kind": "error", "content": "make test\nExit code 2"}),
    "an edit that failed": (tool("Edit", failed="not found", file_path="{cwd}/a.py", old_string="x", new_string="y"), {"kind": "error", "path": "src/a.py", "content": "- x\n+ y\nnot found"}),
}  # fmt: skip


def placed(value, agent):
    """Return the event with the agent's folders in place of the placeholders."""
    return json.loads(json.dumps(value).replace("{cwd}", str(agent.cwd)).replace("{home}", str(agent.home)))


@pytest.mark.parametrize("case", EVENTS)
def test_record_writes_event_without_file_contents(agent, case):
    (name, event), expected = EVENTS[case]
    agent.tell(name, **placed(event, agent))
    (file,) = agent.files()
    kept = json.loads(file.read_bytes())
    assert file.stem == kept.pop("id") and re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}", file.stem)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", kept.pop("at"))
    named = {"tool": event["tool_name"]} if "tool_name" in event else {}
    assert kept.pop("project") | {"machine": ""} == PROJECT | {"machine": ""}
    assert kept == {"v": 1, "session": "s-1", "redactions": 0, **named, **expected}
    assert b"CONTENTS" not in file.read_bytes()


def test_event_belongs_to_project_of_folder_where_agent_started(agent):
    other = agent.home / "dev" / "lib"
    other.mkdir()
    event = {"hook_event_name": "PostToolUse", "tool_name": "Read", "cwd": str(other)}
    started = {"CLAUDE_PROJECT_DIR": str(agent.cwd.parent)}
    agent.run(json.dumps(event | {"tool_input": {"file_path": "../engine/a.py"}}).encode(), **started)
    kept = agent.only_event()
    assert (agent.project(), kept["path"]) == (PROJECT, "a.py")


def test_decision_is_recorded_up_to_the_length_limit(agent):
    content = "We use UTC. " * 1000
    agent.run(json.dumps({"kind": "decision", "content": content, "cwd": str(agent.cwd)}).encode())
    kept = agent.only_event()
    assert (kept["kind"], agent.project(), kept["session"]) == ("decision", PROJECT, "")
    assert kept["content"] == content[:8000]


def test_record_ignores_unknown_events(agent):
    for name in ("PreToolUse", "Notification", "SubagentStop", "Whatever"):
        agent.tell(name, tool_name="Read", tool_input={})
    assert agent.run(b"{}").stderr == b"" and agent.files() == []


def test_event_without_content_is_not_recorded(agent):
    empty = {"kind": "decision", "content": " \n", "cwd": str(agent.cwd)}
    assert b"needs `content`" in agent.run(json.dumps(empty).encode()).stderr
    agent.tell("UserPromptSubmit", prompt="")
    assert agent.files() == []


def test_spool_files_are_readable_only_by_their_user(agent):
    agent.tell("Stop")
    agent.tell("Stop", "--user", "ada+x/..@example.org")
    folders = sorted(path.name for path in (agent.data / "spool").iterdir())
    assert folders == sorted(["owner", quote("ada+x/..@example.org", safe="")])
    for path in [agent.data / "spool", *(agent.data / "spool").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_concurrently_recorded_events_are_all_complete(agent):
    numbers = range(0, 200, 1 if SOAK else 10)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: agent.tell("UserPromptSubmit", prompt=f"event {n} " + "word " * n), numbers))
    files = agent.files()
    assert len(files) == len(numbers) and all(file.suffix == ".json" for file in files)
    kept = [json.loads(file.read_bytes())["content"] for file in files]
    assert sorted(kept) == sorted(f"event {n} " + "word " * n for n in numbers)


def in_python(agent, code):
    """Run `code` in a new, isolated Python process and return the words that it prints."""
    whole = f"import sys; sys.path.insert(0, {str(ROOT / 'server')!r})\n{code}"
    done = subprocess.run([COMMAND[0], "-I", "-c", whole], capture_output=True, text=True, cwd=agent.cwd)
    assert done.stderr == ""
    return done.stdout.split()


def test_record_imports_no_slow_modules(agent):
    """Agents run the command after each step, and imports take most of its time."""
    event = json.dumps(
        {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}}
    )
    imported = in_python(
        agent,
        f"""
import io, os
from vademecum.cli import main
sys.stdin = io.TextIOWrapper(io.BytesIO({event.encode()!r}))
os._exit = lambda code: (print(*sys.modules), sys.exit())
main.main(["record", "--data", {str(agent.data)!r}])
""",
    )
    heavy = {"click", "msgspec", "duckdb", "httpx", "pathlib", "typing", "inspect", "dataclasses", "urllib", "argparse", "asyncio", "tomllib", "logging", "subprocess"}  # fmt: skip
    assert "vademecum.model.secrets" in imported and not heavy & set(imported)
    assert agent.only_event()["content"] == "make"


def test_recording_a_harmless_event_compiles_few_patterns(agent):
    """Agents run the command after each step, and compiling all patterns takes as long as starting Python."""
    event = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "make test && git status"}}  # fmt: skip
    compiled = in_python(
        agent,
        f"""
import re
from vademecum.cli.agents import record
before = len(re._cache)
record.parse_action({event!r})
print(len(re._cache) - before)
""",
    )
    assert int(compiled[0]) <= 3


def test_help_of_record_shows_how_to_set_up_hooks(agent):
    done = agent.run(b"", "--help")
    assert done.returncode == 0 and done.stdout.startswith(b"Usage:")
    assert b'"command": "vademecum record"' in done.stdout and b"--user" in done.stdout

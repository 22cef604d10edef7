"""Errors of `vademecum record`: it prints one line to standard error and exits with 0, so that no agent fails."""

import json
import os
import subprocess

import pytest

from cli.agents.hooked_agent import PROJECT
from cli.command_runner import COMMAND, ROOT
from vademecum.model.agents.spool_layout import BLOCK_COUNT_FILE, BLOCKS_MAX, REASON_FILE, count_blocks

HOPELESS = {
    "nothing": b"",
    "no JSON": b'{"hook_event_name": "Stop"',
    "no object": b"[1]",
    "no UTF-8": b"\xff\xfe\xff",
    "too deep": b"[" * 200_000,
    "the root": b'{"hook_event_name": "Stop", "cwd": "/"}',
    "a decision of no words": b'{"kind": "decision"}',
    "a decision of blanks": b'{"kind": "decision", "content": " \\n"}',
    "a name that no folder has": b'{"hook_event_name": "Stop", "cwd": "\\u0000"}',
}


def refused(done):
    """Check that the command exited with 0 and printed exactly one error line. Return the line."""
    assert (done.returncode, done.stdout) == (0, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("vademecum record: ") and "Traceback" not in line
    return line


@pytest.mark.parametrize("stdin", HOPELESS.values(), ids=HOPELESS)
def test_record_prints_one_line_for_an_event_that_it_rejects(agent, stdin):
    refused(agent.run(stdin))
    assert not (agent.data / "spool").exists()


ODD = [
    {"hook_event_name": "PostToolUse"},
    {"hook_event_name": "PostToolUse", "tool_name": ["x"], "tool_input": "y"},
    {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"file_path": 7, "edits": [1, {"old_string": {}}]}},
    {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"offset": "a", "file_path": "a\ud800\0b"}},
    {"hook_event_name": "UserPromptSubmit", "prompt": "\ud800", "session_id": {"a": 1}},
    {"hook_event_name": "Stop", "cwd": 7, "last_assistant_message": [1, None, "x"]},
]  # fmt: skip


@pytest.mark.parametrize("event", ODD, ids=str)
def test_event_with_unusual_values_is_recorded(agent, event):
    done = agent.run(json.dumps(event).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert agent.project() == PROJECT


def test_record_does_not_create_missing_data_folder(agent):
    there = agent.home / "nosuch"
    assert f"There is no data folder {there}." in refused(
        agent.run(b'{"hook_event_name": "Stop"}', data=there)
    )
    assert not there.exists()


def test_record_prints_one_line_if_spool_folder_is_unwritable(agent):
    (agent.data / "spool").write_text("a file where a folder should be")
    assert "spool" in refused(agent.run(b'{"hook_event_name": "Stop"}'))
    assert "record" in refused(agent.run(b'{"hook_event_name": "Stop"}', data="/proc/self"))


def test_record_counts_waiting_events_and_stops_at_the_limit(agent):
    prompts = ["short", "long words " * 700, "short"]
    for prompt in prompts:
        agent.tell("UserPromptSubmit", prompt=prompt)
    tally = agent.data / "spool" / "owner" / BLOCK_COUNT_FILE
    assert tally.stat().st_size == sum(count_blocks(file.stat().st_size) for file in agent.files()) == 4
    os.truncate(tally, BLOCKS_MAX - 1)
    agent.tell("Stop")
    message = refused(agent.run(b'{"hook_event_name": "Stop"}'))
    assert "is not recorded" in message and "vademecum doctor" in message
    assert len(agent.files()) == 4, "recorded events must stay"


def test_record_prints_the_reason_why_events_wait(agent):
    agent.tell("Stop")
    (agent.data / "spool" / "owner" / REASON_FILE).write_text("This account is full.")
    message = refused(agent.run(b'{"hook_event_name": "Stop"}'))
    assert message.endswith("is recorded but not ingested yet: This account is full.")
    assert len([file for file in agent.files() if file.suffix == ".json"]) == 2


def test_record_on_full_disk_prints_one_line_and_leaves_no_files(agent):
    """A limit on the file size simulates the full disk, because it makes the same write fail."""
    import resource

    big = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "x " * 4000, "cwd": str(agent.cwd)})
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    command = [*COMMAND, "record", "--data", str(agent.data)]
    environment = {**os.environ, "HOME": str(agent.home), "PYTHONPATH": str(ROOT / "server"), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)  # fmt: skip
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1000, limit[1]))
    out, err = process.communicate(big.encode(), timeout=120)
    assert "File too large" in refused(subprocess.CompletedProcess(command, process.returncode, out, err))
    assert agent.files() == []


@pytest.mark.parametrize(
    "words", [["--nonsense"], ["--user"], ["--user", "ada"], ["--user=.."], ["x"]], ids=" ".join
)
def test_record_with_invalid_options_exits_with_zero(agent, words):
    done = agent.run(b'{"hook_event_name": "Stop"}', *words)
    if words == ["--user"]:
        assert (done.returncode, done.stderr) == (0, b"")
    else:
        refused(done)
        assert not (agent.data / "spool").exists()


def test_invalid_project_config_falls_back_to_folder_name(agent):
    (agent.cwd / ".vademecum.toml").write_text("project = 7")
    message = refused(agent.run(b'{"hook_event_name": "Stop"}'))
    assert ".vademecum.toml does not name its project" in message and "is “engine”" in message
    assert agent.project() == PROJECT


BIG = "x" * 10_000_000
BEFORE = (
    '{"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"old_string": "", "new_string": "'
)
PAD = 2**20 - len(BEFORE) - 8  # so that the command reads only `ghp_xxxx` of `new_string`
LARGE = {
    "a prompt": ({"hook_event_name": "UserPromptSubmit", "prompt": BIG}, "prompt", "x" * 7000),
    "an output": ({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": BIG}}, "command", "make"),
    "a list": ({"hook_event_name": "PostToolUse", "tool_name": "mcp__x", "tool_input": {"a": [1, {"b": None}], "c": ["y"] * 3_000_000}}, "command", 'mcp__x {"a": [1, {"b": null}], "c": ["y"'),
    "quotes": ({"hook_event_name": "UserPromptSubmit", "prompt": '"' * 10_000_000}, "prompt", '"' * 7000),
    "half a secret at the cut": ({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"old_string": "y" * PAD, "new_string": "ghp_" + BIG}}, "edit", "- " + "y" * 300 + "…\n+ \n[truncated"),
}  # fmt: skip


@pytest.mark.parametrize("case", LARGE)
def test_record_truncates_too_large_event_and_prints_a_warning(agent, case):
    event, kind, content = LARGE[case]
    done = agent.run(json.dumps(event).encode())
    assert "larger than 8 MB; only its beginning is recorded" in refused(done)
    kept = agent.only_event()
    assert kept["kind"] == kind and kept["content"].startswith(content) and len(kept["content"]) <= 8000
    assert kept["content"].endswith("[truncated: the event was larger than 8 MB]")


@pytest.mark.parametrize(
    "piece", ["a", "aA1", "password is ", "eyJaaaaaaaa.", "://a:", "--a", "\n", "-----BEGIN "]
)
def test_hostile_event_of_one_megabyte_is_recorded_quickly(agent, piece):
    before = os.times()
    hostile = piece * (2**20 // len(piece))
    agent.tell("UserPromptSubmit", prompt=hostile)
    agent.tell("PostToolUse", tool_name="mcp__x", tool_input={"a": hostile, "b": [hostile]})
    agent.tell(
        "PostToolUse",
        tool_name="mcp__x",
        tool_input={"a": [[[piece]] * 9] * 9_000, "b": dict.fromkeys(range(9000), piece)},
    )
    assert len(agent.files()) == 3
    # The bound is in CPU seconds, many times the usual duration.
    assert os.times().children_user - before.children_user < 10

"""`vademecum record` keeps what an agent did, hides what is secret, and never stands in the agent's way."""

import json
import os
import random
import re
import stat
import string
import subprocess
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from cli.home import COMMAND, ROOT
from vademecum.model.folders import BLOCKS_MAX, TALLY, WHY, blocks

SOAK = bool(os.environ.get("SOAK"))
PROJECT = {"name": "engine", "root": "~/dev/engine", "source": "git"}
LETTERS = string.ascii_letters + string.digits


def made(prefix, count):
    rng = random.Random(prefix)
    return prefix + "".join(rng.choice(LETTERS) for _ in range(count - 1)) + "7"


class Agent:
    """A home folder with a repository, a data folder, and the real command as an agent runs it."""

    def __init__(self, home):
        self.home, self.data, self.cwd = home, home / "data", home / "dev" / "engine" / "src"
        self.data.mkdir(parents=True)
        self.cwd.mkdir(parents=True)
        for part in ("objects", "refs"):
            (self.cwd.parent / ".git" / part).mkdir(parents=True)
        (self.cwd.parent / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    def run(self, stdin, *words, data=None, cwd=None, **settings):
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("VADEMECUM_", "XDG_", "CLAUDE_"))}
        environment = {**ours, **settings, "HOME": str(self.home), "PYTHONPATH": str(ROOT / "server")}
        command = [*COMMAND, "record", "--data", str(data or self.data), *words]
        return subprocess.run(command, input=stdin, capture_output=True, env=environment, cwd=cwd or self.cwd, timeout=120)  # fmt: skip

    def tell(self, name, *words, **event):
        whole = {
            "hook_event_name": name,
            "session_id": "s-1",
            "cwd": str(self.cwd),
            "transcript_path": "/t",
            **event,
        }
        done = self.run(json.dumps(whole).encode(), *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def files(self):
        """But for what is noted of how much waits."""
        there = (self.data / "spool").rglob("*")
        return sorted(path for path in there if path.is_file() and path.name != TALLY)

    def kept(self):
        """The one event that is in the spool."""
        (only,) = self.files()
        return json.loads(only.read_bytes())

    def project(self):
        """Of the one event, without what differs from machine to machine."""
        project = self.kept()["project"]
        assert re.fullmatch(r"[0-9a-f]{16}", project.pop("machine"))
        return project


@pytest.fixture
def agent(tmp_path):
    return Agent(tmp_path / "ada")


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
    """With the agent's own folders in it."""
    return json.loads(json.dumps(value).replace("{cwd}", str(agent.cwd)).replace("{home}", str(agent.home)))


@pytest.mark.parametrize("case", EVENTS)
def test_an_event_is_kept_as_one_file_without_contents(agent, case):
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


def test_an_event_is_of_the_project_in_which_the_agent_was_started_wherever_it_went(agent):
    other = agent.home / "dev" / "lib"
    other.mkdir()
    event = {"hook_event_name": "PostToolUse", "tool_name": "Read", "cwd": str(other)}
    started = {"CLAUDE_PROJECT_DIR": str(agent.cwd.parent)}
    agent.run(json.dumps(event | {"tool_input": {"file_path": "../engine/a.py"}}).encode(), **started)
    kept = agent.kept()
    assert (agent.project(), kept["path"]) == (PROJECT, "a.py")


def test_a_decision_is_kept_whole_up_to_the_bound(agent):
    said = "We use UTC. " * 1000
    agent.run(json.dumps({"kind": "decision", "content": said, "cwd": str(agent.cwd)}).encode())
    kept = agent.kept()
    assert (kept["kind"], agent.project(), kept["session"]) == ("decision", PROJECT, "")
    assert kept["content"] == said[:8000]


def test_events_that_are_not_known_are_left_without_a_word(agent):
    for name in ("PreToolUse", "Notification", "SubagentStop", "Whatever"):
        agent.tell(name, tool_name="Read", tool_input={})
    assert agent.run(b"{}").stderr == b"" and agent.files() == []


def test_only_the_owner_of_the_data_can_read_the_spool(agent):
    agent.tell("Stop")
    agent.tell("Stop", "--user", "ada+x/..@example.org")
    folders = sorted(path.name for path in (agent.data / "spool").iterdir())
    assert folders == sorted(["owner", quote("ada+x/..@example.org", safe="")])
    for path in [agent.data / "spool", *(agent.data / "spool").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


HOPELESS = {
    "nothing": b"",
    "no JSON": b'{"hook_event_name": "Stop"',
    "no object": b"[1]",
    "no UTF-8": b"\xff\xfe\xff",
    "too deep": b"[" * 200_000,
    "the root": b'{"hook_event_name": "Stop", "cwd": "/"}',
    "a name that no folder has": b'{"hook_event_name": "Stop", "cwd": "\\u0000"}',
}


def refused(done):
    """The one line of a command that could not do it, and did not say so by its end."""
    assert (done.returncode, done.stdout) == (0, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("vademecum record: ") and "Traceback" not in line
    return line


@pytest.mark.parametrize("stdin", HOPELESS.values(), ids=HOPELESS)
def test_what_cannot_be_kept_is_a_line_and_no_failure(agent, stdin):
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
def test_an_event_with_odd_values_is_kept_as_far_as_it_can_be(agent, event):
    done = agent.run(json.dumps(event).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert agent.project() == PROJECT


def test_a_data_folder_that_is_not_there_is_named_and_not_made(agent):
    there = agent.home / "nosuch"
    assert f"There is no data folder {there}." in refused(
        agent.run(b'{"hook_event_name": "Stop"}', data=there)
    )
    assert not there.exists()


def test_a_folder_that_cannot_be_written_is_a_line_and_no_failure(agent):
    (agent.data / "spool").write_text("a file where a folder should be")
    assert "spool" in refused(agent.run(b'{"hook_event_name": "Stop"}'))
    assert "record" in refused(agent.run(b'{"hook_event_name": "Stop"}', data="/proc/self"))


def test_what_waits_is_counted_and_has_a_bound(agent):
    prompts = ["short", "long words " * 700, "short"]
    for prompt in prompts:
        agent.tell("UserPromptSubmit", prompt=prompt)
    tally = agent.data / "spool" / "owner" / TALLY
    assert tally.stat().st_size == sum(blocks(file.stat().st_size) for file in agent.files()) == 4
    os.truncate(tally, BLOCKS_MAX - 1)
    agent.tell("Stop")
    said = refused(agent.run(b'{"hook_event_name": "Stop"}'))
    assert "is not kept" in said and "vademecum doctor" in said
    assert len(agent.files()) == 4, "what was kept stays"


def test_why_events_are_not_taken_up_is_said_and_the_event_is_kept(agent):
    agent.tell("Stop")
    (agent.data / "spool" / "owner" / WHY).write_text("This account is full.")
    said = refused(agent.run(b'{"hook_event_name": "Stop"}'))
    assert said.endswith("is kept, and is not taken up yet: This account is full.")
    assert len([file for file in agent.files() if file.suffix == ".json"]) == 2


def test_a_full_disk_is_a_line_and_no_failure_and_leaves_nothing(agent):
    """The limit on the size of a file makes the same error in the same place."""
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
def test_options_that_do_not_fit_never_fail_the_agent(agent, words):
    done = agent.run(b'{"hook_event_name": "Stop"}', *words)
    if words == ["--user"]:
        assert (done.returncode, done.stderr) == (0, b"")
    else:
        refused(done)
        assert not (agent.data / "spool").exists()


def test_with_a_config_that_does_not_fit_the_folder_gives_its_name_and_that_is_said(agent):
    (agent.cwd / ".vademecum.toml").write_text("project = 7")
    said = refused(agent.run(b'{"hook_event_name": "Stop"}'))
    assert ".vademecum.toml does not name its project" in said and "is “engine”" in said
    assert agent.project() == PROJECT


BIG = "x" * 10_000_000
BEFORE = (
    '{"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"old_string": "", "new_string": "'
)
PAD = 2**20 - len(BEFORE) - 8  # so much of the second text is read: `ghp_xxxx`
LARGE = {
    "a prompt": ({"hook_event_name": "UserPromptSubmit", "prompt": BIG}, "prompt", "x" * 7000),
    "an output": ({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": BIG}}, "command", "make"),
    "a list": ({"hook_event_name": "PostToolUse", "tool_name": "mcp__x", "tool_input": {"a": [1, {"b": None}], "c": ["y"] * 3_000_000}}, "command", 'mcp__x {"a": [1, {"b": null}], "c": ["y"'),
    "quotes": ({"hook_event_name": "UserPromptSubmit", "prompt": '"' * 10_000_000}, "prompt", '"' * 7000),
    "half a secret at the cut": ({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": {"old_string": "y" * PAD, "new_string": "ghp_" + BIG}}, "edit", "- " + "y" * 300 + "…\n+ \n[cut"),
}  # fmt: skip


@pytest.mark.parametrize("case", LARGE)
def test_of_an_event_that_is_too_large_the_beginning_is_kept_and_that_is_said(agent, case):
    event, kind, content = LARGE[case]
    done = agent.run(json.dumps(event).encode())
    assert "larger than 8 MB: its beginning is kept" in refused(done)
    kept = agent.kept()
    assert kept["kind"] == kind and kept["content"].startswith(content) and len(kept["content"]) <= 8000
    assert kept["content"].endswith("[cut: the event was larger than 8 MB]")


def test_nothing_secret_in_what_folders_are_called_reaches_the_disk(agent):
    secret = made("ghp_", 36)
    folder = agent.home / secret / f"app {secret}"
    folder.mkdir(parents=True)
    agent.run(b'{"hook_event_name": "Stop"}', cwd=folder)
    project = agent.project()
    assert secret not in json.dumps(agent.kept())
    assert "[redacted]" in project["name"] and project["root"].count("[redacted]") == 2


SECRETS = [
    made("ghp_", 36),
    made("sk-ant-api03-", 60),
    made("xoxb-", 40),
    "hunter2-swordfish",
    made("eyJ", 40),
]


STEPS = ("UserPromptSubmit", "Stop", "PostToolUseFailure")
PLACES = [*STEPS, "Bash", "Grep", "Read", "Write", "Edit", "MultiEdit", "mcp__x__y"]
# Each place and each secret; every secret in every place takes long.
HIDDEN = [(p, s) for p in range(len(PLACES)) for s in range(len(SECRETS)) if SOAK or p % len(SECRETS) == s]


def step_with(secret, place):
    """A step of an agent that has the secret there: its name, and what it says."""
    shown = f"password={secret} # and more"
    if place == "UserPromptSubmit":
        return place, {"prompt": f"{'x ' * 3990}{shown}"}
    if place == "Stop":
        return place, {"last_assistant_message": shown, "session_id": shown}
    if place == "PostToolUseFailure":
        return place, {"tool_name": shown, "tool_input": {}, "error": shown}
    names = ("command", "pattern", "path", "file_path", "content", "old_string", "text")
    deep = [{"api_key": secret, "x": json.dumps({"password": secret})}]
    more = {"edits": [{"old_string": shown, "new_string": shown}], "deep": deep}
    return "PostToolUse", {"tool_name": place, "tool_input": dict.fromkeys(names, shown) | more}


def test_nothing_secret_reaches_the_disk_wherever_it_stands(agent):
    for place, secret in HIDDEN:
        name, event = step_with(SECRETS[secret], PLACES[place])
        agent.tell(name, **event)
    files = agent.files()
    assert len(files) == len(HIDDEN)
    for file in files:
        content = file.read_bytes()
        assert not any(secret[at : at + 12].encode() in content for secret in SECRETS for at in range(4, len(secret) - 12)), content  # fmt: skip
        assert json.loads(content)["redactions"] >= 1


RANDOM_NAMES = [
    "assets/index-BkX9d2LmQz7TfGh3.js",
    "01JD3Q8ZK5W7XG2M9RBVN4TCHF.log",
    f"dist/{made('', 32)}.css",
]


@pytest.mark.parametrize("name", RANDOM_NAMES)
def test_a_path_or_a_session_is_no_secret_because_it_looks_random(agent, name):
    agent.tell("PostToolUse", tool_name="Read", tool_input={"file_path": name}, session_id=name)
    kept = agent.kept()
    assert (kept["path"], kept["session"], kept["redactions"]) == (f"src/{name}", name, 0)


def test_files_with_a_secret_in_their_paths_stay_apart_and_the_secret_is_hidden(agent):
    for secret in ("hunter2-swordfish", "hunter3-swordfish"):
        for name in ("a.py", "b.py"):
            path = f"dump/password={secret}/{name}"
            agent.tell("PostToolUse", tool_name="Read", tool_input={"file_path": path})
    paths = {json.loads(file.read_bytes())["path"] for file in agent.files()}
    assert len(paths) == 4 and all(
        re.fullmatch(r"src/dump/password=\[redacted\][0-9a-f]{4}/[ab]\.py", path) for path in paths
    ), paths


@pytest.mark.parametrize(
    "piece", ["a", "aA1", "password is ", "eyJaaaaaaaa.", "://a:", "--a", "\n", "-----BEGIN "]
)
def test_a_hostile_megabyte_is_kept_in_little_time(agent, piece):
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
    assert os.times().children_user - before.children_user < 10  # many times what it takes


def test_many_at_a_time_are_all_kept_and_none_is_torn(agent):
    numbers = range(0, 200, 1 if SOAK else 10)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: agent.tell("UserPromptSubmit", prompt=f"event {n} " + "word " * n), numbers))
    files = agent.files()
    assert len(files) == len(numbers) and all(file.suffix == ".json" for file in files)
    kept = [json.loads(file.read_bytes())["content"] for file in files]
    assert sorted(kept) == sorted(f"event {n} " + "word " * n for n in numbers)


def in_python(agent, code):
    """What a new Python says that has nothing but this program."""
    whole = f"import sys; sys.path.insert(0, {str(ROOT / 'server')!r})\n{code}"
    done = subprocess.run([COMMAND[0], "-I", "-c", whole], capture_output=True, text=True, cwd=agent.cwd)
    assert done.stderr == ""
    return done.stdout.split()


def test_it_imports_nothing_that_takes_long(agent):
    """A regression guard: the time of a run is that of its imports."""
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
    assert agent.kept()["content"] == "make"


def test_a_step_that_speaks_of_no_secret_compiles_few_patterns(agent):
    """A regression guard: compiling all of them takes as long as starting Python."""
    event = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "make test && git status"}}  # fmt: skip
    compiled = in_python(
        agent,
        f"""
import re
from vademecum.cli import record
before = len(re._cache)
record.act({event!r})
print(len(re._cache) - before)
""",
    )
    assert int(compiled[0]) <= 3


def test_its_help_teaches_how_an_agent_is_set_up(agent):
    done = agent.run(b"", "--help")
    assert done.returncode == 0 and done.stdout.startswith(b"Usage:")
    assert b'"command": "vademecum record"' in done.stdout and b"--user" in done.stdout

"""`vademecum record` redacts secrets before it writes an event."""

import json
import os
import random
import re
import string

import pytest

LETTERS = string.ascii_letters + string.digits


def made(prefix, count):
    rng = random.Random(prefix)
    return prefix + "".join(rng.choice(LETTERS) for _ in range(count - 1)) + "7"


def test_secrets_in_folder_names_are_not_written(agent):
    secret = made("ghp_", 36)
    folder = agent.home / secret / f"app {secret}"
    folder.mkdir(parents=True)
    agent.run(b'{"hook_event_name": "Stop"}', cwd=folder)
    project = agent.project()
    assert secret not in json.dumps(agent.only_event())
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
# By default, test each place with one secret, because testing every secret in every place takes long.
SOAK = bool(os.environ.get("SOAK"))
HIDDEN = [(p, s) for p in range(len(PLACES)) for s in range(len(SECRETS)) if SOAK or p % len(SECRETS) == s]


def step_with(secret, place):
    """Return the name and the fields of an agent event that contains the secret in this place."""
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


def test_secrets_in_events_are_not_written(agent):
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
def test_random_paths_and_sessions_are_not_redacted(agent, name):
    agent.tell("PostToolUse", tool_name="Read", tool_input={"file_path": name}, session_id=name)
    kept = agent.only_event()
    assert (kept["path"], kept["session"], kept["redactions"]) == (f"src/{name}", name, 0)


def test_redacted_paths_with_different_secrets_stay_distinct(agent):
    for secret in ("hunter2-swordfish", "hunter3-swordfish"):
        for name in ("a.py", "b.py"):
            path = f"dump/password={secret}/{name}"
            agent.tell("PostToolUse", tool_name="Read", tool_input={"file_path": path})
    paths = {json.loads(file.read_bytes())["path"] for file in agent.files()}
    assert len(paths) == 4 and all(
        re.fullmatch(r"src/dump/password=\[redacted\][0-9a-f]{4}/[ab]\.py", path) for path in paths
    ), paths

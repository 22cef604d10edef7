"""`vademecum record`: write one hook event of a coding agent from standard input to the spool.

The command runs at each step of an agent and must not disturb the agent: it always exits with 0, prints nothing to standard
output and at most one line to standard error. To start quickly it imports little: no click, no pathlib, no msgspec. The
server ingests the spool when it runs.
"""

from __future__ import annotations

import json
import os
import sys
import time

from vademecum.cli.agents import spool_writer
from vademecum.engines.workspace import ProjectLocation, compute_machine_id, locate
from vademecum.errors import BadRequest, NotFound
from vademecum.model.agents.hook_events import CONTENT_MAX, AgentAction, parse_action
from vademecum.model.agents.project_identity import FolderIdentity, redact_identity
from vademecum.model.schema.constants import AGENT_FOLDER, default_data
from vademecum.model.schema.uuid7 import uuid7

STDIN_MAX = 8 * 2**20
TOO_LARGE = f"The event is larger than {STDIN_MAX // 2**20} MB; only its beginning is recorded."
EMPTY = "A decision needs `content`; nothing is recorded."
WAITS = "The event is recorded but not ingested yet:"
TRUNCATED = f"\n[truncated: the event was larger than {STDIN_MAX // 2**20} MB]"
# Discard at most DRAIN_MAX * STDIN_MAX further bytes: an early close may look like an error to the agent.
DRAIN_MAX = 8


def main(arguments: list[str]) -> None:
    """Record the event and end the process immediately, without the interpreter's cleanup."""
    try:
        for message in record(*_parse_options(arguments)):
            _print_error(message)
    except Exception as error:
        _print_error(str(error) or type(error).__name__)
    finally:
        os._exit(0)


def record(data: str, email: str) -> list[str]:
    """Record the event on standard input. Return a list of at most one message for the user.

    An event of a kind that is not recorded is ignored. Raises VademecumError or OSError if recording fails.
    """
    content = _read_stdin()
    is_truncated = len(content) > STDIN_MAX
    event = _parse_event(_repair_beginning(content) if is_truncated else content)
    action = parse_action(event)
    if action is None:
        return [EMPTY] if event.get("kind") == "decision" else []
    if not os.path.isdir(data):
        raise NotFound(f"There is no data folder {data}. `vademecum serve` creates it.")
    if email and "@" not in email:
        raise BadRequest(f"{email} is not an email.")
    event_id = uuid7(time.time_ns() // 1_000_000, os.urandom(10))
    cwd = event.get("cwd")
    folder = cwd if isinstance(cwd, str) and cwd else os.getcwd()  # the base of the event's relative paths
    location, warnings = _locate(os.environ.get(AGENT_FOLDER) or folder, os.path.expanduser("~"))
    if is_truncated:
        action = action._replace(content=action.content[: CONTENT_MAX - len(TRUNCATED)] + TRUNCATED)
    text = json.dumps(_create_entry(event_id, action, location, folder), ensure_ascii=False)
    spool_folder = spool_writer.folder_for(data, email)
    reason = spool_writer.write_event(spool_folder, event_id, text.encode(errors="replace"))
    messages = [TOO_LARGE] * is_truncated + ([f"{WAITS} {reason}"] if reason else []) + warnings
    return [" ".join(messages)] if messages else []


def _locate(folder: str, home: str) -> tuple[ProjectLocation, list[str]]:
    """Return the folder's project, and a warning if its config is invalid.

    An invalid config is ignored, because an event that is not recorded now is lost.
    """
    try:
        return locate(folder, home), []
    except BadRequest as error:
        location = locate(folder, home, use_config=False)
        name = redact_identity(*location.identity[:2])[0]
        return location, [f"{error} Until then the project is “{name}”."]


def _create_entry(
    event_id: str, action: AgentAction, location: ProjectLocation, folder: str
) -> dict[str, object]:
    """Return the event in the format of the spool."""
    entry = {
        "v": 1,
        "id": event_id,
        "at": _now(),
        "project": _describe_project(location.identity, location.home),
        "session": action.session,
        "kind": action.kind,
        "content": action.content,
        "redactions": action.redactions,
    }
    if action.path:
        entry["path"] = location.relative(action.path, folder)
    if action.tool:
        entry["tool"] = action.tool
    return entry


def _describe_project(identity: FolderIdentity, home: str) -> dict[str, str]:
    name, root = redact_identity(identity.name, identity.root)
    return {"name": name, "root": root, "source": identity.source, "machine": compute_machine_id(home)}


def _now() -> str:
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1_000_000:03}Z"


def _read_stdin() -> bytes:
    content = sys.stdin.buffer.read(STDIN_MAX + 1)
    if len(content) > STDIN_MAX:
        for _ in range(DRAIN_MAX):
            if not sys.stdin.buffer.read(STDIN_MAX):
                break
    return content


def _repair_beginning(content: bytes) -> bytes:
    # Imported here because only the rare event above STDIN_MAX needs it.
    from vademecum.cli.agents.truncated_json import repair_beginning

    return repair_beginning(content)


def _parse_event(content: bytes) -> dict[str, object]:
    try:
        event = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"Standard input is not JSON: {error}.") from error
    if not isinstance(event, dict):
        raise BadRequest("Standard input is not a JSON object.")
    return event


def _parse_options(arguments: list[str]) -> tuple[str, str]:
    """Return the data folder and the email. Raises BadRequest for an invalid option.

    click is not used, because it would end the process with a failure for an invalid option.
    """
    home = os.path.expanduser("~")
    options = {"--data": os.environ.get("VADEMECUM_DATA") or default_data(os.environ, home), "--user": ""}
    rest = iter(arguments)
    for argument in rest:
        name, sign, value = argument.partition("=")
        if name not in options:
            raise BadRequest(f"There is no option {argument}. Run `vademecum record --help`.")
        options[name] = value if sign else next(rest, "")
    return os.path.abspath(os.path.expanduser(options["--data"])), options["--user"].strip()


def _print_error(message: str) -> None:
    message = " ".join(message.split())[:500]
    os.write(2, f"vademecum record: {message}\n".encode(errors="replace"))

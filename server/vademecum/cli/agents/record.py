"""`vademecum record`: one hook event of a coding agent, from standard input into the spool.

It runs at each step of an agent, so it never stands in its way: whatever happens, it ends with 0, prints nothing on
standard output and at most one line on standard error. And it is quick, so it imports little: no click, no pathlib, no
msgspec. The server takes the spool up when it runs.
"""

from __future__ import annotations

import json
import os
import sys
import time

from vademecum.cli.agents import spool_writer
from vademecum.engines.workspace import Place, locate, machine
from vademecum.errors import BadRequest, NotFound
from vademecum.model.agents.hook_events import CONTENT_MAX, Act, act
from vademecum.model.agents.project_identity import FolderIdentity, hidden
from vademecum.model.schema.constants import AGENT_FOLDER, default_data
from vademecum.model.schema.uuid7 import uuid7

STDIN_MAX = 8 * 2**20
TOO_LARGE = f"The event is larger than {STDIN_MAX // 2**20} MB: its beginning is kept."
EMPTY = "A decision without `content` is none: nothing is kept."
WAITS = "The event is kept, and is not taken up yet:"
CUT = f"\n[cut: the event was larger than {STDIN_MAX // 2**20} MB]"
DRAINED_MAX = 8  # times STDIN_MAX: an agent whose writing is cut off may take that for an error


def main(words: list[str]) -> None:
    """Ends the process, at once: nothing is left that Python would have to put in order."""
    try:
        for said in record(*_options(words)):
            _complain(said)
    except Exception as error:
        _complain(str(error) or type(error).__name__)
    finally:
        os._exit(0)


def record(data: str, email: str) -> list[str]:
    """What there is to say of an event that was kept, in a line at most. Raises why one was not."""
    content = _read()
    is_cut = len(content) > STDIN_MAX
    event = _event(_beginning(content) if is_cut else content)
    found = act(event)
    if found is None:
        return [EMPTY] if event.get("kind") == "decision" else []
    if not os.path.isdir(data):
        raise NotFound(f"There is no data folder {data}. `vademecum serve` begins one.")
    if email and "@" not in email:
        raise BadRequest(f"{email} is not an account's email.")
    name = uuid7(time.time_ns() // 1_000_000, os.urandom(10))
    cwd = event.get("cwd")
    folder = cwd if isinstance(cwd, str) and cwd else os.getcwd()  # paths are relative to it
    home = os.path.expanduser("~")
    place, wrong = _place(os.environ.get(AGENT_FOLDER) or folder, home)
    found = found._replace(content=found.content[: CONTENT_MAX - len(CUT)] + CUT) if is_cut else found
    text = json.dumps(_entry(name, found, place, folder), ensure_ascii=False)
    why = spool_writer.put(spool_writer.folder_of(data, email), name, text.encode(errors="replace"))
    said = ([TOO_LARGE] if is_cut else []) + ([f"{WAITS} {why}"] if why else [])
    return [" ".join(said + wrong)] if said or wrong else []


def _place(folder: str, home: str) -> tuple[Place, list[str]]:
    """Whose project it is; and what is wrong with its config, without which it goes by the name of its folder: what an
    agent does now is not done again when that is mended."""
    try:
        return locate(folder, home), []
    except BadRequest as error:
        place = locate(folder, home, configured=False)
        return place, [f"{error} Until then its project is “{hidden(*place.identity[:2])[0]}”."]


def _entry(name: str, found: Act, place: Place, folder: str) -> dict[str, object]:
    """The event as the server reads it."""
    entry = {
        "v": 1,
        "id": name,
        "at": _now(),
        "project": _project(place.identity, place.home),
        "session": found.session,
        "kind": found.kind,
        "content": found.content,
        "redactions": found.redactions,
    }
    if found.path:
        entry["path"] = place.relative(found.path, folder)
    if found.tool:
        entry["tool"] = found.tool
    return entry


def _project(found: FolderIdentity, home: str) -> dict[str, str]:
    name, root = hidden(found.name, found.root)
    return {"name": name, "root": root, "source": found.source, "machine": machine(home)}


def _now() -> str:
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1_000_000:03}Z"


def _read() -> bytes:
    content = sys.stdin.buffer.read(STDIN_MAX + 1)
    if len(content) > STDIN_MAX:
        for _ in range(DRAINED_MAX):
            if not sys.stdin.buffer.read(STDIN_MAX):
                break
    return content


def _beginning(content: bytes) -> bytes:
    from vademecum.cli.agents.truncated_json import beginning  # few events are so large

    return beginning(content)


def _event(content: bytes) -> dict[str, object]:
    try:
        event = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"Standard input is not JSON: {error}.") from error
    if not isinstance(event, dict):
        raise BadRequest("Standard input is not an event: a JSON object.")
    return event


def _options(words: list[str]) -> tuple[str, str]:
    """The data folder and the user, as click would read them: but a word too much is no reason to stop an agent."""
    home = os.path.expanduser("~")
    chosen = {"--data": os.environ.get("VADEMECUM_DATA") or default_data(os.environ, home), "--user": ""}
    rest = iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        if name not in chosen:
            raise BadRequest(f"There is no option {word}. Try `vademecum record --help`.")
        chosen[name] = value if sign else next(rest, "")
    return os.path.abspath(os.path.expanduser(chosen["--data"])), chosen["--user"].strip()


def _complain(said: str) -> None:
    said = " ".join(said.split())[:500]
    os.write(2, f"vademecum record: {said}\n".encode(errors="replace"))

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

from vademecum.cli import spool
from vademecum.engines.workplace import locate
from vademecum.errors import BadRequest, NotFound
from vademecum.model.folders import AGENT_FOLDER, default_data
from vademecum.model.ids import uuid7
from vademecum.model.observed import Act, act

STDIN_MAX = 8 * 2**20
DRAINED_MAX = 8  # times STDIN_MAX: an agent whose writing is cut off may take that for an error


def main(words: list[str]) -> None:
    """Ends the process, at once: nothing is left that Python would have to put in order."""
    try:
        record(*_options(words))
    except Exception as error:
        _complain(error)
    finally:
        os._exit(0)


def record(data: str, email: str) -> None:
    """Raises whatever there is to complain of."""
    event = _event(_read())
    found = act(event)
    if found is None:
        return
    if not os.path.isdir(data):
        raise NotFound(f"There is no data folder {data}. `vademecum serve` begins one.")
    if email and "@" not in email:
        raise BadRequest(f"{email} is not an account's email.")
    name = uuid7(time.time_ns() // 1_000_000, os.urandom(10))
    text = json.dumps(_entry(name, found, event.get("cwd")), ensure_ascii=False)
    spool.put(spool.folder_of(data, email), name, text.encode(errors="replace"))


def _entry(name: str, found: Act, cwd: object) -> dict[str, object]:
    """The event as the server reads it."""
    folder = cwd if isinstance(cwd, str) and cwd else os.getcwd()  # paths are relative to it
    place = locate(os.environ.get(AGENT_FOLDER) or folder, os.path.expanduser("~"))
    entry = {
        "v": 1,
        "id": name,
        "at": _now(),
        "project": place.identity._asdict(),
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


def _now() -> str:
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1_000_000:03}Z"


def _read() -> bytes:
    content = sys.stdin.buffer.read(STDIN_MAX + 1)
    if len(content) > STDIN_MAX:
        for _ in range(DRAINED_MAX):
            if not sys.stdin.buffer.read(STDIN_MAX):
                break
        raise BadRequest(f"The event is larger than {STDIN_MAX // 2**20} MB.")
    return content


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


def _complain(error: Exception) -> None:
    said = " ".join(str(error).split())[:500] or type(error).__name__
    os.write(2, f"vademecum record: {said}\n".encode(errors="replace"))

"""`vademecum import`: files and folders become a user's documents.

Every file has its line on standard error as soon as it is done, on a terminal or not: an import of long texts takes
minutes, and whoever waits wants to see that it goes on.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category

import click
import msgspec

from vademecum.cli.api_client import ApiClient, run_with_client
from vademecum.cli.options import data_option, json_option, settings_for, user_option
from vademecum.errors import BadRequest, TooLarge, VademecumError
from vademecum.model.schema.collections import ID_PATTERN
from vademecum.services.runtime.clock import now_iso
from vademecum.settings import UPLOAD_MAX

if TYPE_CHECKING:
    from rich.progress import Progress

ID = re.compile(ID_PATTERN)
# After so long it looks again, ever later: the server leaves a core to whoever looks more often.
LOOK_S, LOOK_MOST_S = 0.3, 2.0
HIDDEN, LINK, UNREADABLE = "hidden", "link that leads outside", "folder that cannot be read"
NO_FILE = "neither a file nor a folder"
# They turn the order of letters around, and with it what a line seems to say.
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Found(NamedTuple):
    """A file to import, or, with the reason, what is left out."""

    path: Path
    skipped: str = ""


def find(named: Sequence[Path]) -> Iterator[Found]:
    """Files as named, and those below named folders.

    Who names a folder means what is in it: a link may not bring in a file from elsewhere.
    """
    roots = [os.path.realpath(path) for path in named]
    for path in named:
        if _is_folder(path):
            yield from _below(path, roots)
        else:
            yield Found(path)


def _is_folder(path: Path) -> bool:
    """Not one that lies where nobody is let in: it is tried as a file, and why it cannot be read is said."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _below(folder: Path, roots: Sequence[str]) -> Iterator[Found]:
    try:
        # Some give away their names and let nobody in.
        inside = sorted(folder.iterdir()) if os.access(folder, os.X_OK) else None
    except OSError:
        inside = None
    if inside is None:
        yield Found(folder, UNREADABLE)
        return
    for path in inside:
        if path.name.startswith("."):
            yield Found(path, HIDDEN)
        elif path.is_symlink() and not any(Path(os.path.realpath(path)).is_relative_to(r) for r in roots):
            yield Found(path, LINK)
        elif path.is_file():
            yield Found(path)
        elif not path.is_dir():  # a pipe, or a link to what is gone
            yield Found(path, NO_FILE)
        elif not path.is_symlink():  # what a link within leads to is found by its own name
            yield from _below(path, roots)


def _text(path: Path | str) -> str:
    """A path that can be sent and written in JSON: on some systems the bytes of a name need not be text."""
    return os.fsencode(path).decode(errors="replace")


def _outcome(result: dict[str, Any], document: dict[str, Any] | None) -> str:
    """A file's line."""
    if document is None:
        return f"{result['file']}: {result['error']}"
    what = "here already" if result["existing"] else "stored"
    return f"{result['file']}: {what}, {_count(document['chunkCount'], 'passage')}"


def _left_out(found: Sequence[Found]) -> str:
    numbers = Counter(one.skipped for one in found if one.skipped)
    return f" Skipped: {', '.join(f'{n} {reason}' for reason, n in numbers.items())}." if numbers else ""


def _progress() -> Progress:
    from rich.console import Console  # what shows no progress goes without it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _say(progress: Progress, line: str) -> None:
    """Above the bar, if there is one. A file's name may hold what would steer a terminal."""
    line = "".join("\ufffd" if category(letter) == "Cc" or letter in TURNING else letter for letter in line)
    progress.console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@user_option
@click.option(
    "--session",
    required=True,
    help="The session that may search the documents. It is created if it does not exist.",
)
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait until all documents are embedded. Otherwise the server embeds them in the background.",
)
@data_option
@json_option
def import_(paths: tuple[Path, ...], email: str, session: str, wait: bool, data: Path, as_json: bool) -> None:
    """Import files and folders of files.

    The server keeps the text of a file, not the file. A file that cannot be read is listed with the reason, and the import
    continues. In folders, hidden files and links that lead outside are skipped and listed.

    Search finds a document by its words at once, and by its meaning after it is embedded. The command waits for that:
    seconds for a letter, several minutes for a book. Use --no-wait to return earlier.

    \b
    Example: vademecum import ~/papers --user ada@example.org --session thesis
    """

    async def work(client: ApiClient) -> list[dict[str, Any]]:
        await _ensure_session(client, email, session)
        with _progress() as progress:
            return await _import(client, email, session, found, wait, progress)

    settings = settings_for(data)
    if not any(os.path.lexists(path) for path in paths):
        raise BadRequest(f"{_text(paths[0])} is not there. Nothing was imported.")
    found = list(find(paths))
    results = run_with_client(settings, work)
    failed = sum("error" in result for result in results)
    if as_json:
        click.echo(msgspec.json.encode(results).decode())
    else:
        click.echo(f"{len(results) - failed} of {len(results)} files imported.{_left_out(found)}")
    sys.exit(1 if failed else 0)


async def _import(
    client: ApiClient, email: str, session: str, found: Sequence[Found], wait: bool, progress: Progress
) -> list[dict[str, Any]]:
    """What became of each file that is not left out."""
    results = []
    waiting: dict[str, str] = {}
    task = progress.add_task("Importing", total=len(found))
    for path, skipped in found:
        if skipped:
            _say(progress, f"{_text(path)}: skipped ({skipped})")
        else:
            result, document = await _upload(client, email, session, path)
            _say(progress, _outcome(result, document))
            results.append(result)
            if document is not None and document["status"] == "pending":
                waiting.setdefault(document["id"], _text(path))
        progress.advance(task)
    if wait and waiting:
        await _embedded(client, email, waiting, progress)
    return results


async def _ensure_session(client: ApiClient, email: str, session: str) -> None:
    if not ID.fullmatch(session):
        raise BadRequest(
            f"“{session}” cannot name a session: letters A to Z, digits, and . _ ~ - may, up to 100 of them. "
            "Nothing was imported."
        )
    now = now_iso()
    row = {
        "id": session,
        "createdAt": now,
        "updatedAt": now,
        "_deleted": False,
        "title": session,
        "mode": "analysis",
    }
    answers = await client.call("POST", "/v1/sync/sessions/0/push", email, json=[{"newDocumentState": row}])
    for answer in answers:
        if "syncError" in answer:
            raise VademecumError(f"The session {session} was refused: {answer['syncError']['message']}")
        if answer.get("_deleted"):
            raise VademecumError(f"The session {session} was deleted. Choose another name.")


def _read(file: Path) -> bytes:
    """The whole file, unless it is larger than any that is taken: it would fill the memory for nothing."""
    with file.open("rb") as opened:
        content = opened.read(UPLOAD_MAX + 1)
    if len(content) > UPLOAD_MAX:
        raise TooLarge(f"A file may have at most {UPLOAD_MAX >> 20} MB, this one has more.")
    return content


async def _upload(
    client: ApiClient, email: str, session: str, file: Path
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What became of the file, and its document if it has one."""
    try:
        content = await asyncio.to_thread(_read, file)
        answer = await client.call(
            "POST",
            "/v1/documents",
            email,
            files={"file": (_text(file.name), content)},
            data={"sessionId": session},
        )
    except OSError as error:
        return {"file": _text(file), "error": error.strerror or str(error)}, None
    except VademecumError as error:
        return {"file": _text(file), "error": _text(str(error))}, None
    document = answer["document"]
    return {"file": _text(file), "documentId": document["id"], "existing": answer["existing"]}, document


def _became(document: dict[str, Any] | None) -> str:
    """What a document that was waited for is now."""
    if document is None:
        return "deleted meanwhile"
    return "ready" if document["status"] == "ready" else "not wholly embedded, found by its words"


async def _embedded(client: ApiClient, email: str, waiting: dict[str, str], progress: Progress) -> None:
    """Wait for these documents (id -> file); others may be pending for as long as a device keeps their text to itself."""
    total = len(waiting)
    _say(
        progress,
        f"Found by words from now on. Waiting for {_count(total, 'document')} to be ready, which takes minutes "
        "for long texts; who does not wait loses nothing.",
    )
    task = progress.add_task("Getting ready", total=total)
    look_s = LOOK_S
    while waiting:
        listed = (await client.call("GET", "/v1/documents", email))["documents"]
        documents = {document["id"]: document for document in listed}
        for done in [i for i in waiting if i not in documents or documents[i]["status"] != "pending"]:
            file = waiting.pop(done)
            _say(progress, f"{file}: {_became(documents.get(done))}, {total - len(waiting)} of {total}")
        progress.update(task, completed=total - len(waiting))
        if waiting:
            await asyncio.sleep(look_s)
            look_s = min(LOOK_MOST_S, look_s * 1.5)

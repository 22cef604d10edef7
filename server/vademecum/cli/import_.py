"""`vademecum import`: import files and folders as a user's documents.

The command reports each finished file in a line on standard error, even without a terminal, because importing long texts
takes minutes.
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
POLL_S, POLL_MAX_S = 0.3, 2.0  # the interval grows, because polling takes computing time from the server
HIDDEN, LINK, UNREADABLE = "hidden", "link that leads outside", "folder that cannot be read"
NO_FILE = "neither a file nor a folder"
# Unicode characters that change the direction of text and could disguise the content of a line.
DIRECTION_MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Candidate(NamedTuple):
    """A file to import, or a file to skip with the reason."""

    path: Path
    skipped: str = ""


def find_files(paths: Sequence[Path]) -> Iterator[Candidate]:
    """Yield each file in `paths` and each entry below the folders in `paths`. Skipped entries have a reason."""
    roots = [os.path.realpath(path) for path in paths]
    for path in paths:
        if _is_folder(path):
            yield from _find_below(path, roots)
        else:
            yield Candidate(path)


def _is_folder(path: Path) -> bool:
    """Return whether the path is a folder.

    Return False if that is unknown: reading the path as a file reports the error.
    """
    try:
        return path.is_dir()
    except OSError:
        return False


def _find_below(folder: Path, roots: Sequence[str]) -> Iterator[Candidate]:
    try:
        # Without the search permission a folder can be listed, but its entries cannot be opened.
        entries = sorted(folder.iterdir()) if os.access(folder, os.X_OK) else None
    except OSError:
        entries = None
    if entries is None:
        yield Candidate(folder, UNREADABLE)
        return
    for path in entries:
        if path.name.startswith("."):
            yield Candidate(path, HIDDEN)
        elif path.is_symlink() and not any(Path(os.path.realpath(path)).is_relative_to(r) for r in roots):
            yield Candidate(path, LINK)
        elif path.is_file():
            yield Candidate(path)
        elif not path.is_dir():  # for example a pipe or a broken link
            yield Candidate(path, NO_FILE)
        elif not path.is_symlink():  # skip a link to a folder, because its target is found by its own path
            yield from _find_below(path, roots)


def _printable(path: Path | str) -> str:
    """Return a path as valid Unicode: file names may be arbitrary bytes."""
    return os.fsencode(path).decode(errors="replace")


def _describe_result(result: dict[str, Any], document: dict[str, Any] | None) -> str:
    if document is None:
        return f"{result['file']}: {result['error']}"
    status = "already imported" if result["existing"] else "stored"
    return f"{result['file']}: {status}, {_count(document['chunkCount'], 'passage')}"


def _describe_skipped(candidates: Sequence[Candidate]) -> str:
    counts = Counter(one.skipped for one in candidates if one.skipped)
    return f" Skipped: {', '.join(f'{n} {reason}' for reason, n in counts.items())}." if counts else ""


def _progress() -> Progress:
    from rich.console import Console  # deferred: the import is slow
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _print_line(progress: Progress, line: str) -> None:
    """Print a line above the progress bar.

    Replace its control characters and direction marks, which come from file names.
    """
    line = "".join(
        "\ufffd" if category(letter) == "Cc" or letter in DIRECTION_MARKS else letter for letter in line
    )
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

    Search finds a document by its words at once, and by its meaning after it is embedded. The command waits until all
    are embedded: seconds for a letter, several minutes for a book. Use --no-wait to return earlier.

    \b
    Example: vademecum import ~/papers --user ada@example.org --session thesis
    """

    async def work(client: ApiClient) -> list[dict[str, Any]]:
        await _ensure_session(client, email, session)
        with _progress() as progress:
            return await _import(client, email, session, candidates, wait, progress)

    settings = settings_for(data)
    if not any(os.path.lexists(path) for path in paths):
        raise BadRequest(f"{_printable(paths[0])} does not exist. Nothing was imported.")
    candidates = list(find_files(paths))
    results = run_with_client(settings, work)
    failed = sum("error" in result for result in results)
    if as_json:
        click.echo(msgspec.json.encode(results).decode())
    else:
        click.echo(
            f"{len(results) - failed} of {len(results)} files imported.{_describe_skipped(candidates)}"
        )
    sys.exit(1 if failed else 0)


async def _import(
    client: ApiClient,
    email: str,
    session: str,
    candidates: Sequence[Candidate],
    wait: bool,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Import the candidates. Return a result for each file that is not skipped."""
    results = []
    waiting: dict[str, str] = {}
    task = progress.add_task("Importing", total=len(candidates))
    for path, skipped in candidates:
        if skipped:
            _print_line(progress, f"{_printable(path)}: skipped ({skipped})")
        else:
            result, document = await _upload(client, email, session, path)
            _print_line(progress, _describe_result(result, document))
            results.append(result)
            if document is not None and document["status"] == "pending":
                waiting.setdefault(document["id"], _printable(path))
        progress.advance(task)
    if wait and waiting:
        await _wait_until_embedded(client, email, waiting, progress)
    return results


async def _ensure_session(client: ApiClient, email: str, session: str) -> None:
    if not ID.fullmatch(session):
        raise BadRequest(
            f"“{session}” is not a valid session id. Use up to 100 letters A to Z, digits and . _ ~ -. Nothing was imported."
        )
    now = now_iso()
    row = {
        "id": session,
        "createdAt": now,
        "updatedAt": now,
        "_deleted": False,
        "title": session,
        "mode": "analysis",
        "documentScope": "chosen",
        "memory": "on",
    }
    results = await client.call("POST", "/v1/sync/sessions/1/push", email, json=[{"newDocumentState": row}])
    for result in results:
        if "syncError" in result:
            raise VademecumError(f"The session {session} was rejected: {result['syncError']['message']}")
        if result.get("_deleted"):
            raise VademecumError(f"The session {session} was deleted. Choose another name.")


def _read(file: Path) -> bytes:
    """Return the content of a file. Raises TooLarge if it is larger than UPLOAD_MAX, without reading all of it."""
    with file.open("rb") as handle:
        content = handle.read(UPLOAD_MAX + 1)
    if len(content) > UPLOAD_MAX:
        raise TooLarge(f"The file is larger than {UPLOAD_MAX >> 20} MB.")
    return content


async def _upload(
    client: ApiClient, email: str, session: str, file: Path
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Upload a file.

    Return two values: the result for the user, and the document, which is None if the upload failed.
    """
    try:
        content = await asyncio.to_thread(_read, file)
        answer = await client.call(
            "POST",
            "/v1/documents",
            email,
            files={"file": (_printable(file.name), content)},
            data={"sessionId": session},
        )
    except OSError as error:
        return {"file": _printable(file), "error": error.strerror or str(error)}, None
    except VademecumError as error:
        return {"file": _printable(file), "error": _printable(str(error))}, None
    document = answer["document"]
    return {"file": _printable(file), "documentId": document["id"], "existing": answer["existing"]}, document


def _describe_document(document: dict[str, Any] | None) -> str:
    if document is None:
        return "deleted meanwhile"
    return "ready" if document["status"] == "ready" else "not completely embedded, found by its words only"


async def _wait_until_embedded(
    client: ApiClient, email: str, waiting: dict[str, str], progress: Progress
) -> None:
    """Wait until the documents in `waiting`, which maps ids to files, are embedded.

    Other documents of the account do not count: they may stay pending until a device uploads their text.
    """
    total = len(waiting)
    _print_line(
        progress,
        f"The documents can now be found by words. Waiting for {_count(total, 'document')} to be embedded, which takes "
        "minutes for long texts. You can stop waiting: the server continues.",
    )
    task = progress.add_task("Embedding", total=total)
    poll_s = POLL_S
    while waiting:
        rows = (await client.call("GET", "/v1/documents", email))["documents"]
        documents = {document["id"]: document for document in rows}
        for done in [i for i in waiting if i not in documents or documents[i]["status"] != "pending"]:
            file = waiting.pop(done)
            _print_line(
                progress,
                f"{file}: {_describe_document(documents.get(done))}, {total - len(waiting)} of {total}",
            )
        progress.update(task, completed=total - len(waiting))
        if waiting:
            await asyncio.sleep(poll_s)
            poll_s = min(POLL_MAX_S, poll_s * 1.5)

"""Send requests of the sync protocol: push pairs of rows and pull pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from property.rows import sync_path
from server.in_process_server import Person, run, serve

Row = dict[str, Any]
COLLECTIONS = (
    "documents",
    "vectorEmbeddings",
    "projects",
    "sessions",
    "episodes",
    "facts",
    "memories",
    "entities",
    "relationships",
    "summaries",
)


def alone(tmp_path: Path, scenario: Callable[[Person], Awaitable[None]], **settings: Any) -> None:
    """Run a scenario with one person on a new server."""

    async def whole() -> None:
        async with serve(tmp_path, **settings) as h:
            await scenario(await h.person())

    run(whole)


async def send(person: Person, collection: str, *pairs: tuple[Row, Row | None]) -> list[Row]:
    """Push (new, assumed) pairs in one batch. Return the rows of the response."""
    batch = [{"newDocumentState": new} | ({"assumedMasterState": old} if old else {}) for new, old in pairs]
    answer = await person.call("POST", f"{sync_path(collection)}/push", json=batch)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def page(person: Person, collection: str, lwt: int = 0, epoch: str = "", limit: int = 1000) -> Any:
    query = {"lwt": lwt, "id": epoch, "limit": limit}
    answer = await person.call("GET", f"{sync_path(collection)}/pull", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def epoch(person: Person) -> str:
    return epoch_of((await page(person, "projects", limit=1))["checkpoint"])


def epoch_of(checkpoint: Row) -> str:
    """Return the epoch that a checkpoint names; what follows the dot is its MAC."""
    return checkpoint["id"].partition(".")[0]


async def stored(person: Person, collection: str, row_id: str) -> Row | None:
    """Return the row or tombstone that a pull contains, or None."""
    rows = (await page(person, collection))["documents"]
    return next((row for row in rows if row["id"] == row_id), None)


async def seqs(person: Person, *collections: str) -> dict[str, int]:
    """Map the "collection/id" of every row to its seq. Each page has one row, because only pages state a seq."""
    found: dict[str, int] = {}
    for collection in collections or COLLECTIONS:
        lwt = 0
        while (one := await page(person, collection, lwt, limit=1))["documents"]:
            lwt = one["checkpoint"]["lwt"]
            found[f"{collection}/{one['documents'][0]['id']}"] = lwt
    return found


async def base(person: Person, collection: str, row_id: str) -> str:
    """Return the `base` with which a refusal refers to the stored row."""
    return f"{await epoch(person)}:{(await seqs(person, collection))[f'{collection}/{row_id}']}"


async def forget(person: Person) -> None:
    answer = await person.call("POST", "/v1/forget", json={"confirm": "forget everything"})
    assert answer.status_code == 200, answer.text


def codes(answered: list[Row]) -> list[str]:
    return [row["syncError"]["code"] for row in answered]

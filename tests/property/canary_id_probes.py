"""Try all ways to change or delete a memory row by its ID, from each scope that does not include the row.

The server must answer as if the row did not exist, and must not change it.
"""

from __future__ import annotations

from typing import Any

from property.expected_memory import Entry, ExpectedMemory, Home

Json = dict[str, Any]
WAYS: dict[str, list[tuple[str, str, Json | None]]] = {  # kind -> (method, path, body)
    "observations": [
        ("PATCH", "/v1/observations/{id}", {"pinned": True}),
        ("DELETE", "/v1/observations/{id}", None),
    ],
    "memories": [("POST", "/v1/memories/{id}/undo", None), ("DELETE", "/v1/memories/{id}", None)],
    "episodes": [("DELETE", "/v1/episodes/{id}", None)],
    "summaries": [
        ("PATCH", "/v1/summaries/{id}", {"content": "anew"}),
        ("DELETE", "/v1/summaries/{id}", None),
    ],
    "entities": [("DELETE", "/v1/entities/{id}", None)],
}


class Tampered(AssertionError):
    """A request from a scope that does not include a row may have changed the row."""


async def probe_all_scopes(memory: ExpectedMemory) -> int:
    """Try everything and return the number of attempts. Raises Tampered if the server does not refuse one."""
    tried = 0
    for kind, ways in WAYS.items():
        for canary, entry in memory.of(kind).items():
            for project in memory.projects:
                if memory.home(entry) != project:
                    for way in ways:
                        await _probe(memory, canary, entry, project, *way)
                        tried += 1
    tried += await _probe_links(memory) + await _probe_superseded(memory)
    return tried + await _probe_repeated_text(memory)


async def _probe(
    memory: ExpectedMemory, canary: str, entry: Entry, home: Home, method: str, path: str, body: Json | None
) -> None:
    sent = {"json": body} if body is not None else {}
    answer = await memory.person.call(method, path.format(id=entry.id), params={"project": home}, **sent)
    if answer.status_code != 404:
        memory.drop([canary])
        raise Tampered(f"{method} {path}: {answer.status_code} for {entry} from {home}")


async def _probe_links(memory: ExpectedMemory) -> int:
    """Try to link and unlink pairs of entities from each scope that does not include both."""
    known = list({entry.project: entry for entry in memory.of("entities").values()}.values())
    tried = 0
    for one in known:
        for other in known:
            for project in memory.projects[:3]:
                if {one.project, other.project} == {project}:
                    continue
                edge = {"fromId": one.id, "toId": other.id, "label": "knows"}
                for method in ("POST", "DELETE"):
                    answer = await memory.person.call(
                        method, "/v1/relationships", params={"project": project}, json=edge
                    )
                    tried += 1
                    if answer.status_code != 404 or b"relationship" in answer.content:
                        raise Tampered(f"{method} of {edge} from {project}: {answer.text}")
    return tried


async def _probe_superseded(memory: ExpectedMemory) -> int:
    """Undo and delete memories that claim to supersede a memory of another project. That older memory must stay."""
    known, tried = memory.of("memories"), 0
    for canary, entry in known.items():
        older = memory.entries.get(entry.older)
        if (
            canary not in memory.entries
            or older is None
            or entry.project is None
            or older.project == entry.project
        ):
            continue
        tried += 1
        for method, path in (("POST", "/v1/memories/{id}/undo"), ("DELETE", "/v1/memories/{id}")):
            scope = {"project": entry.project}
            answer = await memory.person.call(method, path.format(id=entry.id), params=scope)
            if method == "POST" and answer.status_code != 409:
                raise Tampered(f"the undo of {entry} was not refused: {answer.text}")
        memory.drop([canary])
        if older.id not in await memory.person.live("memories"):
            raise Tampered(f"{older} was deleted with {entry}")
    return tried


async def _probe_repeated_text(memory: ExpectedMemory) -> int:
    """Store a memory's text again in another project. The server must create a new memory there."""
    live, tried = await memory.person.live("memories"), 0
    for entry in memory.of("memories").values():
        for project in memory.projects[:2]:
            if entry.project in (None, project):
                continue
            tried += 1
            body = {"text": live[entry.id]["text"], "project": project}
            answer = await memory.person.call("POST", "/v1/memories", json=body)
            stored = answer.json()
            if answer.status_code != 201 or stored["memory"]["projectId"] != project:
                raise Tampered(f"the text of {entry} became no new memory in {project}: {answer.text}")
            scope = {"project": project}
            await memory.person.call("DELETE", f"/v1/memories/{stored['memory']['id']}", params=scope)
    return tried

"""Every write path changes only rows of the requested scope, for every scope.

Add a new write path to WRITE_PATHS. The rows are in `scoped_rows`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from property.rows import relationship, summary
from server.in_process_server import Harness, Person, serve
from server.memory.scoped_rows import (
    ASKED,
    EDGES,
    ENTITIES,
    MEMORIES,
    REFUSED,
    SEEN,
    SESSIONS,
    SUMMARIES,
    Params,
    create_scoped_rows,
    visible_ids,
)


async def with_summaries(h: Harness) -> Person:
    ada = await create_scoped_rows(h)
    await ada.add("summaries", *(summary(i, **owner) for i, owner in SUMMARIES.items()))
    return ada


@dataclass(frozen=True)
class WritePath:
    """A way to change or delete each of `ids`. `body` returns the request body for an id."""

    kind: str
    route: str
    ids: Iterable[str]
    body: Callable[[str], dict[str, str] | None] = lambda _: None

    async def ask(self, person: Person, row_id: str, scope: Params) -> int:
        method, path = self.route.split(" ")
        body = self.body(row_id)
        sent = {"json": body} if body is not None else {}
        return (await person.call(method, path.format(id=row_id), params=scope, **sent)).status_code


def edge_of(row_id: str) -> dict[str, str]:
    from_id, to_id = row_id.split("-")
    return {"fromId": from_id, "toId": to_id, "label": LABEL}


LABEL = relationship("", "", "")["label"]
TURNS = [f"of-{i}" for i in SESSIONS]
WRITE_PATHS = {  # tested in this order; deleting entities comes last, because it also deletes relationships
    "deleting a memory": WritePath("memories", "DELETE /v1/memories/{id}", MEMORIES),
    "deleting a turn": WritePath("episodes", "DELETE /v1/episodes/{id}", TURNS),
    "connecting": WritePath(
        "relationships", "POST /v1/relationships", EDGES, lambda i: {**edge_of(i), "label": "anew"}
    ),
    "disconnecting": WritePath("relationships", "DELETE /v1/relationships", EDGES, edge_of),
    "changing a summary": WritePath(
        "summaries", "PATCH /v1/summaries/{id}", SUMMARIES, lambda _: {"content": "anew"}
    ),
    "deleting a summary": WritePath("summaries", "DELETE /v1/summaries/{id}", SUMMARIES),
    "deleting an entity": WritePath("entities", "DELETE /v1/entities/{id}", ENTITIES),
}
# Routes of observations are tested in tests/server/agents/test_observations.py, because observations are not synced.
OF_AGENTS = {"PATCH /v1/observations/{id}", "DELETE /v1/observations/{id}"}
UNDO = "POST /v1/memories/{id}/undo"  # returns 409 within the scope, because these memories supersede none


async def test_every_scoped_write_route_is_in_the_table(tmp_path: Path) -> None:
    """The table also has every route that changes or deletes a memory row by its id."""
    async with serve(tmp_path) as h:
        paths = h.app.openapi_schema.to_schema()["paths"]
    routes = {
        f"{method.upper()} " + re.sub(r"{\w+}", "{id}", path): {
            one["name"] for one in said.get("parameters", [])
        }
        for path, methods in paths.items()
        for method, said in methods.items()
        if method != "get"
    }
    scoped = {route for route, parameters in routes.items() if "project" in parameters}
    by_id = {
        route for route in routes if re.match(r"\w+ /v1/(memories|episodes|entities|summaries)/{id}", route)
    }
    assert {path.route for path in WRITE_PATHS.values()} | {UNDO} | OF_AGENTS == scoped | by_id


async def test_each_write_path_changes_only_rows_of_its_scope(tmp_path: Path) -> None:
    """The server answers requests for rows out of scope like requests for unknown rows.

    The session "moving" has left its project before the requests.
    """
    async with serve(tmp_path) as h:
        for asked, _, seen in ASKED:
            ada = await with_summaries(h)
            await ada.call("PATCH", "/v1/sessions/by-external/moving", json={"projectId": None})
            for name, path in WRITE_PATHS.items():
                before = await ada.live(path.kind)
                within = visible_ids(path.kind, SEEN[seen], None)
                assert within <= before.keys(), (name, "another way to write has taken it")
                answers = {i: await path.ask(ada, i, asked) for i in path.ids}
                after = await ada.live(path.kind)
                unknown = {i for i, status in answers.items() if status == 404}
                assert unknown == set(path.ids) - within, (name, asked)
                # A relationship never connects two projects, even if the scope contains both.
                if name == "connecting":
                    new = {f"{row['fromId']}-{row['toId']}" for i, row in after.items() if i not in before}
                    assert new == within - {"ada-cleo"}, (name, asked)
                else:
                    assert {i for i, row in before.items() if after.get(i) != row} == within, (
                        name,
                        asked,
                    )


async def test_write_with_invalid_scope_is_rejected(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await with_summaries(h)
        for name, path in WRITE_PATHS.items():
            before = await ada.live(path.kind)
            for asked, status in REFUSED:
                assert {await path.ask(ada, i, asked) for i in path.ids} == {status}, (name, asked)
            assert await ada.live(path.kind) == before, name

"""The function that decides which memory a request may see."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from property.rows import session
from server.in_process_server import Harness, Person, T, serve
from vademecum.errors import BadRequest, Conflict, NotFound, VademecumError
from vademecum.model.memory.scope import Everything, InProject, MemoryScope, Pool
from vademecum.services.memory.scope import ProjectSelector, parse_project_parameter, resolve_scope


def project(row_id: str, name: str) -> dict[str, Any]:
    return {"id": row_id, "name": name, "documentIds": [], "createdAt": T, "updatedAt": T, "_deleted": False}


async def furnished(h: Harness) -> Person:
    ada = await h.person()
    twins = project("t1", "Twin"), project("t2", "twin")
    assert await ada.push("projects", project("p1", "Überholung Café"), project("dead", "Gone"), *twins) == []
    assert await ada.push("projects", project("dead", "Gone") | {"_deleted": True}) == []
    rows = session("loose"), session("inside", projectId="p1"), session("deleted")
    assert await ada.push("sessions", *rows) == []
    assert await ada.push("sessions", session("deleted") | {"_deleted": True}) == []
    return ada


async def scope_of(h: Harness, person: Person, session_id: str | None, asked: ProjectSelector) -> MemoryScope:
    async with h.services.users.open(person.id) as store:
        return await resolve_scope(store, session_id, asked)


async def test_project_selector_resolves_to_the_expected_scope(
    tmp_path: Path,
) -> None:
    async with serve(tmp_path) as h:
        ada = await furnished(h)
        expected: list[tuple[str | None, ProjectSelector, MemoryScope]] = [
            ("loose", UNSET, Pool()),
            ("inside", UNSET, InProject("p1")),
            ("inside", None, Everything()),
            (None, None, Everything()),
            ("loose", "p1", InProject("p1")),
            (None, "p1", InProject("p1")),
            (None, " uberholung CAFE ", InProject("p1")),
        ]
        for session_id, asked, scope in expected:
            assert await scope_of(h, ada, session_id, asked) == scope


async def test_unknown_or_ambiguous_scope_is_rejected_instead_of_widened(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada, eve = await furnished(h), await h.person()
        refusals: list[tuple[Person, str | None, ProjectSelector, type[VademecumError]]] = [
            (ada, None, UNSET, BadRequest),
            (ada, "unknown", UNSET, NotFound),
            (ada, "deleted", UNSET, NotFound),
            (ada, "loose", "nowhere", NotFound),
            (ada, "loose", "dead", NotFound),
            (ada, "loose", "Gone", NotFound),
            (ada, "loose", "", NotFound),
            (ada, "loose", "TWIN", Conflict),
            (eve, "inside", UNSET, NotFound),
            (eve, "loose", "p1", NotFound),
        ]
        for person, session_id, asked, error in refusals:
            with pytest.raises(error):
                await scope_of(h, person, session_id, asked)


async def test_moved_session_changes_scope_immediately(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await furnished(h)
        inside = session("inside", projectId="p1")
        assert await ada.push("sessions", session("inside"), assumed=inside) == []
        assert await scope_of(h, ada, "inside", UNSET) == Pool()
        assert await ada.push("projects", project("p1", "") | {"_deleted": True}) == []
        with pytest.raises(NotFound):
            await scope_of(h, ada, "loose", "p1")


@pytest.mark.parametrize(("said", "asked"), [(None, UNSET), ("*", None), ("p1", "p1"), ("", "")])
def test_star_as_project_selects_all_projects(said: str | None, asked: ProjectSelector) -> None:
    assert parse_project_parameter(said) is asked or parse_project_parameter(said) == asked

"""Claims: which project a folder means. A row of `roots` says that this root is known by this name, and what project that is.

Two folders that call themselves the same are kept apart and the person is told, unless the configuration of both says
the name; a root goes by one name at a time. A folder that was moved takes its project along: the root of before was
claimed on this machine alone, and is not there any more. Of what another computer or a container has seen nobody here
knows whether it is gone.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from vademecum.engines.duckdb.userstore import UserStore
from vademecum.engines.workplace import machine
from vademecum.model import cascade, names
from vademecum.model.collections import Json, Root
from vademecum.model.draft import Draft
from vademecum.model.identity import hidden
from vademecum.model.limits import Limits
from vademecum.model.neutral import one_line
from vademecum.model.observation import Identity
from vademecum.model.ranking import fold
from vademecum.model.secrets import HIDDEN
from vademecum.services import projects, rows
from vademecum.services.portions import live_keys

ELSEWHERE = ""  # a machine: not this one, or not this one alone


class View(NamedTuple):
    """What who asks may learn of this machine. `gone`: was the root of a claim here, and is it here no more?
    `is_here`: is what they say of their machine believed?"""

    gone: Callable[[Json], bool]
    is_here: bool


def is_gone(claim: Json) -> bool:
    """A claim never moves in doubt: not if another machine made it or shares it, nor if the root cannot be looked at."""
    root: str = claim["root"]
    if claim.get("machine", ELSEWHERE) != machine(str(Path.home())) or HIDDEN in root:
        return False
    try:
        return not stat.S_ISDIR(Path(root).expanduser().stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, RuntimeError, ValueError):
        return False


HERE = View(is_gone, is_here=True)
AFAR = View(lambda claim: False, is_here=False)


def _seen(identity: Identity, view: View) -> Identity:
    """As it is stored and compared."""
    name, root = hidden(identity.name, identity.root)
    said = identity.machine if view.is_here and identity.machine else ELSEWHERE
    return msgspec.structs.replace(identity, name=name, root=root, machine=said)


def _machine(claim: Json, identity: Identity) -> str:
    """Where the root of a claim is, after this. What two machines have is of neither."""
    return str(identity.machine if claim.get("machine", identity.machine) == identity.machine else ELSEWHERE)


def project_of(draft: Draft, identity: Identity, limits: Limits, view: View) -> str:
    """The id of the project that a folder means; made, and claimed, if need be. Raises LimitReached."""
    identity = _seen(identity, view)
    root_id = names.root_id(draft.id_key, identity.name, identity.root)
    key = f"roots/{root_id}"
    own = draft.row(key) if draft.life(key) == "live" else None
    fields = msgspec.to_builtins(identity)
    if own is not None:
        fields["machine"] = _machine(own, identity)
        if all(own.get(name) == value for name, value in fields.items()):
            return str(own["projectId"])
    others = _rivals(draft, identity)
    if own is None:
        for claim in _live(draft):
            if claim["root"] == identity.root:
                cascade.kill(draft, f"roots/{claim['id']}")
        project_id = _found(draft, identity, others, limits, view)
        own = rows.add(draft, "roots", {**fields, "projectId": project_id}, limits, root_id)
    else:
        own = rows.link(draft, "roots", root_id, fields, limits)
    return _joined(draft, own, others, limits)


def meant(draft: Draft, identity: Identity, view: View) -> str | None:
    """The project that a folder means, if there is one by now."""
    identity = _seen(identity, view)
    key = f"roots/{names.root_id(draft.id_key, identity.name, identity.root)}"
    if draft.life(key) == "live":
        return str(draft.row(key)["projectId"])
    return _known(draft, identity, _rivals(draft, identity), view).project_id


class _Known(NamedTuple):
    """Of a folder without a claim: its project, if there is one; what a new one is called; and the claim that moves."""

    project_id: str | None
    name: str
    moved: Json | None = None


def _known(draft: Draft, identity: Identity, others: list[Json], view: View) -> _Known:
    shared = next((other for other in others if other["source"] == identity.source == "config"), None)
    if shared is not None:
        return _Known(shared["projectId"], identity.name)
    standing = [other for other in others if not view.gone(other)]
    if others and not standing:
        return _Known(others[0]["projectId"], identity.name, moved=others[0])
    name = f"{identity.name} ({one_line(identity.root)})"[:255] if standing else identity.name
    return _Known(_project_called(draft, name), name)


def _found(draft: Draft, identity: Identity, others: list[Json], limits: Limits, view: View) -> str:
    known = _known(draft, identity, others, view)
    if known.moved is not None:
        cascade.kill(draft, f"roots/{known.moved['id']}")
    return known.project_id or str(projects.create(draft, {"name": known.name}, limits)["id"])


def _joined(draft: Draft, own: Json, others: list[Json], limits: Limits) -> str:
    """The project of a claim, after those whose configuration says the same name have become claims on one: the one
    that was claimed first."""
    agreed = [claim for claim in [own, *others] if claim["source"] == own["source"] == "config"]
    project_id: str = min(agreed or [own], key=_age)["projectId"]
    for claim in agreed:
        if claim["projectId"] != project_id:
            rows.link(draft, "roots", claim["id"], {"projectId": project_id}, limits)
    return project_id


def _live(draft: Draft) -> list[Json]:
    """All claims, the oldest first."""
    return sorted((draft.row(k) for k in list(draft.keys("roots")) if draft.life(k) == "live"), key=_age)


def _age(claim: Json) -> tuple[str, str]:
    return claim["createdAt"], claim["id"]


def _rivals(draft: Draft, identity: Identity) -> list[Json]:
    """The claims of other roots on this name, or on a project of this name; the oldest first."""
    wanted = _plain(identity.name)
    return [
        claim
        for claim in _live(draft)
        if claim["root"] != identity.root
        if wanted in (_plain(claim["name"]), _plain(draft.row(f"projects/{claim['projectId']}")["name"]))
    ]


def _project_called(draft: Draft, name: str) -> str | None:
    """Of several of this name the oldest."""
    keys = [key for key in list(draft.keys("projects")) if draft.life(key) == "live"]
    draft.prefetch(keys)
    named = [row for row in map(draft.row, keys) if _plain(row["name"]) == _plain(name)]
    first = min(named, key=lambda row: (row["createdAt"], row["id"]), default=None)
    return first["id"] if first is not None else None


def _plain(name: str) -> str:
    """As `scope.project_called` compares names."""
    return fold(name.strip())


_root = msgspec.json.Decoder(Root)


async def notice_of(store: UserStore, project_id: str) -> str | None:
    """What a person should know of the folders that mean this project."""
    return _notice(await _claims(store), project_id)


async def notices(store: UserStore) -> dict[str, str]:
    """The same of all projects of which there is something to know, by their ids."""
    claims = await _claims(store)
    told = {project_id: _notice(claims, project_id) for project_id in {one.project_id for one in claims}}
    return {project_id: notice for project_id, notice in told.items() if notice}


def _notice(claims: list[Root], project_id: str) -> str | None:
    told = [_said(*pair) for pair in _pairs(claims, project_id)]
    return " ".join(said for said in told if said) or None


async def _claims(store: UserStore) -> list[Root]:
    """All, the oldest first."""
    keys = await live_keys(store, "roots")
    bodies = await store.bodies(keys)
    found = [_root.decode(bodies[key]) for key in keys if key in bodies and store.live(key)]
    return sorted(found, key=lambda claim: (claim.created_at, claim.id))


def _pairs(claims: list[Root], project_id: str) -> list[tuple[Root, Root]]:
    """The claims on this project, each with those of other roots on the same name; the older of two first."""
    return [
        (first, second)
        for at, first in enumerate(claims)
        for second in claims[at + 1 :]
        if project_id in (first.project_id, second.project_id)
        if first.root != second.root and _plain(first.name) == _plain(second.name)
    ]


def _said(first: Root, second: Root) -> str:
    """Empty of two that the person has joined. Agents read it, so what folders are called cannot pass for more."""
    name, here, there = one_line(second.name), one_line(first.root), one_line(second.root)
    if first.project_id != second.project_id:
        return (
            f"Two folders call themselves “{name}”: {here} and {there}. They are kept apart. To join them, put "
            f"`project = {_toml(name)}` into the .vademecum.toml of both; to give one a name of its own, put another name "
            f"into {there}/.vademecum.toml."
        )
    if first.source == second.source == "config":
        return f"“{name}” is one project in {here} and {there}: the .vademecum.toml of both says so."
    return ""


def _toml(name: str) -> str:
    """As a string of TOML, whose escapes JSON's are."""
    return msgspec.json.encode(name).decode()

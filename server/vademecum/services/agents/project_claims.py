"""Claims: which project a folder means. A row of `roots` says that this root is known by this name, and what project that is.

A name proves nothing: whoever makes a repository chooses its name, and what its `.vademecum.toml` says. So a folder that is
seen for the first time is a project of its own; one that is called the same by then is left apart, and the person told,
until they join the two (`vademecum claim`, or a merge). A root goes by one name at a time on a machine, and what it went
by before it may go by again. A folder that was moved takes its project along: the root of before was claimed on this
machine alone, and is not there any more. Of what another computer or a container has seen nobody here knows whether it
is gone; what has the same name and root on two of them is one claim.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import msgspec

from vademecum.engines.duckdb.user_store import UserStore
from vademecum.model.agents.observations import Identity
from vademecum.model.agents.project_identity import hidden
from vademecum.model.schema import derived_ids
from vademecum.model.schema.collections import Json, Root
from vademecum.model.sync import cascade
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.model.text.sanitize import sanitize_line
from vademecum.model.text.tokenize import fold
from vademecum.services.agents.agent_scope import NamedProject
from vademecum.services.agents.folder_check import ELSEWHERE, RootPlace, View, find_gone, place_of
from vademecum.services.memory import projects
from vademecum.services.sync import write_row
from vademecum.services.sync.batches import list_live_keys, read_batches

CLAIMS_MAX = 1000  # of an account; then the one goes that was not needed for longest
TOLD_MAX = 3  # folders of a notice
MORE = "There are more of this kind."


def _seen(identity: Identity, view: View) -> Identity:
    """As it is stored and compared."""
    name, root = hidden(identity.name, identity.root)
    said = identity.machine if view.is_here and identity.machine else ELSEWHERE
    return msgspec.structs.replace(identity, name=name, root=root, machine=said)


def _machine(claim: Json, identity: Identity) -> str:
    """Where the root of a claim is, after this. What two machines have is of neither."""
    return str(identity.machine if claim.get("machine", identity.machine) == identity.machine else ELSEWHERE)


async def checked(store: UserStore, view: View, identities: Iterable[Identity]) -> View:
    """Check, before a transaction, the folders whose claims these identities could take over."""
    if not view.is_here:
        return view
    wanted = set(identities)
    places = await store.write(lambda tx: Claims(tx, Limits(), view).rival_places(wanted))
    return view._replace(gone=await find_gone(places)) if places else view


def project_of(tx: Transaction, identity: Identity, limits: Limits, view: View) -> str:
    """As `Claims.project_of`, for one folder."""
    return Claims(tx, limits, view).project_of(identity)


def meaning(tx: Transaction, identities: Iterable[Identity], project_id: str, view: View) -> set[Identity]:
    """Those of the folders that mean this project."""
    claims = Claims(tx, Limits(), view)
    return {one for one in identities if claims.meant(one) == project_id}


class _Called(NamedTuple):
    """A row and its name, as names are compared."""

    row: Json
    name: str


class _Known(NamedTuple):
    """Of a folder without a claim: its project, if there is one; what a new one is called; and the claim that moves."""

    project_id: str | None
    name: str
    moved: Json | None = None


class Claims:
    """Those of one transaction: what is claimed and what projects are called is read once for all its folders."""

    def __init__(self, tx: Transaction, limits: Limits, view: View) -> None:
        self._tx = tx
        self._limits = limits
        self._view = view
        self._means: dict[Identity, str] = {}

    def project_of(self, identity: Identity) -> str:
        """The id of the project that a folder means; made, and claimed, if need be. Raises LimitReached."""
        if identity not in self._means:
            project_id = self._project_of(_seen(identity, self._view))
            self._means[identity] = project_id
        return self._means[identity]

    def _project_of(self, identity: Identity) -> str:
        root_id, own = self._own(identity)
        fields = {**msgspec.to_builtins(identity), "former": None}
        if own is not None:
            fields["machine"] = _machine(own, identity)
            is_news = any(own.get(name) != value for name, value in fields.items())
            if not is_news and own["updatedAt"][:10] >= self._tx.now[:10]:
                return str(own["projectId"])
            fields["updatedAt"] = max(self._tx.now, own["updatedAt"])  # by the day: see CLAIMS_MAX
        self._means.clear()
        self._go_by(root_id, identity)
        if own is None:
            return self._add(root_id, identity, fields)
        own = self._keep(
            write_row.change_keeping_updated_at(self._tx, "roots", root_id, fields, self._limits)
        )
        return str(own["projectId"])

    def meant(self, identity: Identity) -> str | None:
        """The project that a folder means, if there is one by now."""
        identity = _seen(identity, self._view)
        _, own = self._own(identity)
        return str(own["projectId"]) if own is not None else self._known(identity).project_id

    def rival_places(self, identities: set[Identity]) -> set[RootPlace]:
        """Return the folders that matter for identities without a claim: those of rival claims, and their own."""
        unclaimed = [
            one for one in (_seen(each, self._view) for each in identities) if self._own(one)[1] is None
        ]
        places = {place_of(claim) for one in unclaimed for claim in self._rivals(one)}
        if len(unclaimed) > 1:
            places |= {RootPlace(one.root, one.machine or ELSEWHERE) for one in unclaimed}
        return places

    def _own(self, identity: Identity) -> tuple[str, Json | None]:
        root_id = derived_ids.root_id(self._tx.meta.id_key, identity.name, identity.root)
        key = f"roots/{root_id}"
        return root_id, self._tx.row(key) if self._tx.row_state(key) == "live" else None

    def _go_by(self, root_id: str, identity: Identity) -> None:
        """On this machine the root is called what it is called now, and no more what it was."""
        for claim in [one.row for one in self._claims.values()]:
            is_here = claim["root"] == identity.root and identity.machine == claim.get("machine") != ELSEWHERE
            if is_here and claim["id"] != root_id and not claim.get("former"):
                self._keep(
                    write_row.change_keeping_updated_at(
                        self._tx, "roots", claim["id"], {"former": True}, self._limits
                    )
                )

    def _add(self, root_id: str, identity: Identity, fields: Json) -> str:
        known = self._known(identity)
        if known.moved is not None:
            self._drop(known.moved)
        while len(self._claims) >= CLAIMS_MAX:
            self._drop(min((one.row for one in self._claims.values()), key=_need))
        project_id = known.project_id or self._create(known.name)
        row = {**fields, "projectId": project_id}
        self._keep(write_row.add(self._tx, "roots", row, self._limits, root_id))
        return project_id

    def _known(self, identity: Identity) -> _Known:
        others = self._rivals(identity)
        standing = self._view.standing(others)
        if others and not standing:
            return _Known(others[0]["projectId"], identity.name, moved=others[0])
        if not standing and self._called(identity.name) is None:
            return _Known(None, identity.name)
        name = _apart(identity.name, identity.root)
        return _Known(self._called(name), name)

    def _rivals(self, identity: Identity) -> list[Json]:
        """The claims of other roots on this name, or on a project of this name; the oldest first."""
        wanted = _plain(identity.name)
        found = [
            claim.row
            for claim in self._claims.values()
            if claim.row["root"] != identity.root and not claim.row.get("former")
            if wanted in (claim.name, self._projects[claim.row["projectId"]].name)
        ]
        return sorted(found, key=lambda claim: (claim["createdAt"], claim["id"]))

    def _called(self, name: str) -> str | None:
        """The project of this name; of several the oldest."""
        wanted = _plain(name)
        named = [project.row for project in self._projects.values() if project.name == wanted]
        first = min(named, key=lambda row: (row["createdAt"], row["id"]), default=None)
        return first["id"] if first is not None else None

    @cached_property
    def _claims(self) -> dict[str, _Called]:
        return self._read("roots")

    @cached_property
    def _projects(self) -> dict[str, _Called]:
        return self._read("projects")

    def _read(self, collection: str) -> dict[str, _Called]:
        """All live rows, by their ids."""
        keys = [key for key in list(self._tx.keys(collection)) if self._tx.row_state(key) == "live"]
        self._tx.prefetch(keys)
        return {row["id"]: _Called(row, _plain(row["name"])) for row in map(self._tx.row, keys)}

    def _keep(self, claim: Json) -> Json:
        self._claims[claim["id"]] = _Called(claim, _plain(claim["name"]))
        return claim

    def _drop(self, claim: Json) -> None:
        cascade.delete_with_dependents(self._tx, f"roots/{claim['id']}")
        del self._claims[claim["id"]]

    def _create(self, name: str) -> str:
        row = projects.create(self._tx, {"name": name}, self._limits)
        self._projects[row["id"]] = _Called(row, _plain(name))
        return str(row["id"])


def _need(claim: Json) -> tuple[bool, str, str]:
    """Least first: what a root went by before, then what was not at work for longest."""
    return not claim.get("former"), claim["updatedAt"], claim["id"]


def _apart(name: str, root: str) -> str:
    """What the project of a folder is called beside another of its name."""
    return f"{name} ({sanitize_line(root)})"[:255]


def _plain(name: str) -> str:
    """As `scope.find_project_by_name` compares names."""
    return fold(name.strip())


_root = msgspec.json.Decoder(Root)
_project = msgspec.json.Decoder(NamedProject)


async def notice_of(store: UserStore, project_id: str) -> str | None:
    """What a person should know of the folders that mean this project."""
    return (await notices(store, project_id)).get(project_id)


async def notices(store: UserStore, project_id: str | None = None) -> dict[str, str]:
    """The same of all projects of which there is something to know, by their ids; or of this one alone."""
    roots, named = await _bodies(store, "roots"), await _bodies(store, "projects")
    return await asyncio.to_thread(_notices, roots, named, project_id)


async def _bodies(store: UserStore, collection: str) -> list[bytes]:
    keys = await list_live_keys(store, collection)
    return [body async for portion in read_batches(store, keys) for _, body in portion]


def _notices(roots: Iterable[bytes], named: Iterable[bytes], only: str | None = None) -> dict[str, str]:
    claims: defaultdict[str, list[Root]] = defaultdict(list)
    for claim in sorted(map(_root.decode, roots), key=_age):
        if claim.former is not True:
            claims[_plain(claim.name)].append(claim)
    called = {project.id: project for project in map(_project.decode, named)}
    of_name: defaultdict[str, list[NamedProject]] = defaultdict(list)
    for project in called.values():
        of_name[_plain(project.name)].append(project)
    told: defaultdict[str, list[str]] = defaultdict(list)
    for name, group in claims.items():
        parts: defaultdict[str, list[Root]] = defaultdict(list)
        for claim in group:
            parts[claim.project_id].append(claim)
        free = [project for project in of_name[name] if project.id not in parts]
        for project_id, own in parts.items():
            if only in (None, project_id) and len(told[project_id]) <= TOLD_MAX:
                told[project_id] += _of_folders(own, group)
                told[project_id] += _of_projects(own, called.get(project_id), free)
    return {project_id: _bounded(said) for project_id, said in told.items() if said}


def _bounded(said: list[str]) -> str:
    return " ".join([*said[:TOLD_MAX], *([MORE] if len(said) > TOLD_MAX else [])])


def _of_folders(own: Sequence[Root], group: Iterable[Root]) -> list[str]:
    """Of the claims on one project, and those on others that have their name: not of all pairs, of which there may be
    half a million."""
    most = TOLD_MAX + 1
    others = list(islice((other for other in group if other.project_id != own[0].project_id), most))
    pairs = ((mine, other) for mine in own for other in others if mine.root != other.root)
    return [_said(*sorted(pair, key=_age)) for pair in islice(pairs, most)]


def _age(claim: Root) -> tuple[str, str]:
    return claim.created_at, claim.id


def _said(first: Root, second: Root) -> str:
    """Agents read it, so what folders are called cannot pass for more."""
    name, here, there = sanitize_line(second.name), sanitize_line(first.root), sanitize_line(second.root)
    return f"Two folders call themselves “{name}”: {here} and {there}. They are kept apart. {_cure(there)}"


def _of_projects(
    own: Iterable[Root], project: NamedProject | None, free: Iterable[NamedProject]
) -> list[str]:
    """Of a folder that was left apart from a project which no folder of this name means."""
    left = [claim for claim in own if project is not None and project.name == _apart(claim.name, claim.root)]
    return [
        f"The folder {sanitize_line(claim.root)} calls itself as the project “{sanitize_line(other.name)}”, which was there before. "
        f"They are kept apart. {_cure(sanitize_line(claim.root))}"
        for claim in left
        for other in islice(free, 1)
    ]


def _cure(folder: str) -> str:
    return (
        f"To join them, run `vademecum claim` in {folder}; to give it a name of its own, put "
        f'`project = "another name"` into {folder}/.vademecum.toml.'
    )

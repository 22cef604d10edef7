"""Resolve folders to projects by claims. A claim is a row of `roots` that assigns a named folder (root) to a project.

A name proves nothing, because the author of a repository chooses its name and the content of its `.vademecum.toml`. So a
new folder becomes a project of its own. If its name is already taken, the two projects stay separate and the user gets
a notice, until the user joins them (`vademecum claim`, or a merge). On one machine a root has one name at a time, and
can return to a former name. A moved folder keeps its project if only this machine claimed the old root and the old root
no longer exists. The server cannot check folders of other computers or containers. Two machines that report the same
name and root share one claim.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import msgspec

from vademecum.model.agents.observations import Identity
from vademecum.model.agents.project_identity import redact_identity
from vademecum.model.records.store_interface import UserStore
from vademecum.model.schema import derived_ids
from vademecum.model.schema.collections import Json, Root
from vademecum.model.sync import cascade
from vademecum.model.sync.quotas import Limits
from vademecum.model.sync.transaction import Transaction
from vademecum.model.text.sanitize import sanitize_line
from vademecum.model.text.tokenize import fold
from vademecum.services.agents.agent_scope import NamedProject
from vademecum.services.agents.folder_check import (
    UNKNOWN_MACHINE,
    FolderAccess,
    FolderLocation,
    find_missing,
    location_of,
)
from vademecum.services.memory import projects
from vademecum.services.sync import row_operations
from vademecum.services.sync.batches import list_live_keys, read_batches

CLAIMS_MAX = 1000  # the maximum per account; a new claim beyond it replaces the least recently used one
CONFLICTS_MAX = 3  # the maximum number of name conflicts that a notice describes
MORE_CONFLICTS = "Other folders have name conflicts, too."


async def check_folders(
    store: UserStore, access: FolderAccess, identities: Iterable[Identity]
) -> FolderAccess:
    """Check the folders whose claims these identities could take over. Call this before the transaction.

    Return `access` with the missing folders.
    """
    if not access.is_local:
        return access
    identity_set = set(identities)
    locations = await store.write(
        lambda tx: Claims(tx, Limits(), access).list_locations_to_check(identity_set)
    )
    return access._replace(missing=await find_missing(locations)) if locations else access


def find_identities(
    tx: Transaction, identities: Iterable[Identity], project_id: str, access: FolderAccess
) -> set[Identity]:
    """Return the identities that belong to the project."""
    claims = Claims(tx, Limits(), access)
    return {identity for identity in identities if claims.find_project(identity) == project_id}


class _NamedRow(NamedTuple):
    """A row and its name, normalized for comparisons."""

    row: Json
    comparable_name: str


class _Resolution(NamedTuple):
    """How to claim a new folder.

    `project_id`: an existing project, or None to create one. `moved_claim`: the claim of the folder's old location,
    which the new claim replaces.
    """

    project_id: str | None
    project_name: str
    moved_claim: Json | None = None


class Claims:
    """The claims within one transaction. The claims and projects are read once, for all folders of the transaction."""

    def __init__(self, tx: Transaction, limits: Limits, access: FolderAccess) -> None:
        self._tx = tx
        self._limits = limits
        self._access = access
        self._project_ids: dict[Identity, str] = {}

    def resolve_project(self, identity: Identity) -> str:
        """Return the id of the folder's project, creating the project and the claim if necessary.

        Raises LimitReached.
        """
        if identity not in self._project_ids:
            project_id = self._claim_project(self._normalize(identity))
            self._project_ids[identity] = project_id
        return self._project_ids[identity]

    def find_project(self, identity: Identity) -> str | None:
        """Return the id of the folder's project, or None if `resolve_project` would create one."""
        identity = self._normalize(identity)
        _, claim = self._find_claim(identity)
        return str(claim["projectId"]) if claim is not None else self._resolve_new(identity).project_id

    def list_locations_to_check(self, identities: set[Identity]) -> set[FolderLocation]:
        """Return the folders that must be checked before an identity without a claim can get a claim.

        These are the folders of rival claims. If several identities have no claim, their own folders are added, because
        the claim of one may be a rival of another.
        """
        normalized = map(self._normalize, identities)
        unclaimed = [identity for identity in normalized if self._find_claim(identity)[1] is None]
        locations = {location_of(claim) for identity in unclaimed for claim in self._find_rivals(identity)}
        if len(unclaimed) > 1:
            locations |= {
                FolderLocation(identity.root, identity.machine or UNKNOWN_MACHINE) for identity in unclaimed
            }
        return locations

    def _normalize(self, identity: Identity) -> Identity:
        """Return the identity as it is stored and compared."""
        name, root = redact_identity(identity.name, identity.root)
        machine = identity.machine if self._access.is_local and identity.machine else UNKNOWN_MACHINE
        return msgspec.structs.replace(identity, name=name, root=root, machine=machine)

    def _claim_project(self, identity: Identity) -> str:
        root_id, claim = self._find_claim(identity)
        fields = {**msgspec.to_builtins(identity), "former": None}
        if claim is not None:
            if claim.get("machine", identity.machine) != identity.machine:
                fields["machine"] = UNKNOWN_MACHINE
            is_changed = any(claim.get(name) != value for name, value in fields.items())
            if not is_changed and claim["updatedAt"][:10] >= self._tx.now[:10]:
                return str(claim["projectId"])
            # Store the time of the last use, at most once a day. At CLAIMS_MAX claims, the least recently used claim is
            # replaced.
            fields["updatedAt"] = max(self._tx.now, claim["updatedAt"])
        self._project_ids.clear()
        self._mark_former_names(root_id, identity)
        if claim is None:
            return self._add_claim(root_id, identity, fields)
        return str(self._change_claim(root_id, fields)["projectId"])

    def _find_claim(self, identity: Identity) -> tuple[str, Json | None]:
        """Return the id of the identity's claim, and its row if it exists."""
        root_id = derived_ids.root_id(self._tx.meta.id_key, identity.name, identity.root)
        key = f"roots/{root_id}"
        return root_id, self._tx.row(key) if self._tx.row_state(key) == "live" else None

    def _mark_former_names(self, root_id: str, identity: Identity) -> None:
        """Mark this machine's claims on the root of `identity` under any other name as former."""
        for claim in [item.row for item in self._claims.values()]:
            is_same_root = claim["root"] == identity.root
            is_same_machine = identity.machine == claim.get("machine") != UNKNOWN_MACHINE
            if is_same_root and is_same_machine and claim["id"] != root_id and not claim.get("former"):
                self._change_claim(claim["id"], {"former": True})

    def _add_claim(self, root_id: str, identity: Identity, fields: Json) -> str:
        resolution = self._resolve_new(identity)
        if resolution.moved_claim is not None:
            self._delete_claim(resolution.moved_claim)
        while len(self._claims) >= CLAIMS_MAX:
            self._delete_claim(min((item.row for item in self._claims.values()), key=_eviction_order))
        project_id = resolution.project_id or self._create_project(resolution.project_name)
        row = {**fields, "projectId": project_id}
        self._cache_claim(row_operations.add(self._tx, "roots", row, self._limits, root_id))
        return project_id

    def _resolve_new(self, identity: Identity) -> _Resolution:
        rivals = self._find_rivals(identity)
        existing = self._access.keep_existing(rivals)
        if rivals and not existing:
            return _Resolution(rivals[0]["projectId"], identity.name, moved_claim=rivals[0])
        if not existing and self._find_project_by_name(identity.name) is None:
            return _Resolution(None, identity.name)
        name = _qualified_name(identity.name, identity.root)
        return _Resolution(self._find_project_by_name(name), name)

    def _find_rivals(self, identity: Identity) -> list[Json]:
        """Return the claims of other roots that have this name or belong to a project with this name, oldest first."""
        comparable_name = _comparable(identity.name)
        rivals = [
            claim.row
            for claim in self._claims.values()
            if claim.row["root"] != identity.root and not claim.row.get("former")
            if comparable_name
            in (claim.comparable_name, self._projects[claim.row["projectId"]].comparable_name)
        ]
        return sorted(rivals, key=_creation_order)

    def _find_project_by_name(self, name: str) -> str | None:
        """Return the id of the oldest project with this name."""
        comparable_name = _comparable(name)
        rows = [
            project.row for project in self._projects.values() if project.comparable_name == comparable_name
        ]
        oldest = min(rows, key=_creation_order, default=None)
        return oldest["id"] if oldest is not None else None

    @cached_property
    def _claims(self) -> dict[str, _NamedRow]:
        return self._read_live("roots")

    @cached_property
    def _projects(self) -> dict[str, _NamedRow]:
        return self._read_live("projects")

    def _read_live(self, collection: str) -> dict[str, _NamedRow]:
        keys = [key for key in list(self._tx.keys(collection)) if self._tx.row_state(key) == "live"]
        self._tx.prefetch(keys)
        return {row["id"]: _NamedRow(row, _comparable(row["name"])) for row in map(self._tx.row, keys)}

    def _change_claim(self, root_id: str, fields: Json) -> Json:
        return self._cache_claim(
            row_operations.change_keeping_updated_at(self._tx, "roots", root_id, fields, self._limits)
        )

    def _cache_claim(self, claim: Json) -> Json:
        self._claims[claim["id"]] = _NamedRow(claim, _comparable(claim["name"]))
        return claim

    def _delete_claim(self, claim: Json) -> None:
        cascade.delete_with_dependents(self._tx, f"roots/{claim['id']}")
        del self._claims[claim["id"]]

    def _create_project(self, name: str) -> str:
        row = projects.create(self._tx, {"name": name}, self._limits)
        self._projects[row["id"]] = _NamedRow(row, _comparable(name))
        return str(row["id"])


def _eviction_order(claim: Json) -> tuple[bool, str, str]:
    """Return the sort key by which excess claims are deleted: former names first, then the least recently used."""
    return not claim.get("former"), claim["updatedAt"], claim["id"]


def _creation_order(row: Json) -> tuple[str, str]:
    return row["createdAt"], row["id"]


def _qualified_name(name: str, root: str) -> str:
    """Return the project name for a folder whose own name is taken."""
    return f"{name} ({sanitize_line(root)})"[:255]


def _comparable(name: str) -> str:
    """Normalize a name as `scope.find_project_by_name` does."""
    return fold(name.strip())


_root = msgspec.json.Decoder(Root)
_project = msgspec.json.Decoder(NamedProject)


async def build_notice(store: UserStore, project_id: str) -> str | None:
    """Return a notice for the user about name conflicts of the project's folders, or None."""
    return (await build_notices(store, project_id)).get(project_id)


async def build_notices(store: UserStore, project_id: str | None = None) -> dict[str, str]:
    """Map project ids to notices, for all projects or, with `project_id`, for one."""
    roots, projects = await _read_bodies(store, "roots"), await _read_bodies(store, "projects")
    return await asyncio.to_thread(_build_notices, roots, projects, project_id)


async def _read_bodies(store: UserStore, collection: str) -> list[bytes]:
    keys = await list_live_keys(store, collection)
    return [body async for batch in read_batches(store, keys) for _, body in batch]


def _build_notices(roots: Iterable[bytes], projects: Iterable[bytes], only: str | None) -> dict[str, str]:
    claims_by_name: defaultdict[str, list[Root]] = defaultdict(list)
    for claim in sorted(map(_root.decode, roots), key=_age_order):
        if claim.former is not True:
            claims_by_name[_comparable(claim.name)].append(claim)
    projects_by_id = {project.id: project for project in map(_project.decode, projects)}
    projects_by_name: defaultdict[str, list[NamedProject]] = defaultdict(list)
    for project in projects_by_id.values():
        projects_by_name[_comparable(project.name)].append(project)
    conflicts: defaultdict[str, list[str]] = defaultdict(list)
    for name, claims in claims_by_name.items():
        by_project: defaultdict[str, list[Root]] = defaultdict(list)
        for claim in claims:
            by_project[claim.project_id].append(claim)
        unclaimed = next((one for one in projects_by_name[name] if one.id not in by_project), None)
        for project_id, own in by_project.items():
            if only in (None, project_id) and len(conflicts[project_id]) <= CONFLICTS_MAX:
                conflicts[project_id] += _describe_folder_conflicts(own, claims)
                if unclaimed is not None:
                    own_project = projects_by_id.get(project_id)
                    conflicts[project_id] += _describe_project_conflicts(own, own_project, unclaimed)
    return {project_id: _join_conflicts(messages) for project_id, messages in conflicts.items() if messages}


def _join_conflicts(messages: list[str]) -> str:
    more = [MORE_CONFLICTS] if len(messages) > CONFLICTS_MAX else []
    return " ".join(messages[:CONFLICTS_MAX] + more)


def _describe_folder_conflicts(own: Sequence[Root], claims: Iterable[Root]) -> list[str]:
    """Describe the conflicts between claims of one project and claims of other projects with the same name.

    Return at most CONFLICTS_MAX + 1 descriptions, because there may be half a million pairs.
    """
    limit = CONFLICTS_MAX + 1
    others = list(islice((one for one in claims if one.project_id != own[0].project_id), limit))
    pairs = ((claim, other) for claim in own for other in others if claim.root != other.root)
    return [_describe_pair(*sorted(pair, key=_age_order)) for pair in islice(pairs, limit)]


def _age_order(claim: Root) -> tuple[str, str]:
    return claim.created_at, claim.id


def _describe_pair(older: Root, newer: Root) -> str:
    """Describe two folders with the same name. Agents read the text, so each name is sanitized and on one line."""
    name, first, second = sanitize_line(newer.name), sanitize_line(older.root), sanitize_line(newer.root)
    return f"Two folders have the name “{name}”: {first} and {second}. They are kept apart. {_advice(second)}"


def _describe_project_conflicts(
    own: Iterable[Root], project: NamedProject | None, unclaimed: NamedProject
) -> list[str]:
    """Describe folders that were kept apart from `unclaimed`, a project that has the same name and no folder."""
    return [
        f"The folder {sanitize_line(claim.root)} has the same name as the existing project “{sanitize_line(unclaimed.name)}”. "
        f"They are kept apart. {_advice(sanitize_line(claim.root))}"
        for claim in own
        if project is not None and project.name == _qualified_name(claim.name, claim.root)
    ]


def _advice(folder: str) -> str:
    return (
        f"To join them, run `vademecum claim` in {folder}. To use another name, put "
        f'`project = "another name"` into {folder}/.vademecum.toml.'
    )

"""Define the collections: a struct for the rows of each, and a `Collection` with its rules. Ten of them are synced.

The structs define the wire format. `make schemas` generates `schemas/*.json` from them, and from those the TypeScript types
of the synced collections; a struct's docstring is its description there. A struct validates LIVE rows. Tombstones are
blanked rows (see `tombstone`), which only `conflict_rules` checks. Field names on the wire are in camelCase.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

# An id must not be `.` or `..`, which URLs resolve, or a property that all JavaScript objects inherit, because clients
# store rows in objects by id.
_NO_ID = (
    r"(?!(?:\.{1,2}|__proto__|constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString|toString|"
    r"valueOf|__defineGetter__|__defineSetter__|__lookupGetter__|__lookupSetter__)\Z)"
)
ID_PATTERN = rf"^{_NO_ID}[A-Za-z0-9._~-]{{1,100}}\Z"
DOCUMENT_ID_PATTERN = rf"^{_NO_ID}[A-Za-z0-9._~-]{{1,90}}\Z"
TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z\Z"

TIMESTAMP_EXAMPLE = "look like 2026-11-21T15:09:02.059Z"
_TIME = re.compile(TIME_PATTERN)

Id = Annotated[str, Meta(pattern=ID_PATTERN, max_length=100)]
DocumentId = Annotated[str, Meta(pattern=DOCUMENT_ID_PATTERN, max_length=90)]
Time = Annotated[str, Meta(pattern=TIME_PATTERN, max_length=24)]
RowTimestamp = Annotated[str, Meta(max_length=24)]  # `_check_timestamp` checks the format
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Name = Annotated[str, Meta(max_length=255)]
Text = Annotated[str, Meta(max_length=1_000_000)]
Instructions = Annotated[str, Meta(max_length=8000)]
Hash = Annotated[str, Meta(max_length=64)]
Code = Annotated[str, Meta(max_length=64)]
Share = Annotated[float, Meta(ge=0, le=1)]
Cells = Annotated[str, Meta(max_length=64)]  # a range of a sheet, such as B2:D9
Json = dict[str, Any]
EntityType = Literal["person", "place", "project", "technology", "concept", "organization"]
RootSource = Literal["config", "git", "folder", "home"]


class SyncError(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The reason why the server rejected a row. Only devices store it, and every comparison of rows ignores it."""

    code: str
    message: str
    at: str
    base: str | UnsetType = UNSET


class Row(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    id: Id
    created_at: RowTimestamp
    updated_at: RowTimestamp
    deleted: bool = msgspec.field(name="_deleted", default=False)
    sync_error: SyncError | UnsetType = UNSET

    def __post_init__(self) -> None:
        _check_timestamp("createdAt", self.created_at)
        _check_timestamp("updatedAt", self.updated_at)


def _check_timestamp(field: str, timestamp: str) -> None:
    """Raise ValueError, which names the field, if the timestamp is invalid."""
    if problem := _timestamp_problem(timestamp):
        raise ValueError(f"`{field}` {problem}")


def is_timestamp(text: str) -> bool:
    return not _timestamp_problem(text)


# Cached, because a new row has the same timestamp twice and often shares it with its batch.
@lru_cache(maxsize=1024)
def _timestamp_problem(timestamp: str) -> str:
    """Return why a timestamp is invalid, or "". The pattern alone would accept February 30."""
    if not _TIME.match(timestamp):
        return f"must {TIMESTAMP_EXAMPLE}."
    try:
        datetime.datetime.fromisoformat(timestamp)
    except ValueError:
        return f"is not a calendar date: {timestamp}"
    return ""


class Loss(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Content of a file that its text lacks: what (a code), how often and, where known, of how many."""

    code: Code
    count: Count
    of: Count | UnsetType = UNSET


class Recognition(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The pages whose text comes from OCR, and the mean confidence of that text."""

    pages: Annotated[list[Count], Meta(max_length=100_000)]
    confidence: Share


class Document(Row, kw_only=True):
    """The metadata of a file. Only the server sets `original`. `file_revision` counts the versions of the file.

    `text_hash`: SHA-256 of the normalized text, or empty for documents from before version 1.
    """

    user_id: Id
    origin_session_id: Annotated[str, Meta(max_length=100)]
    active_sessions: Annotated[list[Id], Meta(max_length=10_000)]
    access_count: Count
    last_accessed_at: RowTimestamp
    filename: Name
    mime_type: Name
    size: Count
    content_hash: Hash
    chunk_count: Count
    page_count: Count | UnsetType = UNSET
    status: Literal["pending", "ready", "failed"]
    status_detail: Annotated[str, Meta(max_length=1000)] | UnsetType = UNSET
    text_hash: Hash
    original: Literal["none", "stored"]
    file_revision: Count
    losses: Annotated[list[Loss], Meta(max_length=100)] | UnsetType = UNSET
    ocr: Recognition | UnsetType = UNSET
    tags: Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=20)] | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_timestamp("lastAccessedAt", self.last_accessed_at)


class Line(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A line of recognized text. `start`: its UTF-16 offset in the document's normalized text.

    `box`: x, y, width and height in thousandths of the page.
    """

    start: Count
    box: Annotated[list[Count], Meta(max_length=4)]
    confidence: Share


class Chunk(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A passage. `start` is its UTF-16 offset in the document's normalized text."""

    index: Count
    start: Count
    text: Annotated[str, Meta(max_length=20_000)]
    tokens: Count
    page: Count | UnsetType = UNSET
    section: Annotated[str, Meta(max_length=1000)] | UnsetType = UNSET
    sheet: Name | UnsetType = UNSET
    cells: Cells | UnsetType = UNSET
    lines: Annotated[list[Line], Meta(max_length=1000)] | UnsetType = UNSET


BLOCK_CHUNKS = 16
DIMS_MAX = 4096


class VectorEmbedding(Row, kw_only=True):
    """A block of up to 16 consecutive chunks. `embedding`: base64 of little-endian float32, n x dims, or null.

    `text_hash`: the document's `text_hash` when the block was made.
    """

    document_id: DocumentId
    block: Count
    text_hash: Hash
    model: Annotated[str, Meta(max_length=128)]
    dims: Annotated[int, Meta(ge=0, le=DIMS_MAX)]
    chunks: Annotated[list[Chunk], Meta(min_length=1, max_length=BLOCK_CHUNKS)]
    embedding: Annotated[str, Meta(max_length=BLOCK_CHUNKS * DIMS_MAX * 6)] | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.id != f"{self.document_id}.{self.block}":
            raise ValueError("`id` must be `{documentId}.{block}`")
        if self.embedding is not None:  # push_decoding checks the numbers
            expected = -(-(len(self.chunks) * self.dims * 4) // 3) * 4
            if len(self.embedding) != expected or not self.dims:
                raise ValueError(
                    f"`embedding` must be the base64 of {len(self.chunks)} x {self.dims} float32"
                )


class Project(Row, kw_only=True):
    """A named, isolated group of sessions. `document_ids`: the documents that its sessions search."""

    name: Name
    description: Text | UnsetType = UNSET
    instructions: Instructions | UnsetType = UNSET
    document_ids: Annotated[list[Id], Meta(max_length=10_000)]


class Session(Row, kw_only=True):
    """A chat. `document_scope`: which documents it searches besides those whose `activeSessions` contain it.

    `memory`: `off` if nothing is recalled for it or extracted from it. `excluded`: ids of rows that are not recalled.
    """

    title: Annotated[str, Meta(max_length=1000)]
    mode: Literal["analysis", "authoritative"]
    external_id: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET
    project_id: Id | UnsetType = UNSET
    document_scope: Literal["chosen", "project", "all", "none"]
    memory: Literal["on", "off"]
    excluded: Annotated[list[Id], Meta(max_length=1000)] | UnsetType = UNSET
    model: Name | UnsetType = UNSET


class Citation(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A source of an answer. `n`: the number of the passage in the prompt. `ocr`: the confidence of recognized text.

    It names the passage but never quotes it, so that no text of a deleted document remains.
    """

    n: Count
    document_id: Id
    filename: Name
    page: Count | UnsetType = UNSET
    block: Count | UnsetType = UNSET
    chunk_index: Count | UnsetType = UNSET
    text_hash: Hash | UnsetType = UNSET
    sheet: Name | UnsetType = UNSET
    cells: Cells | UnsetType = UNSET
    ocr: Share | UnsetType = UNSET


class Notice(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A remark on an answer, as a code that the app puts into words, and the names of the files that it is about."""

    code: Code
    names: Annotated[list[Name], Meta(max_length=1000)] | UnsetType = UNSET


class Episode(Row, kw_only=True):
    """A turn. `memory`: `off` if nothing is extracted from it."""

    session_id: Id
    user_message: Text
    ai_response: Text
    citations: Annotated[list[Citation], Meta(max_length=1000)]
    status: Literal["queued", "streaming", "done", "stopped", "failed"]
    model: Name | UnsetType = UNSET
    feedback: Literal["up", "down"] | UnsetType = UNSET
    feedback_text: Annotated[str, Meta(max_length=4000)] | UnsetType = UNSET
    notices: Annotated[list[Notice], Meta(max_length=20)] | UnsetType = UNSET
    memory: Literal["off"] | UnsetType = UNSET


class Fact(Row, kw_only=True):
    key: Name
    value: Text
    source_removed: bool
    confidence: Share
    confirmed: bool
    source_document_id: Id | UnsetType = UNSET


class Memory(Row, kw_only=True):
    text: Text
    session_ids: Annotated[list[Id], Meta(max_length=10_000)]
    source: Literal["user", "extracted"]
    pinned: bool
    project_id: Id | UnsetType = UNSET
    supersedes: Id | UnsetType = UNSET
    superseded_by: Id | UnsetType = UNSET


class Entity(Row, kw_only=True):
    name: Name
    type: EntityType
    project_id: Id
    notes: Text | UnsetType = UNSET


class Relationship(Row, kw_only=True):
    from_id: Id
    to_id: Id
    label: Name


class Summary(Row, kw_only=True):
    content: Text
    session_id: Id | UnsetType = UNSET
    project_id: Id | UnsetType = UNSET


ObservationKind = Literal[
    "read", "write", "edit", "command", "search", "error", "decision", "prompt", "session"
]
PATH_MAX = 4096
Path = Annotated[str, Meta(max_length=PATH_MAX)]
MachineId = Annotated[str, Meta(max_length=64)]


class Observation(Row, kw_only=True):
    """An action of a coding agent in a project. `count`: how often in one session of the agent. `redactions`: how many
    secrets were redacted before it was stored."""

    project_id: Id
    agent_session: Name
    kind: ObservationKind
    content: Annotated[str, Meta(max_length=8000)]
    count: Count
    pinned: bool
    redactions: Count
    path: Path | UnsetType = UNSET
    tool: Name | UnsetType = UNSET


class Root(Row, kw_only=True):
    """A folder with its name and project. `machine`: the only machine that reported it, or empty. `former`: the folder has
    another name now."""

    project_id: Id
    name: Name
    root: Path
    source: RootSource
    machine: MachineId | UnsetType = UNSET
    former: bool | UnsetType = UNSET


class FormerProject(Row, kw_only=True):
    """The id of a project that was merged into another one. Devices that have not synced since still refer to it."""

    project_id: Id


@dataclass(frozen=True)
class Reference:
    """A field that contains the id of another row (the target), and what happens when the target is deleted.

    `unset`: the field is removed (or, in a list, the id). `flag`: the field stays and `flag_field` becomes true.
    `follow`: if both rows have the same parents, the row with the field is deleted, too; otherwise as `unset`.
    """

    field: str
    target: str
    on_delete: Literal["unset", "flag", "follow"] = "unset"
    flag_field: str = ""


@dataclass(frozen=True)
class Collection:
    """The rules of a collection. Field names are wire names."""

    name: str
    struct: type[Row]
    synced: bool = True  # False if only the server has the collection
    version: int = 0
    primary_key: str = "id"
    # Maps each field with the id of a parent to the parent's collection. Deleting the parent deletes the row.
    parents: Mapping[str, str] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    frozen: tuple[str, ...] = ()
    # Maps each field that only the server sets to its value in a new row. Devices cannot change it.
    server_fields: Mapping[str, Any] = field(default_factory=dict)
    sets: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    latest: tuple[str, ...] = ("updatedAt",)
    together: tuple[tuple[str, ...], ...] = ()
    merges: bool = True
    unique: str = ""  # a field whose values are unique among the live rows of a user
    indexes: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None  # replaces the generated JSON Schema

    def validate(self, row: Json) -> Row:
        """Return the live row as its struct. Raises msgspec.ValidationError with the path of the problem."""
        return msgspec.convert(row, self.struct)


COLLECTIONS: tuple[Collection, ...] = (
    Collection(
        "documents",
        Document,
        version=1,
        references=(Reference("activeSessions", "sessions"),),
        frozen=("originSessionId",),
        server_fields={"original": "none"},
        sets=("activeSessions", "tags"),
        counters=("accessCount",),
        latest=("updatedAt", "lastAccessedAt"),
        together=(
            (
                *("contentHash", "textHash", "size", "chunkCount", "pageCount"),
                *("status", "statusDetail", "fileRevision", "losses", "ocr"),
            ),
        ),
        indexes=("createdAt", "lastAccessedAt"),
    ),
    Collection(
        "vectorEmbeddings",
        VectorEmbedding,
        version=1,
        parents={"documentId": "documents"},
        merges=False,
        indexes=("documentId",),
    ),
    Collection(
        "projects",
        Project,
        version=1,
        references=(Reference("documentIds", "documents"),),
        sets=("documentIds",),
    ),
    Collection(
        "sessions",
        Session,
        version=1,
        references=(Reference("projectId", "projects"),),
        unique="externalId",
        indexes=("updatedAt",),
    ),
    Collection(
        "episodes",
        Episode,
        version=1,
        parents={"sessionId": "sessions"},
        together=(("aiResponse", "citations", "status", "model", "notices"),),
        indexes=("sessionId", "createdAt"),
    ),
    Collection(
        "facts",
        Fact,
        references=(Reference("sourceDocumentId", "documents", "flag", "sourceRemoved"),),
        together=(("value", "confirmed", "confidence"),),
        indexes=("key",),
    ),
    Collection(
        "memories",
        Memory,
        parents={"projectId": "projects"},
        references=(
            Reference("sessionIds", "sessions"),
            Reference("supersedes", "memories"),
            # `unset` would make an older version of the deleted memory current again.
            Reference("supersededBy", "memories", "follow"),
        ),
        sets=("sessionIds",),
    ),
    Collection(
        "entities", Entity, parents={"projectId": "projects"}, frozen=("projectId",), indexes=("projectId",)
    ),
    Collection("relationships", Relationship, parents={"fromId": "entities", "toId": "entities"}),
    Collection("summaries", Summary, parents={"sessionId": "sessions", "projectId": "projects"}),
    Collection("observations", Observation, synced=False, parents={"projectId": "projects"}),
    Collection("roots", Root, synced=False, parents={"projectId": "projects"}),
    Collection("merged", FormerProject, synced=False, parents={"projectId": "projects"}),
)


class Registry(Mapping[str, Collection]):
    """The collections of a server by name. `synced`: those that devices sync. Tests may pass their own collections."""

    def __init__(self, collections: Iterable[Collection] = COLLECTIONS) -> None:
        self._by_name = {c.name: c for c in collections}
        self.synced: Mapping[str, Collection] = MappingProxyType(
            {name: collection for name, collection in self._by_name.items() if collection.synced}
        )

    def __getitem__(self, name: str) -> Collection:
        return self._by_name[name]

    def __iter__(self) -> Any:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


Links = tuple[tuple[str, ...], tuple[str, ...]]


def links(collection: Collection, row: Json) -> Links:
    """Return (parents, references) of a row, each as "collection/id". Deleting a parent deletes the row."""
    parents: tuple[str, ...] = ()
    for name, target in collection.parents.items():
        if value := row.get(name):
            parents += (f"{target}/{value}",)
    references: list[str] = []
    for reference in collection.references:
        value = row.get(reference.field)
        ids = value if isinstance(value, list) else [value] if value else []
        references += [f"{reference.target}/{i}" for i in ids]
    return parents, tuple(references)

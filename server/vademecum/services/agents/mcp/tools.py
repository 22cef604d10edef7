"""The tools, each a call or two of the API: what an agent may see and do is decided there and nowhere else.

Every tool takes `project`, and means the same by it: absent, the one of the connection; null, all of the user's; else
the one of that name or id. The connection says where an agent works, never the model that calls the tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Meta, UnsetType

from vademecum.errors import BadRequest, NotFound, VademecumError
from vademecum.model.schema.collections import PATH_MAX, Id, Json, ObservationKind, Time

Said = str | None | UnsetType  # of a project
Project = Annotated[
    str | None,
    Meta(description="Leave it out for the project you work in; null for all projects; else a name or id."),
]
Around = Annotated[int, Meta(ge=0, le=50)]


class Call(Protocol):
    """A request of the API by the user whose agent it is. Raises VademecumError with the API's own words."""

    async def __call__(self, method: str, path: str, **more: Any) -> Json: ...


class Workplace(msgspec.Struct, frozen=True):
    """Where the agent of a connection works; `notice`: what its user should know of that."""

    project_id: str
    notice: str | None = None


class Search(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1, max_length=2000, description="Words, or a whole question.")]
    project: Project | UnsetType = UNSET
    kind: Annotated[ObservationKind, Meta(description="Only observations of this kind.")] | UnsetType = UNSET
    path: Annotated[str, Meta(max_length=PATH_MAX, description="Only of this file.")] | UnsetType = UNSET
    before: Annotated[Time, Meta(description="Only older than this.")] | UnsetType = UNSET
    after: Annotated[Time, Meta(description="Only newer than this.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class GetObservations(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    ids: Annotated[list[Id], Meta(min_length=1, max_length=50)]
    project: Project | UnsetType = UNSET


class Timeline(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    id: Annotated[Id, Meta(description="The observation in the middle.")]
    before: Around = 5
    after: Around = 5
    project: Project | UnsetType = UNSET


class RecentContext(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    tokens: Annotated[int, Meta(ge=100, le=20_000, description="At most so long.")] = 2000
    project: Project | UnsetType = UNSET


class Remember(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=8000, description="One statement that stands alone.")]
    pinned: Annotated[bool, Meta(description="It does not fade.")] = False
    project: Annotated[str, Meta(description="Leave it out for the project you work in.")] | UnsetType = UNSET


class Forget(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    id: Annotated[Id, Meta(description="Of an observation or of something remembered.")]
    project: Project | UnsetType = UNSET


Do = Callable[[Call, Workplace | None, Any], Awaitable[Json]]


@dataclass(frozen=True)
class Tool:
    """`does` is a sentence for the model that chooses among tools."""

    name: str
    does: str
    takes: type[msgspec.Struct]
    do: Do
    reads: bool = True

    @property
    def nullable(self) -> set[str]:
        """The arguments whose schema gives null a meaning of its own."""
        fields = msgspec.inspect.type_info(self.takes).fields  # type: ignore[attr-defined]
        return {field.encode_name for field in fields if _includes_none(field.type)}

    @property
    def rule_for_null(self) -> str:
        rule = "An optional argument that is null counts as left out"
        return f"{rule}, except `project`: null means all projects." if self.nullable else f"{rule}."

    def without_nulls(self, arguments: Mapping[str, Any]) -> Json:
        """Return the arguments without those that a client sends as null because it leaves them out."""
        optional = {field.encode_name for field in msgspec.structs.fields(self.takes)} - self.nullable
        return {name: value for name, value in arguments.items() if value is not None or name not in optional}


def _includes_none(kind: msgspec.inspect.Type) -> bool:
    if isinstance(kind, msgspec.inspect.Metadata):
        return _includes_none(kind.type)
    return isinstance(kind, msgspec.inspect.UnionType) and kind.includes_none


async def _search(call: Call, work: Workplace | None, asked: Search) -> Json:
    return await call("POST", "/v1/observations/search", json=_given(asked, project=_of(work, asked.project)))


async def _get_observations(call: Call, work: Workplace | None, asked: GetObservations) -> Json:
    given = _given(asked, project=_of(work, asked.project))
    return await call("POST", "/v1/observations/read", json=given)


async def _timeline(call: Call, work: Workplace | None, asked: Timeline) -> Json:
    params = {"project": _in_address(work, asked.project), "before": asked.before, "after": asked.after}
    return await call("GET", f"/v1/observations/{quote(asked.id)}/timeline", params=params)


async def _recent_context(call: Call, work: Workplace | None, asked: RecentContext) -> Json:
    params = {"project": _in_address(work, asked.project), "tokens": asked.tokens}
    return await call("GET", "/v1/agents/context", params=params)


async def _remember(call: Call, work: Workplace | None, asked: Remember) -> Json:
    given = _given(asked, project=_of(work, asked.project))
    kept = await call("POST", "/v1/memories", json=given)
    return {**kept, "scope": await _scope(call, kept["memory"]["projectId"])}


async def _forget(call: Call, work: Workplace | None, asked: Forget) -> Json:
    params = {"project": _in_address(work, asked.project)}
    for collection in ("observations", "memories"):
        try:
            answer = await call("DELETE", f"/v1/{collection}/{quote(asked.id)}", params=params)
        except VademecumError as refusal:
            if refusal.code != NotFound.code:
                raise
            continue
        scope = answer.get("scope") or await _scope(call, _of(work, asked.project))
        return {**answer, "scope": scope, "forgotten": asked.id}
    raise NotFound("There is nothing with this id here.")


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "search",
            "Find what was done or remembered in this project before: by words and by meaning, best first.",
            Search,
            _search,
        ),
        Tool(
            "get_observations",
            "Read observations whole, by their ids (at most 50). Ids that are not to be had are listed as missing.",
            GetObservations,
            _get_observations,
        ),
        Tool(
            "timeline",
            "What happened right before and after an observation, in its project, by time.",
            Timeline,
            _timeline,
        ),
        Tool(
            "recent_context",
            "What a new session in this project should know, newest and most relevant first, within a token budget.",
            RecentContext,
            _recent_context,
        ),
        Tool(
            "remember",
            "Keep a statement for later sessions of this project. Repeating one to the letter refreshes it. Never a secret.",
            Remember,
            _remember,
            reads=False,
        ),
        Tool(
            "forget",
            "Delete an observation or something remembered, for good.",
            Forget,
            _forget,
            reads=False,
        ),
    )
}


async def _scope(call: Call, project: str | None) -> Json:
    """As the routes of agents tell it, which those of memory do not."""
    if project is None:
        return {"project": None}
    answer = await call("POST", "/v1/observations/read", json={"ids": [], "project": project})
    scope: Json = answer["scope"]
    return scope


def _given(asked: msgspec.Struct, **instead: Any) -> Json:
    """What was asked, as the API takes it."""
    return {**msgspec.to_builtins(asked), **instead}


def _in_address(work: Workplace | None, said: Said) -> str:
    """As a query string says it."""
    project = _of(work, said)
    return "*" if project is None else project


def _of(work: Workplace | None, said: Said) -> str | None:
    """Of which project a call is; None: of all. Raises BadRequest if nothing says it."""
    if not isinstance(said, UnsetType):
        return said
    if work is None:
        raise BadRequest(
            "This connection belongs to no project. Say `project`: a name, or null for all. "
            "An address ending in `?project=NAME` makes it the connection's own."
        )
    return work.project_id

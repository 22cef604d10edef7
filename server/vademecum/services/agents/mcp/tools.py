"""Define the MCP tools. The tools only make API calls, so the API alone decides what an agent may see and do.

All tools interpret `project` alike: absent, the connection's project; null, all projects; otherwise a name or id. The
connection determines the default project, so the model that calls a tool need not know it.
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

ProjectArgument = str | None | UnsetType
Project = Annotated[
    str | None,
    Meta(description="Leave out for the project you work in; null for all projects; otherwise a name or id."),
]
Neighbors = Annotated[int, Meta(ge=0, le=50)]


class ApiCall(Protocol):
    """Call the HTTP API as the agent's user. Raises VademecumError with the API's code and message."""

    async def __call__(self, method: str, path: str, **options: Any) -> Json: ...


class Workspace(msgspec.Struct, frozen=True):
    """The project of an agent's connection. `notice`: a message to the user about the project, or None."""

    project_id: str
    notice: str | None = None


class Search(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1, max_length=2000, description="Words or a question.")]
    project: Project | UnsetType = UNSET
    kind: Annotated[ObservationKind, Meta(description="Only observations of this kind.")] | UnsetType = UNSET
    path: (
        Annotated[str, Meta(max_length=PATH_MAX, description="Only this file, or files in this folder.")]
        | UnsetType
    ) = UNSET
    before: Annotated[Time, Meta(description="Only older than this.")] | UnsetType = UNSET
    after: Annotated[Time, Meta(description="Only newer than this.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class GetObservations(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    ids: Annotated[list[Id], Meta(min_length=1, max_length=50)]
    project: Project | UnsetType = UNSET


class Timeline(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    id: Annotated[Id, Meta(description="The observation in the middle.")]
    before: Neighbors = 5
    after: Neighbors = 5
    project: Project | UnsetType = UNSET


class RecentContext(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    tokens: Annotated[int, Meta(ge=100, le=20_000, description="The maximum length in tokens.")] = 2000
    project: Project | UnsetType = UNSET


class Remember(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    text: Annotated[str, Meta(min_length=1, max_length=8000, description="One self-contained statement.")]
    pinned: Annotated[bool, Meta(description="Pinned memories do not lose relevance with age.")] = False
    project: Annotated[str, Meta(description="Leave out for the project you work in.")] | UnsetType = UNSET


class Forget(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    id: Annotated[Id, Meta(description="The id of an observation or memory.")]
    project: Project | UnsetType = UNSET


Handler = Callable[[ApiCall, Workspace | None, Any], Awaitable[Json]]


@dataclass(frozen=True)
class Tool:
    """An MCP tool. `description`: text for the model that chooses a tool. `arguments`: the type of its arguments."""

    name: str
    description: str
    arguments: type[msgspec.Struct]
    run: Handler
    is_read_only: bool = True

    @property
    def nullable(self) -> set[str]:
        """Return the arguments for which null is a value. For all others, null means that the argument is omitted."""
        fields = msgspec.inspect.type_info(self.arguments).fields  # type: ignore[attr-defined]
        return {field.encode_name for field in fields if _includes_none(field.type)}

    @property
    def null_rule(self) -> str:
        rule = "An optional argument that is null counts as left out"
        return f"{rule}, except `project`: null means all projects." if self.nullable else f"{rule}."

    def without_nulls(self, arguments: Mapping[str, Any]) -> Json:
        """Remove the nulls that a client sends for omitted arguments."""
        optional = {field.encode_name for field in msgspec.structs.fields(self.arguments)} - self.nullable
        return {name: value for name, value in arguments.items() if value is not None or name not in optional}


def _includes_none(kind: msgspec.inspect.Type) -> bool:
    if isinstance(kind, msgspec.inspect.Metadata):
        return _includes_none(kind.type)
    return isinstance(kind, msgspec.inspect.UnionType) and kind.includes_none


async def _search(call: ApiCall, workspace: Workspace | None, arguments: Search) -> Json:
    return await call("POST", "/v1/observations/search", json=_request_body(workspace, arguments))


async def _get_observations(call: ApiCall, workspace: Workspace | None, arguments: GetObservations) -> Json:
    return await call("POST", "/v1/observations/read", json=_request_body(workspace, arguments))


async def _timeline(call: ApiCall, workspace: Workspace | None, arguments: Timeline) -> Json:
    project = _query_value(workspace, arguments.project)
    params = {"project": project, "before": arguments.before, "after": arguments.after}
    return await call("GET", f"/v1/observations/{quote(arguments.id)}/timeline", params=params)


async def _recent_context(call: ApiCall, workspace: Workspace | None, arguments: RecentContext) -> Json:
    params = {"project": _query_value(workspace, arguments.project), "tokens": arguments.tokens}
    return await call("GET", "/v1/agents/context", params=params)


async def _remember(call: ApiCall, workspace: Workspace | None, arguments: Remember) -> Json:
    answer = await call("POST", "/v1/memories", json=_request_body(workspace, arguments))
    return {**answer, "scope": await _read_scope(call, answer["memory"]["projectId"])}


async def _forget(call: ApiCall, workspace: Workspace | None, arguments: Forget) -> Json:
    params = {"project": _query_value(workspace, arguments.project)}
    for collection in ("observations", "memories"):
        try:
            answer = await call("DELETE", f"/v1/{collection}/{quote(arguments.id)}", params=params)
        except VademecumError as error:
            if error.code != NotFound.code:
                raise
            continue
        scope = answer.get("scope") or await _read_scope(call, _project_of(workspace, arguments.project))
        return {**answer, "scope": scope, "forgotten": arguments.id}
    raise NotFound("There is no observation or memory with this id in this scope.")


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "search",
            "Find what was done or remembered in this project: by words and by meaning, best first.",
            Search,
            _search,
        ),
        Tool(
            "get_observations",
            "Read full observations by their ids (at most 50). Ids that are not found are listed as missing.",
            GetObservations,
            _get_observations,
        ),
        Tool(
            "timeline",
            "List what happened right before and after an observation in its project.",
            Timeline,
            _timeline,
        ),
        Tool(
            "recent_context",
            "Get what a new session in this project should know, newest and most relevant first, within a token budget.",
            RecentContext,
            _recent_context,
        ),
        Tool(
            "remember",
            "Store a statement for later sessions of this project. Storing the same text again refreshes it. Never store "
            "a secret.",
            Remember,
            _remember,
            is_read_only=False,
        ),
        Tool(
            "forget",
            "Delete an observation or a memory permanently.",
            Forget,
            _forget,
            is_read_only=False,
        ),
    )
}


async def _read_scope(call: ApiCall, project: str | None) -> Json:
    """Return the scope in the form of the agent routes, because the memory routes return another form."""
    if project is None:
        return {"project": None}
    answer = await call("POST", "/v1/observations/read", json={"ids": [], "project": project})
    scope: Json = answer["scope"]
    return scope


def _request_body(workspace: Workspace | None, arguments: Search | GetObservations | Remember) -> Json:
    return {**msgspec.to_builtins(arguments), "project": _project_of(workspace, arguments.project)}


def _query_value(workspace: Workspace | None, argument: ProjectArgument) -> str:
    project = _project_of(workspace, argument)
    return "*" if project is None else project


def _project_of(workspace: Workspace | None, argument: ProjectArgument) -> str | None:
    """Return the project of a call, or None for all projects. Raises BadRequest if no project is known."""
    if not isinstance(argument, UnsetType):
        return argument
    if workspace is None:
        raise BadRequest(
            "This connection has no project. Set `project` to a name, or to null for all projects. "
            "To set a project for the connection, add `?project=NAME` to its address."
        )
    return workspace.project_id

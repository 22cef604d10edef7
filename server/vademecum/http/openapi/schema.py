"""What the API's document says beyond the routes' signatures: rows, the wire of sync, and every way to be refused.

Litestar describes what it can see in a signature. `complete` puts in the rest, once for all routes.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vademecum import errors
from vademecum.engines.files.result import MESSAGES as UNREADABLE
from vademecum.http.problem_details import MEDIA_TYPE, problem_specs
from vademecum.http.responses import EVENTS
from vademecum.model.schema.collections import Collection, Json, SyncError
from vademecum.model.schema.json_schema import in_javascript, json_schema, object_schema

CODE_MEANINGS = {
    "BAD_REQUEST": "The request cannot be understood. Nothing was changed.",
    "SIGNED_OUT": "No valid cookie or token.",
    "FORBIDDEN": "This account may not do that, the request came from another site, the current password is wrong, or an API "
    "token was to make a token, a first password or a sign-in link.",
    "TIER": "The account's tier does not include it.",
    "NOT_FOUND": "Unknown, deleted, or somebody else's: all the same answer.",
    "METHOD_NOT_ALLOWED": "The path exists and this method on it does not; see `Allow`.",
    "CONFLICT": "The state of things forbids it, such as an email that is taken, or a hundred tokens.",
    "EPOCH": "The server was restored from a backup, or this checkpoint is not one of its: `detail` says how to begin all "
    "collections again from zero; `epoch` is the current one.",
    "DUPLICATE": "Another row has this value already, which only one may have: a session its `externalId`.",
    "GONE": "What this id named was deleted, and deletion wins.",
    "DOCUMENT_LIMIT": "The account holds as many documents as it may.",
    "STORAGE_LIMIT": "The account holds as many bytes as it may.",
    "TOO_LARGE": "The body, the file or the system prompt is over its bound.",
    "UNSUPPORTED_MEDIA_TYPE": "The body is not of a type that this operation reads.",
    "RANGE": "The file has no bytes where the request asks for some; `Content-Range` says how many it has.",
    **UNREADABLE,
    "NO_DATA": "There is nothing yet of which a summary could be made.",
    "OUTDATED": "Your schema version is older than the one served: update the app.",
    "RATE_LIMITED": "Too often: wait `Retry-After` seconds.",
    "STREAM_LIMIT": "The account has all the live streams open that it may have. Pull and push go on without one.",
    "TOO_NEW": "Your schema version is newer than the one served: wait `Retry-After` seconds.",
    "BUSY": "Too much at once, or a disk that takes nothing now: wait `Retry-After` seconds.",
    "EMBEDDER_BUSY": "As `BUSY`: too many questions at once.",
    "EMBEDDER_CLOSED": "The server is stopping: try again.",
    "STOPPING": "The server is being stopped: try again.",
    "NO_ASSISTANT": "No language model is set up on the server.",
    "ASSISTANT": "There is no answer of the language model to be had.",
    "ASSISTANT_UNREACHABLE": "The language model's endpoint does not answer.",
    "ASSISTANT_KEY": "The endpoint does not accept the server's key.",
    "ASSISTANT_MODEL": "The endpoint does not have the model that is set up.",
    "ASSISTANT_FAILED": "The endpoint failed, broke off, or sent what is no answer.",
    "ASSISTANT_BUSY": "The endpoint has too much to do: wait `Retry-After` seconds.",
    "ASSISTANT_TIMEOUT": "The answer took too long.",
    "BROKEN": "The server failed. Nothing that it acknowledged is lost.",
    "FENCED": "The records of this account are damaged; `detail` names the file. Other accounts are served.",
    "ERROR": "Any other refusal; `detail` says which.",
}
DESCRIPTION = "\n".join(
    [
        "Documents, their vectors and their memory, in step on every device. All JSON is camelCase, all times are ",
        "ISO 8601 in UTC. Make a token with `vademecum token create EMAIL` and send it as `Authorization: Bearer …`. By a ",
        "token nothing is made that lets somebody in: no token, no first password, no sign-in link (`FORBIDDEN`).",
        "",
        f"Every error is a `Problem`, `{MEDIA_TYPE}`, whose `code` is stable:",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| `{code}` | {meaning} |" for code, meaning in CODE_MEANINGS.items()),
    ]
)
TAGS = {
    "sync": "Replication for RxDB and for anyone who keeps a copy: pull, push, follow.",
    "documents": "Files turned into text that can be searched, and the sessions that borrow them.",
    "search": "Passages of borrowed documents, and prompts made of them.",
    "assistant": "Answers by a language model that the server asks.",
    "models": "The embedding models, with which a browser makes the same vectors as the server.",
    "sessions": "Conversations, and the projects that group them. They are rows: a push makes and changes them as well.",
    "memory": "What is kept of conversations: turns, the entities in them, how these belong together, summaries.",
    "agents": "What coding agents did, and what the next one should know.",
    "account": "Signing in, one's own account and tokens, taking everything along, forgetting everything.",
    "administration": "Other people's accounts; for administrators.",
    "operations": "For whoever runs the server.",
}
ID = {"type": "string", "maxLength": 100}
PARAMETERS: dict[str, Json] = {
    "path version": {"description": "The collection's schema version that you speak.", "example": 0},
    "query lwt": {"description": "The checkpoint's `lwt`; 0 or empty to begin. One above the account's `seq` answers `EPOCH`; without `id`, an empty page with the current checkpoint.", "schema": {"type": "integer", "minimum": 0, "default": 0}},
    "query id": {"description": "The checkpoint's `id`, as it was given. One of another epoch answers `EPOCH`."},
    "query epoch": {"description": "The epoch of your last checkpoint (its `id`, or the part before the dot): another than the current one answers `EPOCH`."},
    "query versions": {"description": "Collections and their schema versions; all when empty.", "example": "documents:0,sessions:0"},
    "query name": {"description": "A filename, or a whole message that may name one."},
    "query sessionId": {"description": "The session that asks."},
    "query email": {"description": "Only the account with this email: a list of one, or of none."},
    "query label": {"description": "The relationship's label."},
    "path type": {"description": "The type of the entities."},
    "path externalId": {"description": "The id that another program knows the session by.", "schema": {"type": "string", "maxLength": 255}},
    "path model": {"description": "The hash of a model.", "schema": {"type": "string", "maxLength": 64}},
    "path path": {"description": "A file that the model's manifest lists.", "schema": {"type": "string", "maxLength": 255}},
    "query later": {"description": "Answer at once, and make it as a job: see `GET /v1/jobs`."},
    "path job": {"description": "The `id` of a job.", "schema": {"type": "string", "maxLength": 120}},
    "query forget": {"description": "Whether the answer waits until the disk is rid of it: `now`, or `soon`."},
    "query sessions": {"description": "What becomes of the project's sessions."},
}  # fmt: skip
SCHEMAS = "#/components/schemas/"
RETRY_AFTER = {"schema": {"type": "integer"}, "description": "Seconds to wait."}
REJECTED_ROW = {
    "type": "object",
    "description": "The row as it was sent (or merged, where others changed it), and why it was refused. It stays on the "
    "device until it is edited.",
    "required": ["id", "syncError"],
    "properties": {"id": {"type": "string"}, "syncError": {"$ref": "#/components/schemas/SyncError"}},
}
REJECTION_CODES = [
    "DOCUMENT_LIMIT",
    "STORAGE_LIMIT",
    "TOO_LARGE",
    "INVALID",
    "TIER",
    "DUPLICATE",
    "FORGOTTEN",
]
CHECKPOINT = {
    "type": "object",
    "required": ["lwt", "id"],
    "properties": {
        "lwt": {"type": "integer", "description": "The account's `seq` up to which this page goes."},
        "id": {
            "type": "string",
            "description": "`{epoch}.{mac}`: the epoch, and a code that shows that this server gave the checkpoint out. Send it "
            "back unchanged.",
        },
    },
}
FORGOTTEN_AT = {
    "type": "string",
    "description": "When everything was forgotten last. Drop your rows of before it that were refused: they have no "
    "tombstone here. Absent if it never was.",
}

IMPORTED = {
    "type": "boolean",
    "default": False,
    "description": "Of a turn that is new here: it comes out of an export, beside what was extracted from it. The language "
    "model is not asked about it, until its words are changed.",
}


def complete_document(document: Json, registry: Mapping[str, Collection]) -> Json:
    """The document that Litestar has made, with what it cannot know."""
    schemas = document["components"]["schemas"]
    schemas["Problem"]["properties"]["code"]["enum"] = list(CODE_MEANINGS)
    schemas["Problem"]["required"] = [name for name in schemas["Problem"]["properties"] if name != "epoch"]
    synced = [c for c in registry.values() if c.synced]
    named = [c for c in registry.values() if c.synced or c.struct.__name__ in schemas]
    rows = {f"{c.struct.__name__}Doc": _row(c) for c in named}
    # a route that names a row's struct means the row as it is synced
    schemas |= {name: _ref(f"{name}Doc") for name in schemas if f"{name}Doc" in rows}
    document["paths"] = {_camel_path(path): item for path, item in document["paths"].items()}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            _complete_operation(method, operation, path, [c.name for c in synced])
    document = in_javascript(document)
    schemas, ours = (
        document["components"]["schemas"],
        rows | _sync_schemas([f"{c.struct.__name__}Doc" for c in synced]),
    )
    if both := (schemas.keys() & ours.keys()) - {"SyncError"}:  # of which both say the same
        raise ValueError(f"two schemas of one name: {', '.join(both)}")
    schemas |= ours
    return _without_unused_schemas(document)


def _row(collection: Collection) -> Json:
    """As under schemas/, less what only RxDB reads, and with RxDB's own mark of a deleted row."""
    schema = {
        k: v for k, v in json_schema(collection).items() if k not in ("version", "primaryKey", "indexes")
    }
    deleted = {
        "type": "boolean",
        "description": "A deleted row keeps `id`, parents and times; the rest is blank.",
    }
    return {**schema, "properties": {**schema["properties"], "_deleted": deleted}}


def _sync_schemas(rows: list[str]) -> Json:
    page = {
        "documents": {"type": "array", "items": _ref("Row")},
        "checkpoint": _ref("Checkpoint"),
        "forgottenAt": FORGOTTEN_AT,
    }
    event = {
        "collection": {"type": "string", "description": "Only on the stream of all collections."},
        **page,
    }
    pair = {
        "newDocumentState": _ref("Row"),
        "assumedMasterState": {"anyOf": [_ref("Row"), {"type": "null"}]},
        "imported": IMPORTED,
    }
    answer = [_ref("Row"), _ref("RefusedRow")]
    required = ["documents", "checkpoint"]
    return {
        "Row": {
            "description": "A row of the collection that the path names.",
            "anyOf": [_ref(name) for name in rows],
        },
        "Page": {"type": "object", "required": required, "properties": page},
        "StreamEvent": {"type": "object", "required": required, "properties": event},
        "PushRow": {"type": "object", "required": ["newDocumentState"], "properties": pair},
        "PushAnswer": {"type": "array", "items": {"anyOf": answer}},
        "RefusedRow": REJECTED_ROW,
        "SyncError": _sync_error(),
        "Checkpoint": CHECKPOINT,
    }


def _sync_error() -> Json:
    schema = object_schema(SyncError)
    schema["properties"]["code"]["enum"] = REJECTION_CODES
    schema["properties"]["base"]["description"] = "`{epoch}:{seq}` of the stored row."
    return schema


def _complete_operation(method: str, operation: Json, path: str, collections: list[str]) -> None:
    if operation.get("security") == [{}]:
        operation["security"] = []  # Litestar takes an empty list for none given
    for parameter in operation.get("parameters", []):
        _complete_parameter(parameter, path, collections)
    _complete_body(operation.get("requestBody", {}))
    responses = operation["responses"]
    success = next(answer for status, answer in responses.items() if status.startswith("2"))
    _complete_success(success)
    if operation["operationId"] == "push":
        content = {"application/json": {"schema": {"type": "array", "items": _ref("PushRow")}}}
        operation["requestBody"] = {"required": True, "content": content}
        success["content"]["application/json"]["schema"] = _ref("PushAnswer")
    if operation["operationId"] == "pull":
        success["content"]["application/json"]["schema"] = _ref("Page")
    _complete_refusals(method, operation)


def _complete_parameter(parameter: Json, path: str, collections: list[str]) -> None:
    parameter["name"] = _camel(parameter["name"])
    place = f"{parameter['in']} {parameter['name']}"
    if not parameter.get("description"):
        parameter.update(PARAMETERS.get(place, {}))
    if place == "path name" and path.startswith("/v1/sync/"):
        parameter["description"] = "The collection."
        parameter["schema"] = {"type": "string", "enum": collections}
    if parameter["in"] == "query":  # which says a thing or leaves it out, but says no null
        parameter["schema"] = _without_null(parameter["schema"])
    if parameter["in"] == "path" and parameter["name"].endswith("Id") and place not in PARAMETERS:
        parameter["schema"] = ID


def _without_unused_schemas(document: Json) -> Json:
    """Less the schemas that only the structs of rows had named."""
    schemas = document["components"]["schemas"]
    while loose := schemas.keys() - set(_referenced_schemas(document)):
        for name in loose:
            del schemas[name]
    return document


def _referenced_schemas(node: Any) -> Iterator[str]:
    """The schemas that are referred to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(SCHEMAS)
        node = list(node.values())
    for value in node if isinstance(node, list) else ():
        yield from _referenced_schemas(value)


def _without_null(schema: Json) -> Json:
    if "oneOf" in schema:
        (said,) = (one for one in schema["oneOf"] if one != {"type": "null"})
        return {**{name: value for name, value in schema.items() if name != "oneOf"}, **said}
    if isinstance(schema["type"], list):  # as of an enum
        (kind,) = (kind for kind in schema["type"] if kind != "null")
        return {**schema, "type": kind, "enum": [value for value in schema["enum"] if value is not None]}
    return schema


def _complete_body(body: Json) -> None:
    """Litestar takes a body that may be null for one that must be there."""
    for content in body.get("content", {}).values():
        if {"type": "null"} in content["schema"].get("oneOf", ()):
            body["required"], content["schema"] = False, _without_null(content["schema"])


def _complete_success(answer: Json) -> None:
    answer["description"] = "Done."
    content = answer["content"]
    if EVENTS in content:
        said = content[EVENTS]["schema"]
        content[EVENTS]["schema"] = {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": said if "oneOf" in said else _ref("StreamEvent"),
            "description": "Events, each with such `data`; comments keep the connection alive.",
        }
    for media in content.keys() & {"application/zip", "application/octet-stream"}:
        content[media]["schema"] = {"type": "string", "format": "binary"}


def _complete_refusals(method: str, operation: Json) -> None:
    """What routes of this kind can all answer; a route names only what is its own."""
    kinds: list[type[errors.VademecumError]] = [errors.RateLimited, errors.Broken]
    if operation.get("parameters") or operation.get("requestBody"):
        kinds.append(errors.BadRequest)
    if operation.get("requestBody"):
        kinds.append(errors.TooLarge)
    if operation.get("security") != []:
        kinds.append(errors.SignedOut)
    if method != "get":
        kinds.append(errors.Forbidden)  # a request that another site caused
    responses = operation["responses"]
    responses.pop("400", None)  # Litestar's own form of it is never sent
    for status, said in problem_specs(*kinds).items():
        own = responses.setdefault(
            str(status),
            {"description": said.description, "content": {MEDIA_TYPE: {"schema": _ref("Problem")}}},
        )
        if said.description not in own["description"]:
            own["description"] += f", {said.description}"
    for wait in ("429", "503"):
        if MEDIA_TYPE in responses.get(wait, {}).get("content", {}):
            responses[wait]["headers"] = {"Retry-After": RETRY_AFTER}
    operation["responses"] = dict(sorted(responses.items()))


def _ref(name: str) -> Json:
    return {"$ref": f"{SCHEMAS}{name}"}


def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


def _camel_path(path: str) -> str:
    return re.sub("{[a-z_]+}", lambda found: _camel(found[0]), path)

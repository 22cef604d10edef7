"""Complete the OpenAPI document with what Litestar cannot derive: row schemas, the sync protocol and the errors.

Litestar describes only the signatures of the routes. `complete_document` adds the rest for all routes.
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
    "BAD_REQUEST": "The request is malformed. Nothing was changed.",
    "SIGNED_OUT": "The request has no valid cookie or token.",
    "FORBIDDEN": "The account is not allowed to do this, the request came from another site, the current password is wrong, "
    "or an API token was used to create a token, a first password or a sign-in link.",
    "TIER": "The account's tier does not include this feature.",
    "NOT_FOUND": "The id is unknown, deleted or belongs to another account. The responses are identical.",
    "METHOD_NOT_ALLOWED": "The path does not support this method. The header `Allow` lists the supported methods.",
    "CONFLICT": "The request conflicts with the current state: for example, the email is taken or the account has 100 tokens.",
    "EPOCH": "The server was restored from a backup, or did not issue this checkpoint. `detail` says how to sync all "
    "collections again from the start. `epoch` is the current epoch.",
    "DUPLICATE": "Another row already has this unique value, such as the `externalId` of a session.",
    "GONE": "The row with this id was deleted. A deletion wins over a change.",
    "DOCUMENT_LIMIT": "The account has the maximum number of documents.",
    "STORAGE_LIMIT": "The account has used all of its storage.",
    "TOO_LARGE": "The body, the file or the system prompt exceeds its size limit.",
    "UNSUPPORTED_MEDIA_TYPE": "The operation does not support the media type of the body.",
    "RANGE": "The requested range is outside the file. `Content-Range` contains the size of the file.",
    **UNREADABLE,
    "NO_DATA": "There is nothing to summarize yet.",
    "OUTDATED": "The client's schema version is older than the server's. Update the app.",
    "RATE_LIMITED": "The client sent too many requests. Wait `Retry-After` seconds.",
    "STREAM_LIMIT": "The account has the maximum number of open streams. Pull and push work without a stream.",
    "TOO_NEW": "The client's schema version is newer than the server's. Wait `Retry-After` seconds.",
    "BUSY": "The server is overloaded or cannot write to its disk at the moment. Wait `Retry-After` seconds.",
    "EMBEDDER_BUSY": "The server has too many questions to embed at the moment. Wait `Retry-After` seconds.",
    "EMBEDDER_CLOSED": "The server is stopping. Try again.",
    "STOPPING": "The server is stopping. Try again.",
    "NO_ASSISTANT": "No language model is configured on the server.",
    "ASSISTANT": "The language model gave no answer.",
    "ASSISTANT_UNREACHABLE": "The endpoint of the language model does not respond.",
    "ASSISTANT_KEY": "The endpoint of the language model rejects the server's API key.",
    "ASSISTANT_MODEL": "The endpoint does not have the configured language model.",
    "ASSISTANT_FAILED": "The endpoint of the language model failed, closed the connection or sent an invalid response.",
    "ASSISTANT_BUSY": "The endpoint of the language model is overloaded. Wait `Retry-After` seconds.",
    "ASSISTANT_TIMEOUT": "The language model took too long to answer.",
    "BROKEN": "The server failed. No acknowledged data is lost.",
    "FENCED": "The records of this account are damaged. `detail` names the file. Other accounts are not affected.",
    "ERROR": "Any other error. `detail` describes it.",
}
DESCRIPTION = "\n".join(
    [
        "The API stores documents, their vectors and the memory of conversations, and synchronizes them between devices. ",
        "All JSON is camelCase; all times are ISO 8601 in UTC. Create an API token with `vademecum token create EMAIL` and ",
        "send it as `Authorization: Bearer …`. An API token cannot create other credentials: tokens, first passwords or ",
        "sign-in links (`FORBIDDEN`).",
        "",
        f"Every error response is a `Problem` (`{MEDIA_TYPE}`) with a stable `code`:",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| `{code}` | {meaning} |" for code, meaning in CODE_MEANINGS.items()),
    ]
)
TAGS = {
    "sync": "Replication for RxDB and for other clients that keep a copy of the data: pull, push and event streams.",
    "documents": "Upload files as searchable text, and borrow the documents for sessions.",
    "search": "Search borrowed documents, and build prompts from the passages.",
    "assistant": "Stream answers of the server's language model, and manage its background jobs.",
    "models": "Download the embedding models, so that browsers compute the same vectors as the server.",
    "sessions": "Manage conversations and the projects that group them. A push can create and change these rows, too.",
    "memory": "Manage the memory of conversations: memories, turns, entities and their relationships, summaries.",
    "agents": "Record the actions of coding agents, and brief other agents about them.",
    "account": "Sign in, manage your account and its API tokens, and export or delete all its data.",
    "administration": "Manage all accounts and the embedding model. For administrators.",
    "operations": "Monitor the server. For operators.",
}
ID = {"type": "string", "maxLength": 100}
PARAMETERS: dict[str, Json] = {
    "path version": {"description": "The client's schema version of the collection.", "example": 0},
    "query lwt": {"description": "The `lwt` of the last checkpoint; 0 or empty to start. A value above the account's `seq` returns `EPOCH` or, without `id`, an empty page with the current checkpoint.", "schema": {"type": "integer", "minimum": 0, "default": 0}},
    "query id": {"description": "The `id` of the last checkpoint, unchanged. An `id` of another epoch returns `EPOCH`."},
    "query epoch": {"description": "The epoch of the client's last checkpoint (its `id`, or the part before the dot). An epoch other than the current one returns `EPOCH`."},
    "query versions": {"description": "Collections and their schema versions; empty for all collections.", "example": "documents:1,sessions:1"},
    "query name": {"description": "A filename, or a whole message that may name one."},
    "query sessionId": {"description": "The session on whose behalf the request is made."},
    "query email": {"description": "Return only the account with this email. The list is empty if there is none."},
    "query label": {"description": "The label of the relationship."},
    "path type": {"description": "The type of the entities."},
    "path externalId": {"description": "The id that another program has assigned to the session.", "schema": {"type": "string", "maxLength": 255}},
    "path model": {"description": "The hash of a model.", "schema": {"type": "string", "maxLength": 64}},
    "path path": {"description": "A file that the model's manifest lists.", "schema": {"type": "string", "maxLength": 255}},
    "query later": {"description": "Return immediately and create the summary in a background job: see `GET /v1/jobs`."},
    "path job": {"description": "The `id` of a job.", "schema": {"type": "string", "maxLength": 120}},
    "query forget": {"description": "Whether the response waits until the data is erased from the disk: `now` (it waits) or `soon`."},
    "query sessions": {"description": "Whether to keep or delete the sessions of the project."},
}  # fmt: skip
SCHEMAS = "#/components/schemas/"
RETRY_AFTER = {
    "schema": {"type": "integer"},
    "description": "The number of seconds to wait before the next request.",
}
REJECTED_ROW = {
    "type": "object",
    "description": "A rejected row with the reason: the row as sent, or merged if another device changed it. The row stays "
    "on the device until it is edited.",
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
        "lwt": {
            "type": "integer",
            "description": "The `seq` of the account up to which the page contains changes.",
        },
        "id": {
            "type": "string",
            "description": "`{epoch}.{mac}`: the epoch, and a message authentication code that proves that this server issued "
            "the checkpoint. Send it back unchanged.",
        },
    },
}
FORGOTTEN_AT = {
    "type": "string",
    "description": "The time at which the user last deleted all data (`forgetEverything`); absent if that never happened. Delete "
    "rejected rows that are older, because the server has no tombstones for them.",
}

IMPORTED = {
    "type": "boolean",
    "default": False,
    "description": "True for a turn that is new to the server and comes from an export together with the data extracted from "
    "it. The server does not send such a turn to the language model until its text changes.",
}


def complete_document(document: Json, registry: Mapping[str, Collection]) -> Json:
    """Complete the document that Litestar generated: errors, row schemas, sync schemas and parameter descriptions."""
    schemas = document["components"]["schemas"]
    schemas["Problem"]["properties"]["code"]["enum"] = list(CODE_MEANINGS)
    schemas["Problem"]["required"] = [name for name in schemas["Problem"]["properties"] if name != "epoch"]
    synced = [c for c in registry.values() if c.synced]
    collections = [c for c in registry.values() if c.synced or c.struct.__name__ in schemas]
    rows = {f"{c.struct.__name__}Doc": _row(c) for c in collections}
    # Routes declare the struct of a row but return the row in its synced form, so redirect each struct to that form.
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
    if both := (schemas.keys() & ours.keys()) - {"SyncError"}:  # both define SyncError identically
        raise ValueError(f"two schemas of one name: {', '.join(both)}")
    schemas |= ours
    return _without_unused_schemas(document)


def _row(collection: Collection) -> Json:
    """Return the schema of a collection without the keys that only RxDB reads, but with RxDB's deletion flag."""
    schema = {
        k: v for k, v in json_schema(collection).items() if k not in ("version", "primaryKey", "indexes")
    }
    deleted = {
        "type": "boolean",
        "description": "Whether the row is deleted. A deleted row keeps its `id`, parents and times; other fields are blank.",
    }
    return {**schema, "properties": {**schema["properties"], "_deleted": deleted}}


def _sync_schemas(rows: list[str]) -> Json:
    page = {
        "documents": {"type": "array", "items": _ref("Row")},
        "checkpoint": _ref("Checkpoint"),
        "forgottenAt": FORGOTTEN_AT,
    }
    event = {
        "collection": {"type": "string", "description": "Only in the stream of all collections."},
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
            "description": "A row of the collection in the path.",
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
        operation["security"] = []  # routes declare [{}], because Litestar treats an empty list as absent
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
    if parameter["in"] == "query":  # a query parameter can be absent, but not null
        parameter["schema"] = _without_null(parameter["schema"])
    if parameter["in"] == "path" and parameter["name"].endswith("Id") and place not in PARAMETERS:
        parameter["schema"] = ID


def _without_unused_schemas(document: Json) -> Json:
    """Remove the schemas that nothing refers to any more. Only the replaced structs of rows referred to them."""
    schemas = document["components"]["schemas"]
    while loose := schemas.keys() - set(_referenced_schemas(document)):
        for name in loose:
            del schemas[name]
    return document


def _referenced_schemas(node: Any) -> Iterator[str]:
    """Yield the names of the schemas that `node` refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(SCHEMAS)
        node = list(node.values())
    for value in node if isinstance(node, list) else ():
        yield from _referenced_schemas(value)


def _without_null(schema: Json) -> Json:
    if "oneOf" in schema:
        (option,) = (one for one in schema["oneOf"] if one != {"type": "null"})
        return {**{name: value for name, value in schema.items() if name != "oneOf"}, **option}
    if isinstance(schema["type"], list):  # a nullable enum
        (kind,) = (kind for kind in schema["type"] if kind != "null")
        return {**schema, "type": kind, "enum": [value for value in schema["enum"] if value is not None]}
    return schema


def _complete_body(body: Json) -> None:
    """Mark a nullable body as optional. Litestar describes it as required."""
    for content in body.get("content", {}).values():
        if {"type": "null"} in content["schema"].get("oneOf", ()):
            body["required"], content["schema"] = False, _without_null(content["schema"])


def _complete_success(answer: Json) -> None:
    answer["description"] = "Success."
    content = answer["content"]
    if EVENTS in content:
        event_schema = content[EVENTS]["schema"]
        content[EVENTS]["schema"] = {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": event_schema if "oneOf" in event_schema else _ref("StreamEvent"),
            "description": "Server-sent events whose `data` has this schema. Comments keep the connection alive.",
        }
    for media in content.keys() & {"application/zip", "application/octet-stream"}:
        content[media]["schema"] = {"type": "string", "format": "binary"}


def _complete_refusals(method: str, operation: Json) -> None:
    """Add the errors that follow from an operation's parameters, body, authentication and method.

    A route declares only its specific errors.
    """
    kinds: list[type[errors.VademecumError]] = [errors.RateLimited, errors.Broken]
    if operation.get("parameters") or operation.get("requestBody"):
        kinds.append(errors.BadRequest)
    if operation.get("requestBody"):
        kinds.append(errors.TooLarge)
    if operation.get("security") != []:
        kinds.append(errors.SignedOut)
    if method != "get":
        kinds.append(errors.Forbidden)  # for a cross-site request
    responses = operation["responses"]
    responses.pop("400", None)  # Litestar describes its own format of a 400, which the server never sends
    for status, spec in problem_specs(*kinds).items():
        own = responses.setdefault(
            str(status),
            {"description": spec.description, "content": {MEDIA_TYPE: {"schema": _ref("Problem")}}},
        )
        if spec.description not in own["description"]:
            own["description"] += f", {spec.description}"
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

"""The OpenAPI document: its descriptions are complete, its references resolve, and the server enforces its limits."""

import re

import jsonschema_rs
import pytest

from property.rows import fact
from server.http.openapi_document import ServedDocument, load_document
from server.in_process_server import run, serve
from vademecum.engines.onnx.errors import ModelError
from vademecum.errors import UnreadableFile, VademecumError
from vademecum.http.openapi.schema import CODE_MEANINGS
from vademecum.http.problem_details import CODES
from vademecum.model.schema.collections import COLLECTIONS


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    found = []

    async def scenario():
        async with serve(tmp_path_factory.mktemp("server")) as h:
            found.append((await load_document(h, await h.person())).document)

    run(scenario)
    return found[0]


def every(node):
    """Yield all objects of a JSON document."""
    if isinstance(node, dict):
        yield node
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from every(child)


def test_every_operation_has_id_tag_and_description(document):
    tags = {tag["name"] for tag in document["tags"]}
    for operation in ServedDocument(document).operations.values():
        assert re.fullmatch("[a-z]+([A-Z][a-z]+)*", operation["operationId"])
        assert len(operation["tags"]) == 1 and set(operation["tags"]) <= tags, operation["operationId"]
        assert 8 < len(operation["summary"]) < 60, operation["operationId"]
        assert len(operation["description"]) > 40, operation["operationId"]
        for parameter in operation.get("parameters", []):
            has_description = parameter.get("description") or parameter["name"].endswith("Id")
            assert has_description, (operation["operationId"], parameter["name"])


def test_every_field_and_parameter_is_camel_case(document):
    names = {name for node in every(document["components"]["schemas"]) for name in node.get("properties", ())}
    operations = ServedDocument(document).operations.values()
    names |= {parameter["name"] for o in operations for parameter in o.get("parameters", [])}
    assert {"signedIn", "newDocumentState", "documentId"} <= names
    assert [n for n in names if not re.fullmatch("[a-z][a-zA-Z0-9]*", n)] == ["_deleted"]


def test_schema_references_resolve_and_no_schema_is_unused(document):
    references = {node["$ref"] for node in every(document) if "$ref" in node}
    schema_refs = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references == schema_refs, "references and schemas must match"
    rows = {f"#/components/schemas/{c.struct.__name__}Doc" for c in COLLECTIONS if c.synced}
    assert rows <= references


def test_error_responses_are_problems_with_documented_codes(document):
    for operation in ServedDocument(document).operations.values():
        for status, answer in operation["responses"].items():
            if status >= "400" and (operation["operationId"], status) != ("getReadiness", "503"):
                schema = {"$ref": "#/components/schemas/Problem"}
                assert answer["content"] == {"application/problem+json": {"schema": schema}}
    search = ServedDocument(document).operations["search"]["responses"]
    assert search["403"]["description"] == "`TIER`, `FORBIDDEN`", (
        "the description must list the codes of this route and of all routes"
    )
    assert search["429"]["headers"].keys() == {"Retry-After"}
    assert set(CODES.values()) | {kind.code for kind in kinds(VademecumError)} <= CODE_MEANINGS.keys()
    for code in CODE_MEANINGS:
        assert f"`{code}`" in document["info"]["description"]


def kinds(kind):
    """Yield all subclasses of `kind` whose code an HTTP response can contain.

    Model errors never reach a response, and unreadable files are reported with the code of a subclass.
    """
    for child in kind.__subclasses__():
        if child is not UnreadableFile and not issubclass(child, ModelError):
            yield child
            yield from kinds(child)


def test_operations_documented_without_security_need_no_credentials(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            anonymous = await h.person()
            api = await load_document(h, anonymous)
            assert api.document["security"] == [{"token": []}, {"cookie": []}]
            assert set(api.document["components"]["securitySchemes"]) == {"token", "cookie"}
            del anonymous.client.headers["Authorization"]
            for operation in api.operations.values():
                path = operation["path"].replace("{version}", "0")
                answer = await anonymous.call(operation["method"].upper(), path)
                assert (operation.get("security") == []) == (answer.status_code != 401), operation["path"]

    run(scenario)


def test_push_and_upload_bodies_are_described(document):
    api = ServedDocument(document)
    push = api.operations["push"]["requestBody"]
    assert push["required"]
    schema = push["content"]["application/json"]["schema"]
    api.validate(schema, [{"newDocumentState": fact("f1"), "assumedMasterState": fact("f1")}])
    for wrong in ({}, [{}], [{"newDocumentState": {"id": "f1"}}]):
        with pytest.raises(jsonschema_rs.ValidationError):
            api.validate(schema, wrong)
    assert list(api.operations["uploadDocument"]["requestBody"]["content"]) == ["multipart/form-data"]
    assert list(api.operations["export"]["responses"]["200"]["content"]) == ["application/zip"]


def test_request_limits_are_documented_and_enforced(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            api = await load_document(h, ada)
            bounded = set()
            for name, operation in api.operations.items():
                for wrong in _wrong(api, operation):
                    await _hold(api, ada, name, wrong)
                    bounded.add(name)
            lists = {
                "pull",
                "listSessions",
                "listObservations",
                "listEntities",
                "listJobs",
                "suggestDeletions",
            }
            searches = {
                "search",
                "searchEpisodes",
                "searchMemories",
                "searchObservations",
                "makeContext",
                "answer",
            }
            assert lists | searches | {"getTimeline", "briefAgent"} <= bounded

    run(scenario)


async def _hold(api, ada, name, wrong):
    """Check that the server rejects a request. `wrong`: the request's arguments, and the expected error message."""
    asked, said = wrong
    place = {"name": "facts", "version": 0, "type": "place"}
    place |= {
        one["name"]: "x" for one in api.operations[name].get("parameters", []) if one["name"] not in place
    }
    answer = await api.call(ada, name, 400, path=place, **asked)
    assert answer.json()["detail"] == said, name


def _wrong(api, operation):
    """Yield requests with a value outside each documented limit, each with the expected error message."""
    query = {one["name"]: one for one in operation.get("parameters", []) if one["in"] == "query"}
    needed = {name: "x" for name, one in query.items() if one["required"]}
    for name, one in query.items():
        if name == "q" or (one["schema"].get("type") == "integer" and name != "lwt"):
            for value, said in _outside(one["schema"]):
                yield {"params": needed | {name: value}}, f"{_called(name)} {said}."
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = api.document["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
    for name in {"query", "limit"} & schema.get("properties", {}).keys():
        for value, said in _outside(schema["properties"][name]):
            yield {"json": dict.fromkeys(schema["required"], "x") | {name: value}}, f"{_called(name)} {said}."


def _called(name):
    return "The question" if name in ("q", "query") else f"`{name}`"


def _outside(schema):
    if schema["type"] == "string":
        yield "x" * (schema["maxLength"] + 1), f"is longer than {schema['maxLength']:,} characters"
    else:
        low, high = int(schema["minimum"]), int(schema["maximum"])
        yield low - 1, f"must be at least {low:,}"
        yield high + 1, f"must be at most {high:,}"


def test_agent_operations_document_the_required_project(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            api = await load_document(h, ada)
            for name in ("listObservations", "listAgentProjects", "listAgentSessions", "briefAgent", "getTimeline",
                         "pinObservation", "deleteObservation"):  # fmt: skip
                (project,) = (one for one in api.operations[name]["parameters"] if one["name"] == "project")
                assert project["required"] and project["schema"]["type"] == "string", name
                request = {"path": {"observationId": "x"}, "json": {"pinned": True}}
                answer = await api.call(ada, name, 400, **request)
                assert answer.json()["detail"].startswith("Name the project"), name
            for name, body in {"readObservations": {"ids": []}, "searchObservations": {"query": "x"}}.items():
                answer = await api.call(ada, name, 400, json=body)
                assert answer.json()["detail"] == "The body lacks `project`."
                ref = api.operations[name]["requestBody"]["content"]["application/json"]["schema"]
                api.validate(ref, body | {"project": None})
                with pytest.raises(jsonschema_rs.ValidationError):
                    api.validate(ref, body)
                await api.call(ada, name, json=body | {"project": None})

    run(scenario)


def test_relationship_deletion_documents_body_and_query_parameters(document):
    operation = ServedDocument(document).operations["disconnectEntities"]
    assert operation["requestBody"]["required"] is False
    ServedDocument(document).validate(
        operation["requestBody"]["content"]["application/json"]["schema"],
        {"fromId": "a", "toId": "b", "label": "knows"},
    )
    assert {"fromId", "toId", "label"} <= {one["name"] for one in operation["parameters"]}


def test_every_object_of_the_schema_has_described_properties(document):
    assert {"type": "object", "additionalProperties": {}} not in list(every(document))


def test_every_schema_can_be_compiled(document):
    components = document["components"]
    for name in components["schemas"]:
        jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{name}", "components": components})


def test_page_and_event_schemas_document_optional_forgotten_at(document):
    for name in ("Page", "StreamEvent"):
        schema = document["components"]["schemas"][name]
        assert schema["properties"]["forgottenAt"]["type"] == "string"
        assert "forgottenAt" not in schema["required"]


def test_hook_event_and_stream_event_schemas_differ(document):
    schemas = document["components"]["schemas"]
    (items,) = (at["$ref"] for at in every(schemas["Events"]["properties"]["events"]) if "$ref" in at)
    event = schemas[items.rpartition("/")[2]]
    assert {"v", "id", "at", "kind"} <= set(event["required"]) and "documents" not in event["properties"]
    assert "documents" in schemas["StreamEvent"]["properties"]

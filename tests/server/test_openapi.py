"""The document of the API is true and of use: every operation is called, and what it answers is what the document says."""

import re

import jsonschema_rs
import msgspec
import pytest

from property.rows import entity, episode, fact, project, session
from server.asking import events_of
from server.endpoint import MODEL, speaking
from server.house import house, run
from server.test_models import install
from server.test_streams import listen, listening
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.manifest import TOKENIZER
from vademecum.errors import UnreadableFile, VademecumError
from vademecum.http.contract import MEANINGS
from vademecum.http.problems import CODES
from vademecum.model.collections import COLLECTIONS

PASSWORD = "a password of hers"


class Told:
    """The served document. `check` holds an answer against it, and remembers which operations were held."""

    def __init__(self, document):
        self.document = document
        self.operations = {
            operation["operationId"]: {"method": method, "path": path, **operation}
            for path, item in document["paths"].items()
            for method, operation in item.items()
        }
        self.held = set()

    async def call(self, person, name, status=200, *, path=(), **request):
        operation = self.operations[name]
        place = re.sub(r"{(\w+)}", lambda found: str(dict(path)[found[1]]), operation["path"])
        answer = await person.call(operation["method"].upper(), place, **request)
        assert answer.status_code == status, (name, answer.text)
        self.check(name, answer)
        return answer

    def check(self, name, answer):
        self.held.add(name)
        said = self.operations[name]["responses"][str(answer.status_code)]["content"]
        media = answer.headers["content-type"].split(";")[0]
        assert list(said) == [media], name
        if media.endswith("json"):
            self.fits(said[media]["schema"], answer.json())

    def fits(self, schema, value):
        whole = {**schema, "components": self.document["components"]}
        jsonschema_rs.validator_for(whole).validate(value)


async def told_by(h, person):
    return Told((await person.call("GET", "/schema/openapi.json")).json())


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    found = []

    async def scenario():
        async with house(tmp_path_factory.mktemp("house")) as h:
            found.append((await told_by(h, await h.person())).document)

    run(scenario)
    return found[0]


def every(node):
    """All objects of a document."""
    if isinstance(node, dict):
        yield node
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from every(child)


def test_every_operation_answers_what_the_document_says(tmp_path):
    async def scenario(h, url):
        ada = await h.person()
        told = await told_by(h, ada)
        await _documents(told, ada)
        await _memory(told, ada)
        await _jobs(told, ada)
        await _memories(told, ada)
        await _agents(told, ada)
        await _models(told, h, ada)
        await _sync(told, ada)
        await _account(told, h, ada)
        for name, path in {
            "followCollection": "/v1/sync/facts/0/pullStream",
            "followAll": "/v1/sync/stream",
        }.items():
            async with listen(url, ada, path) as ear:
                told.check(name, ear.answer)
                await ada.push("facts", fact(f"{name}-fact"))
                await ear.until(lambda ear=ear: ear.events)
                for event in ear.events:
                    told.fits({"$ref": "#/components/schemas/Event"}, event)
        await told.call(ada, "export")
        await told.call(ada, "forgetEverything", json={"confirm": "forget everything"})
        await told.call(ada, "leave", json={"confirm": "leave for good"})
        assert told.held == told.operations.keys()

    async def whole():
        async with (
            speaking() as model,
            house(tmp_path, assistant_url=model.url, assistant_model=MODEL) as h,
            listening(h.app) as url,
        ):
            await scenario(h, url)

    run(whole)


async def _documents(told, ada):
    file = {"file": ("lease.txt", b"The lease of the mill ends in March.")}
    await ada.push("sessions", session("s1"), session("s2"))
    uploaded = await told.call(ada, "uploadDocument", 201, files=file, data={"sessionId": "s1"})
    document = {"documentId": uploaded.json()["document"]["id"]}
    assert (await told.call(ada, "listDocuments")).json()["documents"]
    assert (await told.call(ada, "lookUpDocuments", params={"name": "lease"})).json()["matches"]
    assert (await told.call(ada, "suggestDeletions")).json()["suggestions"]
    await told.call(ada, "getDocument", path=document)
    await told.call(ada, "borrowDocument", path=document | {"sessionId": "s2"})
    await told.call(ada, "returnDocument", path=document | {"sessionId": "s2"})
    found = await told.call(ada, "search", json={"query": "mill lease", "sessionId": "s1"})
    assert found.json()["results"]
    context = await told.call(ada, "makeContext", json={"query": "mill lease", "sessionId": "s1"})
    assert "lease.txt" in context.json()["prompt"]
    assert (await told.call(ada, "getAssistant")).json() == {"available": True, "model": MODEL}
    answer = await told.call(ada, "answer", json={"query": "mill lease", "sessionId": "s1"})
    events = events_of(answer.text)
    assert [name for name, _ in events] == ["context", "delta", "done"] and events[0][1]["citations"]
    stream = told.operations["answer"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
    for _, data in events:
        told.fits(stream["contentSchema"], data)
    await told.call(ada, "deleteDocument", path=document)
    await told.call(ada, "getDocument", 404, path=document)
    await told.call(ada, "uploadDocument", 422, files={"file": ("a.pdf", b"%PDF-1.7\n")})
    await told.call(ada, "deleteAllDocuments")


async def _memory(told, ada):
    project = (await told.call(ada, "createProject", 201, json={"name": "Mill"})).json()["id"]
    place = {"projectId": project, "externalId": "chat/1", "type": "place"}
    new = {"externalId": "chat/1", "title": "Lease", "projectId": project}
    session_id = (await told.call(ada, "createSession", 201, json=new)).json()["id"]
    await told.call(ada, "createSession", 409, json=new)
    place |= {"sessionId": session_id}
    turn = {"sessionId": session_id, "userMessage": "When?", "aiResponse": "In March."}
    place["episodeId"] = (await told.call(ada, "createEpisode", 201, json=turn)).json()["id"]
    mill, miller = ({"projectId": project, "name": name, "type": "place"} for name in ("Mill", "Miller"))
    place["entityId"] = (await told.call(ada, "keepEntity", 201, json=mill)).json()["id"]
    await told.call(ada, "keepEntity", json=mill)
    other = (await told.call(ada, "keepEntity", 201, json=miller)).json()["id"]
    edge = {"fromId": place["entityId"], "toId": other, "label": "of"}
    await told.call(ada, "connectEntities", 201, json=edge, params={"project": "*"})
    await told.call(ada, "connectEntities", json=edge, params={"project": "*"})
    await told.call(ada, "getOverview", path=place)
    for of in ({"sessionId": session_id}, {"projectId": project}):
        made = await told.call(ada, "createSummary", 201, json={"content": "In short.", **of})
        place["summaryId"] = made.json()["id"]
    for name, rows in {
        "listProjects": "projects",
        "listSessions": "sessions",
        "listProjectSessions": "sessions",
        "listEpisodes": "episodes",
        "listSessionEpisodes": "episodes",
        "listEntities": "entities",
        "listRelationships": "relationships",
        "listSessionSummaries": "summaries",
        "listProjectSummaries": "summaries",
    }.items():
        asked = await told.call(ada, name, path=place, params={"sessionId": session_id, "limit": 1})
        assert len(asked.json()[rows]) == 1, name
        await told.call(ada, name, 400, path=place, params={"sessionId": session_id, "limit": 0})
    scope = {"params": {"project": "*"}, "path": place}
    for name in ("getProject", "getSessionByExternalId", "getEntity", "getOverview"):
        await told.call(ada, name, **scope)
    await told.call(ada, "changeProject", path=place, json={"description": "All about it."})
    await told.call(ada, "changeSessionByExternalId", path=place, json={"projectId": None})
    await told.call(ada, "changeSummary", json={"content": "Shorter."}, **scope)
    await told.call(ada, "disconnectEntities", json=edge, params={"project": "*"})
    await told.call(ada, "disconnectEntities", 404, params={**edge, "project": "*"})
    for name in ("deleteEntity", "deleteEpisode", "deleteSummary", "deleteSessionByExternalId"):
        await told.call(ada, name, **scope)
        await told.call(ada, name, 404, **scope)


async def _jobs(told, ada):
    await ada.push("projects", project("p2"))
    await ada.push("sessions", session("summed", projectId="p2"))
    await told.call(ada, "summarizeSession", 422, path={"sessionId": "summed"})
    await ada.push("episodes", episode("e3", "summed"))
    await told.call(ada, "summarizeSession", path={"sessionId": "summed"})
    await told.call(ada, "summarizeProject", path={"projectId": "p2"})
    job = (
        await told.call(ada, "summarizeProject", 202, path={"projectId": "p2"}, params={"later": True})
    ).json()
    assert job["id"] in [one["id"] for one in (await told.call(ada, "listJobs")).json()["jobs"]]
    await told.call(ada, "retryJob", path={"job": job["id"]})
    await told.call(ada, "retryJobs")


async def _memories(told, ada):
    await ada.push("sessions", session("said-in"))
    said = {"text": "The rent is due on the 1st.", "sessionId": "said-in"}
    memory = (await told.call(ada, "remember", 201, json=said)).json()["memory"]
    assert (await told.call(ada, "remember", json=said)).json()["deduplicated"]
    found = await told.call(ada, "searchMemories", json={"query": "rent", "project": None})
    assert [hit["memory"] for hit in found.json()["results"]] and found.json()["scope"] == {"kind": "all"}
    newer = {**memory, "id": "newer", "supersedes": memory["id"]}
    assert await ada.push("memories", newer) == []
    place = {"path": {"memoryId": "newer", "sessionId": "said-in"}, "params": {"sessionId": "said-in"}}
    assert len((await told.call(ada, "getMemoryHistory", **place)).json()["memories"]) == 2
    await told.call(ada, "getMemory", **place)
    await told.call(ada, "undoSupersede", **place)
    await told.call(ada, "undoSupersede", 409, **place)
    await told.call(ada, "listSessionMemories", path=place["path"])
    assert (await told.call(ada, "countMemories")).json()["total"] == 2
    await told.call(ada, "deleteMemory", **place)
    await told.call(ada, "deleteMemory", 404, **place)
    await told.call(ada, "forgetMemories", json={"confirm": True})


async def _agents(told, ada):
    folder = {"name": "app", "root": "~/app", "source": "git"}
    project_id = (await told.call(ada, "identifyProject", json=folder)).json()["project"]["id"]
    await told.call(ada, "identifyProject", 400, json={**folder, "name": ""})
    done = {"v": 1, "at": "2026-06-01T10:00:00.000Z", "project": folder, "session": "s", "kind": "command"}
    events = [{**done, "id": f"e{n}", "content": f"make step {n}"} for n in range(3)]
    assert (await told.call(ada, "takeUpObservations", json={"events": events})).json() == {"taken": 3}
    scope = {"params": {"project": project_id}}
    rows = (await told.call(ada, "listObservations", **scope)).json()["observations"]
    asked = {"query": "make", "project": project_id}
    assert len((await told.call(ada, "searchObservations", json=asked)).json()["results"]) == 3
    wanted = {"ids": [rows[0]["id"], "unknown"], "project": None}
    assert (await told.call(ada, "readObservations", json=wanted)).json()["missing"] == ["unknown"]
    place = {"path": {"observationId": rows[0]["id"]}, **scope}
    assert len((await told.call(ada, "getTimeline", **place)).json()["observations"]) == 3
    await told.call(ada, "pinObservation", **place, json={"pinned": True})
    (worked,) = (await told.call(ada, "listAgentProjects", **scope)).json()["projects"]
    (session,) = (await told.call(ada, "listAgentSessions", **scope)).json()["sessions"]
    assert (worked["observations"], session["agentSession"]) == (3, "s")
    briefed = await told.call(ada, "briefAgent", **scope)
    assert "make step 2" in briefed.json()["text"]
    await told.call(ada, "deleteObservation", **place)
    await told.call(ada, "getTimeline", 404, **place)
    await told.call(ada, "exportProject", path={"projectId": project_id})
    other = (await told.call(ada, "identifyProject", json={**folder, "name": "other"})).json()["project"][
        "id"
    ]
    merged = await told.call(ada, "mergeProjects", path={"projectId": project_id}, json={"into": other})
    assert merged.json()["moved"] == 3, "two observations and what the folder is called"
    await told.call(ada, "mergeProjects", 404, path={"projectId": project_id}, json={"into": other})
    forgotten = await told.call(ada, "deleteProject", path={"projectId": other}, params={"forget": "now"})
    assert forgotten.json()["leftovers"] == 0


async def _models(told, h, ada):
    install(h.parts.settings.models_folder, "small")
    (model,) = (await told.call(ada, "listModels")).json()["models"]
    path = {"model": model["hash"], "path": TOKENIZER}
    await told.call(ada, "getModelFile", path=path)
    await told.call(ada, "getModelFile", 206, path=path, headers={"Range": "bytes=1-"})
    await told.call(ada, "getModelFile", 416, path=path, headers={"Range": "bytes=99-"})
    await told.call(ada, "getModelFile", 404, path=path | {"path": "nothing"})


async def _sync(told, ada):
    facts = {"name": "facts", "version": 0}
    refused = {**fact("f2"), "confidence": 7}
    batch = [{"newDocumentState": row} for row in (fact("f1"), refused)]
    told.fits({"$ref": "#/components/schemas/PushRow"}, batch[0])
    (answer,) = (await told.call(ada, "push", path=facts, json=batch)).json()
    assert answer["syncError"]["code"] == "INVALID"
    for collection in ("documents", "vectorEmbeddings", "sessions", "facts"):  # deleted ones among them
        path = {"name": collection, "version": 0}
        assert (await told.call(ada, "pull", path=path)).json()["documents"], collection
    await told.call(ada, "pull", 409, path=facts, params={"id": "another"})
    await told.call(ada, "pull", 503, path=facts | {"version": 9})
    await told.call(ada, "push", 400, path=facts, content=b"[")
    await ada.push("projects", project("p1"))
    await ada.push("sessions", session("s3", projectId="p1"))
    await ada.push("episodes", episode("e1", "s3", userMessage="Where is the mill?"))
    await ada.push("entities", entity("n1", "p1", name="The mill"))
    for name in ("searchEpisodes", "searchEntities"):
        found = (await told.call(ada, name, params={"q": "mill", "sessionId": "s3"})).json()
        assert found["results"] and found["scope"] == {"kind": "project", "projectId": "p1"}
        await told.call(ada, name, 404, params={"q": "mill", "sessionId": "nowhere"})
    await told.call(ada, "deleteSession", path={"sessionId": "s1"})
    await told.call(ada, "deleteProject", path={"projectId": "p1"})


async def _account(told, h, ada):
    await told.call(ada, "getMe")
    made = (await told.call(ada, "createToken", 201, json={"name": "phone"})).json()
    assert len((await told.call(ada, "listTokens")).json()) == 2
    await told.call(ada, "revokeToken", path={"tokenId": made["token"]["id"]})
    await told.call(ada, "changePassword", json={"new": PASSWORD})
    email = h.parts.accounts.accounts[ada.id].email
    answer = await told.call(ada, "signIn", json={"email": email, "password": PASSWORD})
    assert answer.json() == {"signedIn": True}
    await told.call(ada, "signIn", 401, json={"email": email, "password": "another"})
    await told.call(ada, "signOut")
    await told.call(ada, "listAccounts", 403)
    await told.call(ada, "getHealth")
    await told.call(ada, "getReadiness")

    boss = await h.person()
    await h.parts.accounts.change_account(boss.id, lambda a: msgspec.structs.replace(a, admin=True))
    bob = (await told.call(boss, "createAccount", 201, json={"email": "bob@example.org"})).json()
    await told.call(boss, "createAccount", 409, json={"email": "bob@example.org"})
    await told.call(boss, "getReembedding")
    await told.call(boss, "useModel", 409, json={"model": "none"})
    await told.call(boss, "pauseReembedding", 409)
    await told.call(boss, "resumeReembedding", 409)
    assert len((await told.call(boss, "listAccounts")).json()) == 3
    path = {"accountId": bob["userId"]}
    await told.call(boss, "changeAccount", path=path, json={"tier": "JIVE", "resetPassword": True})
    await told.call(boss, "deleteAccount", path=path)


def test_every_operation_has_a_name_a_tag_and_words_that_teach(document):
    tags = {tag["name"] for tag in document["tags"]}
    for operation in Told(document).operations.values():
        assert re.fullmatch("[a-z]+([A-Z][a-z]+)*", operation["operationId"])
        assert len(operation["tags"]) == 1 and set(operation["tags"]) <= tags, operation["operationId"]
        assert 8 < len(operation["summary"]) < 60, operation["operationId"]
        assert len(operation["description"]) > 40, operation["operationId"]
        for parameter in operation.get("parameters", []):
            told = parameter.get("description") or parameter["name"].endswith("Id")
            assert told, (operation["operationId"], parameter["name"])


def test_every_field_and_parameter_is_camel_case(document):
    names = {name for node in every(document["components"]["schemas"]) for name in node.get("properties", ())}
    operations = Told(document).operations.values()
    names |= {parameter["name"] for o in operations for parameter in o.get("parameters", [])}
    assert {"signedIn", "newDocumentState", "documentId"} <= names
    assert [n for n in names if not re.fullmatch("[a-z][a-zA-Z0-9]*", n)] == ["_deleted"]


def test_every_reference_of_the_document_leads_somewhere(document):
    references = {node["$ref"] for node in every(document) if "$ref" in node}
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references == known, "nor is there one to which nothing leads"
    rows = {f"#/components/schemas/{c.struct.__name__}Doc" for c in COLLECTIONS if c.synced}
    assert rows <= references


def test_a_refusal_is_a_problem_with_a_code_of_the_table(document):
    for operation in Told(document).operations.values():
        for status, answer in operation["responses"].items():
            if status >= "400" and (operation["operationId"], status) != ("getReadiness", "503"):
                schema = {"$ref": "#/components/schemas/Problem"}
                assert answer["content"] == {"application/problem+json": {"schema": schema}}
    search = Told(document).operations["search"]["responses"]
    assert search["403"]["description"] == "`TIER`, `FORBIDDEN`", "its own codes and those of every route"
    assert search["429"]["headers"].keys() == {"Retry-After"}
    assert set(CODES.values()) | {kind.code for kind in kinds(VademecumError)} <= MEANINGS.keys()
    for code in MEANINGS:
        assert f"`{code}`" in document["info"]["description"]


def kinds(kind):
    """Every refusal of the program that can leave by HTTP: `UNREADABLE` always comes with the code of its reason."""
    for child in kind.__subclasses__():
        if child is not UnreadableFile and not issubclass(child, ModelError):
            yield child
            yield from kinds(child)


def test_an_operation_without_security_is_one_that_asks_for_no_credential(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            anyone = await h.person()
            told = await told_by(h, anyone)
            assert told.document["security"] == [{"token": []}, {"cookie": []}]
            assert set(told.document["components"]["securitySchemes"]) == {"token", "cookie"}
            del anyone.client.headers["Authorization"]
            for operation in told.operations.values():
                path = operation["path"].replace("{version}", "0")
                answer = await anyone.call(operation["method"].upper(), path)
                assert (operation.get("security") == []) == (answer.status_code != 401), operation["path"]

    run(scenario)


def test_what_every_push_and_upload_needs_is_described(document):
    told = Told(document)
    push = told.operations["push"]["requestBody"]
    assert push["required"]
    schema = push["content"]["application/json"]["schema"]
    told.fits(schema, [{"newDocumentState": fact("f1"), "assumedMasterState": fact("f1")}])
    for wrong in ({}, [{}], [{"newDocumentState": {"id": "f1"}}]):
        with pytest.raises(jsonschema_rs.ValidationError):
            told.fits(schema, wrong)
    assert list(told.operations["uploadDocument"]["requestBody"]["content"]) == ["multipart/form-data"]
    assert list(told.operations["export"]["responses"]["200"]["content"]) == ["application/zip"]


def test_every_bound_of_what_is_asked_is_stated_and_held_to(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            told = await told_by(h, ada)
            bounded = set()
            for name, operation in told.operations.items():
                for wrong in _wrong(told, operation):
                    await _hold(told, ada, name, wrong)
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


async def _hold(told, ada, name, wrong):
    """`wrong`: what is asked, and what is said to it."""
    asked, said = wrong
    place = {"name": "facts", "version": 0, "type": "place"}
    place |= {
        one["name"]: "x" for one in told.operations[name].get("parameters", []) if one["name"] not in place
    }
    answer = await told.call(ada, name, 400, path=place, **asked)
    assert answer.json()["detail"] == said, name


def _wrong(told, operation):
    """Of each number in the address one too small and one too large; of the body's bounded fields the same."""
    query = {one["name"]: one for one in operation.get("parameters", []) if one["in"] == "query"}
    needed = {name: "x" for name, one in query.items() if one["required"]}
    for name, one in query.items():
        if name == "q" or (one["schema"].get("type") == "integer" and name != "lwt"):
            for value, said in _outside(one["schema"]):
                yield {"params": needed | {name: value}}, f"{_called(name)} {said}."
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = told.document["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {})
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


def test_agents_must_name_the_project_and_the_document_says_so(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            told = await told_by(h, ada)
            for name in ("listObservations", "listAgentProjects", "listAgentSessions", "briefAgent", "getTimeline",
                         "pinObservation", "deleteObservation"):  # fmt: skip
                (project,) = (one for one in told.operations[name]["parameters"] if one["name"] == "project")
                assert project["required"] and project["schema"]["type"] == "string", name
                request = {"path": {"observationId": "x"}, "json": {"pinned": True}}
                answer = await told.call(ada, name, 400, **request)
                assert answer.json()["detail"].startswith("Name the project"), name
            for name, body in {"readObservations": {"ids": []}, "searchObservations": {"query": "x"}}.items():
                answer = await told.call(ada, name, 400, json=body)
                assert answer.json()["detail"] == "The body lacks `project`."
                ref = told.operations[name]["requestBody"]["content"]["application/json"]["schema"]
                told.fits(ref, body | {"project": None})
                with pytest.raises(jsonschema_rs.ValidationError):
                    told.fits(ref, body)
                await told.call(ada, name, json=body | {"project": None})

    run(scenario)


def test_a_relationship_is_taken_apart_by_a_body_or_by_the_address(document):
    operation = Told(document).operations["disconnectEntities"]
    assert operation["requestBody"]["required"] is False
    Told(document).fits(
        operation["requestBody"]["content"]["application/json"]["schema"],
        {"fromId": "a", "toId": "b", "label": "knows"},
    )
    assert {"fromId", "toId", "label"} <= {one["name"] for one in operation["parameters"]}


def test_no_answer_is_an_object_of_which_nothing_is_said(document):
    assert {"type": "object", "additionalProperties": {}} not in list(every(document))


def test_every_schema_of_the_document_can_be_validated_with(document):
    components = document["components"]
    for name in components["schemas"]:
        jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{name}", "components": components})


def test_a_page_and_an_event_may_say_when_everything_was_forgotten(document):
    for name in ("Page", "Event"):
        schema = document["components"]["schemas"][name]
        assert schema["properties"]["forgottenAt"]["type"] == "string"
        assert "forgottenAt" not in schema["required"]

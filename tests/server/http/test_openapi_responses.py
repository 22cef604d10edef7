"""Every API operation is called, and its response matches the OpenAPI document."""

import msgspec

from property.rows import entity, episode, fact, project, session, version_of
from server.accounts.account_clients import with_browser
from server.chat.assistant_server import events_of
from server.http.openapi_document import load_document
from server.in_process_server import run, serve
from server.listening_server import listen, listen_on_port
from server.models.test_browser_models import install
from server.scripted_llm import MODEL, start_llm
from vademecum.engines.onnx.manifest import TOKENIZER

PASSWORD = "a password of hers"


def test_every_operation_matches_its_documented_response(tmp_path):
    async def scenario(h, url):
        ada = await h.person()
        api = await load_document(h, ada)
        await _documents(api, ada)
        await _memory(api, ada)
        await _jobs(api, ada)
        await _memories(api, ada)
        await _agents(api, ada)
        await _models(api, h, ada)
        await _sync(api, ada)
        await _account(api, h, ada)
        for name, path in {
            "followCollection": "/v1/sync/facts/0/pullStream",
            "followAll": "/v1/sync/stream",
        }.items():
            async with listen(url, ada, path) as stream:
                api.check(name, stream.answer)
                await ada.push("facts", fact(f"{name}-fact"))
                await stream.wait_until(lambda stream=stream: stream.events)
                for event in stream.events:
                    api.validate({"$ref": "#/components/schemas/StreamEvent"}, event)
        await api.call(ada, "export")
        await api.call(ada, "forgetEverything", json={"confirm": "forget everything"})
        await api.call(ada, "leave", json={"confirm": "leave for good"})
        assert api.checked == api.operations.keys()

    async def whole():
        async with (
            start_llm() as model,
            serve(tmp_path, assistant_url=model.url, assistant_model=MODEL) as h,
            listen_on_port(h.app) as url,
        ):
            await scenario(h, url)

    run(whole)


async def _documents(api, ada):
    file = {"file": ("lease.txt", b"The lease of the mill ends in March.")}
    await ada.push("sessions", session("s1"), session("s2"))
    uploaded = await api.call(ada, "uploadDocument", 201, files=file, data={"sessionId": "s1"})
    document = {"documentId": uploaded.json()["document"]["id"]}
    assert (await api.call(ada, "listDocuments")).json()["documents"]
    assert (await api.call(ada, "lookUpDocuments", params={"name": "lease"})).json()["matches"]
    assert (await api.call(ada, "suggestDeletions")).json()["suggestions"]
    await api.call(ada, "getDocument", path=document)
    await api.call(ada, "borrowDocument", path=document | {"sessionId": "s2"})
    await api.call(ada, "returnDocument", path=document | {"sessionId": "s2"})
    found = await api.call(ada, "search", json={"query": "mill lease", "sessionId": "s1"})
    assert found.json()["results"]
    context = await api.call(ada, "makeContext", json={"query": "mill lease", "sessionId": "s1"})
    assert "lease.txt" in context.json()["prompt"]
    assert (await api.call(ada, "getAssistant")).json() == {"available": True, "model": MODEL}
    answer = await api.call(ada, "answer", json={"query": "mill lease", "sessionId": "s1"})
    events = events_of(answer.text)
    assert [name for name, _ in events] == ["context", "delta", "done"] and events[0][1]["citations"]
    stream = api.operations["answer"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
    for _, data in events:
        api.validate(stream["contentSchema"], data)
    await api.call(ada, "deleteDocument", path=document)
    await api.call(ada, "getDocument", 404, path=document)
    await api.call(ada, "uploadDocument", 422, files={"file": ("a.pdf", b"%PDF-1.7\n")})
    await api.call(ada, "deleteAllDocuments")


async def _memory(api, ada):
    project = (await api.call(ada, "createProject", 201, json={"name": "Mill"})).json()["id"]
    place = {"projectId": project, "externalId": "chat/1", "type": "place"}
    new = {"externalId": "chat/1", "title": "Lease", "projectId": project}
    session_id = (await api.call(ada, "createSession", 201, json=new)).json()["id"]
    await api.call(ada, "createSession", 409, json=new)
    place |= {"sessionId": session_id}
    turn = {"sessionId": session_id, "userMessage": "When?", "aiResponse": "In March."}
    place["episodeId"] = (await api.call(ada, "createEpisode", 201, json=turn)).json()["id"]
    mill, miller = ({"projectId": project, "name": name, "type": "place"} for name in ("Mill", "Miller"))
    place["entityId"] = (await api.call(ada, "keepEntity", 201, json=mill)).json()["id"]
    await api.call(ada, "keepEntity", json=mill)
    other = (await api.call(ada, "keepEntity", 201, json=miller)).json()["id"]
    edge = {"fromId": place["entityId"], "toId": other, "label": "of"}
    await api.call(ada, "connectEntities", 201, json=edge, params={"project": "*"})
    await api.call(ada, "connectEntities", json=edge, params={"project": "*"})
    await api.call(ada, "getOverview", path=place)
    for of in ({"sessionId": session_id}, {"projectId": project}):
        made = await api.call(ada, "createSummary", 201, json={"content": "In short.", **of})
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
        response = await api.call(ada, name, path=place, params={"sessionId": session_id, "limit": 1})
        assert len(response.json()[rows]) == 1, name
        await api.call(ada, name, 400, path=place, params={"sessionId": session_id, "limit": 0})
    scope = {"params": {"project": "*"}, "path": place}
    for name in ("getProject", "getSessionByExternalId", "getEntity", "getEpisode", "getOverview"):
        await api.call(ada, name, **scope)
    await api.call(ada, "changeProject", path=place, json={"description": "All about it."})
    await api.call(ada, "changeSessionByExternalId", path=place, json={"projectId": None})
    await api.call(ada, "changeSummary", json={"content": "Shorter."}, **scope)
    await api.call(ada, "disconnectEntities", json=edge, params={"project": "*"})
    await api.call(ada, "disconnectEntities", 404, params={**edge, "project": "*"})
    for name in ("deleteEntity", "deleteEpisode", "deleteSummary", "deleteSessionByExternalId"):
        await api.call(ada, name, **scope)
        await api.call(ada, name, 404, **scope)


async def _jobs(api, ada):
    await ada.push("projects", project("p2"))
    await ada.push("sessions", session("summed", projectId="p2"))
    await api.call(ada, "summarizeSession", 422, path={"sessionId": "summed"})
    await ada.push("episodes", episode("e3", "summed"))
    await api.call(ada, "summarizeSession", path={"sessionId": "summed"})
    await api.call(ada, "summarizeProject", path={"projectId": "p2"})
    job = (
        await api.call(ada, "summarizeProject", 202, path={"projectId": "p2"}, params={"later": True})
    ).json()
    assert job["id"] in [one["id"] for one in (await api.call(ada, "listJobs")).json()["jobs"]]
    await api.call(ada, "retryJob", path={"job": job["id"]})
    await api.call(ada, "retryJobs")


async def _memories(api, ada):
    await ada.push("sessions", session("said-in"))
    body = {"text": "The rent is due on the 1st.", "sessionId": "said-in"}
    memory = (await api.call(ada, "remember", 201, json=body)).json()["memory"]
    assert (await api.call(ada, "remember", json=body)).json()["deduplicated"]
    found = await api.call(ada, "searchMemories", json={"query": "rent", "project": None})
    assert [hit["memory"] for hit in found.json()["results"]] and found.json()["scope"] == {"kind": "all"}
    newer = {**memory, "id": "newer", "supersedes": memory["id"]}
    assert await ada.push("memories", newer) == []
    place = {"path": {"memoryId": "newer", "sessionId": "said-in"}, "params": {"sessionId": "said-in"}}
    assert len((await api.call(ada, "getMemoryHistory", **place)).json()["memories"]) == 2
    await api.call(ada, "getMemory", **place)
    await api.call(ada, "undoSupersede", **place)
    await api.call(ada, "undoSupersede", 409, **place)
    await api.call(ada, "listSessionMemories", path=place["path"])
    assert (await api.call(ada, "countMemories")).json()["total"] == 2
    await api.call(ada, "deleteMemory", **place)
    await api.call(ada, "deleteMemory", 404, **place)
    await api.call(ada, "forgetMemories", json={"confirm": True})


async def _agents(api, ada):
    folder = {"name": "app", "root": "~/app", "source": "git"}
    project_id = (await api.call(ada, "identifyProject", json=folder)).json()["project"]["id"]
    await api.call(ada, "identifyProject", 400, json={**folder, "name": ""})
    done = {"v": 1, "at": "2026-06-01T10:00:00.000Z", "project": folder, "session": "s", "kind": "command"}
    events = [{**done, "id": f"e{n}", "content": f"make step {n}"} for n in range(3)]
    assert (await api.call(ada, "takeUpObservations", json={"events": events})).json() == {"taken": 3}
    scope = {"params": {"project": project_id}}
    rows = (await api.call(ada, "listObservations", **scope)).json()["observations"]
    request = {"query": "make", "project": project_id}
    assert len((await api.call(ada, "searchObservations", json=request)).json()["results"]) == 3
    ids_request = {"ids": [rows[0]["id"], "unknown"], "project": None}
    assert (await api.call(ada, "readObservations", json=ids_request)).json()["missing"] == ["unknown"]
    place = {"path": {"observationId": rows[0]["id"]}, **scope}
    assert len((await api.call(ada, "getTimeline", **place)).json()["observations"]) == 3
    await api.call(ada, "pinObservation", **place, json={"pinned": True})
    (worked,) = (await api.call(ada, "listAgentProjects", **scope)).json()["projects"]
    (session,) = (await api.call(ada, "listAgentSessions", **scope)).json()["sessions"]
    assert (worked["observations"], session["agentSession"]) == (3, "s")
    briefed = await api.call(ada, "briefAgent", **scope)
    assert "make step 2" in briefed.json()["text"]
    await api.call(ada, "deleteObservation", **place)
    await api.call(ada, "getTimeline", 404, **place)
    await api.call(ada, "exportProject", path={"projectId": project_id})
    other = (await api.call(ada, "identifyProject", json={**folder, "name": "other"})).json()["project"]["id"]
    merged = await api.call(ada, "mergeProjects", path={"projectId": project_id}, json={"into": other})
    assert merged.json()["moved"] == 3, "two observations and the folder claim must be moved"
    await api.call(ada, "mergeProjects", 404, path={"projectId": project_id}, json={"into": other})
    forgotten = await api.call(ada, "deleteProject", path={"projectId": other}, params={"forget": "now"})
    assert forgotten.json()["leftovers"] == 0


async def _models(api, h, ada):
    install(h.services.settings.models_folder, "small")
    (model,) = (await api.call(ada, "listModels")).json()["models"]
    path = {"model": model["hash"], "path": TOKENIZER}
    await api.call(ada, "getModelFile", path=path)
    await api.call(ada, "getModelFile", 206, path=path, headers={"Range": "bytes=1-"})
    await api.call(ada, "getModelFile", 416, path=path, headers={"Range": "bytes=99-"})
    await api.call(ada, "getModelFile", 404, path=path | {"path": "nothing"})


async def _sync(api, ada):
    facts = {"name": "facts", "version": 0}
    refused = {**fact("f2"), "confidence": 7}
    batch = [{"newDocumentState": row} for row in (fact("f1"), refused)]
    api.validate({"$ref": "#/components/schemas/PushRow"}, batch[0])
    (answer,) = (await api.call(ada, "push", path=facts, json=batch)).json()
    assert answer["syncError"]["code"] == "INVALID"
    # These collections also contain deleted rows.
    for collection in ("documents", "vectorEmbeddings", "sessions", "facts"):
        path = {"name": collection, "version": version_of(collection)}
        assert (await api.call(ada, "pull", path=path)).json()["documents"], collection
    await api.call(ada, "pull", 409, path=facts, params={"id": "another"})
    await api.call(ada, "pull", 503, path=facts | {"version": 9})
    await api.call(ada, "push", 400, path=facts, content=b"[")
    await ada.push("projects", project("p1"))
    await ada.push("sessions", session("s3", projectId="p1"))
    await ada.push("episodes", episode("e1", "s3", userMessage="Where is the mill?"))
    await ada.push("entities", entity("n1", "p1", name="The mill"))
    for name in ("searchEpisodes", "searchEntities"):
        found = (await api.call(ada, name, params={"q": "mill", "sessionId": "s3"})).json()
        assert found["results"] and found["scope"] == {"kind": "project", "projectId": "p1"}
        await api.call(ada, name, 404, params={"q": "mill", "sessionId": "nowhere"})
    await api.call(ada, "deleteSession", path={"sessionId": "s1"})
    await api.call(ada, "deleteProject", path={"projectId": "p1"})


async def _account(api, h, ada):
    await api.call(ada, "getMe")
    there = await with_browser(h, ada)
    await api.call(ada, "createToken", 403, json={"name": "phone"})
    made = (await api.call(there, "createToken", 201, json={"name": "phone"})).json()
    assert len((await api.call(ada, "listTokens")).json()) == 2
    await api.call(ada, "revokeToken", path={"tokenId": made["token"]["id"]})
    await api.call(ada, "changePassword", 403, json={"new": PASSWORD})
    await api.call(there, "changePassword", json={"new": PASSWORD})
    email = h.services.accounts.accounts[ada.id].email
    answer = await api.call(ada, "signIn", json={"email": email, "password": PASSWORD})
    assert answer.json() == {"signedIn": True}
    await api.call(ada, "signIn", 401, json={"email": email, "password": "another"})
    await api.call(ada, "signOut")
    await api.call(ada, "listAccounts", 403)
    await api.call(ada, "getHealth")
    await api.call(ada, "getReadiness")

    admin = await h.person()
    await h.services.accounts.change_account(admin.id, lambda a: msgspec.structs.replace(a, admin=True))
    bob = (
        await api.call(admin, "createAccount", 201, json={"email": "bob@example.org", "tier": "FREE"})
    ).json()
    await api.call(admin, "createAccount", 409, json={"email": "bob@example.org", "tier": "FREE"})
    await api.call(admin, "getReembedding")
    await api.call(admin, "useModel", 409, json={"model": "none"})
    await api.call(admin, "pauseReembedding", 409)
    await api.call(admin, "resumeReembedding", 409)
    assert len((await api.call(admin, "listAccounts")).json()) == 3
    path = {"accountId": bob["userId"]}
    change = {"tier": "JIVE", "resetPassword": True}
    await api.call(admin, "changeAccount", 403, path=path, json=change)
    await api.call(await with_browser(h, admin), "changeAccount", path=path, json=change)
    await api.call(admin, "deleteAccount", path=path)

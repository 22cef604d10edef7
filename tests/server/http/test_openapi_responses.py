"""Every API operation is called, and its response matches the OpenAPI document."""

import msgspec

from property.rows import entity, episode, fact, project, session
from server.accounts.account_clients import with_browser
from server.chat.assistant_server import events_of
from server.http.openapi_document import load_document
from server.in_process_server import house, run
from server.listening_server import listen, listening
from server.models.test_browser_models import install
from server.scripted_llm import MODEL, speaking
from vademecum.engines.onnx.manifest import TOKENIZER

PASSWORD = "a password of hers"


def test_every_operation_matches_its_documented_response(tmp_path):
    async def scenario(h, url):
        ada = await h.person()
        told = await load_document(h, ada)
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
                    told.fits({"$ref": "#/components/schemas/StreamEvent"}, event)
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
    for name in ("getProject", "getSessionByExternalId", "getEntity", "getEpisode", "getOverview"):
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
    assert merged.json()["moved"] == 3, "two observations and the folder claim must be moved"
    await told.call(ada, "mergeProjects", 404, path={"projectId": project_id}, json={"into": other})
    forgotten = await told.call(ada, "deleteProject", path={"projectId": other}, params={"forget": "now"})
    assert forgotten.json()["leftovers"] == 0


async def _models(told, h, ada):
    install(h.services.settings.models_folder, "small")
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
    # These collections also contain deleted rows.
    for collection in ("documents", "vectorEmbeddings", "sessions", "facts"):
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
    there = await with_browser(h, ada)
    await told.call(ada, "createToken", 403, json={"name": "phone"})
    made = (await told.call(there, "createToken", 201, json={"name": "phone"})).json()
    assert len((await told.call(ada, "listTokens")).json()) == 2
    await told.call(ada, "revokeToken", path={"tokenId": made["token"]["id"]})
    await told.call(ada, "changePassword", 403, json={"new": PASSWORD})
    await told.call(there, "changePassword", json={"new": PASSWORD})
    email = h.services.accounts.accounts[ada.id].email
    answer = await told.call(ada, "signIn", json={"email": email, "password": PASSWORD})
    assert answer.json() == {"signedIn": True}
    await told.call(ada, "signIn", 401, json={"email": email, "password": "another"})
    await told.call(ada, "signOut")
    await told.call(ada, "listAccounts", 403)
    await told.call(ada, "getHealth")
    await told.call(ada, "getReadiness")

    boss = await h.person()
    await h.services.accounts.change_account(boss.id, lambda a: msgspec.structs.replace(a, admin=True))
    bob = (
        await told.call(boss, "createAccount", 201, json={"email": "bob@example.org", "tier": "FREE"})
    ).json()
    await told.call(boss, "createAccount", 409, json={"email": "bob@example.org", "tier": "FREE"})
    await told.call(boss, "getReembedding")
    await told.call(boss, "useModel", 409, json={"model": "none"})
    await told.call(boss, "pauseReembedding", 409)
    await told.call(boss, "resumeReembedding", 409)
    assert len((await told.call(boss, "listAccounts")).json()) == 3
    path = {"accountId": bob["userId"]}
    change = {"tier": "JIVE", "resetPassword": True}
    await told.call(boss, "changeAccount", 403, path=path, json=change)
    await told.call(await with_browser(h, boss), "changeAccount", path=path, json=change)
    await told.call(boss, "deleteAccount", path=path)

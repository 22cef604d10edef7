"""Each memory route with each status that it can return, and with foreign ids, which always get 404."""

import json

from property.rows import relationship
from server.in_process_server import check_problem, serve
from server.memory.memory_rows import EDGE, EXTERNAL, MILL, SCOPE, TURN, create_rows

ELSEWHERE = {"params": {"project": "p2"}}
ALL = {"params": {"project": "*"}}
OF_S1 = {"params": {"sessionId": "s1"}}
OF_P1 = SCOPE["params"]
# Triples of route, request and expected status, sent in this order on the rows of `furnish`.
ANSWERS = [
    ("POST /v1/projects", {"json": {"name": "New", "description": "d"}}, 201),
    ("POST /v1/projects", {"json": {"name": "New"}}, 201),
    ("POST /v1/projects", {"json": {"name": " "}}, 400),
    ("POST /v1/projects", {"json": {}}, 400),
    ("POST /v1/projects", {"json": {"name": "n", "colour": "red"}}, 400),
    ("POST /v1/projects", {"json": {"name": "n" * 256}}, 400),
    ("GET /v1/projects", {}, 200),
    ("GET /v1/projects/p1", {}, 200),
    ("GET /v1/projects/nope", {}, 404),
    ("PATCH /v1/projects/p1", {"json": {"description": None}}, 200),
    ("PATCH /v1/projects/p1", {"json": {"name": ""}}, 400),
    ("PATCH /v1/projects/p1", {"json": {"name": None}}, 400),
    ("PATCH /v1/projects/nope", {"json": {"name": "n"}}, 404),
    ("GET /v1/projects/p1/sessions", {}, 200),
    ("GET /v1/projects/nope/sessions", {}, 404),
    ("GET /v1/projects/p1/overview", {}, 200),
    ("GET /v1/projects/nope/overview", {}, 404),
    ("GET /v1/projects/p1/summaries", {}, 200),
    ("GET /v1/projects/nope/summaries", {}, 404),
    ("POST /v1/sessions", {"json": {"externalId": "new", "title": "t", "projectId": "p1"}}, 201),
    ("POST /v1/sessions", {"json": {"externalId": "new", "title": "t"}}, 409),
    ("POST /v1/sessions", {"json": {"externalId": "chat"}}, 409),
    ("POST /v1/sessions", {"json": {"title": "t"}}, 400),
    ("POST /v1/sessions", {"json": {"externalId": ""}}, 400),
    ("POST /v1/sessions", {"json": {"externalId": "other", "projectId": "nope"}}, 404),
    ("POST /v1/sessions", {"json": {"externalId": "other", "projectId": "a/b"}}, 400),
    ("GET /v1/sessions", {}, 200),
    (f"GET {EXTERNAL}/chat", {}, 200),
    (f"GET {EXTERNAL}/nope", {}, 404),
    (f"GET {EXTERNAL}/s2", {}, 404),  # a session id is not an external id
    (f"PATCH {EXTERNAL}/chat", {"json": {"title": "Lease", "projectId": "p1"}}, 200),
    (f"PATCH {EXTERNAL}/chat", {"json": {"projectId": None}}, 200),
    (f"PATCH {EXTERNAL}/chat", {"json": {"projectId": "nope"}}, 404),
    (f"PATCH {EXTERNAL}/chat", {"json": {"externalId": "other"}}, 400),
    (f"PATCH {EXTERNAL}/nope", {"json": {"title": "t"}}, 404),
    ("POST /v1/episodes", {"json": TURN}, 201),
    ("POST /v1/episodes", {"json": {**TURN, "sessionId": "nope"}}, 404),
    ("POST /v1/episodes", {"json": {"sessionId": "s1", "userMessage": "When?"}}, 400),
    ("POST /v1/episodes", {"json": {**TURN, "projectId": None}}, 201),
    ("POST /v1/episodes", {"json": {**TURN, "projectId": "p1"}}, 409),
    ("GET /v1/episodes/e1", {}, 200),
    ("GET /v1/episodes/e1", OF_S1, 200),
    ("GET /v1/episodes/e1", ALL, 200),
    ("GET /v1/episodes/e1", SCOPE, 404),
    ("GET /v1/episodes/nope", {}, 404),
    ("GET /v1/episodes/nope", ALL, 404),
    ("GET /v1/episodes", SCOPE, 200),
    ("GET /v1/episodes", {}, 400),
    ("GET /v1/sessions/s1/episodes", {}, 200),
    ("GET /v1/sessions/nope/episodes", {}, 404),
    ("POST /v1/entities", {"json": MILL}, 201),
    ("POST /v1/entities", {"json": {**MILL, "name": "MILL"}}, 200),
    ("POST /v1/entities", {"json": {**MILL, "type": "person"}}, 201),
    ("POST /v1/entities", {"json": {**MILL, "type": "bird"}}, 400),
    ("POST /v1/entities", {"json": {**MILL, "name": "\u0301 "}}, 400),
    ("POST /v1/entities", {"json": {**MILL, "projectId": "nope"}}, 404),
    ("POST /v1/entities", {"json": {"name": "Mill", "type": "place"}}, 400),
    ("GET /v1/entities/by-type/person", SCOPE, 200),
    ("GET /v1/entities/by-type/person", {}, 400),
    ("GET /v1/entities/by-type/bird", SCOPE, 400),
    ("GET /v1/entities/n1", SCOPE, 200),
    ("GET /v1/entities/n1", ELSEWHERE, 404),
    ("GET /v1/entities/n1", {}, 400),
    ("POST /v1/relationships", {"json": EDGE, **SCOPE}, 201),
    ("POST /v1/relationships", {"json": EDGE, **SCOPE}, 200),
    ("POST /v1/relationships", {"json": EDGE, **ELSEWHERE}, 404),
    ("POST /v1/relationships", {"json": EDGE}, 400),
    ("POST /v1/relationships", {"json": {**EDGE, "toId": "nope"}, **SCOPE}, 404),
    ("POST /v1/relationships", {"json": {**EDGE, "toId": "n3"}, **SCOPE}, 404),  # n3 is in another project
    ("POST /v1/relationships", {"json": {**EDGE, "toId": "n3"}, **ALL}, 400),
    ("POST /v1/relationships", {"json": {**EDGE, "label": " "}, **SCOPE}, 400),
    ("GET /v1/entities/n1/relationships", SCOPE, 200),
    ("GET /v1/entities/n1/relationships", ELSEWHERE, 404),
    ("GET /v1/entities/n1/relationships", {}, 400),
    ("DELETE /v1/relationships", SCOPE, 400),
    ("DELETE /v1/relationships", {"content": b"[", **SCOPE}, 400),
    ("DELETE /v1/relationships", {"json": {**EDGE, "label": "Knows"}, **SCOPE}, 404),
    ("DELETE /v1/relationships", {"json": EDGE, **ELSEWHERE}, 404),
    ("DELETE /v1/relationships", {"json": EDGE}, 400),
    ("DELETE /v1/relationships", {"json": EDGE, **SCOPE}, 200),
    ("DELETE /v1/relationships", {"params": EDGE | OF_P1}, 404),
    ("POST /v1/relationships", {"json": EDGE, **SCOPE}, 201),
    ("DELETE /v1/relationships", {"params": EDGE | OF_P1}, 200),
    ("DELETE /v1/entities/n1", ELSEWHERE, 404),
    ("DELETE /v1/entities/n1", SCOPE, 200),
    ("DELETE /v1/entities/n1", SCOPE, 404),
    ("POST /v1/summaries", {"json": {"content": "c", "sessionId": "s1"}}, 201),
    ("POST /v1/summaries", {"json": {"content": "c", "projectId": "p1"}}, 201),
    ("POST /v1/summaries", {"json": {"content": "c", "sessionId": "s1", "projectId": "p1"}}, 400),
    ("POST /v1/summaries", {"json": {"content": "c"}}, 400),
    ("POST /v1/summaries", {"json": {"content": " ", "sessionId": "s1"}}, 400),
    ("POST /v1/summaries", {"json": {"sessionId": "s1"}}, 400),
    ("POST /v1/summaries", {"json": {"content": "c", "sessionId": "nope"}}, 404),
    ("POST /v1/summaries", {"json": {"content": "c", "projectId": "nope"}}, 404),
    ("GET /v1/sessions/s1/summaries", {}, 200),
    ("GET /v1/sessions/nope/summaries", {}, 404),
    ("PATCH /v1/summaries/u1", {"json": {"content": "anew"}, **SCOPE}, 404),
    ("PATCH /v1/summaries/u1", {"json": {"content": "anew"}}, 400),
    ("PATCH /v1/summaries/u1", {"json": {"content": "anew"}, **OF_S1}, 200),
    ("PATCH /v1/summaries/u1", {"json": {"content": ""}, **OF_S1}, 400),
    ("PATCH /v1/summaries/nope", {"json": {"content": "anew"}, **ALL}, 404),
    ("DELETE /v1/summaries/u1", SCOPE, 404),
    ("DELETE /v1/summaries/u1", {}, 400),
    ("DELETE /v1/summaries/u1", OF_S1, 200),
    ("DELETE /v1/summaries/u1", OF_S1, 404),
    ("PATCH /v1/summaries/u1", {"json": {"content": "anew"}, **ALL}, 404),
    ("DELETE /v1/episodes/e1", SCOPE, 404),
    ("DELETE /v1/episodes/e1", {}, 400),
    ("DELETE /v1/episodes/e1", OF_S1, 200),
    ("DELETE /v1/episodes/e1", OF_S1, 404),
    (f"DELETE {EXTERNAL}/chat", {}, 200),
    (f"DELETE {EXTERNAL}/chat", {}, 404),
    ("POST /v1/sessions", {"json": {"externalId": "chat"}}, 201),  # the external id is free again
    ("DELETE /v1/projects/p1", {"params": {"sessions": "delete"}}, 200),
    ("DELETE /v1/projects/p1", {}, 404),
    ("POST /v1/entities", {"json": MILL}, 404),
    ("GET /v1/projects/p1", {}, 404),
    ("GET /v1/projects/p1/overview", {}, 404),
    ("GET /v1/sessions/s2/episodes", {}, 404),
]


async def test_memory_routes_return_expected_statuses_and_failed_calls_change_no_rows(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_rows(ada)
        before, since = await h.pull_all(ada), []
        for route, request, status in ANSWERS:
            method, path = route.split(" ")
            changes = status < 400 and method != "GET"
            if changes and since:
                assert await h.pull_all(ada) == before, since
            answer = await ada.call(method, path, **request)
            assert answer.status_code == status, (route, request, answer.text)
            if status >= 400:
                check_problem(answer, status, answer.json()["code"])
            if changes:
                before, since = await h.pull_all(ada), []
            else:
                since.append(route)
        assert since and await h.pull_all(ada) == before, since


async def test_ids_of_another_account_get_404_on_every_memory_route(tmp_path):
    async with serve(tmp_path) as h:
        ada, bob = await h.person(), await h.person()
        await create_rows(ada)
        assert await ada.push("relationships", relationship("r1", "n1", "n2")) == []
        before = await h.pull_all(ada)
        asked = {(route, json.dumps(request)): request for route, request, status in ANSWERS if status < 300}
        made_from_nothing = ("POST /v1/projects", "GET /v1/projects", "GET /v1/sessions")
        for (route, _), request in asked.items():
            if route in made_from_nothing or (route == "POST /v1/sessions" and len(request["json"]) == 1):
                continue
            method, path = route.split(" ")
            answer = await bob.call(method, path, **request)
            assert answer.status_code == 404, (route, request, answer.text)
        assert await h.pull_all(ada) == before
        for name in h.services.registry.synced:
            assert await bob.pull(name) == []

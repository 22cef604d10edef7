"""Shared helpers of the memory API tests: initial rows, and calls that must succeed."""

from property.rows import entity, episode, project, session, summary

MILL = {"name": "Mill", "type": "place", "projectId": "p1"}
EDGE = {"fromId": "n1", "toId": "n2", "label": "knows"}
TURN = {"sessionId": "s1", "userMessage": "When?", "aiResponse": "In March."}
EXTERNAL = "/v1/sessions/by-external"
SCOPE = {"params": {"project": "p1"}}


async def create_rows(ada):
    rows = {
        "projects": [project("p1"), project("p2")],
        "sessions": [session("s1", externalId="chat"), session("s2", projectId="p1")],
        "episodes": [episode("e1", "s1")],
        "entities": [entity("n1", "p1"), entity("n2", "p1"), entity("n3", "p2")],
        "summaries": [summary("u1", sessionId="s1")],
    }
    for name, some in rows.items():
        assert await ada.push(name, *some) == []


async def post(person, path, **body):
    answer = await person.call("POST", f"/v1/{path}", json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


async def get(person, path, **params):
    answer = await person.call("GET", f"/v1/{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(rows):
    return [row["id"] for row in rows]

"""Every route of the app, with requests that tests make with foreign or unknown ids.

In paths and bodies, `{kind}` stands for an id of that kind.
"""

import base64

from property import rows as make
from property.sync_wire import COLLECTIONS

CANARY = "canary-xq7-aubergine"
KINDS = ("document", "session", "project", "episode", "fact", "memory", "entity", "entity2", "relationship",
         "summary", "observation", "token", "account")  # fmt: skip
# Maps each path parameter to a kind of id, or to a fixed value if it is not an id.
PARAMETERS = {
    "document_id": "{document}",
    "session_id": "{session}",
    "project_id": "{project}",
    "token_id": "{token}",
    "account_id": "{account}",
    "episode_id": "{episode}",
    "entity_id": "{entity}",
    "memory_id": "{memory}",
    "summary_id": "{summary}",
    "observation_id": "{observation}",
    "external_id": CANARY,
    "type": "person",
    "model": "{document}",
    "job": "extract.episodes.{episode}",
    "path": "{session}",
}


def push(row, **more):
    return {"json": [{"newDocumentState": row, **more}]}


def rows(me):
    """Map each collection to a row whose ids are placeholders. `me` is the `userId` of the document."""
    return {
        "documents": make.document(me, "{document}", activeSessions=["{session}"]),
        "vectorEmbeddings": make.block("{document}", 0),
        "projects": make.project("{project}"),
        "sessions": make.session("{session}", projectId="{project}"),
        "episodes": make.episode("{episode}", "{session}"),
        "facts": make.fact("{fact}", sourceDocumentId="{document}"),
        "memories": make.memory("{memory}", projectId="{project}", sessionIds=["{session}"]),
        "entities": make.entity("{entity}", "{project}"),
        "relationships": make.relationship("{relationship}", "{entity}", "{entity2}"),
        "summaries": make.summary("{summary}", sessionId="{session}"),
    }


def pushes():
    """Yield pushes to each collection: rows with an assumed state, rows with Ada's account as `userId`, and deletes."""
    for name, row in rows("{me}").items():
        yield {"name": name, **push(row, assumedMasterState=row)}
    for name, row in rows("{account}").items():
        yield {"name": name, **push(row)}
    for name, row in rows("{me}").items():
        yield {"name": name, **push(make.dead(row))}


QUESTION = {"query": CANARY, "sessionId": "{session}", "k": 100}
HOMES = {"sessionId": "{session}", "projectId": "{project}"}
SCOPES = [
    {"params": scope}
    for scope in ({}, {"sessionId": "{session}"}, {"project": "{project}"}, {"project": "*"})
]
AGENT_SCOPES = [{"params": scope} for scope in ({}, {"project": "{project}"}, {"project": "*"})]
FOLDER = {"name": "mine", "root": "~/mine", "source": "git"}
DONE = {"v": 1, "id": "{account}", "at": "2026-06-01T10:00:00.000Z", "project": FOLDER, "session": "{session}",
        "kind": "command", "content": "ls"}  # fmt: skip
EDGE = {"fromId": "{entity}", "toId": "{entity2}", "label": "knows"}
PLACE = base64.urlsafe_b64encode(b'["2099-01-01T00:00:00.000Z","~"]').decode()
# Maps each route to its requests, in the order in which the test sends them. Routes that delete all data, sign out or
# delete the account come last.
TABLE = {
    "GET /health": [{}],
    "GET /ready": [{}],
    "GET /metrics": [{}],
    "GET /v1/models": [{}],
    "GET /models/{model}/{path}": [{}],
    "GET /v1/reembedding": [{}],
    "PUT /v1/reembedding": [{"json": {"model": "{account}"}}],
    "POST /v1/reembedding/pause": [{}],
    "POST /v1/reembedding/resume": [{}],
    "GET /v1/me": [{}],
    "GET /v1/tokens": [{}],
    "DELETE /v1/tokens/{token_id}": [{}],
    "GET /v1/accounts": [{}],
    "POST /v1/accounts": [{"json": {"email": "{email}", "tier": "FREE"}}],
    "PATCH /v1/accounts/{account_id}": [{"json": {"tier": "FREE"}}, {"json": {"resetPassword": True}}],
    "DELETE /v1/accounts/{account_id}": [{}],
    "POST /v1/local/backup": [{"json": {"path": "/nowhere/{account}"}}],
    "POST /v1/local/restore": [{"json": {"path": "/nowhere/{account}"}}],
    "POST /v1/local/restore-one": [{"json": {"path": "/nowhere", "email": "{email}"}}],
    "POST /v1/local/erase": [{"json": {"email": "{email}"}}, {"json": {"email": None}}],
    "POST /v1/local/verify": [{"json": {"userId": "{account}"}}],
    "POST /v1/local/epoch": [{"json": {"email": "{email}"}}, {"json": {"email": None}}],
    "GET /v1/local/crowded": [{}],
    "GET /v1/local/ahead": [{}],
    "GET /v1/local/foreign": [{}],
    "POST /v1/local/administrator": [{"json": {"userId": "{account}", "admin": True}}],
    "GET /v1/sign-in": [{"params": {"link": "{token}"}}],
    "POST /v1/sign-in": [{"json": {"email": "{email}", "password": "not the password"}}],
    "POST /v1/sign-in/link": [{"data": {"link": "{token}"}}],
    "GET /v1/documents": [{}],
    "GET /v1/documents/{document_id}": [{}],
    "PUT /v1/documents/{document_id}/sessions/{session_id}": [{}],
    "DELETE /v1/documents/{document_id}/sessions/{session_id}": [{}],
    "DELETE /v1/documents/{document_id}": [{}],
    "GET /v1/projects": [{}],
    "GET /v1/projects/{project_id}": [{}],
    "GET /v1/projects/{project_id}/sessions": [{}],
    "GET /v1/projects/{project_id}/overview": [{}],
    "GET /v1/projects/{project_id}/summaries": [{}],
    "GET /v1/sessions": [{}, {"params": {"cursor": PLACE}}],
    "GET /v1/sessions/by-external/{external_id}": [{}],
    "GET /v1/sessions/{session_id}/episodes": [{}],
    "GET /v1/sessions/{session_id}/summaries": [{}],
    "GET /v1/episodes": SCOPES,
    "GET /v1/entities/by-type/{type}": SCOPES,
    "GET /v1/entities/{entity_id}": SCOPES,
    "GET /v1/entities/{entity_id}/relationships": SCOPES,
    "GET /v1/memories/stats": [{}],
    "GET /v1/memories/{memory_id}": SCOPES,
    "GET /v1/memories/{memory_id}/history": SCOPES,
    "GET /v1/sessions/{session_id}/memories": [{}],
    "POST /v1/memories/search": [
        {"json": {"query": query, **scope}}
        for query in (CANARY, "")
        for scope in ({}, {"sessionId": "{session}"}, {"project": "{project}"}, {"project": None})
    ],
    "GET /v1/agents/context": AGENT_SCOPES,
    "GET /v1/agents/projects": AGENT_SCOPES,
    "GET /v1/agents/sessions": AGENT_SCOPES,
    "GET /v1/projects/{project_id}/export": [{}],
    "POST /v1/projects/{project_id}/merge": [{"json": {"into": "{project}"}}, {"json": {"into": "{session}"}}],
    "GET /v1/observations": [*AGENT_SCOPES, {"params": {"project": "*", "cursor": PLACE}}],
    "POST /v1/observations/read": [
        {"json": {"ids": ["{observation}"], **scope}} for scope in ({}, {"project": "{project}"}, {"project": None})
    ],
    "POST /v1/observations/search": [
        {"json": {"query": CANARY, **scope}} for scope in ({}, {"project": "{project}"}, {"project": None})
    ],
    "GET /v1/observations/{observation_id}/timeline": AGENT_SCOPES,
    "PATCH /v1/observations/{observation_id}": [{**scope, "json": {"pinned": True}} for scope in AGENT_SCOPES],
    "DELETE /v1/observations/{observation_id}": AGENT_SCOPES,
    "PATCH /v1/projects/{project_id}": [{"json": {"name": "mine"}}],
    "PATCH /v1/sessions/by-external/{external_id}": [{"json": {"title": "mine", "projectId": "{project}"}}],
    "PATCH /v1/summaries/{summary_id}": [{"json": {"content": "mine"}, **scope} for scope in SCOPES],
    "POST /v1/sessions": [{"json": {"externalId": "mine", "projectId": "{project}"}}],
    "POST /v1/episodes": [{"json": {"sessionId": "{session}", "userMessage": "mine", "aiResponse": "mine"}}],
    "POST /v1/entities": [{"json": {"projectId": "{project}", "name": "{entity}", "type": "person"}}],
    "POST /v1/relationships": [{"json": EDGE, **scope} for scope in SCOPES],
    "POST /v1/summaries": [{"json": {"content": "mine", kind: id}} for kind, id in HOMES.items()],
    "POST /v1/projects": [{"json": {"name": "mine"}}],
    "POST /v1/agents/identify": [{"json": FOLDER}],
    "POST /v1/observations": [{"json": {"events": [DONE]}}, {"json": {"events": [DONE]}}],
    "DELETE /v1/relationships": [
        *({"json": EDGE, **scope} for scope in SCOPES),
        {"params": {**EDGE, "project": "*"}},
    ],
    "DELETE /v1/entities/{entity_id}": SCOPES,
    "POST /v1/memories": [
        {"json": {"text": "mine", **scope}} for scope in ({}, {"sessionId": "{session}"}, {"project": "{project}"})
    ],
    "POST /v1/memories/{memory_id}/undo": SCOPES,
    "DELETE /v1/memories/{memory_id}": SCOPES,
    "POST /v1/memories/reset": [{"json": {"confirm": True}}],
    "GET /v1/episodes/{episode_id}": SCOPES,
    "DELETE /v1/episodes/{episode_id}": SCOPES,
    "DELETE /v1/summaries/{summary_id}": SCOPES,
    "DELETE /v1/sessions/by-external/{external_id}": [{}],
    "DELETE /v1/sessions/{session_id}": [{}],
    "DELETE /v1/projects/{project_id}": [{}, {"params": {"sessions": "delete"}}, {"params": {"forget": "now"}}],
    "GET /v1/documents/lookup": [
        {"params": {"name": f"{CANARY}.txt"}},
        {"params": {"name": f"what is in {CANARY}?", "sessionId": "{session}"}},
    ],
    "GET /v1/documents/suggestions": [{"params": {"limit": 100}}],
    "POST /v1/search": [{"json": {**QUESTION, "mode": mode}} for mode in ("words", "hybrid", "meaning")],
    **{
        f"GET /v1/{kind}/search": [
            {"params": {"q": CANARY, "sessionId": "{session}"}},
            {"params": {"q": CANARY, "project": "{project}", "limit": 100}},
            {"params": {"q": "what sings?", "project": "*"}},
        ]
        for kind in ("episodes", "entities")
    },
    "POST /v1/context": [{"json": {"query": CANARY, "sessionId": "{session}", "systemPrompt": "Be brief."}}],
    "GET /v1/assistant": [{}],
    "GET /v1/jobs": [{}],
    "POST /v1/jobs/retry": [{}],
    "POST /v1/jobs/{job}/retry": [{}],
    "POST /v1/sessions/{session_id}/summarize": [{}, {"params": {"later": True}}],
    "POST /v1/projects/{project_id}/summarize": [{}, {"params": {"later": True}}],
    "POST /v1/answer": [
        {"json": {"query": "what sings?", "sessionId": "{session}"}},
        {"json": {"query": "what sings?", "sessionId": "{session}", "episodeId": "{episode}"}},
    ],
    "GET /v1/sync/{name}/{version}/pull": [
        {"name": name, "params": params}
        for name in COLLECTIONS
        for params in ({"limit": 1000}, {"lwt": 1, "id": "{epoch}"}, {"lwt": 1_000_000})
    ],
    "GET /v1/sync/{name}/{version}/pullStream": [{"name": name} for name in COLLECTIONS],
    "GET /v1/sync/stream": [{}],
    "POST /v1/documents": [
        {"files": {"file": ["mine.txt", "Nothing but my own words."]}, "data": {"sessionId": "{session}"}},
    ],
    "POST /v1/sync/{name}/{version}/push": [{"name": "facts", "params": {"epoch": "{epoch}"}, "json": []}, *pushes()],
    "DELETE /v1/documents": [{}],
    "GET /v1/export": [{}],
    "POST /v1/forget": [{"json": {"confirm": "forget everything"}}],
    "POST /v1/tokens": [{"json": {"name": "{account}"}}],
    "POST /v1/password": [{"json": {"new": "a password of mine"}}],
    "POST /v1/sign-out": [{}],
    "DELETE /v1/me": [{"json": {"confirm": "leave for good"}}],
}  # fmt: skip

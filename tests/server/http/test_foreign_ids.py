"""Every route answers a foreign id like an unknown id, so accounts neither see nor change each other's
data.

The table in `route_requests` lists the requests of every route, and the first test fails if a route is missing. Bob
sends each request with Ada's ids, and Carol sends it with unknown ids. Both must get the same response, and Ada's data
must stay unchanged.
"""

import asyncio
import io
import json
import re
import secrets
import zipfile

from litestar import Litestar

from property import rows as make
from property.rows import sync_path, version_of
from property.sync_wire import COLLECTIONS
from server.agents.agent_events import join_project
from server.http.route_requests import CANARY, DONE, FOLDER, KINDS, PARAMETERS, TABLE, rows
from server.in_process_server import run, serve
from server.scripted_llm import MODEL, Rule, start_llm
from vademecum.http.routes.operations.static_app import app_routes
from vademecum.services.runtime.ids import new_id


def routes_of(app):
    """Return `METHOD /path` of all routes except static files and the API page."""
    files = {route.path_format for route in Litestar(app_routes()).routes}
    return {
        f"{method} {route.path_format}"
        for route in app.routes
        for method in getattr(route, "methods", ())
        if method not in ("OPTIONS", "HEAD")
        and route.path_format not in files
        and not route.path_format.startswith("/schema")
    }


def filled(template, ids):
    """Return the template with `{kind}` replaced by the id of that kind."""
    text = json.dumps(template)
    for kind, value in ids.items():
        text = text.replace("{" + kind + "}", value)
    return json.loads(text)


async def ask(h, person, route, request, ids):
    """Send one request of the table. Close streams as soon as they are open."""
    method, path = route.split(" ")
    request = filled(request, ids)
    if "files" in request:
        request["files"] = {name: tuple(file) for name, file in request["files"].items()}
    name = request.pop("name", "")
    parameters = {**filled(PARAMETERS, ids), "name": name, "version": str(version_of(name))}
    assert set(re.findall(r"{(\w+)}", path)) <= parameters.keys(), (
        f"{route}: add this parameter to PARAMETERS"
    )
    call = person.call(method, path.format(**parameters), **request)
    if not path.lower().endswith("stream"):
        return await call
    task = asyncio.create_task(call)
    await h.streams(1)
    h.services.hub.close_user(person.id)
    return await asyncio.wait_for(task, 60)


def body_of(answer):
    """Return the body of the response as text. For a ZIP file, return the text of all its files."""
    if answer.headers.get("content-type") != "application/zip":
        return answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        return "\n".join(f"{name}\n{archive.read(name).decode()}" for name in archive.namelist())


def normalized_body(answer, ids):
    """Return the body with ids, times and secrets replaced by placeholders, so that bodies can be
    compared.
    """
    text = body_of(answer)
    for kind, value in ids.items():
        text = text.replace(value, f"<{kind}>")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<time>", text)
    # The base differs, because background work takes a seq at any time.
    text = re.sub(r'"base":"[^"]*"', "<base>", text)
    text = re.sub(r"<my epoch>\.[\w-]{20}", "<checkpoint>", text)
    text = re.sub(r"\(\w{8}\)\.txt", "<name>", text)
    text = re.sub(r'"[or][0-9a-f]{32}"', '"<derived>"', text)
    return re.sub(r'("secret"|"bytes"|"files"): ?("[\w-]+"|\d+)', "<varies>", text)


async def fill(h, ada):
    """Give Ada a row of each collection, a file and a token, all with the canary. Return the ids."""
    ids = {kind: new_id() for kind in KINDS}
    uploaded = await ada.upload(f"{CANARY}.txt", f"The {CANARY} sings at dawn.", ids["session"])
    await h.services.tokens.issue(h.services.accounts.accounts[ada.id], "api", CANARY, None)
    token = next(t for t in h.services.accounts.tokens_of(ada.id) if t.name == CANARY)
    ids |= {"document": uploaded.json()["document"]["id"], "token": token.id, "account": ada.id}
    row = filled(rows(ada.id), ids)
    words = {
        "projects": ("name", "description"),
        "sessions": ("title", "externalId"),
        "episodes": ("userMessage", "aiResponse"),
        "facts": ("key", "value"),
        "memories": ("text",),
        "entities": ("name", "notes"),
        "relationships": ("label",),
        "summaries": ("content",),
    }
    for name, fields in words.items():
        assert await ada.push(name, {**row[name], **dict.fromkeys(fields, CANARY)}) == []
    other = make.entity(ids["entity2"], ids["project"], notes=CANARY)
    assert await ada.push("entities", other) == []
    folder = {**FOLDER, "name": CANARY}
    await join_project(ada, ids["project"], folder)
    done = {**DONE, "id": new_id(), "content": CANARY, "project": folder}
    await ada.call("POST", "/v1/observations", json={"events": [done]})
    listed = await ada.call("GET", "/v1/observations", params={"project": ids["project"]})
    ids["observation"] = listed.json()["observations"][0]["id"]
    await h.drain_jobs(ada)
    return ids


async def everything(h, ada):
    """Return all data of Ada that her own requests return, and her account record."""
    held = await h.pull_all(ada)
    held["observations"] = (await ada.call("GET", "/v1/observations?project=*")).json()
    held["me"] = (await ada.call("GET", "/v1/me")).json()
    held["tokens"] = (await ada.call("GET", "/v1/tokens")).json()
    held["account"] = repr(h.services.accounts.accounts[ada.id])
    return held


async def own_ids(h, person):
    """Return values of the requester that responses may contain and that differ between users."""
    page = (await person.call("GET", "/v1/sync/facts/0/pull")).json()
    return {
        "me": person.id,
        "my email": h.services.accounts.accounts[person.id].email,
        "my epoch": page["checkpoint"]["id"].partition(".")[0],
    }


def test_every_route_has_requests_with_ids_of_another_account(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            served, known = routes_of(h.app), set(TABLE)
            assert served - known == set(), "add requests with foreign ids for these new routes to the table"
            assert known - served == set(), "remove these routes from the table, because they no longer exist"
            assert set(COLLECTIONS) == set(h.services.registry.synced), (
                "add a row of the new collection to the table"
            )

    run(scenario)


def test_ids_of_another_account_are_treated_as_unknown(tmp_path):
    """The scripted assistant answers with its whole prompt, so the test also detects Ada's text in prompts."""

    async def scenario():
        async with (
            start_llm(Rule(say=["{system}"])) as model,
            serve(tmp_path, assistant_url=model.url, assistant_model=MODEL) as h,
        ):
            ada, bob, carol = await h.person(), await h.person(), await h.person()
            foreign = await fill(h, ada)
            foreign["epoch"] = (await own_ids(h, ada))["my epoch"]
            foreign["email"] = h.services.accounts.accounts[ada.id].email
            unknown = {kind: new_id() for kind in foreign}
            unknown |= {"epoch": secrets.token_urlsafe(9), "email": f"{secrets.token_hex(4)}@example.org"}
            before = await everything(h, ada)
            for name in (*h.services.registry.synced, "observations"):
                assert CANARY in json.dumps(before[name]) or name == "account", (
                    f"{name}: no canary in Ada's row"
                )
            bobs, carols = await own_ids(h, bob), await own_ids(h, carol)
            for route, requests in TABLE.items():
                for request in requests:
                    heard = await ask(h, bob, route, request, foreign | {"me": bob.id})
                    other = await ask(h, carol, route, request, unknown | {"me": carol.id})
                    said = body_of(heard)
                    if CANARY not in json.dumps(request):
                        assert CANARY not in said and CANARY not in str(heard.headers), (
                            f"{route} shows Ada's text"
                        )
                    assert heard.status_code == other.status_code, f"{route}: {said} / {other.text}"
                    assert heard.status_code < 500, f"{route}: {said}"
                    expected = normalized_body(other, unknown | carols)
                    assert normalized_body(heard, foreign | bobs) == expected, route
                    if heard.status_code >= 400:
                        assert heard.headers["content-type"] == "application/problem+json"
                        assert heard.json()["code"] and heard.json()["error"] is True
            assert await everything(h, ada) == before

    run(scenario)


def test_stream_contains_only_changes_of_its_own_account(tmp_path):
    """Bob reads all his streams while Ada writes to every collection and uploads, borrows and deletes a document."""

    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            paths = ["/v1/sync/stream", *(f"{sync_path(name)}/pullStream" for name in COLLECTIONS)]
            streams = [asyncio.create_task(bob.call("GET", path)) for path in paths]
            await h.streams(len(streams))
            ids = await fill(h, ada)
            await ada.call("PUT", f"/v1/documents/{ids['document']}/sessions/{ids['session']}")
            await ada.call("DELETE", f"/v1/documents/{ids['document']}")
            for name, row in rows(bob.id).items():
                assert await bob.push(name, filled(row, {kind: f"bobs-{kind}" for kind in KINDS})) == []
            assert await bob.push("entities", make.entity("bobs-entity2", "bobs-project")) == []
            h.services.hub.close_user(bob.id)
            heard = [(await asyncio.wait_for(stream, 60)).text for stream in streams]
            for path, text in zip(paths, heard, strict=True):
                assert "bobs-" in text, f"{path}: Bob's stream lacks his own change"
                assert CANARY not in text and not any(i in text for i in ids.values()), path

    run(scenario)


def test_identical_files_are_deduplicated_only_within_an_account(tmp_path):
    """An upload must not reveal whether another user already has the file."""

    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            first = (await ada.upload("hers.txt", f"The {CANARY} sings.")).json()
            second = (await bob.upload("his.txt", f"The {CANARY} sings.")).json()
            assert (first["existing"], second["existing"]) == (False, False)
            assert second["document"]["id"] != first["document"]["id"]
            assert second["document"]["filename"] == "his.txt"
            await bob.call("DELETE", f"/v1/documents/{second['document']['id']}")
            assert (await ada.search("sings"))["results"] and (await bob.search("sings"))["results"] == []

    run(scenario)


def test_two_accounts_may_use_the_same_row_ids(tmp_path):
    """Devices choose ids, so two accounts may use the same id for different rows, in the records and in the index."""

    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            for person, word in ((ada, "walrus"), (bob, "heron")):
                mine = make.document(person.id, "d1", activeSessions=["s1"])
                assert await person.push("documents", mine) == []
                assert (
                    await person.push("vectorEmbeddings", make.block("d1", text=f"a {word} and water")) == []
                )
            for person, own, other in ((ada, "walrus", "heron"), (bob, "heron", "walrus")):
                assert own in (await person.search("water"))["results"][0]["text"]
                assert (await person.search(other))["results"] == []
            assert (await bob.call("DELETE", "/v1/documents/d1")).status_code == 200
            await h.drain_jobs(bob)
            assert (await ada.search("walrus"))["results"] and set(await ada.live("documents")) == {"d1"}

    run(scenario)

"""Accounts, passwords, tokens, tiers and the browser's cookie (section 11 of the design)."""

import asyncio
import json
from http.cookies import SimpleCookie

import httpx
import pytest

from property.rows import fact, session
from server.house import Person, house, run
from vademecum.services.accounts import ensure_owner

PASSWORD = "correct horse battery"
OTHER = "staple of another kind"
ADMIN_CALLS = [
    ("GET", "/v1/accounts", None),
    ("POST", "/v1/accounts", {"email": "eve@example.org", "tier": "JIGGA"}),
    ("PATCH", "/v1/accounts/{}", {"tier": "JIGGA"}),
    ("PATCH", "/v1/accounts/{}", {"resetPassword": True}),
    ("DELETE", "/v1/accounts/{}", None),
]


def browser(h, base_url="http://test"):
    """A browser on this machine: it keeps cookies and has no token."""
    transport = httpx.ASGITransport(h.app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=base_url, timeout=60)


async def owner(h, base_url="http://test"):
    """The owner's browser, come in by the link that the first start prints."""
    client = browser(h, base_url)
    link = await ensure_owner(h.parts)
    entered = await client.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})
    assert entered.status_code == 303, entered.text
    return client


async def account(boss, email, tier="JIGGA", password=PASSWORD):
    made = await boss.post("/v1/accounts", json={"email": email, "tier": tier, "password": password})
    assert made.status_code == 201, made.text
    return made.json()


async def signed_in(h, email, password=PASSWORD, base_url="http://test"):
    client = browser(h, base_url)
    answer = await client.post("/v1/sign-in", json={"email": email, "password": password})
    assert answer.status_code == 200, answer.text
    return client


async def bearer(h, client, name="laptop"):
    """A person who speaks with a new token of the account signed in at `client`."""
    made = await client.post("/v1/tokens", json={"name": name})
    assert made.status_code == 201, made.text
    speaker = browser(h)
    speaker.headers["Authorization"] = f"Bearer {made.json()['secret']}"
    me = (await speaker.get("/v1/me")).json()
    return Person(me["userId"], speaker), made.json()


async def streaming(h, call):
    """Open a stream; returns when it is registered, with the task that ends when the stream does."""
    task = asyncio.create_task(call)
    for _ in range(1000):
        if h.parts.hub.count():
            return task
        await asyncio.sleep(0.01)
    raise AssertionError("the stream did not open")


def refused(answer, status, code):
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), (
        answer.text
    )
    body = answer.json()
    assert (body["status"], body["code"], body["error"]) == (status, code, True)
    assert body["title"].strip(), "a refusal says why, in words"
    return body


# --- the first start, and administrators --------------------------------------------------------------------------


def test_the_first_start_makes_a_local_owner_who_may_do_all(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            me = (await boss.get("/v1/me")).json()
            assert (me["tier"], me["admin"]) == ("JIGGA", True)
            assert [a["userId"] for a in (await boss.get("/v1/accounts")).json()] == [me["userId"]]
        async with house(tmp_path) as h:
            assert await ensure_owner(h.parts) is None, "the owner is signed in: no second link is handed out"
            assert len(h.parts.accounts.accounts) == 1

    run(scenario)


def test_what_is_for_administrators_is_refused_to_others_and_changes_nothing(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            bob = await h.person("FREE")
            before = dict(h.parts.accounts.accounts)
            for method, path, body in ADMIN_CALLS:
                refused(await bob.call(method, path.format(bob.id), json=body), 403, "FORBIDDEN")
                answer = await browser(h).request(method, path.format(bob.id), json=body)
                refused(answer, 401, "SIGNED_OUT")
                assert h.parts.accounts.accounts == before

    run(scenario)


def test_an_administrator_makes_lists_and_removes_accounts(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            made = await account(boss, "Bob@Example.org", "JIVE")
            assert (made["email"], made["tier"], made["admin"]) == ("Bob@Example.org", "JIVE", False)
            listed = (await boss.get("/v1/accounts")).json()
            assert made in listed and len(listed) == 2
            assert "argon2" not in json.dumps(listed) and PASSWORD not in json.dumps(listed)
            client = await signed_in(h, "bob@example.org")
            bob, _ = await bearer(h, client)
            assert bob.id == made["userId"]
            assert (await boss.delete(f"/v1/accounts/{bob.id}")).json() == {"deleted": 1}
            assert len((await boss.get("/v1/accounts")).json()) == 1
            refused(await bob.call("GET", "/v1/me"), 401, "SIGNED_OUT")
            refused(await client.get("/v1/me"), 401, "SIGNED_OUT")
            refused(await boss.delete(f"/v1/accounts/{bob.id}"), 404, "NOT_FOUND")
            answer = await browser(h).post(
                "/v1/sign-in", json={"email": "bob@example.org", "password": PASSWORD}
            )
            refused(answer, 401, "SIGNED_OUT")

    run(scenario)


def test_one_address_is_one_account_however_it_is_written(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            await account(boss, "bob@example.org", password=None)
            for again in ("bob@example.org", "BOB@EXAMPLE.ORG", " bob@example.org ", "Bob@example.Org"):
                refused(await boss.post("/v1/accounts", json={"email": again}), 409, "CONFLICT")
            assert len((await boss.get("/v1/accounts")).json()) == 2

    run(scenario)


def test_one_address_is_one_account_also_when_two_ask_at_once(tmp_path):
    """Hashing a password takes a while: whoever asks meanwhile must not slip in."""

    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            await boss.get("/v1/me")
            body = {"email": "bob@example.org", "password": PASSWORD}
            answers = await asyncio.gather(*(boss.post("/v1/accounts", json=body) for _ in range(3)))
            assert sorted(a.status_code for a in answers) == [201, 409, 409]
            assert len((await boss.get("/v1/accounts")).json()) == 2

    run(scenario)


def test_what_is_no_address_is_refused(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            for email in ("", "bob", "@", "bob@", "a b@example.org", "bob@ex\nample.org", "b" * 300 + "@x"):
                refused(await boss.post("/v1/accounts", json={"email": email}), 400, "BAD_REQUEST")
            assert len(h.parts.accounts.accounts) == 1

    run(scenario)


def test_an_account_that_is_removed_does_not_come_back_by_a_change_under_way(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            for number in range(5):
                bob = (await account(boss, f"bob{number}@example.org", password=None))["userId"]
                calls = [boss.patch(f"/v1/accounts/{bob}", json={"tier": "JIVE"}) for _ in range(3)]
                calls.insert(number % 4, boss.delete(f"/v1/accounts/{bob}"))
                answers = await asyncio.gather(*calls)
                assert {a.status_code for a in answers} <= {200, 404}
                assert bob not in h.parts.accounts.accounts
        async with house(tmp_path) as h:
            assert [a.email for a in h.parts.accounts.accounts.values()] == ["owner@localhost"]

    run(scenario)


def test_the_first_people_of_a_new_data_folder_may_come_all_at_once(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            people = [await h.person() for _ in range(6)]
            answers = await asyncio.gather(*(person.call("GET", "/v1/me") for person in people))
            assert [a.status_code for a in answers] == [200] * 6
            assert [a.json()["userId"] for a in answers] == [person.id for person in people]

    run(scenario)


# --- tiers and /v1/me ---------------------------------------------------------------------------------------------


def test_me_says_who_which_tier_which_limits_and_what_is_used(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada, bob = await h.person("JIVE"), await h.person()
            me = (await ada.call("GET", "/v1/me")).json()
            assert me["userId"] == ada.id and "@" in me["email"] and me["tier"] == "JIVE"
            assert me["limits"]["documents"] == 100 and me["usage"] == {"documents": 0, "bytes": 0}
            document_row = (await ada.upload("lease.txt", "The lease ends in March.")).json()["document"]
            await ada.push("facts", fact("f1"))
            used = (await ada.call("GET", "/v1/me")).json()["usage"]
            assert used["documents"] == 1 and used["bytes"] > len("The lease ends in March.")
            assert (await bob.call("GET", "/v1/me")).json()["usage"] == {"documents": 0, "bytes": 0}
            await ada.call("DELETE", f"/v1/documents/{document_row['id']}")
            less = (await ada.call("GET", "/v1/me")).json()["usage"]
            assert less["documents"] == 0 and 0 < less["bytes"] < used["bytes"]
            await ada.push("facts", {**fact("f1"), "_deleted": True})
            assert (await ada.call("GET", "/v1/me")).json()["usage"] == {"documents": 0, "bytes": 0}
            refused(await browser(h).get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_a_change_of_tier_takes_effect_at_once(tmp_path):
    """On the same token, without signing in again."""

    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada = await h.person("FREE")
            question = {"query": "lease", "sessionId": "s1"}
            await ada.upload("lease.txt", "The lease ends in March.")
            said = refused(await ada.call("POST", "/v1/search", json=question), 403, "TIER")["title"]
            assert "search" in said.lower() and len(said.split()) >= 5 and said.rstrip().endswith(".")
            big = "word " * 500_000
            refused(await ada.upload("big.txt", big), 413, "TOO_LARGE")
            free = (await ada.call("GET", "/v1/me")).json()["limits"]

            changed = await boss.patch(f"/v1/accounts/{ada.id}", json={"tier": "JIVE"})
            assert (changed.status_code, changed.json()["account"]["tier"]) == (200, "JIVE")
            assert (await ada.search("lease"))["results"]
            me = (await ada.call("GET", "/v1/me")).json()
            assert me["tier"] == "JIVE" and me["limits"]["storageBytes"] > free["storageBytes"]
            assert me["limits"]["searchesDocuments"] and not free["searchesDocuments"]

            await boss.patch(f"/v1/accounts/{ada.id}", json={"tier": "FREE"})
            refused(await ada.call("POST", "/v1/search", json=question), 403, "TIER")
            assert len(await ada.live("documents")) == 1, "what is held stays"
            await boss.patch(f"/v1/accounts/{ada.id}", json={"tier": "JIVE"})
        async with house(tmp_path) as h:
            assert h.parts.accounts.accounts[ada.id].tier == "JIVE"

    run(scenario)


def test_a_tier_that_does_not_exist_is_refused(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada = await h.person("FREE")
            refused(await boss.patch(f"/v1/accounts/{ada.id}", json={"tier": "GOLD"}), 400, "BAD_REQUEST")
            refused(await boss.patch(f"/v1/accounts/{ada.id}", json={"admin": True}), 400, "BAD_REQUEST")
            refused(
                await boss.post("/v1/accounts", json={"email": "x@example.org", "tier": "G"}),
                400,
                "BAD_REQUEST",
            )
            assert h.parts.accounts.accounts[ada.id].tier == "FREE"
            refused(await boss.patch("/v1/accounts/nobody", json={"tier": "JIVE"}), 404, "NOT_FOUND")

    run(scenario)


# --- passwords ----------------------------------------------------------------------------------------------------


def test_a_new_password_needs_the_old_one_and_signs_out_the_other_browsers(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            await account(boss, "ada@example.org")
            here, there = await signed_in(h, "ada@example.org"), await signed_in(h, "ada@example.org")
            ada, _ = await bearer(h, here)
            for wrong in ({"new": OTHER}, {"new": OTHER, "current": "not this one"}):
                answer = await here.post("/v1/password", json=wrong)
                assert answer.status_code in (400, 401, 403) and answer.json()["error"] is True
                assert (await there.get("/v1/me")).status_code == 200
            refused(
                await here.post("/v1/password", json={"new": "short", "current": PASSWORD}),
                400,
                "BAD_REQUEST",
            )
            changed = await here.post("/v1/password", json={"new": OTHER, "current": PASSWORD})
            assert changed.status_code == 200
            assert (await here.get("/v1/me")).status_code == 200, "this browser stays"
            refused(await there.get("/v1/me"), 401, "SIGNED_OUT")
            assert (await ada.call("GET", "/v1/me")).status_code == 200, "a token is no browser"
            answer = await browser(h).post(
                "/v1/sign-in", json={"email": "ada@example.org", "password": PASSWORD}
            )
            refused(answer, 401, "SIGNED_OUT")
            await signed_in(h, "ada@example.org", OTHER)

    run(scenario)


def test_a_reset_by_an_administrator_ends_the_password_and_all_browsers_and_gives_a_link(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada_id = (await account(boss, "ada@example.org"))["userId"]
            lost = await signed_in(h, "ada@example.org")
            answer = await boss.patch(f"/v1/accounts/{ada_id}", json={"resetPassword": True})
            assert answer.status_code == 200
            refused(await lost.get("/v1/me"), 401, "SIGNED_OUT")
            gone = await browser(h).post(
                "/v1/sign-in", json={"email": "ada@example.org", "password": PASSWORD}
            )
            refused(gone, 401, "SIGNED_OUT")
            found = browser(h)
            page = await found.get(answer.json()["link"])
            assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
            entered = await found.post(
                "/v1/sign-in/link", data={"link": answer.json()["link"].partition("link=")[2]}
            )
            assert entered.status_code == 303
            assert (await found.get("/v1/me")).json()["email"] == "ada@example.org"
            assert (await found.post("/v1/password", json={"new": OTHER})).status_code == 200
            await signed_in(h, "ada@example.org", OTHER)

    run(scenario)


def test_a_stream_gives_nothing_more_once_its_sign_in_has_ended(tmp_path):
    """By sign-out, by a reset of the password, by a password changed elsewhere."""

    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada_id = (await account(boss, "ada@example.org"))["userId"]
            ada, _ = await bearer(h, await signed_in(h, "ada@example.org"))

            async def silent_after(name, how):
                client = await signed_in(h, "ada@example.org")
                stream = await streaming(h, client.get("/v1/sync/stream"))
                await ada.push("facts", fact(f"{name}-before"))
                await asyncio.sleep(
                    0.1
                )  # it goes down the stream; what still waits there at a sign-out is not sent
                assert (await how(client)).status_code == 200
                await ada.push("facts", fact(f"{name}-after"))
                heard = (await asyncio.wait_for(stream, 10)).text
                assert f"{name}-before" in heard and f"{name}-after" not in heard
                assert h.parts.hub.count() == 0

            async def changed_elsewhere(_):
                other = await signed_in(h, "ada@example.org")
                return await other.post("/v1/password", json={"new": PASSWORD, "current": PASSWORD})

            await silent_after("out", lambda client: client.post("/v1/sign-out"))
            await silent_after("changed", changed_elsewhere)
            reset = {"resetPassword": True}
            await silent_after("reset", lambda _: boss.patch(f"/v1/accounts/{ada_id}", json=reset))

    run(scenario)


def test_a_password_changed_at_the_same_moment_undoes_no_decision_of_an_administrator(tmp_path):
    """Hashing takes a while: what the account became meanwhile holds."""

    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)

            async def meanwhile(email, call):
                made = (await account(boss, email))["userId"]
                client = await signed_in(h, email)
                change = client.post("/v1/password", json={"new": OTHER, "current": PASSWORD})
                task = asyncio.create_task(change)
                await asyncio.sleep(0.005)
                assert (await call(f"/v1/accounts/{made}")).status_code == 200
                await task
                return h.parts.accounts.accounts.get(made)

            lowered = await meanwhile("a@example.org", lambda path: boss.patch(path, json={"tier": "FREE"}))
            assert lowered.tier == "FREE"
            assert await meanwhile("b@example.org", boss.delete) is None, "the removed account came back"
        async with house(tmp_path) as h:
            assert {a.email: a.tier for a in h.parts.accounts.accounts.values()} == {
                "owner@localhost": "JIGGA",
                "a@example.org": "FREE",
            }

    run(scenario)


# --- tokens -------------------------------------------------------------------------------------------------------


def accounts_bytes(folder):
    return b"".join(path.read_bytes() for path in folder.glob("accounts.duckdb*"))


def test_a_token_is_shown_once_and_only_its_hash_is_stored(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada, made = await bearer(h, boss, "my laptop")
            secret = made["secret"]
            assert len(secret) >= 32 and made["token"]["name"] == "my laptop"
            listed = await ada.call("GET", "/v1/tokens")
            assert listed.json() == [made["token"]] and secret not in listed.text
            stored = h.parts.accounts.tokens_of(ada.id)
            assert not any(t.hash in listed.text for t in stored)
            second, again = await bearer(h, boss)
            assert again["secret"] != secret and len((await second.call("GET", "/v1/tokens")).json()) == 2
            cookie = boss.cookies["vademecum"]
            for text in (secret, cookie):
                for needle in (text.encode(), text.encode("utf-16-le")):
                    assert needle not in accounts_bytes(tmp_path)
        content = accounts_bytes(tmp_path)
        assert b"my laptop" in content, "the scan cannot see what is there"
        assert secret.encode() not in content and cookie.encode() not in content
        async with house(tmp_path) as h:
            later = browser(h)
            later.headers["Authorization"] = f"Bearer {secret}"
            assert (await later.get("/v1/me")).status_code == 200, "a token outlives a restart"

    run(scenario)


def test_passwords_are_stored_as_argon2id_only(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            await account(boss, "ada@example.org")
            assert h.parts.accounts.by_email("ada@example.org").password.startswith("$argon2id$")
        content = accounts_bytes(tmp_path)
        assert b"ada@example.org" in content and PASSWORD.encode() not in content

    run(scenario)


def test_a_revoked_token_is_refused_at_once_and_its_stream_ends(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada, made = await bearer(h, boss)
            other, _ = await bearer(h, boss)
            stream = await streaming(h, ada.call("GET", "/v1/sync/stream"))
            path = f"/v1/tokens/{made['token']['id']}"
            assert (await other.call("DELETE", path)).json() == {"deleted": 1}
            await asyncio.wait_for(stream, 10)
            for call in (
                ("GET", "/v1/me"),
                ("GET", "/v1/sync/facts/0/pull"),
                ("POST", "/v1/sync/facts/0/push"),
            ):
                refused(await ada.call(*call), 401, "SIGNED_OUT")
            assert (await other.call("GET", "/v1/me")).status_code == 200
            refused(await other.call("DELETE", path), 404, "NOT_FOUND")
        async with house(tmp_path) as h:
            later = browser(h)
            later.headers["Authorization"] = f"Bearer {made['secret']}"
            refused(await later.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_a_browsers_cookie_is_no_token_and_is_not_listed_or_revoked_as_one(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            assert (await boss.get("/v1/tokens")).json() == []
            cookie = next(t for t in h.parts.accounts.tokens.values() if t.kind == "cookie")
            refused(await boss.delete(f"/v1/tokens/{cookie.id}"), 404, "NOT_FOUND")
            swapped = browser(h)
            swapped.headers["Authorization"] = f"Bearer {boss.cookies['vademecum']}"
            refused(await swapped.get("/v1/me"), 401, "SIGNED_OUT")
            _, made = await bearer(h, boss)
            swapped = browser(h)
            swapped.cookies.set("vademecum", made["secret"])
            refused(await swapped.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_any_other_authorization_is_signed_out(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            await h.person()
            for header in (
                "",
                "Bearer",
                "Bearer ",
                "Bearer x",
                "Basic YTpi",
                "Local",
                "Local x",
                "é",
                "Bearer é",
            ):
                answer = await browser(h).get("/v1/me", headers={"Authorization": header.encode()})
                refused(answer, 401, "SIGNED_OUT")
                assert answer.headers["www-authenticate"] == "Bearer"

    run(scenario)


# --- the cookie ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "settings", "secure"),
    [
        ("http://test", {}, False),
        ("https://test", {}, True),
        ("http://test", {"origin": "https://docs.example.org"}, True),
    ],
)
def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(tmp_path, base_url, settings, secure):
    async def scenario():
        async with house(tmp_path, **settings) as h:
            await account(await owner(h, "https://test"), "ada@example.org")
            client = browser(h, base_url)
            body = {"email": "ada@example.org", "password": PASSWORD}
            answer = await client.post("/v1/sign-in", json=body)
            (morsel,) = SimpleCookie(answer.headers["set-cookie"]).values()
            assert morsel["httponly"] is True and morsel["samesite"].lower() in ("lax", "strict")
            assert bool(morsel["secure"]) is secure
            assert morsel.value not in answer.text, "the secret is in the cookie alone"

    run(scenario)


def test_signing_out_ends_the_cookie_on_the_server_too(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            kept = boss.cookies["vademecum"]
            assert (await boss.post("/v1/sign-out")).status_code == 200
            assert "vademecum" not in boss.cookies
            thief = browser(h)
            thief.cookies.set("vademecum", kept)
            refused(await thief.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://test:81"},
    {"Origin": "http://test.evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_a_write_that_another_site_causes_is_refused_with_the_cookie_but_not_with_a_token(tmp_path, headers):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada, _ = await bearer(h, boss)
            row = {"newDocumentState": session("s1")}
            writes = [
                ("POST", "/v1/sync/sessions/0/push", {"json": [row]}),
                ("POST", "/v1/documents", {"files": {"file": ("a.txt", b"text")}}),
                ("POST", "/v1/forget", {"json": {"confirm": "forget everything"}}),
                ("POST", "/v1/tokens", {"json": {}}),
                ("POST", "/v1/password", {"json": {"new": PASSWORD}}),
                ("POST", "/v1/sign-out", {}),
                ("DELETE", "/v1/documents", {}),
                ("DELETE", "/v1/me", {"json": {"confirm": "leave for good"}}),
            ]
            for method, path, more in writes:
                refused(await boss.request(method, path, headers=headers, **more), 403, "FORBIDDEN")
            assert await ada.pull("sessions") == [] and len((await ada.call("GET", "/v1/tokens")).json()) == 1
            assert h.parts.accounts.accounts[ada.id].password is None
            # the same with a token, and with the cookie from the page itself
            pushed = await ada.call("POST", "/v1/sync/sessions/0/push", json=[row], headers=headers)
            assert (pushed.status_code, pushed.json()) == (200, [])
            for own in ({}, {"Origin": "http://test"}, {"Sec-Fetch-Site": "same-origin"}):
                again = {"newDocumentState": session("s2")}
                assert (await boss.post("/v1/sync/sessions/0/push", json=[again], headers=own)).json() == []

    run(scenario)


def test_behind_a_proxy_the_public_origin_is_ours(tmp_path):
    async def scenario():
        async with house(tmp_path, origin="https://docs.example.org") as h:
            boss = await owner(h)
            ours = {"Origin": "https://docs.example.org", "Cookie": f"vademecum={boss.cookies['vademecum']}"}
            assert (await browser(h).post("/v1/tokens", json={}, headers=ours)).status_code == 201
            theirs = {**ours, "Origin": "https://docs.example.com"}
            refused(await browser(h).post("/v1/tokens", json={}, headers=theirs), 403, "FORBIDDEN")

    run(scenario)


# --- the door for commands on this machine ------------------------------------------------------------------------


def test_the_local_door_opens_from_this_machine_alone(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            email = h.parts.accounts.accounts[ada.id].email
            headers = {"Authorization": f"Local {h.parts.local_secret}", "X-Vademecum-User": email}
            assert (await browser(h).get("/v1/me", headers=headers)).json()["userId"] == ada.id
            far = httpx.ASGITransport(h.app, raise_app_exceptions=False, client=("203.0.113.9", 1))
            async with httpx.AsyncClient(transport=far, base_url="http://test") as client:
                refused(await client.get("/v1/me", headers=headers), 401, "SIGNED_OUT")
            # the header names a user for the local door only
            me = (await bob.call("GET", "/v1/me", headers={"X-Vademecum-User": email})).json()
            assert me["userId"] == bob.id
            for path in ("backup", "restore"):
                target = str(tmp_path / "copy")
                refused(await bob.call("POST", f"/v1/local/{path}", json={"path": target}), 403, "FORBIDDEN")
            assert not (tmp_path / "copy").exists()

    run(scenario)

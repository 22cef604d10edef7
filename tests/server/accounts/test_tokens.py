"""API tokens, the storage of secrets, and the local secret for commands on the server's machine."""

import asyncio

from server.accounts.account_clients import (
    PASSWORD,
    account,
    bearer,
    open_stream,
    owner,
    signed_in,
    with_browser,
)
from server.in_process_server import HASHER, browser, check_problem, run, serve, with_token
from vademecum.services.accounts import sign_in

COST = "$argon2id$v=19$m=65536,t=3,p=4$"


def accounts_bytes(folder):
    return b"".join(path.read_bytes() for path in folder.glob("accounts.duckdb*"))


def test_api_token_is_returned_once_and_stored_as_hash(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada, made = await bearer(h, admin, "my laptop")
            secret = made["secret"]
            assert len(secret) >= 32 and made["token"]["name"] == "my laptop"
            listed = await ada.call("GET", "/v1/tokens")
            assert listed.json() == [made["token"]] and secret not in listed.text
            stored = h.services.accounts.tokens_of(ada.id)
            assert not any(t.hash in listed.text for t in stored)
            second, again = await bearer(h, admin)
            assert again["secret"] != secret and len((await second.call("GET", "/v1/tokens")).json()) == 2
            cookie = admin.cookies["vademecum"]
            for text in (secret, cookie):
                for needle in (text.encode(), text.encode("utf-16-le")):
                    assert needle not in accounts_bytes(tmp_path)
        content = accounts_bytes(tmp_path)
        assert b"my laptop" in content, "control: the scan must find the stored name"
        assert secret.encode() not in content and cookie.encode() not in content
        async with serve(tmp_path) as h:
            later = with_token(h, secret)
            assert (await later.get("/v1/me")).status_code == 200, "a token must survive a server restart"

    run(scenario)


def test_passwords_are_stored_with_recommended_argon2id_cost(tmp_path, monkeypatch):
    monkeypatch.setattr(sign_in, "_hasher", HASHER)

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await account(admin, "ada@example.org")
            assert h.services.accounts.by_email("ada@example.org").password.startswith(COST)
        content = accounts_bytes(tmp_path)
        assert b"ada@example.org" in content and PASSWORD.encode() not in content

    run(scenario)


def test_token_revocation_takes_effect_immediately_and_closes_streams(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada, made = await bearer(h, admin)
            other, _ = await bearer(h, admin)
            stream = await open_stream(h, ada.call("GET", "/v1/sync/stream"))
            path = f"/v1/tokens/{made['token']['id']}"
            assert (await other.call("DELETE", path)).json() == {"deleted": 1}
            await asyncio.wait_for(stream, 60)
            for call in (
                ("GET", "/v1/me"),
                ("GET", "/v1/sync/facts/0/pull"),
                ("POST", "/v1/sync/facts/0/push"),
            ):
                check_problem(await ada.call(*call), 401, "SIGNED_OUT")
            assert (await other.call("GET", "/v1/me")).status_code == 200
            check_problem(await other.call("DELETE", path), 404, "NOT_FOUND")
        async with serve(tmp_path) as h:
            later = with_token(h, made["secret"])
            check_problem(await later.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_cookies_and_tokens_are_not_interchangeable(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            assert (await admin.get("/v1/tokens")).json() == []
            cookie = next(t for t in h.services.accounts.tokens.values() if t.kind == "cookie")
            check_problem(await admin.delete(f"/v1/tokens/{cookie.id}"), 404, "NOT_FOUND")
            swapped = with_token(h, admin.cookies["vademecum"])
            check_problem(await swapped.get("/v1/me"), 401, "SIGNED_OUT")
            _, made = await bearer(h, admin)
            swapped = browser(h)
            swapped.cookies.set("vademecum", made["secret"])
            check_problem(await swapped.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_invalid_authorization_header_is_rejected(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
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
                check_problem(answer, 401, "SIGNED_OUT")
                assert answer.headers["www-authenticate"] == "Bearer"

    run(scenario)


def test_local_secret_works_only_from_loopback(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            email = h.services.accounts.accounts[ada.id].email
            headers = {"Authorization": f"Local {h.services.local_secret}", "X-Vademecum-User": email}
            assert (await browser(h).get("/v1/me", headers=headers)).json()["userId"] == ada.id
            check_problem(await browser(h, "203.0.113.9").get("/v1/me", headers=headers), 401, "SIGNED_OUT")
            # With an API token, X-Vademecum-User has no effect.
            me = (await bob.call("GET", "/v1/me", headers={"X-Vademecum-User": email})).json()
            assert me["userId"] == bob.id
            for path in ("backup", "restore"):
                target = str(tmp_path / "copy")
                check_problem(
                    await bob.call("POST", f"/v1/local/{path}", json={"path": target}), 403, "FORBIDDEN"
                )
            assert not (tmp_path / "copy").exists()

    run(scenario)


def test_concurrent_requests_cannot_exceed_the_token_limit(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            bob = await with_browser(h, await h.person())
            for _ in range(98):
                made = await admin.post("/v1/tokens", json={})
                assert made.status_code == 201
            answers = await asyncio.gather(*(admin.post("/v1/tokens", json={}) for _ in range(5)))
            assert sorted(a.status_code for a in answers) == [201, 201, 409, 409, 409]
            check_problem(await admin.post("/v1/tokens", json={}), 409, "CONFLICT")
            assert len((await admin.get("/v1/tokens")).json()) == 100
            assert (await bob.call("POST", "/v1/tokens", json={})).status_code == 201, (
                "the limit must apply to each account separately"
            )
            assert (await owner_again(h, admin)).status_code == 200, (
                "the token limit must not prevent a browser's sign-in"
            )
            await admin.delete(f"/v1/tokens/{made.json()['token']['id']}")
            assert (await admin.post("/v1/tokens", json={})).status_code == 201

    run(scenario)


async def owner_again(h, admin):
    assert (await admin.post("/v1/password", json={"new": PASSWORD})).status_code == 200
    return await (await signed_in(h, "owner@localhost")).get("/v1/me")


def test_token_index_in_memory_matches_stored_tokens_after_changes(tmp_path):
    """The server indexes tokens in memory by hash and by account. Both indexes must match the accounts file."""

    async def scenario():
        async with serve(tmp_path) as h:
            held = h.services.accounts

            def check():
                for known in held.accounts:
                    ours = [t for t in held.tokens.values() if t.account_id == known]
                    assert held.tokens_of(known) == sorted(ours, key=lambda t: t.created_at)

            admin, bob = await owner(h), await h.person()
            cookie = next(t for t in held.tokens.values() if t.kind == "cookie")
            _, made = await bearer(h, admin)
            check()
            assert await held.extend_token(cookie, "2999-01-01T00:00:00.000Z")
            check()
            await admin.delete(f"/v1/tokens/{made['token']['id']}")
            check()
            await admin.delete(f"/v1/accounts/{bob.id}")
            check()
            assert held.tokens_of(bob.id) == []
            assert sorted(t.kind for t in held.tokens.values()) == ["cookie", "device"]
        async with serve(tmp_path) as h:
            held = h.services.accounts
            check()
            assert len(held.tokens) == 2

    run(scenario)

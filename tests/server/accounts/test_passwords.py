"""Password changes by the user and password resets by an administrator. Both revoke existing sessions."""

import asyncio
from contextlib import suppress

from property.rows import fact
from server.accounts.account_clients import (
    OTHER,
    PASSWORD,
    account,
    bearer,
    open_stream,
    owner,
    reconnect_browser,
    signed_in,
    wait_until_sent,
)
from server.in_process_server import browser, check_problem, run, serve


def test_password_change_requires_old_password_and_revokes_sessions(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await account(admin, "ada@example.org")
            here, there = await signed_in(h, "ada@example.org"), await signed_in(h, "ada@example.org")
            ada, _ = await bearer(h, here)
            for wrong in ({"new": OTHER}, {"new": OTHER, "current": "not this one"}):
                answer = await here.post("/v1/password", json=wrong)
                assert answer.status_code == 403 and answer.json()["error"] is True
                assert (await there.get("/v1/me")).status_code == 200
            check_problem(
                await here.post("/v1/password", json={"new": "short", "current": PASSWORD}),
                400,
                "BAD_REQUEST",
            )
            changed = await here.post("/v1/password", json={"new": OTHER, "current": PASSWORD})
            assert changed.status_code == 200
            assert (await here.get("/v1/me")).status_code == 200, (
                "the browser that changed the password must stay signed in"
            )
            check_problem(await there.get("/v1/me"), 401, "SIGNED_OUT")
            assert (await ada.call("GET", "/v1/me")).status_code == 200, (
                "API tokens must stay valid after a password change"
            )
            answer = await browser(h).post(
                "/v1/sign-in", json={"email": "ada@example.org", "password": PASSWORD}
            )
            check_problem(answer, 401, "SIGNED_OUT")
            await signed_in(h, "ada@example.org", OTHER)

    run(scenario)


def test_crash_during_password_change_revokes_old_sessions(tmp_path, monkeypatch):
    class Killed(BaseException):
        """A simulated kill after the first commit."""

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await account(admin, "ada@example.org")
            here, there = await signed_in(h, "ada@example.org"), await signed_in(h, "ada@example.org")
            execute = h.services.accounts._execute

            async def killed(works):
                await execute(works)
                raise Killed

            monkeypatch.setattr(h.services.accounts, "_execute", killed)
            with suppress(Killed):
                await here.post("/v1/password", json={"new": OTHER, "current": PASSWORD})
            monkeypatch.undo()
        async with serve(tmp_path) as h:
            check_problem(await reconnect_browser(h, there).get("/v1/me"), 401, "SIGNED_OUT")
            assert (await reconnect_browser(h, here).get("/v1/me")).status_code == 200
            await signed_in(h, "ada@example.org", OTHER)

    run(scenario)


def test_password_reset_by_administrator_revokes_sessions_and_returns_link(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada_id = (await account(admin, "ada@example.org"))["userId"]
            lost = await signed_in(h, "ada@example.org")
            answer = await admin.patch(f"/v1/accounts/{ada_id}", json={"resetPassword": True})
            assert answer.status_code == 200
            check_problem(await lost.get("/v1/me"), 401, "SIGNED_OUT")
            gone = await browser(h).post(
                "/v1/sign-in", json={"email": "ada@example.org", "password": PASSWORD}
            )
            check_problem(gone, 401, "SIGNED_OUT")
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


def test_stream_closes_when_its_cookie_is_revoked(tmp_path):
    """Sign-out, a password reset and a password change in another browser revoke a session."""

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada_id = (await account(admin, "ada@example.org"))["userId"]
            ada, _ = await bearer(h, await signed_in(h, "ada@example.org"))

            async def silent_after(name, how):
                client = await signed_in(h, "ada@example.org")
                stream = await open_stream(h, client.get("/v1/sync/stream"))
                await ada.push("facts", fact(f"{name}-before"))
                await wait_until_sent(h, ada_id)  # otherwise the revocation would discard the queued row
                assert (await how(client)).status_code == 200
                await ada.push("facts", fact(f"{name}-after"))
                heard = (await asyncio.wait_for(stream, 60)).text
                assert f"{name}-before" in heard and f"{name}-after" not in heard
                assert h.services.hub.count() == 0

            async def changed_elsewhere(_):
                other = await signed_in(h, "ada@example.org")
                return await other.post("/v1/password", json={"new": PASSWORD, "current": PASSWORD})

            await silent_after("out", lambda client: client.post("/v1/sign-out"))
            await silent_after("changed", changed_elsewhere)
            reset = {"resetPassword": True}
            await silent_after("reset", lambda _: admin.patch(f"/v1/accounts/{ada_id}", json=reset))

    run(scenario)


def test_password_change_preserves_concurrent_change_by_administrator(tmp_path):
    """An administrator may change or remove the account while the new password is hashed."""

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)

            async def meanwhile(email, call):
                made = (await account(admin, email))["userId"]
                client = await signed_in(h, email)
                change = client.post("/v1/password", json={"new": OTHER, "current": PASSWORD})
                task = asyncio.create_task(change)
                await asyncio.sleep(0.005)
                assert (await call(f"/v1/accounts/{made}")).status_code == 200
                await task
                return h.services.accounts.accounts.get(made)

            lowered = await meanwhile("a@example.org", lambda path: admin.patch(path, json={"tier": "FREE"}))
            assert lowered.tier == "FREE"
            assert await meanwhile("b@example.org", admin.delete) is None, (
                "the change must not recreate the removed account"
            )
        async with serve(tmp_path) as h:
            assert {a.email: a.tier for a in h.services.accounts.accounts.values()} == {
                "owner@localhost": "JIGGA",
                "a@example.org": "FREE",
            }

    run(scenario)

"""A request whose credentials are revoked while it runs is rejected and changes no data."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager

import pytest

from property.rows import fact
from server.accounts.account_clients import OTHER, PASSWORD, account, bearer, owner, signed_in, with_browser
from server.in_process_server import browser, check_problem, run, serve
from vademecum.fair_queue import FairExecutor
from vademecum.services.accounts import sign_in
from wait_until import soon


@asynccontextmanager
async def slow_request(client, method, path, body, **more):
    """Start a request, and send the end of its body only when the block ends."""
    begun, rest = asyncio.Event(), asyncio.Event()

    async def slowly():
        yield body[:4]
        begun.set()
        await rest.wait()
        yield body[4:]

    task = asyncio.create_task(client.request(method, path, content=slowly(), **more))
    await asyncio.wait_for(begun.wait(), 60)
    yield task
    rest.set()
    await asyncio.wait_for(asyncio.wait([task]), 60)


@asynccontextmanager
async def delayed_hashing():
    """Delay all password hashing until the block ends. Yield a function that returns the number of waiting hashes."""
    gate = threading.Event()
    before, sign_in._hashing = sign_in._hashing, FairExecutor(1, 1, "test")
    try:
        sign_in._hashing.submit(gate.wait)
        yield sign_in._hashing.waiting
    finally:
        gate.set()
        sign_in._hashing = before


def names_of_tokens(h, account_id):
    return {t.name for t in h.services.accounts.tokens_of(account_id) if t.kind == "api"}


def test_password_change_rejects_pending_request_of_stolen_cookie(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada = (await account(admin, "ada@example.org"))["userId"]

            async def changed():
                here = await signed_in(h, "ada@example.org")
                return await here.post("/v1/password", json={"new": PASSWORD, "current": PASSWORD})

            async def reset():
                return await admin.patch(f"/v1/accounts/{ada}", json={"resetPassword": True})

            for end in (changed, reset):
                stolen = await signed_in(h, "ada@example.org")
                async with slow_request(stolen, "POST", "/v1/tokens", b'{"name": "the thief\'s"}') as answer:
                    assert (await end()).status_code == 200
                check_problem(answer.result(), 401, "SIGNED_OUT")
                assert names_of_tokens(h, ada) == set()

    run(scenario)


def test_token_revocation_rejects_pending_push_and_upload(tmp_path):
    form = "multipart/form-data; boundary=x"
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nwords\r\n--x--\r\n'

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await account(admin, "ada@example.org")
            there = await signed_in(h, "ada@example.org")
            ada, made = await bearer(h, there)
            body = json.dumps([{"newDocumentState": fact("f1")}]).encode()
            async with (
                slow_request(ada.client, "POST", "/v1/sync/facts/0/push", body) as push,
                slow_request(
                    ada.client, "POST", "/v1/documents", file, headers={"Content-Type": form}
                ) as upload,
            ):
                await there.delete(f"/v1/tokens/{made['token']['id']}")
            check_problem(push.result(), 401, "SIGNED_OUT")
            check_problem(upload.result(), 401, "SIGNED_OUT")
            assert (await there.get("/v1/documents")).json()["count"] == 0
            assert (await there.get("/v1/sync/facts/0/pull")).json()["documents"] == []

    run(scenario)


def test_permissions_are_checked_after_request_body_arrives(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            made = await account(admin, "ada@example.org", tier="JIGGA")
            await h.services.accounts.change_account(made["userId"], lambda a: _with(a, admin=True))
            ada = await signed_in(h, "ada@example.org")
            body = b'{"email": "mine@example.org", "tier": "FREE"}'
            async with slow_request(ada, "POST", "/v1/accounts", body) as answer:
                await h.services.accounts.change_account(made["userId"], lambda a: _with(a, admin=False))
            check_problem(answer.result(), 403, "FORBIDDEN")
            row = b'{"query": "what sings?", "sessionId": "s1"}'
            async with slow_request(ada, "POST", "/v1/search", row) as answer:
                await admin.patch(f"/v1/accounts/{made['userId']}", json={"tier": "FREE"})
            check_problem(answer.result(), 403, "TIER")

    run(scenario)


def test_slow_request_succeeds_if_credentials_stay_valid(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            there = await with_browser(h, ada)
            async with slow_request(there.client, "POST", "/v1/tokens", b'{"name": "slow"}') as answer:
                await ada.add("facts", fact("f1"))
            assert answer.result().status_code == 201

    run(scenario)


def test_password_reset_during_verification_rejects_sign_in(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada = (await account(admin, "ada@example.org"))["userId"]
            client = browser(h)
            body = {"email": "ada@example.org", "password": PASSWORD}
            async with delayed_hashing() as somebody_waits:
                task = asyncio.create_task(client.post("/v1/sign-in", json=body))
                await soon(somebody_waits)
                await admin.patch(f"/v1/accounts/{ada}", json={"resetPassword": True})
            check_problem(await task, 401, "SIGNED_OUT")
            check_problem(await client.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_password_reset_rejects_concurrent_password_change(tmp_path):
    """A reset of an account without a password leaves the stored password unchanged.

    So the server must not take an unchanged password as proof that the session is still valid.
    """

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada = (await account(admin, "ada@example.org", password=None))["userId"]
            reset = {"resetPassword": True}
            first = (await admin.patch(f"/v1/accounts/{ada}", json=reset)).json()["link"]
            stolen = browser(h)
            await stolen.post("/v1/sign-in/link", data={"link": first.partition("link=")[2]})
            async with delayed_hashing() as somebody_waits:
                task = asyncio.create_task(stolen.post("/v1/password", json={"new": OTHER}))
                await soon(somebody_waits)
                link = (await admin.patch(f"/v1/accounts/{ada}", json=reset)).json()["link"]
            check_problem(await task, 401, "SIGNED_OUT")
            assert h.services.accounts.accounts[ada].password is None
            entered = await browser(h).post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})
            assert entered.status_code == 303, "the link of the latest reset must stay valid"

    run(scenario)


def test_password_reset_revokes_sign_in_link_during_its_use(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada = (await account(admin, "ada@example.org"))["userId"]
            reset = {"resetPassword": True}
            link = (await admin.patch(f"/v1/accounts/{ada}", json=reset)).json()["link"]
            client = browser(h)
            turn = h.services.accounts._turn
            async with turn:
                using = asyncio.create_task(
                    client.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})
                )
                await soon(lambda: len(turn._waiters or ()) == 1)
                resetting = asyncio.create_task(admin.patch(f"/v1/accounts/{ada}", json=reset))
                await soon(lambda: len(turn._waiters) == 2)
            await asyncio.gather(using, resetting)
            check_problem(await client.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def _with(account, **fields):
    return type(account)(**{name: getattr(account, name) for name in account.__struct_fields__} | fields)


def test_sign_in_is_rejected_if_password_hash_queue_is_full(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            await account(await owner(h), "ada@example.org")
            body = {"email": "ada@example.org", "password": PASSWORD}
            async with delayed_hashing() as waiting:
                waits = asyncio.create_task(browser(h).post("/v1/sign-in", json=body))
                await soon(waiting)
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(sign_in, "HASHES_WAITING_MAX", 1)
                    answer = await browser(h).post("/v1/sign-in", json=body)
                check_problem(answer, 503, "BUSY")
                assert int(answer.headers["Retry-After"]) > 0
            assert (await waits).status_code == 200

    run(scenario)

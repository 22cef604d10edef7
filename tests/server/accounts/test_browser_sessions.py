"""Active browsers stay signed in. Sessions of idle and signed-out browsers end."""

import asyncio

from server.accounts.account_clients import reconnect_browser
from server.accounts.test_sign_in import EMAIL, PASSWORD, attempt, browser, later
from server.in_process_server import run, serve
from vademecum.services.accounts import tokens
from wait_until import soon

DAY = 1440  # minutes


class Days:
    """A clock of the server that a test sets forward by whole days."""

    def __init__(self, h):
        self._server, self._clock = h, h.services.clock

    def now(self, day):
        moment = later(self._clock(), day * DAY)
        self._server.set_clock(lambda: moment)


async def signed_in(h, address="127.0.0.1"):
    """Sign a browser in. Return its client and the Set-Cookie header."""
    if h.services.accounts.by_email(EMAIL) is None:
        await h.services.account_service.create(EMAIL, "JIGGA", password=PASSWORD)
    client = browser(h, address)
    entered = await attempt(client)
    return client, entered.headers.get_list("set-cookie")[0]


def token_of(h, client):
    return h.services.tokens.find(client.cookies["vademecum"], "cookie")


def test_active_browser_stays_signed_in_with_few_writes(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            days = Days(h)
            client, cookie = await signed_in(h)
            renewed = []
            for day in range(0, 730, 5):
                days.now(day)
                answer = await client.get("/v1/me")
                assert answer.status_code == 200, day
                if "set-cookie" in answer.headers:
                    assert answer.headers["set-cookie"] == cookie, (
                        "a renewed cookie must have the same secret and attributes"
                    )
                    renewed.append(day)
            assert 730 / 60 < len(renewed) <= 730 / 30
        async with serve(tmp_path) as h:
            Days(h).now(800)
            assert (await reconnect_browser(h, client).get("/v1/me")).status_code == 200, (
                "the renewal must be stored in the accounts file"
            )

    run(scenario)


def test_successful_request_renews_browser_session(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            days = Days(h)
            client, _ = await signed_in(h)
            asked = [("GET", "/v1/sync/facts/0/pull?lwt=0&limit=10"), ("GET", "/v1/nowhere/at/all"),
                     ("POST", "/v1/sync/facts/0/push")]  # fmt: skip
            for day, (method, path) in enumerate(asked, start=1):
                days.now(40 * day)
                answer = await client.request(method, path, json=[] if method == "POST" else None)
                renewed = "set-cookie" in answer.headers
                assert renewed == (answer.status_code == 200), (path, answer.text)
            days.now(130)
            assert (await client.get("/v1/me")).status_code == 200

    run(scenario)


def test_cookie_is_renewed_after_a_third_of_lifetime(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            days = Days(h)
            client, _ = await signed_in(h)
            for day, renewed in ((1, False), (29, False), (31, True), (32, False)):
                days.now(day)
                assert ("set-cookie" in (await client.get("/v1/me")).headers) == renewed, day

    run(scenario)


def test_concurrent_requests_renew_the_cookie_once(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            client, _ = await signed_in(h)
            Days(h).now(45)
            writes = []
            execute = h.services.accounts._execute
            h.services.accounts._execute = lambda works: (writes.append(works), execute(works))[1]
            answers = await asyncio.gather(*(reconnect_browser(h, client).get("/v1/me") for _ in range(20)))
            assert [a.status_code for a in answers] == [200] * 20
            assert (len(writes), sum("set-cookie" in a.headers for a in answers)) == (1, 1)

    run(scenario)


def test_expired_cookie_is_not_renewed(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            client, _ = await signed_in(h)
            before = token_of(h, client)
            Days(h).now(91)
            for _ in range(2):
                answer = await client.get("/v1/me")
                assert answer.status_code == 401 and "set-cookie" not in answer.headers
            assert not await h.services.sign_in.extend_session(before), (
                "an expired session must not be renewed by a request that began earlier"
            )
            assert h.services.accounts.tokens[before.hash] == before

    run(scenario)


def test_cookie_revoked_during_renewal_stays_revoked(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            client, _ = await signed_in(h)
            token = token_of(h, client)
            Days(h).now(45)
            accounts = h.services.accounts
            with accounts._lock:  # block the running write
                request = asyncio.create_task(client.get("/v1/me"))
                await soon(lambda: accounts._turn.locked())
                revoking = asyncio.create_task(h.services.sign_in.sign_out(token))
                await asyncio.sleep(0.05)
            answer = await request
            await revoking
            assert answer.status_code == 200 and "set-cookie" not in answer.headers
            assert (await client.get("/v1/me")).status_code == 401
        async with serve(tmp_path) as h:
            assert (await reconnect_browser(h, client).get("/v1/me")).status_code == 401

    run(scenario)


def test_sign_out_response_clears_cookie_without_renewing_it(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            client, _ = await signed_in(h)
            Days(h).now(45)
            answer = await client.post("/v1/sign-out")
            (cookie,) = answer.headers.get_list("set-cookie")
            assert "Max-Age=0" in cookie

    run(scenario)


def test_stream_does_not_renew_the_cookie(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            client, _ = await signed_in(h)
            before = token_of(h, client)
            Days(h).now(45)
            for path in ("/v1/sync/stream", "/v1/sync/facts/0/pullStream"):
                stream = asyncio.create_task(client.get(path))
                await soon(lambda: h.services.hub.count())
                h.services.hub.close_user(before.account_id)
                answer = await stream
                assert answer.status_code == 200 and "set-cookie" not in answer.headers
            assert token_of(h, client) == before

    run(scenario)


def test_api_tokens_and_links_are_not_renewed(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            account = h.services.accounts.accounts[ada.id]
            link = (await h.services.sign_in.create_link(account)).partition("link=")[2]
            ends = later(h.services.clock(), 50 * DAY)
            brief = {
                "Authorization": f"Bearer {await h.services.tokens.issue(account, 'api', 'brief', ends)}"
            }
            tokens = dict(h.services.accounts.tokens)
            Days(h).now(45)
            for headers in ({}, brief):
                answer = await ada.call("GET", "/v1/me", headers=headers)
                assert answer.status_code == 200 and "set-cookie" not in answer.headers
            await browser(h).get("/v1/sign-in", params={"link": link})
            assert h.services.accounts.tokens == tokens

    run(scenario)


def test_expired_cookies_and_links_are_purged_while_server_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "PURGE_INTERVAL_S", 0.02)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            account = h.services.accounts.accounts[ada.id]
            await h.services.sign_in.create_link(account)
            await signed_in(h)
            await asyncio.sleep(0.1)
            kinds = sorted(t.kind for t in h.services.accounts.tokens.values())
            assert kinds == ["api", "cookie", "device", "link"], "tokens that have not expired must stay"
            Days(h).now(366)  # a year has passed, so the cookie of a known browser has expired too
            await soon(lambda: len(h.services.accounts.tokens) <= 1)
        async with serve(tmp_path) as h:
            assert [t.kind for t in h.services.accounts.tokens.values()] == ["api"], (
                "expired tokens must be deleted from the file too"
            )

    run(scenario)

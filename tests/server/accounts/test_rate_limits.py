"""Rate limits per account, address and class of requests. A request that gets a 429 changes no data."""

import asyncio

import httpx
import pytest

from faults.server_process import ServerProcess
from property.rows import fact, session
from server.in_process_server import MODELS, Person, browser, check_problem, run, serve
from vademecum.settings import Rates, Settings

FAR, FARTHER = "203.0.113.9", "198.51.100.7"
CONTRACT = {"sign_in": 10, "push": 300, "write": 60, "read": 600, "upload": 30, "search": 120, "answer": 20}
SMALL = Rates(push=3, write=3, read=3, upload=3, search=3)
QUESTION = {"query": "lease", "sessionId": "s1"}


def push(number):
    return {"json": [{"newDocumentState": session(f"s{number}")}]}


def file(number):
    return {"files": {"file": (f"{number}.txt", f"text {number}".encode())}}


# One request of each class. `number` makes each request a different change.
CLASSES = {
    "push": lambda number: ("POST", "/v1/sync/sessions/1/push", push(number)),
    "write": lambda number: ("POST", "/v1/projects", {"json": {"name": str(number)}}),
    "read": lambda _: ("GET", "/v1/documents", {}),
    "upload": lambda number: ("POST", "/v1/documents", file(number)),
    "search": lambda _: ("POST", "/v1/search", {"json": QUESTION}),
}


def stopped_clock(h):
    """Replace the limiter's clock by one that only the test advances."""
    seconds = [0.0]
    h.time_rate_limits(lambda: seconds[0])
    return seconds


def at(h, person, address):
    """Return the person's client as seen from this address."""
    client = browser(h, address)
    client.headers.update(person.client.headers)
    return client


async def ask(client, kind, number=0):
    method, path, more = CLASSES[kind](number)
    return await client.request(method, path, **more)


def limited(answer):
    """Check that the response is a 429 with all its fields, and return its Retry-After in seconds."""
    check_problem(answer, 429, "RATE_LIMITED")
    wait = int(answer.headers["retry-after"])
    assert 1 <= wait <= 60
    return wait


def command(h, person):
    """Return the person as a local command, which is exempt from rate limits."""
    client = browser(h)
    email = h.services.accounts.accounts[person.id].email
    client.headers.update({"Authorization": f"Local {h.services.local_secret}", "X-Vademecum-User": email})
    return Person(person.id, client)


async def stored_ids(h, person):
    """Return the ids of all stored sessions, documents and projects."""
    return [set(await command(h, person).live(name)) for name in ("sessions", "documents", "projects")]


def test_default_rate_limits_have_the_promised_values(tmp_path):
    rates = Settings(data=tmp_path).rates
    assert {name: getattr(rates, name) for name in CONTRACT} == CONTRACT


@pytest.mark.parametrize("kind", CLASSES)
def test_request_over_limit_gets_429_and_changes_no_data(tmp_path, kind):
    async def scenario():
        async with serve(tmp_path, rates=SMALL) as h:
            seconds = stopped_clock(h)
            ada, bob = await h.person(), await h.person()
            client = at(h, ada, FAR)
            for number in range(3):
                assert (await ask(client, kind, number)).status_code < 300
            before = await stored_ids(h, ada)
            wait = limited(await ask(client, kind, 3))
            assert await stored_ids(h, ada) == before
            # Requests of other classes, of other accounts at other addresses, and of local commands are not limited.
            for other in set(CLASSES) - {kind}:
                assert (await ask(client, other, 9)).status_code < 300, other
            assert (await ask(at(h, bob, FARTHER), kind, 4)).status_code < 300
            assert (await ask(command(h, ada).client, kind, 5)).status_code < 300
            # The limit applies to the account at any address, and to the address for any account.
            limited(await ask(at(h, ada, "192.0.2.44"), kind, 6))
            limited(await ask(at(h, bob, FAR), kind, 7))
            # After the seconds in Retry-After, the next request succeeds.
            seconds[0] += wait
            assert (await ask(client, kind, 8)).status_code < 300
            limited(await ask(client, kind, 9))

    run(scenario)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "192.0.2.80"])
def test_shared_address_gets_twenty_times_the_account_rate_limit(tmp_path, address):
    """Behind a proxy that sends no forwarding header, all clients have the proxy's address."""

    async def scenario():
        async with serve(tmp_path, rates=Rates(read=3), trusted_proxies="192.0.2.0/24") as h:
            stopped_clock(h)
            ada = at(h, await h.person(), address)
            for _ in range(3):
                assert (await ada.get("/v1/me")).status_code == 200
            limited(await ada.get("/v1/me"))
            async with browser(h, address) as strangers:
                for _ in range(20 * 3 - 4):
                    assert (await strangers.get("/health")).status_code == 200
                limited(await strangers.get("/health"))
            assert h.services.rate_limiter.crowded == {address}

    run(scenario)


@pytest.mark.parametrize("kind", CLASSES)
def test_local_secret_is_exempt_from_rate_limits(tmp_path, kind):
    async def scenario():
        async with serve(tmp_path, rates=Rates(push=1, write=1, read=1, upload=1, search=1)) as h:
            stopped_clock(h)
            client = command(h, await h.person()).client
            for number in range(25):
                assert (await ask(client, kind, number)).status_code < 300, kind
            client.headers["Authorization"] = "Local guessed"
            for _ in range(20):
                assert (await client.get("/v1/me")).status_code == 401
            limited(await client.get("/v1/me"))

    run(scenario)


def test_ipv6_network_shares_one_rate_limit(tmp_path):
    async def scenario():
        async with serve(tmp_path, rates=Rates(read=2)) as h:
            stopped_clock(h)
            for number in range(2):
                async with browser(h, f"2a01:4f8::{number + 1}") as stranger:
                    assert (await stranger.get("/health")).status_code == 200
            async with browser(h, "2a01:4f8::dead:beef") as stranger:
                limited(await stranger.get("/health"))
            async with browser(h, "2a01:4f8:0:1::1") as stranger:
                assert (await stranger.get("/health")).status_code == 200

    run(scenario)


OTHER_WRITES = [
    ("DELETE", "/v1/documents/x"),
    ("PUT", "/v1/documents/x/sessions/y"),
    ("DELETE", "/v1/sessions/x"),
    ("POST", "/v1/forget"),
    ("DELETE", "/v1/tokens/x"),
    ("POST", "/v1/sign-out"),
]


def test_rejected_requests_count_toward_the_limit(tmp_path):
    """Requests that fail for another reason count too, so that guessing is limited."""

    async def scenario():
        async with serve(tmp_path, rates=Rates(write=len(OTHER_WRITES), read=2)) as h:
            stopped_clock(h)
            client = at(h, await h.person(), FAR)
            for method, path in OTHER_WRITES:
                assert (await client.request(method, path)).status_code in (200, 400, 404)
            for method, path in OTHER_WRITES:
                limited(await client.request(method, path))
            for _ in range(2):
                assert (await client.get("/v1/documents/nope")).status_code == 404
            for path in ("/v1/me", "/v1/sync/facts/0/pull", "/v1/sync/stream", "/v1/sync/facts/0/pullStream"):
                limited(await client.get(path))
            assert h.services.hub.count() == 0

    run(scenario)


def test_untrusted_forwarding_headers_do_not_change_the_client_address(tmp_path):
    """Any client can write X-Forwarded-For, so only a trusted proxy's value counts."""

    async def scenario():
        async with serve(tmp_path, rates=Rates(read=2)) as h:
            stopped_clock(h)
            client = at(h, await h.person(), FAR)
            for claimed in ("127.0.0.1", "192.0.2.1"):
                answer = await client.get("/v1/me", headers={"X-Forwarded-For": claimed})
                assert answer.status_code == 200
            for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Client-IP"):
                limited(await client.get("/v1/me", headers={name: "127.0.0.1"}))

    run(scenario)


def test_many_new_addresses_do_not_evict_a_rate_limited_address(tmp_path):
    async def scenario():
        async with serve(tmp_path, rates=Rates(read=2)) as h:
            stopped_clock(h)
            client = at(h, await h.person(), FAR)
            for _ in range(2):
                await client.get("/health")
            limited(await client.get("/health"))
            for number in range(1000):
                h.services.rate_limiter.take("read", f"192.0.{number // 250}.{number % 250}")
            limited(await client.get("/health"))

    run(scenario)


def test_server_trusts_forwarding_headers_only_from_configured_proxies(tmp_path):
    """Run real server processes on loopback sockets. The test itself acts as the proxy."""
    told, untold = tmp_path / "told", tmp_path / "untold"
    settings = {"rates": '{"read": 2}'}
    servers = [
        ServerProcess(told, MODELS.parent / "none", {**settings, "trusted_proxies": "127.0.0.1"}),
        ServerProcess(untold, MODELS.parent / "none", settings),
    ]

    async def scenario():
        try:
            for ready in await asyncio.gather(*(server.start() for server in servers)):
                await ready.aclose()
            statuses = []
            for server in servers:
                async with httpx.AsyncClient(base_url=server.door.url, timeout=30) as client:
                    heard = [await client.get("/health", headers={"X-Forwarded-For": FAR}) for _ in range(4)]
                    statuses.append([answer.status_code for answer in heard])
            assert statuses == [[200, 200, 429, 429], [200, 200, 200, 200]]
        finally:
            for server in servers:
                server.kill()

    run(scenario)


def test_rate_limited_push_stores_no_rows(tmp_path):
    async def scenario():
        async with serve(tmp_path, rates=Rates(push=1)) as h:
            seconds = stopped_clock(h)
            ada = await h.person()
            client = at(h, ada, FAR)
            batches = [[{"newDocumentState": fact(f"f{batch}-{n}")} for n in range(20)] for batch in range(2)]
            assert (await client.post("/v1/sync/facts/0/push", json=batches[0])).json() == []
            wait = limited(await client.post("/v1/sync/facts/0/push", json=batches[1]))
            assert len(await ada.pull("facts")) == 20
            seconds[0] += wait
            assert (await client.post("/v1/sync/facts/0/push", json=batches[1])).json() == []
            assert len(await ada.pull("facts")) == 40

    run(scenario)

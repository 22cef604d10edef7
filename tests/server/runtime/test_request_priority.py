"""Background work pauses while a request waits for its response."""

import asyncio
import threading
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from property.rows import dead, episode, fact, session
from property.sync_wire import send
from server.in_process_server import run, serve
from server.listening_server import run_over_network
from server.models.model_change_server import opened, use, with_document
from vademecum.http.request_priority import track_waiting_requests
from vademecum.services.runtime import request_priority
from wait_until import soon


@asynccontextmanager
async def pending_request(h):
    """Keep a request without a response until the block ends."""
    here, over = asyncio.Event(), asyncio.Event()

    async def hangs(scope, receive, send):
        assert (await receive())["type"] == "http.request"
        here.set()
        await over.wait()

    async def sent():
        return {"type": "http.request", "body": b"", "more_body": False}

    task = asyncio.create_task(track_waiting_requests(hangs)({"litestar_app": h.app}, sent, None))
    await here.wait()
    assert h.services.request_priority.is_busy()
    try:
        yield
    finally:
        over.set()
        await task


@pytest.fixture
def resting(monkeypatch):
    """Make background work pause for an hour per row while a request waits for its response.

    Return an event that is set when the first pause begins.
    """
    begun, rest = threading.Event(), request_priority.RequestPriority._rest

    def rest_and_tell(self, most_s):
        begun.set()
        rest(self, most_s)

    monkeypatch.setattr(request_priority, "REST", 3_600_000)
    monkeypatch.setattr(request_priority.RequestPriority, "_rest", rest_and_tell)
    return begun


async def start_push(url, person):
    """Start a push whose body never completes."""
    where = urlsplit(url)
    _, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(
        b"POST /v1/sync/facts/0/push HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n"
        b"Content-Type: application/json\r\n"
        + f"Authorization: {person.client.headers['Authorization']}\r\n\r\n[".encode()
    )
    return writer


def test_background_work_waits_for_unanswered_requests(tmp_path):
    async def scenario(h, url, ada):
        at = h.services.request_priority
        async with pending_request(h):
            await asyncio.sleep(2 * request_priority.GAP_S)
            assert at.is_busy()
        await soon(lambda: not at.is_busy())
        await send(ada, "facts", (fact("f"), None))
        assert (await ada.client.get("/v1/no-such-thing")).status_code == 404
        await soon(lambda: not at.is_busy())

    run_over_network(tmp_path, scenario)


def test_background_work_ignores_requests_still_being_sent(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(
        request_priority.RequestPriority,
        "begin_request",
        noted(request_priority.RequestPriority.begin_request, begun),
    )

    async def scenario(h, url, ada):
        await soon(lambda: not h.services.request_priority.is_busy())
        begun.clear()
        writer = await start_push(url, ada)
        await soon(lambda: begun)
        await soon(lambda: not h.services.request_priority.is_busy())
        writer.close()
        await soon(lambda: len(begun) > 1)  # the server has read the end of the body and sends a response
        await soon(lambda: not h.services.request_priority.is_busy())

    run_over_network(tmp_path, scenario)


def noted(make, calls):
    def note(self):
        calls.append(1)
        return make(self)

    return note


def test_background_work_waits_while_a_search_runs(tmp_path):
    """The server also waits for a disconnect of the client meanwhile. The request must still count as pending."""
    here, over = asyncio.Event(), asyncio.Event()

    async def scenario(h, url, ada):
        seek = h.services.recall.hybrid_search.search_hybrid

        async def late(*asked):
            here.set()
            await over.wait()
            return await seek(*asked)

        h.services.recall.hybrid_search.search_hybrid = late
        await ada.push("sessions", session("s1"))
        await ada.add("episodes", episode("e1", "s1", userMessage="swordfish"))
        asking = asyncio.create_task(ada.call("GET", "/v1/episodes/search?q=swordfish&sessionId=s1"))
        await here.wait()
        await asyncio.sleep(2 * request_priority.GAP_S)
        assert h.services.request_priority.is_busy()
        over.set()
        assert (await asking).json()["results"]
        await soon(lambda: not h.services.request_priority.is_busy())

    run_over_network(tmp_path, scenario)


def test_background_work_ignores_requests_whose_response_has_begun(tmp_path):
    async def streams(scope, receive, send):
        await send({"type": "http.response.start"})
        await asyncio.sleep(5 * request_priority.GAP_S)
        assert not scope["litestar_app"].state.services.request_priority.is_busy()
        scope["is_checked"] = True

    async def sent(message):
        pass

    async def scenario():
        async with serve(tmp_path) as h:
            scope = {"litestar_app": h.app}
            await track_waiting_requests(streams)(scope, None, sent)
            assert scope["is_checked"]

    run(scenario)


def test_background_work_continues_despite_an_endless_request(tmp_path):
    async def scenario(h, url, ada):
        async with pending_request(h):
            await ada.push("sessions", session("s1"))
            assert await ada.push("episodes", *(episode(f"e{number}", "s1") for number in range(3))) == []
            await h.drain_jobs(ada)
            assert h.services.request_priority.is_busy()

    run_over_network(tmp_path, scenario)


def test_paused_background_work_delays_neither_deletes_nor_searches(tmp_path, resting):
    turns = [episode(f"e{number}", "s1", userMessage="swordfish") for number in range(50)]

    async def scenario(h, url, ada):
        async with pending_request(h):
            await ada.push("sessions", session("s1"))
            assert await ada.push("episodes", *turns) == []
            found = await ada.call("GET", "/v1/episodes/search?q=swordfish&sessionId=s1")
            assert found.json()["results"]
            assert await ada.push("episodes", dead(turns[0]), assumed=turns[0]) == []
            await h.services.background_jobs.jobs["erase"].drain(ada.id)

    run_over_network(tmp_path, scenario)


def test_paused_background_work_does_not_delay_account_deletion(tmp_path, resting):
    async def scenario(h, url, ada):
        async with pending_request(h):
            await ada.add("sessions", session("s1"))
            await ada.add("episodes", *(episode(f"e{number}", "s1") for number in range(3)))
            await soon(resting.is_set)
            async with asyncio.timeout(60):
                await h.services.account_deletion.delete(h.services.account_service.get(ada.id))

    run_over_network(tmp_path, scenario)


def test_paused_background_work_does_not_delay_search_with_new_model(tmp_path, installed, resting):
    async def scenario():
        async with opened(tmp_path, installed) as h:
            ada = await h.person()
            async with pending_request(h):
                await ada.add("sessions", session("s1"))
                await ada.add("episodes", *(episode(f"e{number}", "s1") for number in range(3)))
                await soon(resting.is_set)
                await use(h, "new")
                async with asyncio.timeout(60):
                    found = await ada.call("GET", "/v1/episodes/search?q=hello&sessionId=s1")
                assert found.status_code == 200

    run(scenario)


def test_account_deletion_does_not_wait_for_reindexing_of_another_account(tmp_path, installed, resting):
    async def scenario():
        async with opened(tmp_path, installed) as h:
            _, bob = await with_document(h), await h.person()
            async with pending_request(h):
                await use(h, "new")
                await soon(lambda: h.services.inference.users_being_swapped and resting.is_set())
                async with asyncio.timeout(60):
                    await h.services.account_deletion.delete(h.services.account_service.get(bob.id))

    run(scenario)


def test_failed_request_stops_counting_as_pending(tmp_path):
    async def breaks(scope, receive, send):
        assert scope["litestar_app"].state.services.request_priority.is_busy()
        raise RuntimeError("not today")

    async def scenario():
        async with serve(tmp_path) as h:
            with pytest.raises(RuntimeError, match="not today"):
                await track_waiting_requests(breaks)({"litestar_app": h.app}, None, None)
            await soon(lambda: not h.services.request_priority.is_busy())

    run(scenario)

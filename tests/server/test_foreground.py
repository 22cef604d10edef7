"""Which requests the work behind the answers gives way to."""

import asyncio
from urllib.parse import urlsplit

import pytest

from property.rows import dead, episode, fact, session
from property.wire import send
from server.house import house, run
from server.listening import listen, on_the_wire
from soon import soon
from vademecum.http.answering import answering
from vademecum.services import foreground


async def begin(url, person, body):
    """A push whose body does not go on."""
    where = urlsplit(url)
    _, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(
        b"POST /v1/sync/facts/0/push HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n"
        b"Content-Type: application/json\r\n"
        + f"Authorization: {person.client.headers['Authorization']}\r\n\r\n".encode()
        + body
    )
    return writer


def test_a_request_is_waited_for_until_it_is_answered_or_gone(tmp_path):
    async def scenario(h, url, ada):
        at = h.parts.foreground
        for _ in range(2):
            writer = await begin(url, ada, b"[")
            await soon(at.busy)
            writer.close()
            await soon(lambda: not at.busy())
        await send(ada, "facts", (fact("f"), None))
        assert (await ada.client.get("/v1/no-such-thing")).status_code == 404
        await soon(lambda: not at.busy())

    on_the_wire(tmp_path, scenario)


def test_an_open_stream_is_not_waited_for(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream"):
            await soon(lambda: not h.parts.foreground.busy())

    on_the_wire(tmp_path, scenario)


def test_the_work_goes_on_beside_a_request_that_does_not_end(tmp_path):
    async def scenario(h, url, ada):
        writer = await begin(url, ada, b"[")
        await soon(h.parts.foreground.busy)
        await ada.push("sessions", session("s1"))
        assert await ada.push("episodes", *(episode(f"e{number}", "s1") for number in range(3))) == []
        await h.settle(ada)
        assert h.parts.foreground.busy()
        writer.close()

    on_the_wire(tmp_path, scenario)


def test_a_delete_and_a_search_are_not_held_up_by_what_rests(tmp_path, monkeypatch):
    """Beside a request that never ends, an index whose every row would rest for an hour."""
    monkeypatch.setattr(foreground, "REST", 3_600_000)
    turns = [episode(f"e{number}", "s1", userMessage="swordfish") for number in range(50)]

    async def scenario(h, url, ada):
        writer = await begin(url, ada, b"[")
        await soon(h.parts.foreground.busy)
        await ada.push("sessions", session("s1"))
        assert await ada.push("episodes", *turns) == []
        found = await ada.call("GET", "/v1/episodes/search?q=swordfish&sessionId=s1")
        assert found.json()["results"]
        assert await ada.push("episodes", dead(turns[0]), assumed=turns[0]) == []
        await h.parts.backstage.jobs["erase"].settle(ada.id)
        writer.close()

    on_the_wire(tmp_path, scenario)


def test_a_request_that_breaks_without_an_answer_is_over(tmp_path):
    async def breaks(scope, receive, send):
        assert scope["litestar_app"].state.parts.foreground.busy()
        raise RuntimeError("not today")

    async def scenario():
        async with house(tmp_path) as h:
            with pytest.raises(RuntimeError, match="not today"):
                await answering(breaks)({"litestar_app": h.app}, None, None)
            await soon(lambda: not h.parts.foreground.busy())

    run(scenario)

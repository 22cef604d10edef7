"""Both kinds of streams over a real socket: order, completeness, separation of accounts, and shutdown."""

import asyncio
import json
import os

from property.rows import document, fact, session
from property.sync_wire import page, send
from server.listening_server import listen, run_over_network
from wait_until import soon


async def forget_everything(person):
    answer = await person.call("POST", "/v1/forget", json={"confirm": "forget everything"})
    return answer.json()["at"]


def test_row_written_right_after_stream_headers_reaches_the_stream(tmp_path):
    async def scenario(h, url, ada):
        for number in range(20 if os.environ.get("SOAK") else 6):
            async with listen(url, ada, "/v1/sync/facts/0/pullStream") as stream:
                row = fact(f"f{number}")
                await send(ada, "facts", (row, None))
                await stream.wait_until(lambda stream=stream: stream.events)
                assert stream.events[0]["documents"] == [row]
                assert stream.events[0]["checkpoint"] == (await page(ada, "facts"))["checkpoint"]

    run_over_network(tmp_path, scenario)


def test_row_with_line_breaks_reaches_streams_unchanged(tmp_path):
    async def scenario(h, url, ada):
        rows = [fact("f1"), fact("f2"), fact("f3")]
        async with (
            listen(url, ada, "/v1/sync/facts/0/pullStream") as one,
            listen(url, ada, "/v1/sync/stream") as all_,
        ):
            for row, line in zip(rows, ("\n", "\r", "\r\n\r\n"), strict=True):
                text = json.dumps([{"newDocumentState": row}], indent=1).replace("\n", line)
                answer = await ada.call("POST", "/v1/sync/facts/0/push", content=text)
                assert (answer.status_code, answer.json()) == (200, [])
            for stream in (one, all_):
                await stream.wait_until(lambda stream=stream: len(stream.events) == 3)
                assert stream.rows("facts") == rows

    run_over_network(tmp_path, scenario)


def test_stream_orders_all_collections_by_seq(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream") as stream:
            await asyncio.gather(
                *(send(ada, "sessions", (session(f"s{i}"), None)) for i in range(60)),
                *(send(ada, "facts", *((fact(f"f{i}-{n}"), None) for n in range(5))) for i in range(60)),
            )
            await send(ada, "sessions", ({**session("s0"), "_deleted": True}, None))
            await stream.wait_until(lambda: any(row["_deleted"] for row in stream.rows("sessions")))
            seqs = [event["checkpoint"]["lwt"] for event in stream.events]
            assert seqs == sorted(seqs)
            for collection in ("sessions", "facts"):
                pulled = (await page(ada, collection))["documents"]
                newest = {row["id"]: row for row in stream.rows(collection)}
                assert newest == {row["id"]: row for row in pulled}
            assert sum(len(event["documents"]) for event in stream.events) == 60 + 300 + 1
            assert "RESYNC" not in stream.text

    run_over_network(tmp_path, scenario)


def test_stream_event_has_forgotten_at_after_a_forget(tmp_path):
    async def scenario(h, url, ada):
        async with (
            listen(url, ada, "/v1/sync/facts/0/pullStream") as one,
            listen(url, ada, "/v1/sync/stream") as all_,
        ):
            await send(ada, "facts", (fact("f"), None))
            at = await forget_everything(ada)
            for stream in (one, all_):
                # The events are the row, its tombstone, and an event without rows.
                await stream.wait_until(lambda stream=stream: len(stream.events) == 3)
                before, *after = stream.events
                assert "forgottenAt" not in before
                assert {event["forgottenAt"] for event in after} == {at}

    run_over_network(tmp_path, scenario)


def test_forget_of_empty_account_reaches_streams(tmp_path):
    """A device must also delete rows that the server has rejected or never received."""

    async def scenario(h, url, ada):
        async with (
            listen(url, ada, "/v1/sync/facts/0/pullStream") as one,
            listen(url, ada, "/v1/sync/stream?versions=facts:0,sessions:1") as two,
        ):
            at = await forget_everything(ada)
            for stream in (one, two):
                await stream.wait_until(lambda stream=stream: stream.events)
                (heard,) = stream.events
                assert heard["documents"] == [] and heard["forgottenAt"] == at
                assert heard["checkpoint"] == (await page(ada, "facts"))["checkpoint"]

    run_over_network(tmp_path, scenario)


def test_rows_deleted_by_cascade_reach_all_streams(tmp_path):
    async def scenario(h, url, ada):
        await send(ada, "sessions", (session("s"), None))
        await send(ada, "documents", (document(ada.id, "d", activeSessions=["s"]), None))
        async with listen(url, ada, "/v1/sync/stream?versions=documents:1,sessions:1") as stream:
            await ada.call("DELETE", "/v1/sessions/s")
            await stream.wait_until(lambda: stream.rows("documents") and stream.rows("sessions"))
            assert (
                stream.rows("documents")[0]["activeSessions"] == [] and stream.rows("sessions")[0]["_deleted"]
            )

    run_over_network(tmp_path, scenario)


def test_stream_carries_only_subscribed_collections(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream?versions=facts:0") as stream:
            await send(ada, "sessions", (session("s"), None))
            await send(ada, "facts", (fact("f"), None))
            await stream.wait_until(lambda: stream.events)
            assert [event["collection"] for event in stream.events] == ["facts"]

    run_over_network(tmp_path, scenario)


def test_streams_contain_only_rows_of_their_own_user(tmp_path):
    async def scenario(h, url, ada):
        bob = await h.person()
        async with listen(url, bob, "/v1/sync/stream") as stream:
            await send(ada, "facts", (fact("f", value="canary of Ada"), None))
            await send(bob, "facts", (fact("g"), None))
            await stream.wait_until(lambda: stream.rows("facts"))
            assert "canary" not in stream.text and [row["id"] for row in stream.rows("facts")] == ["g"]

    run_over_network(tmp_path, scenario)


def test_stream_heartbeat_is_a_comment(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/facts/0/pullStream") as stream:
            await stream.wait_until(lambda: stream.text.count(": hb") >= 3)
            assert stream.events == []

    run_over_network(tmp_path, scenario, heartbeat_s=0.05)


def test_stream_of_disconnected_client_is_unsubscribed(tmp_path):
    async def scenario(h, url, ada):
        for _ in range(5):
            async with listen(url, ada, "/v1/sync/stream"):
                assert h.services.hub.count() >= 1
        await soon(lambda: not h.services.hub.count())

    run_over_network(tmp_path, scenario, heartbeat_s=0.1)


def test_stream_with_wrong_collection_or_schema_version_is_rejected(tmp_path):
    async def scenario(h, url, ada):
        for path, status in {
            "/v1/sync/facts/1/pullStream": 503,
            "/v1/sync/nothing/0/pullStream": 404,
            "/v1/sync/stream?versions=facts:1": 503,
            "/v1/sync/stream?versions=nothing:0": 404,
            "/v1/sync/stream?versions=facts": 400,
            "/v1/sync/stream?versions=facts:x": 400,
        }.items():
            answer = await ada.call("GET", path)
            assert answer.status_code == status and answer.json()["error"] is True, path
        assert h.services.hub.count() == 0

    run_over_network(tmp_path, scenario)


def test_streams_end_when_the_server_stops(tmp_path):
    async def scenario(h, url, ada):
        async with listen(url, ada, "/v1/sync/stream") as stream:
            await send(ada, "facts", (fact("f"), None))
            await stream.wait_until(lambda: stream.events)
            h.services.hub.close()
            await asyncio.wait_for(stream.ended.wait(), 60)

    run_over_network(tmp_path, scenario)


def test_stream_opened_during_shutdown_ends_immediately(tmp_path):
    async def scenario(h, url, ada):
        h.services.hub.close()
        async with listen(url, ada, "/v1/sync/stream") as stream:
            await asyncio.wait_for(stream.ended.wait(), 60)
        await soon(lambda: h.services.hub.count() == 0)

    run_over_network(tmp_path, scenario)

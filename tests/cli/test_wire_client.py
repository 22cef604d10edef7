"""A sync client that follows docs/wire.md works with a real server."""

import signal
import threading
from contextlib import contextmanager, suppress

import httpx

from cli.wire_client import Client
from wait_until import soon_outside


@contextmanager
def clients(home, server):
    """Create two devices of one user."""
    home.add("ada@example.org")
    token = home.token("ada@example.org")
    devices = [Client(server.url, token, ["sessions", "episodes", "facts"]) for _ in range(2)]
    try:
        yield devices
    finally:
        for device in devices:
            device.close()


def session(client, title, **more):
    return client.put("sessions", title=title, mode="analysis", documentScope="chosen", memory="on", **more)


def test_wire_client_syncs_by_documented_protocol(home):
    with home.serve() as server, clients(home, server) as (ada, there):
        rows = [session(ada, f"chat {n}") for n in range(110)]
        ada.sync()
        there.sync()
        assert there.live("sessions") == {row["id"]: row for row in rows}
        # Two devices change different fields of the same row, and both changes are kept.
        first = rows[0]["id"]
        session(ada, "renamed here", id=first)
        there.put("sessions", id=first, externalId="there")
        for client in (ada, there, ada):
            client.sync()
        assert ada.live("sessions")[first]["title"] == "renamed here"
        assert ada.live("sessions")[first] == there.live("sessions")[first]
        assert ada.live("sessions")[first]["externalId"] == "there"
        # A deletion wins over an edit, and it also deletes the session's turns.
        turn = {"userMessage": "?", "aiResponse": "!", "citations": [], "status": "done"}
        episode = ada.put("episodes", sessionId=first, **turn)["id"]
        ada.sync()
        there.sync()
        there.delete("sessions", first)
        session(ada, "too late", id=first)
        there.sync()
        ada.sync()
        ada.sync()
        assert first not in ada.live("sessions") and episode not in ada.live("episodes")
        # A rejected row keeps its error, does not block other rows, and is accepted after a correction.
        bad = ada.put("sessions", title="bad", mode="wrong")["id"]
        good = session(ada, "good")["id"]
        ada.sync()
        assert ada.live("sessions")[bad]["syncError"]["code"] == "INVALID"
        session(ada, "corrected", id=bad)
        ada.sync()
        there.sync()
        assert "syncError" not in ada.live("sessions")[bad]
        assert {bad, good} <= there.live("sessions").keys()
        # Other devices do not get a row before its parent is stored.
        ada.put("episodes", id="early", sessionId="late", **turn)
        ada.sync()
        there.sync()
        assert "early" not in there.live("episodes")
        session(ada, "late", id="late")
        ada.sync()
        there.sync()
        assert "early" in there.live("episodes")


def test_wire_client_follows_a_stream(home):
    with home.serve() as server, clients(home, server) as (ada, there):
        heard = []

        def follow():
            with suppress(httpx.HTTPError):  # the server stops and closes the stream
                for event in there.follow("facts"):
                    heard.append(event)

        following = threading.Thread(target=follow)
        following.start()
        fact = {"value": "Bern", "sourceRemoved": False, "confidence": 1, "confirmed": True}

        def arrives():
            ada.put("facts", key="user.city", **fact)
            ada.sync()
            return heard

        soon_outside(arrives)  # wait, because the first rows may be pulled before the stream is open
        server.end()
        following.join(60)
        assert not following.is_alive()
        assert there.live("facts") and there.live("facts").items() <= ada.live("facts").items()


def test_wire_client_recovers_after_a_restore(home, tmp_path):
    with home.serve() as server, clients(home, server) as (ada, there):
        kept, edited = (session(ada, title)["id"] for title in ("kept", "before the backup"))
        ada.sync()
        home.ok("backup", tmp_path / "copy")
        session(ada, "edited after the backup", id=edited)
        added = session(ada, "added after the backup")["id"]
        ada.delete("sessions", kept)
        ada.sync()
        there.sync()
        home.ok("restore", tmp_path / "copy", "--yes")
        for client in (ada, there, ada):
            client.sync()
        for client in (ada, there):
            titles = {i: row["title"] for i, row in client.live("sessions").items()}
            assert titles == {edited: "edited after the backup", added: "added after the backup"}


def test_wire_clients_push_rows_again_that_a_truncated_log_lost(home):
    with home.serve() as server, clients(home, server) as (ada, there):
        sessions = []
        for number in range(10):
            sessions.append(session(ada, f"chat {number}")["id"])
            ada.sync()
        there.sync()
        session(there, "renamed there", id=sessions[0])
        there.sync()
        server.end(signal.SIGKILL)
        (log,) = home.data.glob("users/*/*/records.duckdb.wal")
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
        with home.serve() as again:
            for device in (ada, there):
                device.move_to(again.url)
            there.sync()  # this device has all rows and pushes them again
            ada.sync()
            there.sync()
            assert ada.live("sessions") == there.live("sessions")
            assert ada.live("sessions").keys() == set(sessions)
            assert ada.live("sessions")[sessions[0]]["title"] == "renamed there"
            doctor = home.run("doctor")
            (line,) = [line for line in doctor.out.splitlines() if "lost changes" in line]
            assert line.startswith("NO") and log.parent.name in line
            assert "records lack acknowledged changes" in again.output()

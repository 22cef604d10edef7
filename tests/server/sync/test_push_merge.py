"""Push, rule 6: if two devices edit the same row, the server merges both edits."""

import pytest

from property.rows import block, bumped, day, document, episode, fact, memory, session, unmarked
from property.sync_wire import alone, base, codes, page, send, seqs, stored


async def merged(ada, collection, old, theirs, mine):
    """Push `theirs`, then `mine`, both based on `old`.

    Return the stored row, which the push must also return.
    """
    assert await send(ada, collection, (old, None)) == []
    assert await send(ada, collection, (theirs, old)) == []
    conflicts = await send(ada, collection, (mine, old))
    row = await stored(ada, collection, old["id"])
    assert conflicts in ([row], [] if row == mine else None)
    return row


def test_edit_without_assumed_state_returns_the_stored_row(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        before = await seqs(ada)
        assert await send(ada, "facts", (fact("f", value="other"), None)) == [fact("f")]
        assert await seqs(ada) == before

    alone(tmp_path, scenario)


def test_row_corrected_after_rejection_is_merged_despite_stale_base(tmp_path):
    async def scenario(ada):
        first, newer = session("s"), session("s", title="newer")
        await send(ada, "sessions", (session("o", externalId="x"), None), (first, None))
        (rejected,) = await send(ada, "sessions", (session("s", externalId="x"), first))
        await send(ada, "sessions", (newer, first))
        edited = {**unmarked(rejected), "mode": "authoritative"}
        del edited["externalId"]
        expected = bumped(session("s", title="newer", mode="authoritative"))
        assert await send(ada, "sessions", (edited, rejected)) == [expected]
        assert await stored(ada, "sessions", "s") == expected

    alone(tmp_path, scenario)


def test_corrected_rejected_row_without_base_does_not_overwrite_stored_row(tmp_path):
    async def scenario(ada):
        (rejected,) = await send(ada, "facts", (fact("f", confidence=2), None))
        there = fact("f", value="elsewhere", key="user.age")
        await send(ada, "facts", (there, None))
        row = await send(ada, "facts", (fact("f"), rejected))
        assert row == [await stored(ada, "facts", "f")] and row[0]["key"] == "user.age"

    alone(tmp_path, scenario)


def test_merge_takes_fields_changed_on_one_side(tmp_path):
    async def scenario(ada):
        old = session("s", title="old")
        row = await merged(ada, "sessions", old, {**old, "title": "theirs"}, {**old, "mode": "authoritative"})
        assert row == bumped(session("s", title="theirs", mode="authoritative"))

    alone(tmp_path, scenario)


def test_merge_keeps_stored_value_of_field_changed_on_both_sides(tmp_path):
    async def scenario(ada):
        old = session("s", title="old")
        row = await merged(ada, "sessions", old, {**old, "title": "theirs"}, {**old, "title": "mine"})
        assert row["title"] == "theirs"

    alone(tmp_path, scenario)


def test_merge_counts_added_and_removed_fields_as_changes(tmp_path):
    async def scenario(ada):
        old = session("s", externalId="x")
        theirs, mine = session("s"), session("s", externalId="x", projectId="p")
        assert await merged(ada, "sessions", old, theirs, mine) == bumped(session("s", projectId="p"))

    alone(tmp_path, scenario)


def test_same_change_by_two_devices_is_accepted(tmp_path):
    async def scenario(ada):
        old = session("s")
        same = session("s", title="same")
        await merged(ada, "sessions", old, same, same)
        assert await send(ada, "sessions", (same, old)) == []

    alone(tmp_path, scenario)


def test_merge_keeps_the_later_timestamp(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d", updatedAt=day(1), lastAccessedAt=day(1))
        theirs = {**old, "updatedAt": day(5), "lastAccessedAt": day(2)}
        mine = {**old, "updatedAt": day(3), "lastAccessedAt": day(4), "filename": "new.txt"}
        row = await merged(ada, "documents", old, theirs, mine)
        assert (row["updatedAt"], row["lastAccessedAt"]) == (bumped(theirs)["updatedAt"], day(4))

    alone(tmp_path, scenario)


def test_merge_of_sets_combines_additions_and_removals(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d", activeSessions=["a", "b", "c"])
        theirs, mine = {**old, "activeSessions": ["b", "c", "t"]}, {**old, "activeSessions": ["m", "a", "b"]}
        row = await merged(ada, "documents", old, theirs, mine)
        assert sorted(row["activeSessions"]) == ["b", "m", "t"]
        old = memory("m", sessionIds=["a", "b"])
        theirs, mine = {**old, "sessionIds": ["b", "t"]}, {**old, "sessionIds": ["a", "b", "t", "m"]}
        row = await merged(ada, "memories", old, theirs, mine)
        assert sorted(row["sessionIds"]) == ["b", "m", "t"]

    alone(tmp_path, scenario)


@pytest.mark.parametrize(
    ("old", "theirs", "mine", "wanted"),
    [
        ((0, ""), (3, ""), (2, ""), 5),
        ((2, "ab"), (3, "abc"), (3, "abc"), 4),
        ((5, "a"), (5, ""), (6, "ab"), 6),
        ((5, ""), (1, ""), (0, ""), 0),
    ],
    ids=["deltas", "also with the same borrow", "one side only", "never below zero"],
)
def test_merge_of_counts_adds_both_increments(tmp_path, old, theirs, mine, wanted):
    async def scenario(ada):
        def row(count, sessions, **more):
            return document(ada.id, "d", accessCount=count, activeSessions=list(sessions), **more)

        # With another file name, `mine` differs from the stored row in every case, so it is merged.
        stored_row = await merged(ada, "documents", row(*old), row(*theirs), row(*mine, filename="mine.txt"))
        assert stored_row["accessCount"] == wanted

    alone(tmp_path, scenario)


def test_repeated_merge_adds_counts_only_once(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d")
        theirs, mine = {**old, "activeSessions": ["t"]}, {**old, "activeSessions": ["m"]}
        once = await merged(ada, "documents", old, theirs, mine)
        assert sorted(once["activeSessions"]) == ["m", "t"]
        for _ in range(3):
            assert await send(ada, "documents", (mine, old)) == [once]
        assert await stored(ada, "documents", "d") == once

    alone(tmp_path, scenario)


def test_fields_of_fact_value_are_merged_as_one_group(tmp_path):
    async def scenario(ada):
        old = fact("f", value="Ada", confirmed=False, confidence=0.5)
        theirs = {**old, "value": "Grace", "confidence": 0.9}
        row = await merged(ada, "facts", old, theirs, {**old, "confirmed": True, "key": "user.nick"})
        assert row == bumped({**theirs, "key": "user.nick"})

    alone(tmp_path, scenario)


def test_fields_of_answer_are_merged_as_one_group(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (session("s"), None))
        old = episode("e", "s", aiResponse="", status="streaming")
        theirs = {**old, "status": "stopped"}
        cited = [{"n": 1, "documentId": "d", "filename": "d.txt"}]
        mine = {**old, "aiResponse": "all", "citations": cited, "model": "m", "userMessage": "edited"}
        assert await merged(ada, "episodes", old, theirs, mine) == bumped({**theirs, "userMessage": "edited"})

    alone(tmp_path, scenario)


def test_fields_of_document_file_and_status_are_merged_as_one_group(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d", status="pending")
        theirs = {**old, "status": "ready", "statusDetail": "words only"}
        mine = {
            **old,
            "contentHash": "1" * 64,
            "size": 20,
            "chunkCount": 2,
            "pageCount": 3,
            "filename": "n.txt",
        }
        assert await merged(ada, "documents", old, theirs, mine) == bumped({**theirs, "filename": "n.txt"})

    alone(tmp_path, scenario)


def test_merge_takes_field_group_changed_on_one_side(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d", status="failed", statusDetail="why", pageCount=2)
        mine = {**document(ada.id, "d", contentHash="1" * 64, size=20), "status": "ready"}
        row = await merged(ada, "documents", old, {**old, "filename": "n.txt"}, mine)
        assert row == bumped({**mine, "filename": "n.txt"})

    alone(tmp_path, scenario)


def test_blocks_are_never_merged(tmp_path):
    async def scenario(ada):
        await send(ada, "documents", (document(ada.id, "d"), None))
        old = block("d", model="a")
        theirs = {**old, "model": "b"}
        mine = block("d", text="other words", model="a")
        assert await merged(ada, "vectorEmbeddings", old, theirs, mine) == theirs

    alone(tmp_path, scenario)


def test_merged_row_takes_one_seq_and_is_pulled_by_devices(tmp_path):
    async def scenario(ada):
        old = session("s")
        await send(ada, "sessions", (old, None))
        await send(ada, "sessions", ({**old, "title": "theirs"}, old))
        lwt = (await seqs(ada))["sessions/s"]
        await send(ada, "sessions", ({**old, "mode": "authoritative"}, old))
        got = await page(ada, "sessions", lwt)
        assert len(got["documents"]) == 1 and got["checkpoint"]["lwt"] > lwt

    alone(tmp_path, scenario)


def test_merge_that_would_duplicate_a_unique_value_is_rejected(tmp_path):
    """The server returns the rejected row in its merged form. So the device's next edit does not undo the change of
    the other device.
    """

    async def scenario(ada):
        old = session("s")
        await send(ada, "sessions", (session("o", externalId="x"), None), (old, None))
        theirs = {**old, "title": "theirs"}
        await send(ada, "sessions", (theirs, old))
        mine = {**old, "externalId": "x", "mode": "authoritative"}
        (rejected,) = await send(ada, "sessions", (mine, old))
        assert codes([rejected]) == ["DUPLICATE"] and unmarked(rejected) == bumped(
            {**mine, "title": "theirs"}
        )
        assert rejected["syncError"]["base"] == await base(ada, "sessions", "s")
        assert await stored(ada, "sessions", "s") == theirs
        edited = {**unmarked(rejected), "externalId": "y"}
        assert await send(ada, "sessions", (edited, rejected)) == []
        both = bumped(session("s", title="theirs", externalId="y", mode="authoritative"))
        assert await stored(ada, "sessions", "s") == both

    alone(tmp_path, scenario)


def test_merge_that_would_violate_the_schema_is_rejected(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d")
        theirs, mine = ({**old, "activeSessions": [f"{side}{n}" for n in range(6000)]} for side in "tm")
        assert await send(ada, "documents", (old, None), (theirs, old)) == []
        (conflict,) = await send(ada, "documents", (mine, old))
        assert unmarked(conflict) == mine and codes([conflict]) == ["INVALID"]
        assert "base" not in conflict["syncError"]
        assert await stored(ada, "documents", "d") == theirs
        smaller = {**theirs, "activeSessions": theirs["activeSessions"][:10]}
        assert await send(ada, "documents", (smaller, theirs)) == []
        assert len((await send(ada, "documents", (mine, old)))[0]["activeSessions"]) == 6010

    alone(tmp_path, scenario)

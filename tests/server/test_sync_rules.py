"""The rules of push and pull, one by one, as section 5 of the design states them. A number in a name is its rule."""

import json
import re

import pytest

from property.rows import (
    NEW,
    OLD,
    block,
    day,
    document,
    entity,
    episode,
    fact,
    marked,
    memory,
    project,
    relationship,
    session,
    summary,
    unmarked,
)
from property.wire import COLLECTIONS, alone, base, codes, epoch, page, send, seqs, stored
from server.house import house, run

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def dead(row):
    return {**row, "_deleted": True}


# --- 1: deletes ---------------------------------------------------------------------------------------------------


def test_1_a_delete_is_stored_blanked_and_nothing_is_answered(tmp_path):
    async def scenario(ada):
        row = session("s", title="secret", externalId="x-1", createdAt=day(1), updatedAt=day(2))
        assert await send(ada, "sessions", (row, None)) == []
        assert await send(ada, "sessions", (dead(row), row)) == []
        kept = await stored(ada, "sessions", "s")
        assert kept == {"id": "s", "createdAt": day(1), "updatedAt": day(2), "_deleted": True, "title": "",
                        "mode": "analysis"}  # fmt: skip

    alone(tmp_path, scenario)


def test_1_the_content_of_an_unblanked_delete_is_not_kept(tmp_path):
    async def scenario(ada):
        assert await send(ada, "facts", (dead(fact("f", value="secret")), None)) == []
        assert "secret" not in json.dumps((await page(ada, "facts"))["documents"])

    alone(tmp_path, scenario)


@pytest.mark.parametrize("assumed", ["none", "stale", "current"])
def test_1_a_delete_wins_whatever_was_assumed(tmp_path, assumed):
    async def scenario(ada):
        first, second = session("s"), session("s", title="edited elsewhere")
        await send(ada, "sessions", (first, None))
        await send(ada, "sessions", (second, first))
        base_row = {"none": None, "stale": first, "current": second}[assumed]
        assert await send(ada, "sessions", (dead(first), base_row)) == []
        assert (await stored(ada, "sessions", "s"))["_deleted"] is True

    alone(tmp_path, scenario)


def test_1_a_delete_of_an_unknown_row_is_accepted_and_stays_dead(tmp_path):
    async def scenario(ada):
        assert await send(ada, "sessions", (dead(session("s")), None)) == []
        answered = await send(ada, "sessions", (session("s"), None))
        assert [(row["id"], row["_deleted"]) for row in answered] == [("s", True)]

    alone(tmp_path, scenario)


def test_1_a_delete_of_a_tombstone_is_accepted(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (session("s"), None))
        for assumed in (session("s"), None):
            assert await send(ada, "sessions", (dead(session("s")), assumed)) == []
        tombstone = await stored(ada, "sessions", "s")
        assert await send(ada, "sessions", (tombstone, tombstone)) == []

    alone(tmp_path, scenario)


def test_1_a_delete_need_not_fit_the_schema(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        assert await send(ada, "facts", ({"id": "f", "_deleted": True}, None)) == []
        assert (await stored(ada, "facts", "f"))["_deleted"] is True

    alone(tmp_path, scenario)


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_1_a_tombstone_fits_its_own_schema_again(tmp_path, collection):
    """What pull gives out as a tombstone can be pushed back as it is."""

    async def scenario(ada):
        row = {
            "documents": document(ada.id, "d"), "vectorEmbeddings": block("d"), "projects": project("p"),
            "sessions": session("s"), "episodes": episode("e", "s"), "facts": fact("f"), "memories": memory("m"),
            "entities": entity("n", "p"), "relationships": relationship("r", "n", "n2"),
            "summaries": summary("u", sessionId="s"),
        }[collection]  # fmt: skip
        assert await send(ada, collection, (dead(row), None)) == []
        tombstone = (await page(ada, collection))["documents"][0]
        required = {k for k in row if k not in ("sessionId",) or collection == "episodes"}
        assert required <= tombstone.keys() and tombstone["_deleted"] is True
        for kept in ("documentId", "sessionId", "projectId", "fromId", "toId"):
            if kept in row and collection != "sessions":
                assert tombstone[kept] == row[kept]
        assert await send(ada, collection, (tombstone, tombstone)) == []

    alone(tmp_path, scenario)


def test_1_deletes_of_a_batch_are_judged_first(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (session("old", externalId="x"), None))
        new = session("new", externalId="x")
        assert await send(ada, "sessions", (new, None), (dead(session("old")), session("old"))) == []
        assert (await stored(ada, "sessions", "new"))["_deleted"] is False

    alone(tmp_path, scenario)


def test_1_the_rest_of_a_batch_is_judged_in_order(tmp_path):
    async def scenario(ada):
        answered = await send(ada, "sessions", *((session(i, externalId="x"), None) for i in "cab"))
        assert [row["id"] for row in answered] == ["a", "b"] and codes(answered) == ["DUPLICATE"] * 2
        first, second = session("s"), session("s", title="second")
        assert await send(ada, "sessions", (first, None), (second, first)) == []
        assert await stored(ada, "sessions", "s") == second

    alone(tmp_path, scenario)


# --- 2: what does not fit -----------------------------------------------------------------------------------------


def test_2_a_row_that_does_not_fit_is_refused_as_sent_and_the_others_pass(tmp_path):
    async def scenario(ada):
        bad = fact("bad", confidence=2)
        answered = await send(ada, "facts", (fact("a"), None), (bad, None), (fact("b"), None))
        assert [unmarked(row) for row in answered] == [bad] and codes(answered) == ["INVALID"]
        error = answered[0]["syncError"]
        assert error.keys() == {"code", "message", "at"} and error["message"] and TIME.fullmatch(error["at"])
        assert set(await ada.live("facts")) == {"a", "b"}

    alone(tmp_path, scenario)


def test_2_a_refusal_names_the_stored_row_it_was_measured_against(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        answered = await send(ada, "facts", (fact("f", confidence=2), fact("f")))
        assert answered[0]["syncError"]["base"] == await base(ada, "facts", "f")
        assert await stored(ada, "facts", "f") == fact("f")

    alone(tmp_path, scenario)


def test_2_documents_of_another_user_are_refused(tmp_path):
    async def scenario(ada):
        for user in ("somebody", ""):
            answered = await send(ada, "documents", (document(user, "d"), None))
            assert codes(answered) == ["INVALID"]
        assert await ada.pull("documents") == []

    alone(tmp_path, scenario)


def test_2_nobody_sees_or_touches_the_rows_of_another(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            await send(ada, "facts", (fact("f", value="of Ada"), None))
            assert await bob.pull("facts") == []
            assert await send(bob, "facts", (fact("f", value="of Bob"), None)) == []
            assert await send(bob, "facts", (dead(fact("f")), None)) == []
            assert await stored(ada, "facts", "f") == fact("f", value="of Ada")

    run(scenario)


@pytest.mark.parametrize(
    "row",
    [
        block("d", id="d.1"),
        block("d", embedding="AAAA"),
        block("d" * 91),
        block("d", chunks=[]),
        block("d", number=-1),
    ],
    ids=["id of another block", "too few vectors", "long documentId", "no chunks", "negative block"],
)
def test_2_blocks_that_contradict_themselves_are_refused(tmp_path, row):
    async def scenario(ada):
        assert codes(await send(ada, "vectorEmbeddings", (row, None))) == ["INVALID"]

    alone(tmp_path, scenario)


# --- 3: repeats ---------------------------------------------------------------------------------------------------


def test_3_a_repeat_after_a_lost_answer_is_accepted_and_takes_no_seq(tmp_path):
    async def scenario(ada):
        first, second = fact("f"), fact("f", value="Grace")
        for pair in ((first, None), (second, first)):
            assert await send(ada, "facts", pair) == []
            before = await seqs(ada)
            assert await send(ada, "facts", pair) == []
            assert await seqs(ada) == before

    alone(tmp_path, scenario)


def test_3_a_repeat_with_another_key_order_or_spelling_of_numbers_is_a_repeat(tmp_path):
    async def scenario(ada):
        row = fact("f", confidence=1, value="é")
        await send(ada, "facts", (row, None))
        before = await seqs(ada)
        other = json.dumps(dict(reversed(row.items()))).replace('"confidence": 1', '"confidence": 10e-1')
        assert "\\u00e9" in other and "10e-1" in other
        body = f'[{{"newDocumentState": {other}}}]'.encode()
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=body)
        assert answer.text == "[]" and await seqs(ada) == before

    alone(tmp_path, scenario)


def test_3_an_equal_row_with_a_mark_is_answered_without_it(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        assert await send(ada, "facts", (marked(fact("f"), None), fact("f"))) == [fact("f")]

    alone(tmp_path, scenario)


@pytest.mark.parametrize("which", ["no stored row", "current base", "stale base"])
def test_3_a_marked_row_come_back_unchanged_is_accepted_as_nothing(tmp_path, which):
    async def scenario(ada):
        refused = fact("f", value="refused")
        row_base = None
        if which != "no stored row":
            await send(ada, "facts", (fact("f"), None))
            row_base = await base(ada, "facts", "f")
        if which == "stale base":
            await send(ada, "facts", (fact("f", value="newer"), fact("f")))
        held, before = marked(refused, row_base), await seqs(ada)
        assert await send(ada, "facts", (held, held)) == []
        assert await seqs(ada) == before
        assert "refused" not in json.dumps(await ada.pull("facts"))

    alone(tmp_path, scenario)


# --- 4: tombstones ------------------------------------------------------------------------------------------------


def test_4_a_tombstone_that_was_not_assumed_is_answered(tmp_path):
    async def scenario(ada):
        first = fact("f", createdAt=day(1))
        await send(ada, "facts", (first, None))
        await send(ada, "facts", (dead(first), first))
        tombstone, before = await stored(ada, "facts", "f"), await seqs(ada)
        for assumed in (first, None, marked(first, None), marked(first, "other:1")):
            assert await send(ada, "facts", (fact("f", value="stale"), assumed)) == [tombstone]
        assert await seqs(ada) == before

    alone(tmp_path, scenario)


def test_4_what_was_forgotten_does_not_come_back_from_a_stale_device(tmp_path):
    async def scenario(ada):
        row = fact("f", createdAt=NEW)
        await send(ada, "facts", (row, None))
        assert (
            await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
        ).status_code == 200
        answered = await send(ada, "facts", ({**row, "value": "stale"}, row))
        assert [(r["id"], r["_deleted"], r["value"]) for r in answered] == [("f", True, "")]

    alone(tmp_path, scenario)


# --- 5: the assumed state is the stored one -----------------------------------------------------------------------


def test_5_an_edit_of_the_stored_row_is_accepted(tmp_path):
    async def scenario(ada):
        row = episode("e", "s", citations=[{"documentId": "d", "filename": "d.txt", "page": 1}])
        await send(ada, "sessions", (session("s"), None))
        await send(ada, "episodes", (row, None))
        assumed = {**dict(reversed(row.items())), "citations": [dict(reversed(row["citations"][0].items()))]}
        edited = {**row, "userMessage": "why?", "updatedAt": day(3)}
        assert await send(ada, "episodes", (edited, assumed)) == []
        assert await stored(ada, "episodes", "e") == edited

    alone(tmp_path, scenario)


def test_5_an_assumed_row_may_spell_its_numbers_otherwise(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f", confidence=1), None))
        assert await send(ada, "facts", (fact("f", value="x"), fact("f", confidence=1.0))) == []

    alone(tmp_path, scenario)


def test_5_an_assumed_tombstone_comes_to_life(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        await send(ada, "facts", (dead(fact("f")), fact("f")))
        tombstone = await stored(ada, "facts", "f")
        again = fact("f", value="again")
        assert await send(ada, "facts", (again, tombstone)) == []
        assert await stored(ada, "facts", "f") == again

    alone(tmp_path, scenario)


def test_5_a_marked_row_with_the_stored_base_is_accepted_when_edited(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (session("other", externalId="x"), None), (session("s"), None))
        refused = session("s", externalId="x", title="mine")
        (held,) = await send(ada, "sessions", (refused, session("s")))
        assert codes([held]) == ["DUPLICATE"]
        edited = session("s", externalId="y", title="mine")
        assert await send(ada, "sessions", (edited, held)) == []
        assert await stored(ada, "sessions", "s") == edited

    alone(tmp_path, scenario)


def test_5_a_marked_row_without_a_stored_one_is_accepted_when_edited(tmp_path):
    async def scenario(ada):
        (held,) = await send(ada, "facts", (fact("f", confidence=2), None))
        assert await send(ada, "facts", (fact("f"), held)) == []
        assert await stored(ada, "facts", "f") == fact("f")

    alone(tmp_path, scenario)


def test_5_a_row_accepted_with_its_mark_is_answered_without_and_stored_without(tmp_path):
    async def scenario(ada):
        (held,) = await send(ada, "facts", (fact("f", confidence=2), None))
        edited = {**held, "confidence": 1}
        assert await send(ada, "facts", (edited, held)) == [fact("f")]
        assert await stored(ada, "facts", "f") == fact("f")

    alone(tmp_path, scenario)


def test_5_a_mark_upon_a_tombstone_that_is_its_base_brings_it_to_life(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (dead(fact("f")), None))
        tombstone = await stored(ada, "facts", "f")
        (held,) = await send(ada, "facts", (fact("f", confidence=2), tombstone))
        assert held["syncError"]["base"] == await base(ada, "facts", "f")
        assert await send(ada, "facts", (fact("f"), held)) == []
        assert await stored(ada, "facts", "f") == fact("f")

    alone(tmp_path, scenario)


def test_a_mark_is_ignored_in_what_is_assumed(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        assert await send(ada, "facts", (fact("f", value="x"), marked(fact("f"), "other:1"))) == []
        assert await stored(ada, "facts", "f") == fact("f", value="x")

    alone(tmp_path, scenario)


# --- 6: merge -----------------------------------------------------------------------------------------------------


async def merged(ada, collection, old, theirs, mine):
    """`theirs` arrives first, then `mine`, both made upon `old`. The row stored, which must be the one answered."""
    assert await send(ada, collection, (old, None)) == []
    assert await send(ada, collection, (theirs, old)) == []
    answered = await send(ada, collection, (mine, old))
    row = await stored(ada, collection, old["id"])
    assert answered in ([row], [] if row == mine else None)
    return row


def test_6_a_live_row_without_an_assumed_state_is_answered_and_kept(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", (fact("f"), None))
        before = await seqs(ada)
        assert await send(ada, "facts", (fact("f", value="other"), None)) == [fact("f")]
        assert await seqs(ada) == before

    alone(tmp_path, scenario)


def test_6_a_mark_with_a_stale_base_is_merged(tmp_path):
    async def scenario(ada):
        first, newer = session("s"), session("s", title="newer")
        await send(ada, "sessions", (session("o", externalId="x"), None), (first, None))
        (held,) = await send(ada, "sessions", (session("s", externalId="x"), first))
        await send(ada, "sessions", (newer, first))
        edited = {**unmarked(held), "mode": "authoritative"}
        del edited["externalId"]
        wanted = session("s", title="newer", mode="authoritative")
        assert await send(ada, "sessions", (edited, held)) == [wanted]
        assert await stored(ada, "sessions", "s") == wanted

    alone(tmp_path, scenario)


def test_6_a_mark_without_a_base_is_stale_when_a_row_is_there_now(tmp_path):
    async def scenario(ada):
        (held,) = await send(ada, "facts", (fact("f", confidence=2), None))
        there = fact("f", value="elsewhere", key="user.age")
        await send(ada, "facts", (there, None))
        row = await send(ada, "facts", (fact("f"), held))
        assert row == [await stored(ada, "facts", "f")] and row[0]["key"] == "user.age"

    alone(tmp_path, scenario)


def test_6_each_takes_the_fields_that_only_it_changed(tmp_path):
    async def scenario(ada):
        old = session("s", title="old")
        row = await merged(ada, "sessions", old, {**old, "title": "theirs"}, {**old, "mode": "authoritative"})
        assert row == session("s", title="theirs", mode="authoritative")

    alone(tmp_path, scenario)


def test_6_a_field_that_both_changed_keeps_the_stored_value(tmp_path):
    async def scenario(ada):
        old = session("s", title="old")
        row = await merged(ada, "sessions", old, {**old, "title": "theirs"}, {**old, "title": "mine"})
        assert row["title"] == "theirs"

    alone(tmp_path, scenario)


def test_6_optional_fields_that_came_or_went_are_changes_too(tmp_path):
    async def scenario(ada):
        old = session("s", externalId="x")
        theirs, mine = session("s"), session("s", externalId="x", projectId="p")
        assert await merged(ada, "sessions", old, theirs, mine) == session("s", projectId="p")

    alone(tmp_path, scenario)


def test_6_the_same_change_on_both_sides_is_accepted(tmp_path):
    async def scenario(ada):
        old = session("s")
        same = session("s", title="same")
        await merged(ada, "sessions", old, same, same)
        assert await send(ada, "sessions", (same, old)) == []

    alone(tmp_path, scenario)


def test_6_times_take_the_later(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d", updatedAt=day(1), lastAccessedAt=day(1))
        theirs = {**old, "updatedAt": day(5), "lastAccessedAt": day(2)}
        mine = {**old, "updatedAt": day(3), "lastAccessedAt": day(4), "filename": "new.txt"}
        row = await merged(ada, "documents", old, theirs, mine)
        assert (row["updatedAt"], row["lastAccessedAt"]) == (day(5), day(4))

    alone(tmp_path, scenario)


def test_6_sets_take_adds_and_removes_of_both_sides(tmp_path):
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
        ((2, "ab"), (3, "abc"), (3, "abd"), 4),
        ((2, "ab"), (3, "abc"), (3, "abc"), 3),
        ((2, "ab"), (3, "abc"), (4, "abcd"), 4),
        ((1, "a"), (3, "abc"), (3, "abc"), 3),
        ((1, "a"), (2, "b"), (2, "ac"), 3),
        ((5, "a"), (5, ""), (6, "ab"), 6),
    ],
    ids=[
        "deltas",
        "other borrows",
        "the same borrow",
        "one shared",
        "two shared",
        "borrow and return",
        "return",
    ],
)
def test_6_counts_add_both_deltas_less_the_borrows_they_share(tmp_path, old, theirs, mine, wanted):
    async def scenario(ada):
        def row(count, sessions, **more):
            return document(ada.id, "d", accessCount=count, activeSessions=list(sessions), **more)

        # a name of its own keeps `mine` from being equal to what is stored
        stored_row = await merged(ada, "documents", row(*old), row(*theirs), row(*mine, filename="mine.txt"))
        assert stored_row["accessCount"] == wanted

    alone(tmp_path, scenario)


def test_6_a_merge_pushed_again_after_a_lost_answer_counts_nothing_twice(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d")
        theirs = {**old, "activeSessions": ["t"], "accessCount": 1}
        mine = {**old, "activeSessions": ["m"], "accessCount": 1}
        once = await merged(ada, "documents", old, theirs, mine)
        assert (sorted(once["activeSessions"]), once["accessCount"]) == (["m", "t"], 2)
        for _ in range(3):
            assert await send(ada, "documents", (mine, old)) == [once]
        assert await stored(ada, "documents", "d") == once

    alone(tmp_path, scenario)


def test_6_a_facts_value_and_its_standing_are_one(tmp_path):
    async def scenario(ada):
        old = fact("f", value="Ada", confirmed=False, confidence=0.5)
        theirs = {**old, "value": "Grace", "confidence": 0.9}
        row = await merged(ada, "facts", old, theirs, {**old, "confirmed": True, "key": "user.nick"})
        assert row == {**theirs, "key": "user.nick"}

    alone(tmp_path, scenario)


def test_6_an_answer_and_what_belongs_to_it_are_one(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (session("s"), None))
        old = episode("e", "s", aiResponse="", status="streaming")
        theirs = {**old, "status": "stopped"}
        cited = [{"documentId": "d", "filename": "d.txt"}]
        mine = {**old, "aiResponse": "all", "citations": cited, "model": "m", "userMessage": "edited"}
        assert await merged(ada, "episodes", old, theirs, mine) == {**theirs, "userMessage": "edited"}

    alone(tmp_path, scenario)


def test_6_a_documents_text_and_its_figures_are_one(tmp_path):
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
        assert await merged(ada, "documents", old, theirs, mine) == {**theirs, "filename": "n.txt"}

    alone(tmp_path, scenario)


def test_6_a_group_that_only_one_side_changed_is_taken_whole(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d", status="failed", statusDetail="why", pageCount=2)
        mine = {**document(ada.id, "d", contentHash="1" * 64, size=20), "status": "ready"}
        row = await merged(ada, "documents", old, {**old, "filename": "n.txt"}, mine)
        assert row == {**mine, "filename": "n.txt"}

    alone(tmp_path, scenario)


def test_6_blocks_never_merge(tmp_path):
    async def scenario(ada):
        await send(ada, "documents", (document(ada.id, "d"), None))
        old = block("d", model="a")
        theirs = {**old, "model": "b"}
        mine = block("d", text="other words", model="a")
        assert await merged(ada, "vectorEmbeddings", old, theirs, mine) == theirs

    alone(tmp_path, scenario)


def test_6_a_merge_takes_one_seq_and_reaches_the_others(tmp_path):
    async def scenario(ada):
        old = session("s")
        await send(ada, "sessions", (old, None))
        await send(ada, "sessions", ({**old, "title": "theirs"}, old))
        lwt = (await seqs(ada))["sessions/s"]
        await send(ada, "sessions", ({**old, "mode": "authoritative"}, old))
        got = await page(ada, "sessions", lwt)
        assert len(got["documents"]) == 1 and got["checkpoint"]["lwt"] > lwt

    alone(tmp_path, scenario)


def test_6_the_result_of_a_merge_must_fit_and_pass_too(tmp_path):
    """A merge that would break a rule is a refusal, and nothing is stored."""

    async def scenario(ada):
        old = session("s")
        await send(ada, "sessions", (session("o", externalId="x"), None), (old, None))
        theirs = {**old, "title": "theirs"}
        await send(ada, "sessions", (theirs, old))
        mine = {**old, "externalId": "x"}
        answered = await send(ada, "sessions", (mine, old))
        assert codes(answered) == ["DUPLICATE"] and unmarked(answered[0]) == mine
        assert await stored(ada, "sessions", "s") == theirs

    alone(tmp_path, scenario)


# --- 7: rows that are new here ------------------------------------------------------------------------------------


def test_7_a_new_row_is_accepted_even_if_something_was_assumed(tmp_path):
    async def scenario(ada):
        assert await send(ada, "facts", (fact("f", value="new"), fact("f"))) == []
        assert await stored(ada, "facts", "f") == fact("f", value="new")

    alone(tmp_path, scenario)


def test_7_what_was_made_before_a_forget_everything_is_refused(tmp_path):
    async def scenario(ada):
        assert (
            await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
        ).status_code == 200
        answered = await send(
            ada,
            "facts",
            (fact("old"), None),
            (fact("assumed"), fact("assumed")),
            (fact("new", createdAt=NEW), None),
        )
        assert [unmarked(row) for row in answered] == [fact("old"), fact("assumed")]
        assert codes(answered) == ["FORGOTTEN"] * 2 and "base" not in answered[0]["syncError"]
        assert set(await ada.live("facts")) == {"new"}

    alone(tmp_path, scenario)


CHILDREN = [
    ("documents", "vectorEmbeddings", block("x")),
    ("sessions", "episodes", episode("e", "x")),
    ("sessions", "summaries", summary("u", sessionId="x")),
    ("projects", "summaries", summary("u", projectId="x")),
    ("projects", "memories", memory("m", projectId="x")),
    ("projects", "entities", entity("n", "x", name="Nora")),
    ("entities", "relationships", relationship("r", "x", "y")),
    ("entities", "relationships", relationship("r", "y", "x")),
]


def parent_row(ada, collection, row_id="x"):
    if collection == "entities":
        return entity(row_id, "pp")
    makers = {"sessions": session, "projects": project, "documents": lambda i: document(ada.id, i)}
    return makers[collection](row_id)


async def put_grandparents(ada, collection):
    """What the parent and its child need besides: a project for entities, and the other end of an edge."""
    if collection == "entities":
        await send(ada, "projects", (project("pp"), None))
        await send(ada, "entities", (entity("y", "pp"), None))


@pytest.mark.parametrize(("parents", "children", "child"), CHILDREN)
def test_7_a_row_whose_parent_is_dead_is_answered_by_a_tombstone(tmp_path, parents, children, child):
    async def scenario(ada):
        await put_grandparents(ada, parents)
        await send(ada, parents, (dead(parent_row(ada, parents)), None))
        answered = await send(ada, children, (child, None))
        assert [(row["id"], row["_deleted"]) for row in answered] == [(child["id"], True)]
        assert "syncError" not in answered[0] and await ada.live(children) in ({}, {"y": entity("y", "pp")})
        text = next(
            child[k] for k in ("userMessage", "content", "text", "label", "chunks", "name") if k in child
        )
        assert text not in answered[0].values()

    alone(tmp_path, scenario)


@pytest.mark.parametrize(("parents", "children", "child"), CHILDREN)
def test_7_a_row_waits_for_its_parent_and_appears_after_it(tmp_path, parents, children, child):
    async def scenario(ada):
        await put_grandparents(ada, parents)
        before = await seqs(ada)
        assert await send(ada, children, (child, None)) == []
        assert await seqs(ada) == before and await stored(ada, children, child["id"]) is None
        assert await send(ada, parents, (parent_row(ada, parents), None)) == []
        assert await stored(ada, children, child["id"]) == child
        after = await seqs(ada)
        assert after[f"{parents}/x"] < after[f"{children}/{child['id']}"]

    alone(tmp_path, scenario)


@pytest.mark.parametrize(("parents", "children", "child"), CHILDREN)
def test_7_a_waiting_row_dies_blank_when_its_parents_tombstone_arrives(tmp_path, parents, children, child):
    async def scenario(ada):
        await put_grandparents(ada, parents)
        await send(ada, children, (child, None))
        assert await send(ada, parents, (dead(parent_row(ada, parents)), None)) == []
        assert child["id"] not in await ada.live(children)
        answered = await send(ada, children, (child, None))
        assert [(row["id"], row["_deleted"]) for row in answered] == [(child["id"], True)]

    alone(tmp_path, scenario)


def test_7_an_edge_waits_for_both_its_ends_and_a_chain_appears_at_once(tmp_path):
    async def scenario(ada):
        await send(ada, "relationships", (relationship("r", "a", "b"), None))
        await send(ada, "entities", (entity("a", "p"), None), (entity("b", "q"), None))
        assert await ada.pull("relationships") == await ada.pull("entities") == []
        await send(ada, "projects", (project("p"), None))
        assert list(await ada.live("entities")) == ["a"] and await ada.pull("relationships") == []
        await send(ada, "projects", (project("q"), None))
        assert await ada.live("relationships") == {"r": relationship("r", "a", "b")}

    alone(tmp_path, scenario)


def test_7_a_waiting_row_can_be_repeated_edited_and_deleted(tmp_path):
    async def scenario(ada):
        first, second = episode("e", "s"), episode("e", "s", userMessage="edited")
        for pair in ((first, None), (first, None), (second, first)):
            assert await send(ada, "episodes", pair) == []
        assert await ada.pull("episodes") == []
        await send(ada, "episodes", (episode("gone", "s"), None))
        assert await send(ada, "episodes", (dead(episode("gone", "s")), episode("gone", "s"))) == []
        await send(ada, "sessions", (session("s"), None))
        assert await ada.live("episodes") == {"e": second}

    alone(tmp_path, scenario)


def test_7_a_waiting_row_edited_by_two_devices_is_merged(tmp_path):
    async def scenario(ada):
        old = episode("e", "s")
        row = [{**old, "userMessage": "edited"}, {**old, "aiResponse": "rewritten"}]
        for pair in ((old, None), (row[0], old), (row[1], old)):
            await send(ada, "episodes", pair)
        await send(ada, "sessions", (session("s"), None))
        assert await stored(ada, "episodes", "e") == {**row[0], "aiResponse": "rewritten"}

    alone(tmp_path, scenario)


def test_7_waiting_rows_are_counted_and_freed(tmp_path):
    from vademecum.model.limits import Limits

    async def scenario(ada):
        text = "x" * 3000
        assert await send(ada, "episodes", (episode("a", "s", userMessage=text), None)) == []
        refused = await send(ada, "episodes", (episode("b", "s", userMessage=text), None))
        assert codes(refused) == ["STORAGE_LIMIT"]
        assert await send(ada, "sessions", (dead(session("s")), None)) == []
        assert await send(ada, "facts", (fact("f", value=text), None)) == []

    alone(tmp_path, scenario, tiers={"JIGGA": Limits(storage_bytes=5000)})


def test_7_forget_everything_erases_waiting_rows(tmp_path):
    async def scenario(ada):
        waiting = episode("e", "s", createdAt=NEW)
        await send(ada, "episodes", (waiting, None))
        assert (
            await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
        ).status_code == 200
        await send(ada, "sessions", (session("s", createdAt=NEW), None))
        assert await ada.live("episodes") == {}

    alone(tmp_path, scenario)


def test_a_waiting_row_is_not_found_by_search(tmp_path):
    async def scenario(ada):
        await send(
            ada, "vectorEmbeddings", (block("d", text="a zebra crossed", embedding=None, dims=0), None)
        )
        assert (await ada.search("zebra"))["results"] == []
        row = document(ada.id, "d", activeSessions=["s1"], originSessionId="s1")
        await send(ada, "documents", (row, None))
        assert [hit["documentId"] for hit in (await ada.search("zebra"))["results"]] == ["d"]

    alone(tmp_path, scenario)


# --- healing ------------------------------------------------------------------------------------------------------


def test_references_to_dead_rows_leave_what_is_accepted_and_the_healed_row_is_answered(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (dead(session("gone")), None), (session("here"), None))
        row = document(ada.id, "d", activeSessions=["gone", "here", "unknown"], originSessionId="gone")
        healed = {**row, "activeSessions": ["here", "unknown"]}
        assert await send(ada, "documents", (row, None)) == [healed]
        assert await stored(ada, "documents", "d") == healed

    alone(tmp_path, scenario)


def test_every_kind_of_reference_is_healed(tmp_path):
    async def scenario(ada):
        await send(ada, "sessions", (dead(session("s")), None))
        await send(ada, "projects", (dead(project("p")), None))
        await send(ada, "documents", (dead(document(ada.id, "d")), None))
        await send(ada, "memories", (dead(memory("m")), None))
        for collection, sent, healed in [
            ("sessions", session("s2", projectId="p"), session("s2")),
            ("facts", fact("f", sourceDocumentId="d"), fact("f", sourceDocumentId="d", sourceRemoved=True)),
            ("memories", memory("m2", sessionIds=["s", "t"], supersedes="m"), memory("m2", sessionIds=["t"])),
            ("memories", memory("m3", supersededBy="m"), memory("m3")),
        ]:
            assert await send(ada, collection, (sent, None)) == [healed]
            assert await stored(ada, collection, sent["id"]) == healed
            assert await send(ada, collection, (sent, None)) == [healed], "a repeat heals to the same"

    alone(tmp_path, scenario)


def test_an_edit_and_a_merge_are_healed_too(tmp_path):
    async def scenario(ada):
        old = document(ada.id, "d")
        await send(ada, "documents", (old, None))
        await send(ada, "sessions", (dead(session("gone")), None))
        edited = {**old, "activeSessions": ["gone", "s"], "accessCount": 2}
        (first,) = await send(ada, "documents", (edited, old))
        assert first["activeSessions"] == ["s"]
        (second,) = await send(ada, "documents", ({**old, "activeSessions": ["gone", "t"]}, old))
        assert (
            second["activeSessions"] == ["s", "t"] == (await stored(ada, "documents", "d"))["activeSessions"]
        )

    alone(tmp_path, scenario)


def test_rows_that_waited_are_healed_when_they_appear(tmp_path):
    async def scenario(ada):
        await send(ada, "memories", (memory("m", projectId="p", sessionIds=["s", "t"]), None))
        await send(ada, "sessions", (dead(session("s")), None))
        await send(ada, "projects", (project("p"), None))
        assert (await ada.live("memories"))["m"]["sessionIds"] == ["t"]

    alone(tmp_path, scenario)


# --- numbers and texts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["1", "1.0", "1e-2", "0.1", "0", "0.0", "1E0", "0.30000000000000004"])
def test_a_number_comes_back_as_it_was_sent(tmp_path, number):
    async def scenario(ada):
        row = json.dumps(fact("f", confidence="N")).replace('"N"', number)
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=f'[{{"newDocumentState": {row}}}]')
        assert answer.text == "[]"
        text = (await ada.call("GET", "/v1/sync/facts/0/pull")).text
        assert re.search(r'"confidence":\s*([^,}\s]+)', text)[1] == number

    alone(tmp_path, scenario)


@pytest.mark.parametrize("text", [r"\u00e9", r"\ud83d\ude00", r"\/", r"\n\t\b", "é😀", r"é"])
def test_a_text_comes_back_with_the_same_meaning(tmp_path, text):
    async def scenario(ada):
        row = json.dumps(fact("f", value="TEXT")).replace("TEXT", text)
        body = f'[{{"newDocumentState": {row}}}]'.encode()
        assert (await ada.call("POST", "/v1/sync/facts/0/push", content=body)).text == "[]"
        assert await stored(ada, "facts", "f") == json.loads(row)
        assumed = f'[{{"newDocumentState": {row.replace("user.name", "k")}, "assumedMasterState": {row}}}]'
        assert (await ada.call("POST", "/v1/sync/facts/0/push", content=assumed.encode())).text == "[]"

    alone(tmp_path, scenario)


def test_each_collection_gives_back_what_was_sent(tmp_path):
    async def scenario(ada):
        rows = {
            "documents": document(ada.id, "d", pageCount=1, statusDetail="fine", activeSessions=["s"]),
            "vectorEmbeddings": block("d"),
            "projects": project("p", description="of it"),
            "sessions": session("s", projectId="p", externalId="e"),
            "episodes": episode(
                "e", "s", model="m", citations=[{"documentId": "d", "filename": "f", "page": 2}]
            ),
            "facts": fact("f", sourceDocumentId="d"),
            "memories": memory("m", projectId="p", sessionIds=["s"], supersedes="m0"),
            "entities": entity("n", "p", notes="note"),
            "relationships": relationship("r", "n", "n"),
            "summaries": summary("u", sessionId="s", projectId="p"),
        }
        assert tuple(rows) == COLLECTIONS
        for collection, row in rows.items():
            assert await send(ada, collection, (row, None)) == []
        for collection, row in rows.items():
            assert await ada.pull(collection) == [row]

    alone(tmp_path, scenario)


# --- pull ---------------------------------------------------------------------------------------------------------


def test_pull_is_in_the_order_of_seq_with_the_latest_state_and_tombstones(tmp_path):
    async def scenario(ada):
        await send(ada, "facts", *((fact(i), None) for i in "cab"))
        await send(ada, "facts", (fact("c", value="edited"), fact("c")))
        await send(ada, "facts", (dead(fact("a")), fact("a")))
        got = await page(ada, "facts")
        assert [(r["id"], r["_deleted"]) for r in got["documents"]] == [
            ("b", False),
            ("c", False),
            ("a", True),
        ]
        found = await seqs(ada, "facts")
        assert list(found.values()) == sorted(set(found.values()))
        assert got["checkpoint"] == {"lwt": found["facts/a"], "id": await epoch(ada)}

    alone(tmp_path, scenario)


def test_one_seq_counts_over_all_collections(tmp_path):
    async def scenario(ada):
        for number in range(3):
            await send(ada, "facts", (fact(f"f{number}"), None))
            await send(ada, "projects", (project(f"p{number}"), None))
        found = await seqs(ada)
        order = sorted(found, key=found.__getitem__)
        assert order == [f"{c}{n}" for n in range(3) for c in ("facts/f", "projects/p")]

    alone(tmp_path, scenario)


def test_pages_tile_the_rows_and_only_the_last_is_short(tmp_path):
    async def scenario(ada):
        for number in range(10):  # rows of others in between: the filter comes before the limit
            await send(ada, "facts", (fact(f"f{number}"), None))
            await send(ada, "projects", (project(f"p{number}"), None))
        checkpoint, lengths, ids = {"lwt": 0, "id": ""}, [], []
        while not lengths or lengths[-1] == 3:
            got = await page(ada, "facts", checkpoint["lwt"], checkpoint["id"], 3)
            checkpoint = got["checkpoint"]
            lengths.append(len(got["documents"]))
            ids += [row["id"] for row in got["documents"]]
        assert lengths == [3, 3, 3, 1] and ids == [f"f{n}" for n in range(10)]
        empty = await page(ada, "facts", checkpoint["lwt"], checkpoint["id"], 3)
        assert empty == {"documents": [], "checkpoint": checkpoint}

    alone(tmp_path, scenario)


def test_an_empty_page_echoes_the_checkpoint_and_names_the_epoch(tmp_path):
    async def scenario(ada):
        got = await page(ada, "facts", 17)
        assert got["documents"] == [] and got["checkpoint"]["lwt"] == 17
        assert re.fullmatch(r"[A-Za-z0-9._~-]+", got["checkpoint"]["id"])

    alone(tmp_path, scenario)


def test_the_epoch_and_the_checkpoint_outlive_a_restart(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            await send(ada, "facts", (fact("f"), None))
            before = await page(ada, "facts")
        async with house(tmp_path) as h:
            again = (await h.person()).client
            again.headers.update(ada.client.headers)
            ada.client = again
            assert await page(ada, "facts") == before
            await send(ada, "facts", (fact("g"), None))
            found = await seqs(ada, "facts")
            assert found["facts/g"] > found["facts/f"]

    run(scenario)


def is_problem(answer, status, code):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].split(";")[0] == "application/problem+json"
    body = answer.json()
    assert (
        isinstance(body, dict) and body["error"] is True and body["code"] == code and body["status"] == status
    )
    return True


@pytest.mark.parametrize("limit", ["0", "1001", "abc", "-1", "1.5", ""])
def test_a_limit_out_of_its_bounds_is_a_400(tmp_path, limit):
    async def scenario(ada):
        assert is_problem(await ada.call("GET", f"/v1/sync/facts/0/pull?limit={limit}"), 400, "BAD_REQUEST")

    alone(tmp_path, scenario)


@pytest.mark.parametrize("limit", [1, 1000])
def test_a_limit_at_its_bounds_is_answered(tmp_path, limit):
    async def scenario(ada):
        assert (await ada.call("GET", f"/v1/sync/facts/0/pull?limit={limit}")).status_code == 200

    alone(tmp_path, scenario)


def test_another_epoch_is_a_409_for_pull_and_push_and_changes_nothing(tmp_path):
    async def scenario(ada):
        body = [{"newDocumentState": fact("f")}]
        assert is_problem(await ada.call("GET", "/v1/sync/facts/0/pull?lwt=1&id=other"), 409, "EPOCH")
        answer = await ada.call("POST", "/v1/sync/facts/0/push?epoch=other", json=body)
        assert is_problem(answer, 409, "EPOCH") and await ada.pull("facts") == []
        answer = await ada.call("POST", f"/v1/sync/facts/0/push?epoch={await epoch(ada)}", json=body)
        assert answer.json() == [] and len(await ada.pull("facts")) == 1

    alone(tmp_path, scenario)


@pytest.mark.parametrize("verb", ["pull", "push", "pullStream"])
def test_a_newer_schema_waits_and_an_older_one_must_update(tmp_path, verb, monkeypatch):
    from dataclasses import replace

    from vademecum import app
    from vademecum.model.collections import COLLECTIONS as SERVED
    from vademecum.model.collections import Registry

    registry = Registry([replace(c, version=1) if c.name == "facts" else c for c in SERVED])
    monkeypatch.setattr(app, "Registry", lambda: registry)

    async def scenario(ada):
        method = "POST" if verb == "push" else "GET"
        more = {"json": []} if verb == "push" else {}
        newer = await ada.call(method, f"/v1/sync/facts/2/{verb}", **more)
        assert is_problem(newer, 503, "TOO_NEW") and int(newer.headers["Retry-After"]) > 0
        assert is_problem(await ada.call(method, f"/v1/sync/facts/0/{verb}", **more), 426, "OUTDATED")

    alone(tmp_path, scenario)


def test_every_error_is_a_problem_object(tmp_path):
    async def scenario(ada):
        for method, path, status, code in [
            ("GET", "/v1/sync/nothing/0/pull", 404, "NOT_FOUND"),
            ("GET", "/v1/sync/facts/x/pull", 404, "NOT_FOUND"),
            ("GET", "/v1/nowhere", 404, "NOT_FOUND"),
            ("PUT", "/v1/sync/facts/0/push", 405, "METHOD_NOT_ALLOWED"),
            ("POST", "/v1/sync/facts/0/push", 400, "BAD_REQUEST"),
            ("GET", "/v1/sync/facts/0/pull?lwt=x", 400, "BAD_REQUEST"),
        ]:
            assert is_problem(await ada.call(method, path), status, code)
        ada.client.headers["Authorization"] = "Bearer nobody"
        for method, path in [("GET", "/v1/sync/facts/0/pull"), ("POST", "/v1/sync/facts/0/push")]:
            assert is_problem(await ada.call(method, path), 401, "SIGNED_OUT")

    alone(tmp_path, scenario)


def test_a_body_above_32_mib_is_a_413_and_one_below_is_read(tmp_path):
    async def scenario(ada):
        body = b"[" + b" " * (32 * 2**20) + b"]"
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=body)
        assert is_problem(answer, 413, "TOO_LARGE")
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=b"[" + b" " * (31 * 2**20) + b"]")
        assert answer.json() == []

    alone(tmp_path, scenario)


def test_a_refusal_never_blocks_the_rows_after_it(tmp_path):
    async def scenario(ada):
        pairs = [(fact(f"f{n}", confidence=2 if n % 2 else 1), None) for n in range(40)]
        answered = await send(ada, "facts", *pairs)
        assert [row["id"] for row in answered] == [f"f{n}" for n in range(1, 40, 2)]
        assert len(await ada.live("facts")) == 20

    alone(tmp_path, scenario)


def test_ids_are_what_the_design_allows(tmp_path):
    async def scenario(ada):
        good = ["a", "A-9._~z", "x" * 100]
        assert await send(ada, "facts", *((fact(i), None) for i in good)) == []
        for bad in ("", "x" * 101, "a b", "é", "a/b", "a\n"):
            assert codes(await send(ada, "facts", (fact(bad), None))) == ["INVALID"]
        assert {r["createdAt"] for r in await ada.pull("facts")} == {OLD}

    alone(tmp_path, scenario)

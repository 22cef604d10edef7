"""The export contains all data of an account in open formats, but no deleted data."""

import asyncio
import io
import json
import zipfile

import httpx
import msgspec
import pytest

from folder_listing import files_below
from property.rows import (
    block,
    entity,
    episode,
    fact,
    memory,
    project,
    relationship,
    session,
    summary,
    sync_path,
)
from server.agents.agent_events import event
from server.agents.test_spool import email_of, spool_events
from server.data.export_reader import exported, lines_of, rows_of, texts_of, waiting_of
from server.in_process_server import run, serve
from vademecum.errors import OtherEpoch
from vademecum.model.sync.quotas import Limits
from vademecum.services.data.export import Export
from vademecum.services.sync import batches
from vademecum.services.sync.stale_restore import begin_epoch


class Pulled(msgspec.Struct):
    documents: list[msgspec.Raw]


PROSE = "The lease ends on the thirty-first of March.\n\nThe tenant gives notice three months before."


async def pulled(person, collection):
    """Return the live rows with the exact JSON text of the pull response."""
    answer = await person.call("GET", f"{sync_path(collection)}/pull?limit=1000")
    rows = msgspec.json.decode(answer.content, type=Pulled).documents
    assert len(rows) < 1000, "the test reads only one page of rows"
    texts = [bytes(row).decode() for row in rows]
    return [text for text in texts if not json.loads(text)["_deleted"]]


async def push_text(person, collection, texts):
    """Push rows as literal JSON text. Return the rejected rows."""
    body = "[" + ",".join(f'{{"newDocumentState":{text}}}' for text in texts) + "]"
    answer = await person.call("POST", f"{sync_path(collection)}/push", content=body.encode())
    assert answer.status_code == 200, answer.text
    return answer.json()


UNUSUAL = (
    '{"updatedAt":"2020-05-01T00:00:00.000Z" , "id":"odd","confidence":1.0,"confirmed":true,'
    '"value":"tab\\t, \\u00e9 and \\/ as escapes, é as itself","key":"user.name","sourceRemoved":false,'
    '"createdAt":"2020-05-01T00:00:00.000Z","_deleted":false}'
)


async def fill(person):
    """Store a row of each collection, and upload a file."""
    await person.push("projects", project("p", name="Garden"))
    await person.push("sessions", session("s1", projectId="p", title="naïve – „quoted“ 😀"))
    await person.push("episodes", episode("e", "s1", aiResponse="line one\nline two\u2028three"))
    await person.push("facts", fact("f", value="ten\nthousand", confidence=0.5))
    await person.push("memories", memory("m", projectId="p", sessionIds=["s1"]))
    await person.push("entities", entity("n1", "p"), entity("n2", "p"))
    await person.push("relationships", relationship("r", "n1", "n2"))
    await person.push("summaries", summary("u", sessionId="s1"))
    return (await person.upload("lease.txt", PROSE, "s1")).json()["document"]


def test_export_is_parseable_and_contains_all_pulled_rows(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person("FREE")  # the lowest tier, because the export is available on every tier
            await fill(ada)
            await h.drain_jobs(ada)
            files = await exported(ada)
            for collection in h.services.registry.synced:
                live = await ada.live(collection)
                assert live, f"the test has no row of {collection}"
                assert rows_of(files, collection) == live
            account = json.loads(files["account.json"])
            me = (await ada.call("GET", "/v1/me")).json()
            assert {k: account[k] for k in ("userId", "email", "tier")} == {
                k: me[k] for k in ("userId", "email", "tier")
            }
            assert texts_of(files) == [PROSE]
            everything = "".join(files.values())
            stored = h.services.accounts.tokens_of(ada.id)
            assert not any(token.hash in everything for token in stored), (
                "the export must not contain hashes of secrets"
            )

    run(scenario)


def test_export_includes_rows_waiting_for_their_parent(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            early = {"vectorEmbeddings": block("later"), "episodes": episode("e1", "later")}
            for collection, row in early.items():
                assert await ada.push(collection, row) == []
            await ada.push("episodes", episode("e2", "later"), {**episode("e2", "later"), "_deleted": True})
            files = await exported(ada)
            assert {w["collection"]: w["row"] for w in waiting_of(files)} == early
            assert len(waiting_of(files)) == 2 and texts_of(files) == []
            assert rows_of(files, "episodes") == rows_of(files, "vectorEmbeddings") == {}
            await ada.push("sessions", session("later"))
            files = await exported(ada)
            assert [w["collection"] for w in waiting_of(files)] == ["vectorEmbeddings"]
            assert rows_of(files, "episodes") == {"e1": early["episodes"]}
            await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
            assert waiting_of(await exported(ada)) == []

    run(scenario)


def test_exported_rows_have_the_same_bytes_as_pulled_rows(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await fill(ada)
            await h.drain_jobs(ada)
            assert await push_text(ada, "facts", [UNUSUAL]) == []
            files = await exported(ada)
            assert UNUSUAL in lines_of(files, "facts")
            for collection in h.services.registry.synced:
                assert lines_of(files, collection) == await pulled(ada, collection) != [], collection

    run(scenario)


def test_export_writes_multiline_row_as_one_line(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            rows = [fact("f1", value="one\r\ntwo"), fact("f2")]
            texts = [json.dumps(row, indent=2) for row in rows]
            assert await push_text(ada, "facts", [texts[0].replace("\n", "\r\n"), texts[1]]) == []
            assert [json.loads(line) for line in lines_of(await exported(ada), "facts")] == rows

    run(scenario)


def test_export_can_be_imported_again_without_loss(tmp_path):
    async def scenario():
        async with serve(tmp_path / "one") as h:
            ada = await h.person()
            await fill(ada)
            await h.drain_jobs(ada)
            assert await push_text(ada, "facts", [UNUSUAL]) == []
            await ada.push("episodes", episode("early", "later"))
            files = await exported(ada)
            before = {name: await pulled(ada, name) for name in h.services.registry.synced}
        async with serve(tmp_path / "two") as h:
            ada = await h.person(account_id=ada.id)
            # Children first, because an import must not depend on the order of collections.
            for collection in reversed(list(h.services.registry.synced)):
                assert await push_text(ada, collection, lines_of(files, collection)) == []
            for early in waiting_of(files):
                assert await ada.push(early["collection"], early["row"]) == []
            await h.drain_jobs(ada)
            for collection in h.services.registry.synced:
                assert sorted(await pulled(ada, collection)) == sorted(before[collection]), collection
            again = await exported(ada)
            assert again["waiting.jsonl"] == files["waiting.jsonl"] != ""
            assert texts_of(again) == texts_of(files) == [PROSE]

    run(scenario)


def test_export_lists_concurrently_edited_row_once(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 20)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            rows = [fact(f"f{n}") for n in range(600)]
            assert await ada.push("facts", *rows) == []
            over = False

            async def edit():
                count, row = 0, rows[0]
                while not over:
                    count += 1
                    newer = {**row, "value": f"Ada {count}"}
                    assert await ada.push("facts", newer, assumed=row) == []
                    row = newer
                return count

            editing = asyncio.create_task(edit())
            files = await exported(ada)
            over = True
            assert await editing > 1, "the test needs several edits during the export"
            ids = [json.loads(line)["id"] for line in lines_of(files, "facts")]
            assert sorted(ids) == sorted(row["id"] for row in rows)

    run(scenario)


def test_export_omits_deleted_rows(tmp_path):
    async def scenario():
        async with serve(tmp_path, erase_delay_s=60) as h:
            ada = await h.person()
            kept = await fill(ada)
            gone = (await ada.upload("xylophone.txt", "The xylophone of Bartholomew.")).json()["document"]
            await ada.push("facts", fact("f2", value="Bartholomew"))
            assert "Bartholomew" in "".join((await exported(ada)).values())
            await ada.call("DELETE", f"/v1/documents/{gone['id']}")
            await ada.push("facts", {**fact("f2", value="Bartholomew"), "_deleted": True})
            await ada.call("DELETE", "/v1/sessions/s1")
            files = await exported(ada)
            everything = "".join([*files, *files.values()])
            for word in ("xylophone", "Bartholomew", "line two", "quoted"):
                assert word not in everything
            assert set(rows_of(files, "documents")) == {kept["id"]} and set(rows_of(files, "facts")) == {"f"}
            await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
            files = await exported(ada)
            assert texts_of(files) == []
            assert all(rows_of(files, collection) == {} for collection in h.services.registry.synced)

    run(scenario)


def test_export_includes_all_rows_across_pages(tmp_path):
    """The live rows and the tombstones between them fill more than one page of a read."""

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            for first in range(0, 1200, 300):
                assert await ada.push("facts", *(fact(f"f{n}") for n in range(first, first + 300))) == []
            dead = [{**fact(f"f{n}"), "_deleted": True} for n in range(0, 1200, 7)]
            assert await ada.push("facts", *dead) == []
            rows = rows_of(await exported(ada), "facts")
            assert rows == await ada.live("facts") and len(rows) == 1200 - len(dead)

    run(scenario)


def test_export_leaves_no_files_on_the_server(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await fill(ada)
            await h.drain_jobs(ada)
            before = set(files_below(tmp_path))
            assert before, "the test lists the wrong folder"
            await exported(ada)
            assert set(files_below(tmp_path)) <= before

    run(scenario)


def test_export_contains_only_data_of_its_account(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person(), await h.person()
            await fill(ada)
            files = await exported(bob)
            assert texts_of(files) == [] and ada.id not in "".join(files.values())
            transport = httpx.ASGITransport(h.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as nobody:
                answer = await nobody.get("/v1/export")
            assert (answer.status_code, answer.json()["code"]) == (401, "SIGNED_OUT")

    run(scenario)


def test_export_contains_observations_and_waiting_hook_events(tmp_path):
    async def scenario():
        async with serve(tmp_path, tiers={"FREE": Limits(storage_bytes=1)}) as h:
            ada, ben = await h.person("FREE"), await h.person("FREE")
            hers, odd = event("hers\nwaits"), event(kind="dance")
            folder = spool_events(h, email_of(h, ada), hers, odd)
            spool_events(h, email_of(h, ben), event("his waits"))
            (folder / "half.json").write_bytes(b'{"v":1, "content": "h\xffalf"')
            (folder / "link.json").symlink_to("/etc/passwd")
            await h.services.spool.ingest_all()
            files = await exported(ada)
            lines = [json.loads(line) for line in files["agent-events.jsonl"].splitlines()]
            assert [line for line in lines if "event" in line] == [
                {"file": f"spool/{folder.name}/{hers['id']}.json", "event": hers},
                {"file": f"rejected/{folder.name}/{odd['id']}.json", "event": odd},
            ]
            assert [line["text"] for line in lines if "text" in line] == ['{"v":1, "content": "h\ufffdalf"']
            assert "agent-events.jsonl" in files["README.txt"] and "his waits" not in str(files)

    run(scenario)


def test_export_holds_no_file_while_client_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 2)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.push("facts", *(fact(f"f{number}") for number in range(9)))
            await h.drain_jobs(ada)
            stream = Export(h.services.users, ada.id, {}, ["facts"], None, None).stream()
            pieces = [await anext(stream) for _ in range(4)]
            before = set(files_below(tmp_path))
            async with asyncio.timeout(20), h.services.users.detached(ada.id):
                pass
            pieces += [piece async for piece in stream]
            assert not set(files_below(tmp_path)) - before, "the export must not write files"
            with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
                assert len(archive.read("facts.jsonl").splitlines()) == 9

    run(scenario)


def test_restore_aborts_a_running_export(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 2)

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.push("facts", *(fact(f"f{number}") for number in range(9)))
            stream = Export(h.services.users, ada.id, {}, ["facts"], None, None).stream()
            for _ in range(4):
                await anext(stream)
            async with h.services.users.open(ada.id) as store:
                await store.write(begin_epoch)
            with pytest.raises(OtherEpoch):
                async for _ in stream:
                    pass

    run(scenario)

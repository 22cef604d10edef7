"""Text that an edit has overwritten is erased from disk too, but later than deleted rows and at most once a day."""

import asyncio
import json

from property.rows import fact, session
from server.data.test_erase import OTHER, SECRET, needles
from server.in_process_server import T, run, serve
from vademecum.model.sync.quotas import Limits
from vademecum.services.data.erase import scan
from vademecum.services.sync.push import push
from vademecum.services.sync.push_decoding import decode_batch
from wait_until import soon

ASKED = "What did Bartholomew bury beneath the third oak tree?"
TOLD = "A xylophone of rosewood, said the old gardener quietly."
VALUE = "Bartholomew Quillfeather the Younger"
FILENAME = "xylophone-of-bartholomew.txt"
NEW = "Roses bloom along the southern garden wall in June."


def episode(row_id, **more):
    return {"id": row_id, "createdAt": T, "updatedAt": T, "_deleted": False, "sessionId": "s1", "citations": [],
            "status": "done", "userMessage": ASKED, "aiResponse": TOLD, **more}  # fmt: skip


async def edit(person, collection, row, **changes):
    (stored,) = [r for r in await person.pull(collection) if r["id"] == row["id"]]
    assert await person.push(collection, {**stored, **changes}, assumed=stored) == []


async def wait_for_erasure(h, person):
    """Wait until the scheduled erasure has run, without starting it."""
    await soon(lambda: not h.services.background_jobs.jobs["erase"].is_pending(person.id))


def record_erasures(h):
    """Return a list to which each later erasure appends its account's id."""
    served = []
    job = h.services.background_jobs.jobs["erase"]
    work = job._work
    job._work = lambda user_id: (served.append(user_id), work(user_id))[1]
    return served


def test_edits_schedule_erasure_of_old_text_from_disk(tmp_path):
    async def scenario():
        async with serve(tmp_path, model=True, erase_delay_s=600, edited_text_erase_delay_s=600) as h:
            ada = await h.person()
            document = (await ada.upload(FILENAME, SECRET)).json()["document"]
            await ada.push("sessions", session("s1"))
            await ada.push("episodes", episode("e1"), episode("e2", userMessage=OTHER, aiResponse=OTHER))
            await ada.push(
                "facts",
                fact("f1", sourceDocumentId=document["id"], value=VALUE),
                fact("f2", sourceDocumentId=document["id"]),
            )
            for job in ("embed", "index"):
                await h.services.background_jobs.jobs[job].drain(ada.id)
            (block,) = await ada.pull("vectorEmbeddings")
            old = {*needles([block]), *(t.encode() for t in (ASKED, TOLD, VALUE, FILENAME))}
            chunk = {**block["chunks"][0], "text": NEW}
            await edit(ada, "vectorEmbeddings", block, chunks=[chunk], embedding=None)
            await edit(ada, "facts", {"id": "f1"}, value="Ada Augusta Lovelace")
            await edit(ada, "episodes", {"id": "e1"}, userMessage="Which roses are they?", aiResponse=NEW)
            await edit(ada, "documents", document, filename="roses-of-the-garden.txt")
            seen = scan(tmp_path, old - {b"xylophone-notes.txt"})
            assert seen >= len(old) - 2, "control: the scan must find stored text"
            await h.services.background_jobs.jobs["erase"].drain(ada.id)
            assert scan(tmp_path, old) == 0
            new = [NEW, "Ada Augusta Lovelace", "roses-of-the-garden.txt", OTHER]
            assert scan(tmp_path, [text.encode() for text in new]) == len(new)
            found = (await ada.search("roses along the wall"))["results"]
            assert found and NEW in str(found)
            assert len(await ada.live("facts")) == 2
        assert scan(tmp_path, old) == 0

    run(scenario)


def test_additions_without_overwritten_text_schedule_no_erasure(tmp_path):
    """This includes additions by the server, such as vectors, a status, or the admission of a waiting row."""

    async def scenario():
        async with serve(tmp_path, model=True) as h:
            ada = await h.person()
            await ada.upload("notes.txt", SECRET)
            await ada.push("episodes", episode("e1"))
            await ada.push("sessions", session("s1"))
            await ada.push("facts", fact("f1", sourceDocumentId="d1"))
            for job in ("embed", "index"):
                await h.services.background_jobs.jobs[job].drain(ada.id)
            (document,) = await ada.pull("documents")
            (block,) = await ada.pull("vectorEmbeddings")
            assert document["status"] == "ready" and block["embedding"]
            assert len(await ada.live("episodes")) == 1
            assert not h.services.background_jobs.jobs["erase"].is_pending(ada.id)
            await edit(ada, "facts", {"id": "f1"}, value="Somebody else")
            assert h.services.background_jobs.jobs["erase"].is_pending(ada.id), (
                "control: an edit must schedule an erasure"
            )

    run(scenario)


def test_edit_of_waiting_row_erases_old_text(tmp_path):
    async def scenario():
        async with serve(tmp_path, edited_text_erase_delay_s=0.5) as h:
            ada = await h.person()
            await ada.push("episodes", episode("e1"))
            changed = episode("e1", aiResponse=NEW)
            assert await ada.push("episodes", changed, assumed=episode("e1")) == []
            await wait_for_erasure(h, ada)
            assert (scan(tmp_path, [TOLD.encode()]), scan(tmp_path, [NEW.encode()])) == (0, 1)

    run(scenario)


def test_edit_in_the_same_commit_as_the_row_erases_old_text(tmp_path):
    async def scenario():
        async with serve(tmp_path, edited_text_erase_delay_s=0.5) as h:
            ada = await h.person()
            await ada.push("episodes", episode("e1"))
            async with h.services.users.detached(ada.id):
                pass  # detach only, which moves the log's content into the file
            edited = episode("e1", aiResponse=NEW)
            async with h.services.users.open(ada.id) as store:
                works = [
                    lambda tx: tx.put("episodes/e1", edited, json.dumps(edited).encode(), waiting=True),
                    lambda tx: push(tx, tx.collections["sessions"], batch, Limits()),
                ]
                body = json.dumps([{"newDocumentState": session("s1")}]).encode()
                batch = decode_batch(store.collections["sessions"], body, ada.id)
                await asyncio.gather(*(store.write(work) for work in works))  # both writes share one commit
            assert (await ada.live("episodes"))["e1"]["aiResponse"] == NEW
            assert h.services.background_jobs.jobs["erase"].is_pending(ada.id)
            await wait_for_erasure(h, ada)
            assert (scan(tmp_path, [TOLD.encode()]), scan(tmp_path, [NEW.encode()])) == (0, 1)

    run(scenario)


def test_continuous_edits_cause_one_erasure_per_delay(tmp_path):
    async def scenario():
        async with serve(tmp_path, erase_delay_s=0.05, edited_text_erase_delay_s=1) as h:
            ada = await h.person()
            served = record_erasures(h)
            await ada.push("facts", fact("f1", sourceDocumentId="d1"))
            loop = asyncio.get_running_loop()
            began = loop.time()
            edits = 0
            async with asyncio.timeout(60):
                while loop.time() - began < 2.5 or edits < 10 or not served:
                    edits += 1
                    await edit(ada, "facts", {"id": "f1"}, value=f"edit number {edits}")
                    await asyncio.sleep(0.02)
            assert len(served) <= loop.time() - began

    run(scenario)


def test_erasure_of_deleted_rows_also_erases_edited_text(tmp_path):
    async def scenario():
        async with serve(tmp_path, erase_delay_s=0.5, edited_text_erase_delay_s=600) as h:
            ada = await h.person()
            served = record_erasures(h)
            await ada.push(
                "facts",
                fact("f1", sourceDocumentId="d1", value=VALUE),
                fact("f2", sourceDocumentId="d1"),
            )
            await edit(ada, "facts", {"id": "f1"}, value="Ada Augusta Lovelace")
            assert scan(tmp_path, [VALUE.encode()]) == 1
            await edit(ada, "facts", {"id": "f2"}, _deleted=True)
            await wait_for_erasure(h, ada)
            assert scan(tmp_path, [VALUE.encode()]) == 0 and served == [ada.id]

    run(scenario)


def test_later_edit_does_not_postpone_a_scheduled_erasure(tmp_path):
    async def scenario():
        async with serve(tmp_path, erase_delay_s=0.5, edited_text_erase_delay_s=600) as h:
            ada = await h.person()
            await ada.push(
                "facts",
                fact("f1", sourceDocumentId="d1", value=VALUE),
                fact("f2", sourceDocumentId="d1"),
            )
            await edit(ada, "facts", {"id": "f1"}, _deleted=True)
            await edit(ada, "facts", {"id": "f2"}, value="Ada Augusta Lovelace")
            await wait_for_erasure(h, ada)
            assert scan(tmp_path, [VALUE.encode()]) == 0

    run(scenario)


def test_server_restart_preserves_scheduled_erasure_and_its_deadline(tmp_path):
    async def scenario():
        async with serve(tmp_path, edited_text_erase_delay_s=4) as h:
            ada = await h.person()
            await ada.push("facts", fact("f1", sourceDocumentId="d1", value=VALUE))
            began = asyncio.get_running_loop().time()
            await edit(ada, "facts", {"id": "f1"}, value="Ada Augusta Lovelace")
        for _ in range(2):
            async with serve(tmp_path, edited_text_erase_delay_s=600) as h:
                assert h.services.background_jobs.jobs["erase"].is_pending(ada.id)
                assert scan(tmp_path, [VALUE.encode()]) == 1, (
                    "a server start must not erase before the deadline"
                )
        async with serve(tmp_path, edited_text_erase_delay_s=600) as h:
            await wait_for_erasure(h, ada)
            assert asyncio.get_running_loop().time() - began >= 3.9
            assert scan(tmp_path, [VALUE.encode()]) == 0

    run(scenario)

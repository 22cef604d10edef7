"""Erased data is removed from disk. Each test first checks that the scan finds the data before the erasure."""

import base64

import numpy as np

from property.rows import session
from server.in_process_server import run, serve, with_token
from vademecum.services.data.erase import scan

SECRET = "The xylophone of Bartholomew is hidden beneath the third oak."
OTHER = "Roses are planted in the garden every spring by my aunt."


def needles(blocks):
    """Return the text in UTF-8 (`scan` also looks for UTF-16), and vectors as float32 bytes and as base64."""
    found = [SECRET[10:50].encode(), b"xylophone-notes.txt"]
    for block in blocks:
        if any("xylophone" in c["text"] for c in block["chunks"]):
            raw = base64.b64decode(block["embedding"])
            found += [raw[:64], block["embedding"][:64].encode(), np.frombuffer(raw, "<f4")[10:26].tobytes()]
    return found


def test_document_deletion_erases_its_bytes_from_disk(tmp_path):
    async def scenario():
        async with serve(tmp_path, model=True, erase_delay_s=1.5) as h:
            ada = await h.person()
            document = (await ada.upload("xylophone-notes.txt", SECRET)).json()["document"]
            await ada.upload("roses.txt", OTHER)
            await h.services.background_jobs.jobs["embed"].drain(ada.id)
            await ada.search("roses")
            wanted = needles(await ada.pull("vectorEmbeddings"))
            assert len(wanted) == 5
            assert scan(tmp_path, wanted) >= 4, "control: the scan must find stored data"
            before = await ada.pull("documents")
            assert (await ada.call("DELETE", f"/v1/documents/{document['id']}")).status_code == 200
            await h.drain_jobs(ada)
            assert scan(tmp_path, wanted) == 0
            assert (await ada.search("roses in the garden"))["results"], (
                "documents that were not deleted must be found"
            )
            stale = next(row for row in before if row["id"] == document["id"])
            assert (await ada.push("documents", stale, assumed=stale))[0]["_deleted"] is True
            assert scan(tmp_path, wanted) == 0
        assert scan(tmp_path, wanted) == 0

    run(scenario)


def test_forget_everything_returns_an_accurate_receipt(tmp_path):
    async def scenario():
        async with serve(tmp_path, model=True, erase_delay_s=60) as h:
            ada, bob = await h.person(), await h.person()
            await ada.push("sessions", session("s1"))
            await ada.upload("xylophone-notes.txt", SECRET)
            await bob.upload("roses.txt", OTHER)
            await h.services.background_jobs.jobs["embed"].drain(ada.id)
            await ada.search("xylophone")
            wanted = needles(await ada.pull("vectorEmbeddings"))
            assert scan(tmp_path, wanted) >= 4
            refused = await ada.call("POST", "/v1/forget", json={"confirm": "yes"})
            assert refused.status_code == 400 and len(await ada.live("documents")) == 1
            receipt = (await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})).json()
            assert (
                receipt["rows"] == 3
                and receipt["leftovers"] == 0
                and receipt["checked"] > 0
                and receipt["bytes"] > 0
            )
            assert scan(tmp_path, wanted) == 0
            for collection in h.services.registry.synced:
                assert await ada.live(collection) == {}
            late = await ada.push("sessions", session("s5"))
            assert late[0]["syncError"]["code"] == "FORGOTTEN"
            assert len(await bob.live("documents")) == 1, "other accounts must not change"

    run(scenario)


def test_server_restart_resumes_interrupted_erasure(tmp_path):
    async def scenario():
        async with serve(tmp_path, erase_delay_s=600) as h:
            ada = await h.person()
            document = (await ada.upload("xylophone-notes.txt", SECRET)).json()["document"]
            await ada.call("DELETE", f"/v1/documents/{document['id']}")
        wanted = [SECRET[10:50].encode()]
        assert scan(tmp_path, wanted) == 1
        async with serve(tmp_path, erase_delay_s=0) as h:
            await h.services.background_jobs.jobs["erase"].drain(ada.id)
            assert scan(tmp_path, wanted) == 0

    run(scenario)


def test_swap_file_left_by_older_version_is_erased(tmp_path):
    """Version 0.1.0 wrote texts of the index to a swap file."""

    async def scenario():
        async with serve(tmp_path, model=True, erase_delay_s=0) as h:
            ada = await h.person()
            await ada.upload("roses.txt", OTHER)
            await h.services.background_jobs.jobs["embed"].drain(ada.id)
            await ada.search("roses")
        (folder,) = tmp_path.rglob("vectors")
        (folder / "swap").write_text(SECRET)
        async with serve(tmp_path, model=True, erase_delay_s=0) as h:
            ada.client = with_token(h, ada.client.headers["Authorization"].removeprefix("Bearer "))
            assert (await ada.search("roses in the garden"))["results"]
            assert not (folder / "swap").exists()

    run(scenario)

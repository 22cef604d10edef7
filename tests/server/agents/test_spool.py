"""The spool: the server ingests each event once and rejects invalid files."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from server.agents.agent_events import event, list_observations, send_events
from server.in_process_server import Harness, Person, run, run_for_one, serve
from vademecum.cli.agents import spool_writer
from vademecum.model.agents.spool_layout import REASON_FILE
from vademecum.model.schema.constants import OWNER
from vademecum.model.sync.quotas import Limits
from vademecum.services.agents import spool
from vademecum.services.data.erase import scan
from vademecum.settings import default_tiers
from wait_until import soon

# A small quota with space for about 35 large events, because filling the real free tier takes 15 seconds.
SMALL_QUOTA = {"tiers": {**default_tiers(), "FREE": Limits(storage_bytes=2**18)}}


def spool_events(h: Harness, who: str, *events: dict[str, Any], name: str = "") -> Path:
    """Write the events to the spool as `vademecum record` does, and return their folder."""
    folder = h.services.settings.data / "spool" / quote(who, safe="")
    folder.mkdir(parents=True, exist_ok=True)
    for one in events:
        path = folder / f"{name or one['id']}.tmp"
        path.write_text(json.dumps(one), encoding="utf-8")
        path.rename(path.with_suffix(".json"))
    return folder


def email_of(h: Harness, person: Person) -> str:
    return h.services.accounts.accounts[person.id].email


async def wait_until_empty(folder: Path) -> None:
    await soon(lambda: not list(folder.glob("*.json")))


def test_running_server_ingests_and_deletes_spooled_events(tmp_path):
    async def scenario(h, ada):
        events = [event(f"c{n}", n) for n in range(450)]
        folder = spool_events(h, email_of(h, ada), *events)
        await wait_until_empty(folder)
        await h.services.spool.ingest_all()
        assert {row["content"] for row in await list_observations(ada)} == {f"c{n}" for n in range(450)}
        assert not (tmp_path / "spool" / "rejected").exists()
        assert await send_events(ada, *events[:3]) == 0, "events ingested from the spool must count as known"

    run_for_one(tmp_path, scenario)


def test_spool_file_of_already_ingested_event_is_deleted(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, sent = await h.person(), event()
            for _ in range(3):
                folder = spool_events(h, email_of(h, ada), sent)
                await h.services.spool.ingest_all()
                assert not list(folder.iterdir())
            assert [row["count"] for row in await list_observations(ada)] == [1]

    run(scenario)


def test_events_spooled_before_first_server_start_belong_to_owner(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            folder = spool_events(h, "owner", event())
            await h.services.spool.ingest_all()
            assert list(folder.iterdir()), "events must wait until the owner's account exists"
            await h.services.account_service.ensure_owner()
            await h.services.spool.ingest_all()
            assert not list(folder.iterdir())
            owner = h.services.accounts.by_email(OWNER)
            async with h.services.users.open(owner.id) as store:
                assert sum(key.startswith("observations/") for key in store.row_index.rows) == 1

    run(scenario)


def test_spool_rejects_invalid_files_and_files_of_unknown_users(tmp_path):
    async def scenario(h, ada):
        folder = spool_events(h, email_of(h, ada), event("good"), event("newer", v=2), event(kind="dance"))
        spool_events(
            h,
            email_of(h, ada),
            event("nameless", project={"name": "\u200b", "root": "~/x", "source": "git"}),
        )
        for name, content in {
            "half": b'{"v":1',
            "empty": b"",
            "deep": b"[" * 90_000,
            "big": b" " * 2**18,
        }.items():
            (folder / f"{name}.json").write_bytes(content)
        unknown = spool_events(h, "nobody@example.org", event("lost?"))
        await h.services.spool.ingest_all()
        await h.services.spool.ingest_all()
        assert [row["content"] for row in await list_observations(ada)] == ["good"]
        assert not list(folder.iterdir()) and [path.name for path in unknown.iterdir()] == [REASON_FILE]
        rejected = tmp_path / "spool" / "rejected"
        assert len(list((rejected / folder.name).iterdir())) == 7
        assert len(list((rejected / unknown.name).iterdir())) == 1

    run_for_one(tmp_path, scenario)


def test_record_reports_unknown_email_until_account_exists(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            spool_events(h, "ada@example.org", event("early"))
            await h.services.spool.ingest_all()
            await h.services.spool.ingest_all()
            folder = spool_writer.folder_for(str(tmp_path), "ada@example.org")
            assert "No account has this email." in spool_writer.write_event(folder, "one", b"{}")
            await h.services.spool.ingest_all()
            assert "No account has this email." in spool_writer.write_event(folder, "two", b"{}")
            await h.services.spool.ingest_all()
            await h.services.account_service.create("ada@example.org", "FREE")
            await h.services.spool.ingest_all()
            assert spool_writer.write_event(folder, "three", b"{}") == ""

    run(scenario)


def test_irregular_spool_files_are_rejected_and_delay_no_events(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, ben = await h.person(), await h.person()
            folder = spool_events(h, email_of(h, ada), event("good"))
            others = spool_events(h, email_of(h, ben), event("his"))
            elsewhere = tmp_path / "elsewhere"
            elsewhere.write_text(json.dumps(event("not of the spool")))
            (folder / "a-link.json").symlink_to(elsewhere)
            (folder / "dangling.json").symlink_to(tmp_path / "nothing")
            (folder / "folder.json").mkdir()
            os.mkfifo(folder / "pipe.json")
            async with asyncio.timeout(60):
                await h.services.spool.ingest_all()
            assert [row["content"] for row in await list_observations(ada)] == ["good"]
            assert [row["content"] for row in await list_observations(ben)] == ["his"]
            assert not list(folder.iterdir()) and not list(others.iterdir())
            assert len(list((tmp_path / "spool" / "rejected" / folder.name).iterdir())) == 4

    run(scenario)


def test_invalid_spool_file_that_cannot_be_moved_delays_no_events(tmp_path):
    async def scenario(h, ada):
        folder = spool_events(h, email_of(h, ada), event("good"))
        (tmp_path / "spool" / "rejected" / folder.name / "odd.json").mkdir(parents=True)
        (folder / "odd.json").write_text("no event, and where it should go there is a folder")
        await h.services.spool.ingest_all()
        assert [row["content"] for row in await list_observations(ada)] == ["good"]

    run_for_one(tmp_path, scenario)


def test_unfinished_spool_file_is_neither_ingested_nor_moved(tmp_path):
    async def scenario(h, ada):
        folder = spool_events(h, email_of(h, ada))
        (folder / "half.tmp").write_text('{"v":1,')
        await h.services.spool.ingest_all()
        assert [path.name for path in folder.iterdir()] == ["half.tmp"]

    run_for_one(tmp_path, scenario)


def test_events_over_quota_wait_in_spool(tmp_path):
    async def scenario():
        async with serve(tmp_path, **SMALL_QUOTA) as h:
            full_user, other_user = await h.person("FREE"), await h.person()
            batch = await fill_account(full_user)
            folder = spool_events(h, email_of(h, full_user), *batch)
            others = spool_events(h, email_of(h, other_user), event("hers"))
            await h.services.spool.ingest_all()
            assert len(list(folder.glob("*.json"))) == len(batch) and not list(others.iterdir())
            assert [row["content"] for row in await list_observations(other_user)] == ["hers"]

    run(scenario)


async def fill_account(full_user: Person) -> list[dict[str, Any]]:
    """Fill the account's quota and return events that exceed it."""
    batch = [event("x" * 7000, n, session=f"s{n}") for n in range(16)]
    while batch:
        taken = await full_user.call("POST", "/v1/observations", json={"events": batch})
        kept = batch if taken.status_code == 200 else batch[: len(batch) // 2]
        batch = [event("x" * 7000, n, session=one["session"] + "+") for n, one in enumerate(kept)]
    return [event("x" * 7000, n, session=f"full{n}") for n in range(16)]


def test_ingest_stores_as_many_events_as_the_quota_allows(tmp_path):
    async def scenario():
        async with serve(tmp_path, **SMALL_QUOTA) as h:
            full_user = await h.person("FREE")
            await fill_account(full_user)
            for row in (await list_observations(full_user))[:10]:
                await full_user.call("DELETE", f"/v1/observations/{row['id']}", params={"project": "*"})
            folder = spool_events(
                h, email_of(h, full_user), *(event("y" * 7000, n, session=f"m{n}") for n in range(40))
            )
            await h.services.spool.ingest_all()
            remaining = len(list(folder.glob("*.json")))
            assert 20 < remaining < 40, "only some of the events must fit the quota"

    run(scenario)


@pytest.mark.parametrize("forget", ["now", "soon"])
def test_forgetting_a_project_deletes_its_spooled_events(tmp_path, forget, monkeypatch):
    monkeypatch.setattr(spool, "BATCH", 8)  # small, so that the events need several batches

    async def scenario():
        async with serve(tmp_path, **SMALL_QUOTA) as h:
            full_user = await h.person("FREE")
            secret = {"name": "aubergine", "root": "~/dev/aubergine-secret", "source": "git"}
            await send_events(full_user, event("boil", project=secret))
            await fill_account(full_user)
            parboil = [event("parboil" * 1000, n, project=secret, session=f"p{n}") for n in range(20)]
            folder = spool_events(h, email_of(h, full_user), *parboil, event("stays" * 1000))
            rejected = tmp_path / "spool" / "rejected" / folder.name
            rejected.mkdir(parents=True)
            (rejected / "odd.json").write_text(json.dumps(event(kind="dance", project=secret)))
            (rejected / "half.json").write_text('{"content": "parboil the aubergine')
            os.utime(Path(shutil.copy(rejected / "half.json", folder / "dead.json.tmp")), (0, 0))
            await h.services.spool.ingest_all()
            row = next(r for r in (await full_user.live("projects")).values() if r["name"] == "aubergine")
            answer = await full_user.call("DELETE", f"/v1/projects/{row['id']}", params={"forget": forget})
            assert answer.json().get("leftovers", 0) == 0, answer.text
            assert not rejected.exists() and scan(tmp_path / "spool", [b"aubergine"]) == 0
            # The deletion freed space, so the server may already have ingested the remaining event.
            taken = [row for row in await list_observations(full_user) if row["content"].startswith("stays")]
            assert len(list(folder.glob("*.json"))) + len(taken) == 1

    run(scenario)


def test_project_deletion_receipt_counts_leftover_spool_files(tmp_path):
    async def scenario(h, ada):
        secret = {"name": "aubergine", "root": "~/dev/aubergine-secret", "source": "git"}
        await send_events(ada, event("boil the aubergine slowly", project=secret))
        folder = spool_events(h, email_of(h, ada))
        (folder / "being-written.json.tmp").write_text('{"content": "boil the aubergine slowly')
        row = next(r for r in (await ada.live("projects")).values() if r["name"] == "aubergine")
        receipt = (await ada.call("DELETE", f"/v1/projects/{row['id']}?forget=now")).json()
        assert receipt["leftovers"] == 1

    run_for_one(tmp_path, scenario)


def test_forget_everything_deletes_spooled_events(tmp_path):
    async def scenario(h, ada):
        before = event("an aubergine of before", 1)
        await send_events(ada, event("an aubergine in the rows", path="aubergine/path"))
        spool_events(h, email_of(h, ada), event(kind="an aubergine that is rejected"))
        await h.services.spool.ingest_all()
        spool_events(h, email_of(h, ada), before)
        receipt = (await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})).json()
        assert receipt["leftovers"] == 0 and receipt["checked"] > 0
        assert scan(tmp_path, [b"aubergine"]) == 0
        spool_events(h, email_of(h, ada), before)  # a slow hook may write an event after the request
        await h.services.spool.ingest_all()
        assert await list_observations(ada) == [] and scan(tmp_path, [b"aubergine"]) == 0

    run_for_one(tmp_path, scenario)


def test_deleting_a_project_erases_its_observations_from_disk(tmp_path):
    async def scenario(h, ada):
        secret = {"name": "aubergine", "root": "~/dev/aubergine", "source": "git"}
        await send_events(
            ada, event("boil the aubergine", path="aubergine.md", project=secret), event("stays")
        )
        row = next(r for r in (await ada.live("projects")).values() if r["name"] == "aubergine")
        await h.drain_jobs(ada)
        assert scan(tmp_path / "users", [b"aubergine"]) == 1
        await ada.call("DELETE", f"/v1/projects/{row['id']}")
        await h.drain_jobs(ada)
        assert scan(tmp_path / "users", [b"aubergine"]) == 0
        assert [r["content"] for r in await list_observations(ada)] == ["stays"]

    run_for_one(tmp_path, scenario)

"""Spool files that the server cannot read or delete, for example because a hook ran under sudo.

The server reports them and processes all other files.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from server.agents.agent_events import event, list_observations, send_events
from server.agents.test_spool import email_of, spool_events
from server.in_process_server import Person, check_problem, run, serve
from unprivileged_user import without_root_access
from vademecum.errors import Broken
from vademecum.model.agents.spool_layout import REASON_FILE
from vademecum.model.sync.quotas import Limits
from vademecum.services.agents import spool, spool_files

NO_QUOTA = {"tiers": {"FREE": Limits(storage_bytes=1), "JIGGA": Limits()}}
FORGET = {"confirm": "forget everything"}


def test_other_spool_files_are_deleted_despite_an_undeletable_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            await send_events(ada, event("in the rows"))
            folder, rejected = (
                spool_events(h, email_of(h, ada)),
                tmp_path / "spool" / "rejected" / email_of(h, ada),
            )
            rejected.mkdir(parents=True)
            for path in (folder, rejected):
                for number in range(20):
                    (path / f"{number}.json.tmp").write_text("being written")
                    # Create it in the middle, so that other files precede and follow it in any listing order.
                    if number == 10:
                        (path / "shut").mkdir()
                        (path / "shut" / "x").touch()
                        (path / "shut").chmod(0)
            problem = check_problem(await ada.call("POST", "/v1/forget", json=FORGET), 500, "BROKEN")
            assert problem["detail"].startswith("All other data is erased.")
            assert await list_observations(ada) == []
            assert [[path.name for path in one.iterdir()] for one in (folder, rejected)] == [["shut"]] * 2

    with without_root_access():
        run(scenario)


@pytest.mark.parametrize("place", ["spool/{}", "spool/rejected/{}", "spool/rejected", "spool"])
def test_unreadable_spool_folder_is_reported_and_other_folders_are_ingested(
    tmp_path: Path, place: str
) -> None:
    async def scenario() -> None:
        async with serve(tmp_path, **NO_QUOTA) as h:
            ada, ben = await h.person("FREE"), await h.person()
            project = {"name": "app", "root": "~/app", "source": "git"}
            await send_events(ben, event("in the rows", project=project))
            address = quote(email_of(h, ben), safe="")
            spool_events(h, email_of(h, ada), event("hers waits"))
            await h.services.spool.ingest_all()
            shut = tmp_path / place.format(address)
            shut.mkdir(parents=True, exist_ok=True)
            shut.chmod(0)
            name = f"{shut.parent.name}/{shut.name} of the server's spool"
            assert name in str(spool_files.find_unreadable(tmp_path / "spool"))
            if place != "spool":
                assert email_of(h, ada) in str(list(spool_files.find_waiting(tmp_path / "spool")))
                (own,) = [one["event"] for one in await export_events(ada) if "event" in one]
                assert own["content"] == "hers waits"
            unread = [
                one["file"] for one in await export_events(ben) if one.get("unread") == "Permission denied"
            ]
            assert unread[-1] in (f"spool/{address}", f"rejected/{address}")
            row = next(iter((await ben.live("projects")).values()))
            problem = check_problem(await ben.call("DELETE", f"/v1/projects/{row['id']}"), 500, "BROKEN")
            assert (
                "Permission denied" in problem["detail"]
                and "another user" in problem["detail"]
                and len(await list_observations(ben)) == 1
            )
            problem = check_problem(await ben.call("POST", "/v1/forget", json=FORGET), 500, "BROKEN")
            assert problem["detail"].startswith("All other data is erased.")
            assert await list_observations(ben) == []
        async with serve(tmp_path):  # the server must start despite the unreadable folder
            shut.chmod(0o700)

    with without_root_access():
        run(scenario)


async def export_events(person: Person) -> list[dict[str, Any]]:
    answer = await person.call("GET", "/v1/export")
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        return [json.loads(line) for line in archive.read("agent-events.jsonl").splitlines()]


def test_unreadable_event_waits_while_other_events_are_ingested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "BATCH", 2)
    monkeypatch.setattr(spool, "RETRY_S", 0.0)
    monkeypatch.setattr(spool, "POLL_S", 3600.0)

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            ada = await h.person()
            project = {"name": "app", "root": "~/app", "source": "git"}
            folder = spool_events(h, email_of(h, ada))
            shut = folder / "0.json"  # the name sorts first, so the file is the first of a batch
            shut.write_text(json.dumps(event("shut", project=project)))
            shut.chmod(0)
            spool_events(h, email_of(h, ada), *(event(f"e{n}", n, project=project) for n in range(5)))
            await h.services.spool.ingest_all()
            assert {row["content"] for row in await list_observations(ada)} == {f"e{n}" for n in range(5)}
            assert list(folder.glob("*.json")) == [shut] and not (tmp_path / "spool" / "rejected").exists()
            why = (folder / REASON_FILE).read_text()
            assert "0.json of the server's spool cannot be read (Permission denied)" in why
            row = next(iter((await ada.live("projects")).values()))
            check_problem(await ada.call("DELETE", f"/v1/projects/{row['id']}"), 500, "BROKEN")
            assert shut.exists() and len(await list_observations(ada)) == 5, (
                "an unreadable event must stay, because its project is unknown"
            )
            shut.chmod(0o600)
            await h.services.spool.ingest_all()
            assert len(await list_observations(ada)) == 6 and not list(folder.iterdir())

    with without_root_access():
        run(scenario)


def test_failed_deletion_of_project_events_deletes_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "BATCH", 2)

    async def scenario() -> None:
        async with serve(tmp_path, **NO_QUOTA) as h:
            ada = await h.person("FREE")
            spool_events(h, email_of(h, ada), *(event(f"e{n}", n) for n in range(4)))
            rejected = tmp_path / "spool" / "rejected" / email_of(h, ada)
            rejected.mkdir(parents=True)
            (rejected / "shut.json").touch()  # in the folder that is processed last
            (rejected / "shut.json").chmod(0)
            await h.services.spool.ingest_all()
            account = h.services.accounts.accounts[ada.id]
            before = set((tmp_path / "spool").rglob("*.json"))
            assert len(before) == 5
            monkeypatch.setattr(
                spool.project_claims, "find_identities", lambda tx, identities, *_: identities
            )
            with pytest.raises(Broken, match=r"shut\.json"):
                await h.services.spool.delete_project_events(account, "p1")
            assert set((tmp_path / "spool").rglob("*.json")) == before
            (rejected / "shut.json").chmod(0o600)
            await h.services.spool.delete_project_events(account, "p1")
            assert not list((tmp_path / "spool").rglob("*.json")) and not rejected.exists()

    with without_root_access():
        run(scenario)


def test_rejecting_a_missing_spool_file_creates_no_folder(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serve(tmp_path) as h:
            folder = spool_events(h, "nobody@example.org", event())
            (listed_by_both,) = folder.glob("*.json")
            listed_by_both.unlink()
            h.services.spool._reject([listed_by_both])
            assert not (tmp_path / "spool" / "rejected").exists()

    run(scenario)


def test_request_ingests_no_spooled_events_of_other_accounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "POLL_S", 3600.0)

    async def scenario() -> None:
        async with serve(tmp_path) as h:
            people = [await h.person() for _ in range(3)]
            folders = [spool_events(h, email_of(h, one), event("just now")) for one in people]
            for asker, own in zip(people, folders, strict=True):
                before = sum(len(list(folder.iterdir())) for folder in folders)
                await asker.call("GET", "/v1/agents/context", params={"project": "app"})
                assert not list(own.iterdir()) and len(await list_observations(asker)) == 1
                assert sum(len(list(folder.iterdir())) for folder in folders) == before - 1

    run(scenario)

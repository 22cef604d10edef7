"""Leftover spool files are deleted by age and number. Waiting events are never deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from server.agents.test_spool import email_of, spool_events
from server.in_process_server import run, serve
from vademecum.model.schema.timestamps import DAY_S
from vademecum.services.agents import spool_files
from vademecum.services.agents.spool_files import delete_leftovers
from wait_until import soon


def write_aged(path: Path, days: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (time.time() - days * DAY_S,) * 2)
    return path


def test_old_spool_leftovers_are_deleted_but_waiting_events_stay(tmp_path: Path) -> None:
    rejected, elsewhere = tmp_path / "rejected", write_aged(tmp_path.parent / "elsewhere" / "a.tmp", 99)
    kept = [write_aged(rejected / "owner" / "a.json", 29), write_aged(tmp_path / "owner" / "b.json", 99),
             write_aged(tmp_path / "owner" / "c.json.tmp", 0.9), elsewhere]  # fmt: skip
    deleted = [
        write_aged(rejected / "ada" / "a.json", 31),
        write_aged(tmp_path / "owner" / "d.json.tmp", 1.1),
    ]
    folder = write_aged(rejected / "ada" / "folder.json" / "x", 31).parent
    os.utime(folder, (0, 0))
    (rejected / "eve").mkdir()
    (tmp_path / "link").symlink_to(elsewhere.parent)
    delete_leftovers(tmp_path)
    assert all(path.exists() for path in kept)
    assert not any(path.exists() for path in [*deleted, folder])
    assert [path.name for path in rejected.iterdir()] == ["owner"], (
        "an empty folder must be deleted, because its name is an email"
    )


@pytest.mark.parametrize("below", ["rejected/ada/{}.json", "ada/{}.json.tmp"])
def test_oldest_spool_leftovers_above_the_limit_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    monkeypatch.setattr(spool_files, "FILES_MAX", 3)
    paths = [write_aged(tmp_path / below.format(n), n / 100) for n in range(5)]
    delete_leftovers(tmp_path)
    assert [path.exists() for path in paths] == [True, True, True, False, False]


def test_server_start_deletes_rejected_events_by_time_of_rejection(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        old = write_aged(tmp_path / "spool" / "rejected" / "ada" / "a.json", 31)
        async with serve(tmp_path) as h:
            ada = await h.person()
            await soon(lambda: not old.exists())
            folder = spool_events(h, email_of(h, ada))
            write_aged(folder / "odd.json", 99)
            await h.services.spool.ingest_all()
            delete_leftovers(tmp_path / "spool")
            assert (tmp_path / "spool" / "rejected" / folder.name / "odd.json").exists()

    run(scenario)

"""Events are ingested and forgotten by email in any letter case."""

from __future__ import annotations

import json

import pytest

from server.agents.agent_events import event, list_observations
from server.in_process_server import run, serve
from vademecum.cli.agents import spool_writer
from vademecum.model.agents.spool_layout import folder_name

CASES = [str.lower, str.upper, str.title]


def record_event(data, email, content="ls"):
    sent = event(content)
    spool_writer.write_event(spool_writer.folder_for(str(data), email), sent["id"], json.dumps(sent).encode())


@pytest.mark.parametrize("change_case", CASES)
def test_events_are_ingested_for_email_in_any_letter_case(tmp_path, change_case):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, grace = await h.person(), await h.person()
            record_event(tmp_path, change_case(h.services.accounts.accounts[ada.id].email))
            await h.services.spool.ingest_all()
            assert [row["content"] for row in await list_observations(ada)] == [
                "ls"
            ] and await list_observations(grace) == []
            assert not [file for file in (tmp_path / "spool").rglob("*") if file.is_file()]

    run(scenario)


@pytest.mark.parametrize("change_case", CASES)
def test_forget_everything_deletes_spool_folders_in_any_letter_case(tmp_path, change_case):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, grace = await h.person(), await h.person()
            named = change_case(h.services.accounts.accounts[ada.id].email)
            for below in ("", "rejected"):
                folder = tmp_path / "spool" / below / folder_name(named)
                folder.mkdir(parents=True)
                (folder / "half.json.tmp").write_text("what Ada did")
            record_event(tmp_path, h.services.accounts.accounts[grace.id].email)
            done = await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
            assert done.status_code == 200
            await h.services.spool.ingest_all()
            assert not [file for file in (tmp_path / "spool").rglob("*") if file.is_file()]
            assert len(await list_observations(grace)) == 1

    run(scenario)

"""What `vademecum record` has left is taken up for its user, in whatever letters the email was written, and forgotten with them."""

from __future__ import annotations

import json

import pytest

from server.agents.agent_events import event, listed
from server.in_process_server import house, run
from vademecum.cli.agents import spool_writer
from vademecum.model.agents.spool_layout import folder_name

SPELLINGS = [str.lower, str.upper, str.title]


def leave(data, email, content="ls"):
    said = event(content)
    spool_writer.write_event(spool_writer.folder_for(str(data), email), said["id"], json.dumps(said).encode())


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_email_in_any_case_is_ingested(tmp_path, spelled):
    async def scenario():
        async with house(tmp_path) as h:
            ada, grace = await h.person(), await h.person()
            leave(tmp_path, spelled(h.services.accounts.accounts[ada.id].email))
            await h.services.spool.ingest_all()
            assert [row["content"] for row in await listed(ada)] == ["ls"] and await listed(grace) == []
            assert not [file for file in (tmp_path / "spool").rglob("*") if file.is_file()]

    run(scenario)


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_forget_everything_clears_folders_in_any_case(tmp_path, spelled):
    async def scenario():
        async with house(tmp_path) as h:
            ada, grace = await h.person(), await h.person()
            named = spelled(h.services.accounts.accounts[ada.id].email)
            for below in ("", "rejected"):
                folder = tmp_path / "spool" / below / folder_name(named)
                folder.mkdir(parents=True)
                (folder / "half.json.tmp").write_text("what Ada did")
            leave(tmp_path, h.services.accounts.accounts[grace.id].email)
            done = await ada.call("POST", "/v1/forget", json={"confirm": "forget everything"})
            assert done.status_code == 200
            await h.services.spool.ingest_all()
            assert not [file for file in (tmp_path / "spool").rglob("*") if file.is_file()]
            assert len(await listed(grace)) == 1

    run(scenario)

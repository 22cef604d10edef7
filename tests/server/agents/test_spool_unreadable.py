"""What the server may not read or remove of the spool, as after a hook that ran under sudo: it is said, and keeps nothing
else back."""

from __future__ import annotations

from pathlib import Path

from rights import as_anybody
from server.agents.acting import event, listed, take
from server.agents.test_spool import email, spooled
from server.house import house, refused, run

FORGET = {"confirm": "forget everything"}


def test_what_cannot_be_removed_keeps_nothing_else_from_being_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with house(tmp_path) as h:
            ada = await h.person()
            await take(ada, event("in the rows"))
            folder, aside = spooled(h, email(h, ada)), tmp_path / "spool" / "rejected" / email(h, ada)
            aside.mkdir(parents=True)
            for path in (folder, aside):
                for number in range(20):
                    (path / f"{number}.json.tmp").write_text("being written")
                    if number == 10:  # amid the others, in whichever order they are listed
                        (path / "shut").mkdir()
                        (path / "shut" / "x").touch()
                        (path / "shut").chmod(0)
            said = refused(await ada.call("POST", "/v1/forget", json=FORGET), 500, "BROKEN")["detail"]
            assert said.startswith("All else is erased.") and await listed(ada) == []
            assert [[path.name for path in one.iterdir()] for one in (folder, aside)] == [["shut"]] * 2

    with as_anybody():
        run(scenario)

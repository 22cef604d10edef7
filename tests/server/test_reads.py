"""Reads while another commit is under way: nothing disappears between the commit and the memory of it."""

import asyncio

from server.house import house, run, session


def test_a_row_that_is_being_edited_is_never_missing(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            row = session("s1")
            await ada.push("sessions", row)
            stop = False

            async def edit():
                nonlocal row
                for number in range(150):
                    changed = {**row, "title": f"title {number}"}
                    assert await ada.push("sessions", changed, assumed=row) == []
                    row = changed

            async def read():
                seen = 0
                async with h.parts.users.open(ada.id) as store:
                    while not stop:
                        assert "sessions/s1" in await store.bodies(["sessions/s1"])
                        seen += 1
                return seen

            reader = asyncio.create_task(read())
            await edit()
            stop = True
            assert await reader > 50

    run(scenario)

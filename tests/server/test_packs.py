"""How rows lie in the file: what died leaves its pack at once, what was written again is dropped in time."""

import asyncio

from property.rows import fact
from property.wire import send
from server.house import house, run


async def raw(h, person, statement):
    """What a statement says of the person's own file."""
    async with h.parts.users.open(person.id) as store:
        return await h.parts.instance.run(
            lambda c: c.execute(statement.format(f"{store.alias}.main.facts")).fetchall()
        )


async def packs(h, person):
    return await raw(h, person, "SELECT first, json_array_length(seqs), bodies FROM {} ORDER BY first")


def rows(count, **more):
    return [fact(f"f{number}", value=f"value {number}", **more) for number in range(count)]


def in_a_house(tmp_path, scenario, **settings):
    async def whole():
        async with house(tmp_path, **settings) as h:
            await scenario(h, await h.person())

    run(whole)


def test_a_commit_is_one_pack(tmp_path):
    async def scenario(h, ada):
        await send(ada, "facts", *((row, None) for row in rows(50)))
        [(first, count, _)] = await packs(h, ada)
        assert (first, count) == (1, 50)

    in_a_house(tmp_path, scenario)


def test_a_large_commit_is_cut_into_packs(tmp_path):
    async def scenario(h, ada):
        large = [{**row, "value": "x" * 100_000} for row in rows(10)]
        await send(ada, "facts", *((row, None) for row in large))
        found = await packs(h, ada)
        assert [count for _, count, _ in found] == [2, 2, 2, 2, 2]
        assert set(await ada.live("facts")) == {row["id"] for row in large}

    in_a_house(tmp_path, scenario)


def test_the_content_of_a_dead_row_leaves_its_pack_at_once(tmp_path):
    async def scenario(h, ada):
        made = rows(50)
        await send(ada, "facts", *((row, None) for row in made))
        await send(ada, "facts", ({**made[7], "_deleted": True}, made[7]))
        found = await packs(h, ada)
        assert [(first, count) for first, count, _ in found] == [(1, 49), (51, 1)]
        assert "value 7" not in "".join(bodies for _, _, bodies in found)
        assert len(await ada.live("facts")) == 49

    in_a_house(tmp_path, scenario, erase_delay_s=60)


def test_an_edited_row_stays_where_it_was_until_half_of_its_pack_is_stale(tmp_path):
    async def scenario(h, ada):
        made = rows(10)
        await send(ada, "facts", *((row, None) for row in made))
        for number in range(6):
            await send(ada, "facts", ({**made[number], "value": "new"}, made[number]))
            (first, count, _), *_ = await packs(h, ada)
            assert (first, count) == (1, 10 if number < 5 else 4)
        assert len(await ada.pull("facts")) == 10

    in_a_house(tmp_path, scenario)


def test_a_row_edited_again_and_again_leaves_nothing_behind(tmp_path):
    async def scenario(h, ada):
        row = fact("f", value="0")
        await send(ada, "facts", (row, None))
        for number in range(1, 40):
            new = {**row, "value": str(number)}
            await send(ada, "facts", (new, row))
            row = new
        assert [count for _, count, _ in await packs(h, ada)] == [1]

    in_a_house(tmp_path, scenario)


def test_an_erasure_drops_every_stale_row_and_keeps_the_index(tmp_path):
    async def scenario(h, ada):
        made = rows(30)
        await send(ada, "facts", *((row, None) for row in made))
        await send(ada, "facts", ({**made[3], "value": "new"}, made[3]))
        assert "value 3" in (await packs(h, ada))[0][2]
        await h.parts.users.rewrite(ada.id)
        assert [count for _, count, _ in await packs(h, ada)] == [29, 1]
        plan = await raw(h, ada, "EXPLAIN ANALYZE SELECT bodies FROM {} WHERE first IN (1, 31)")
        assert "Index Scan" in str(plan)

    in_a_house(tmp_path, scenario)


def test_pages_are_the_same_after_the_file_is_opened_anew(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            made = rows(300)
            for at in range(0, 300, 20):
                await send(ada, "facts", *((row, None) for row in made[at : at + 20]))
            for number in range(0, 300, 3):
                await send(ada, "facts", ({**made[number], "value": "new"}, made[number]))
            for number in range(0, 300, 7):
                await send(ada, "facts", ({**made[number], "_deleted": True}, None))
            before = await ada.pull("facts")
        async with house(tmp_path) as h:
            ada.client._transport.app = h.app
            assert await ada.pull("facts") == before
            assert len(before) == 300

    run(scenario)


def test_an_erasure_while_rows_die_and_are_read_costs_nobody_anything(tmp_path):
    """Packs go and are written again between the asking and the doing, on every side at once."""

    async def scenario(h, ada):
        for at in range(40):
            made = [fact(f"f{at}-{n}", value=f"value {at} {n}") for n in range(4)]
            await send(ada, "facts", *((row, None) for row in made))

            await send(
                ada, "facts", ({**made[0], "key": "edited"}, made[0])
            )  # its pack holds a stale row now

        async def kill(at):
            for n in range(4):
                await send(ada, "facts", ({**fact(f"f{at}-{n}"), "_deleted": True}, None))

        async def look():
            for _ in range(15):
                assert len(await ada.pull("facts")) == 160

        async with h.parts.users.open(ada.id) as store:
            await asyncio.gather(
                *(kill(at) for at in range(40)), look(), look(), *(store.tidy() for _ in range(6))
            )
        assert len(await ada.pull("facts")) == 160 and await ada.live("facts") == {}

    in_a_house(tmp_path, scenario, erase_delay_s=60)

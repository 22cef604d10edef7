"""What was erased stays erased when an older backup is restored, also when the ledger could not be written at once."""

from property.rows import dead, document, fact
from property.wire import forget, send, stored
from server.house import house, run
from vademecum.engines.duckdb.users import user_ledger
from vademecum.services import backup as backups


def full(path):
    """From now on no line can be appended, as on a full disk. Returns the undo."""
    aside = path.with_suffix(".aside")
    if path.exists():
        path.rename(aside)
    path.mkdir(parents=True)

    def space():
        path.rmdir()
        if aside.exists():
            aside.rename(path)

    return space


async def again(data, person, work):
    """The server is started anew on the same data."""
    async with house(data) as h:
        person.client._transport.app = h.app
        await work(h)


def test_a_death_that_a_full_disk_kept_out_of_the_ledger_is_made_up_at_the_next_opening(tmp_path):
    async def scenario():
        async with house(tmp_path / "data") as h:
            ada = await h.person()
            await send(ada, "facts", (fact("secret"), None), (fact("other"), None))
            await backups.backup(h.parts, tmp_path / "backup")
            await ada.pull("facts")
            space = full(user_ledger(tmp_path / "data", ada.id).path)
            assert await send(ada, "facts", (dead(fact("secret")), None)) == []
            space()
            async with h.parts.users.open(ada.id) as store:
                store._ledger._unwritten.clear()  # as a crash would
            await send(ada, "facts", (dead(fact("other")), None))

        async def restored(h):
            await ada.pull("facts")
            await backups.restore(h.parts, tmp_path / "backup")
            assert await ada.live("facts") == {}

        await again(tmp_path / "data", ada, restored)

    run(scenario)


def test_what_died_while_others_named_it_does_not_save_them(tmp_path):
    """A document's death heals the facts that name it; they died later themselves."""

    async def scenario():
        async with house(tmp_path / "data") as h:
            ada = await h.person()
            lease = document(ada.id, "lease")
            rent, key = (fact(name, sourceDocumentId="lease") for name in ("rent", "key"))
            await send(ada, "documents", (lease, None))
            await send(ada, "facts", (rent, None), (key, None))
            await backups.backup(h.parts, tmp_path / "backup")
            await send(ada, "documents", (dead(lease), None))
            await send(ada, "facts", (dead(rent), None))
            await backups.restore(h.parts, tmp_path / "backup")
            assert set(await ada.live("facts")) == {"key"}
            await forget(ada)
            await backups.restore(h.parts, tmp_path / "backup")
            assert await ada.live("facts") == {} and await ada.live("documents") == {}

    run(scenario)


def test_a_shortened_ledger_means_the_same_to_a_restore(tmp_path):
    """Rows that died and came alive many times; a backup of each of their states."""

    async def scenario():
        async with house(tmp_path / "data") as h:
            ada = await h.person()
            rows = [fact(name, value=f"{name} 0") for name in ("dies", "lives")]
            await send(ada, "facts", *((row, None) for row in rows))
            for turn in range(4):
                await backups.backup(h.parts, tmp_path / f"backup{turn}")
                await send(ada, "facts", *((dead(row), None) for row in rows))
                rows = [{**row, "value": f"{row['id']} {turn}"} for row in rows]
                tombs = [await stored(ada, "facts", row["id"]) for row in rows]
                assert await send(ada, "facts", *zip(rows, tombs, strict=True)) == []
            await backups.backup(h.parts, tmp_path / "last")
            await send(ada, "facts", (dead(rows[0]), None))

        async def restored(h):
            await ada.pull("facts")
            lines = user_ledger(tmp_path / "data", ada.id).read()
            assert sorted(line.key for line in lines) == ["facts/dies", "facts/lives"]
            await backups.restore(h.parts, tmp_path / "last")
            assert set(await ada.live("facts")) == {"lives"}
            for turn in range(4):
                await backups.restore(h.parts, tmp_path / f"backup{turn}")
                assert await ada.live("facts") == {}

        await again(tmp_path / "data", ada, restored)

    run(scenario)


def test_a_restore_first_writes_what_a_full_disk_kept_out_of_the_ledger(tmp_path):
    """The file stayed open all the while, so nothing was made up by an opening."""

    async def scenario():
        async with house(tmp_path / "data") as h:
            ada = await h.person()
            await send(ada, "facts", (fact("secret"), None))
            await backups.backup(h.parts, tmp_path / "backup")
            await ada.pull("facts")
            space = full(user_ledger(tmp_path / "data", ada.id).path)
            await send(ada, "facts", (dead(fact("secret")), None))
            space()
            await backups.restore(h.parts, tmp_path / "backup")
            assert await ada.live("facts") == {}

    run(scenario)

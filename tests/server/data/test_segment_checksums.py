"""Segment checksums: they detect damage when a segment is read. Old segments without a checksum get one if valid."""

import duckdb
import pytest

from property.rows import fact
from server.in_process_server import check_problem, run, run_for_one, serve
from vademecum.engines.duckdb import body_cache, segments
from vademecum.engines.duckdb.recovery import recover
from vademecum.model.records.paths import user_folder

PULL = "/v1/sync/facts/0/pull?lwt=0&limit=100"
CLEAR = "UPDATE packs SET checksum = NULL"


@pytest.fixture(autouse=True)
def without_recent_rows(monkeypatch):
    monkeypatch.setattr(body_cache, "CACHE_BYTES_MAX", 0)


def records(data, person):
    return user_folder(data, person.id) / "records.duckdb"


async def change(h, person, statement):
    """Run a statement on the person's file while the server has detached it."""
    async with h.services.users.detached(person.id):
        with duckdb.connect(records(h.services.settings.data, person)) as connection:
            connection.execute(statement)


async def checksums(h, person):
    async with h.services.users.open(person.id) as store:
        return await h.services.instance.run(
            lambda c: c.execute(
                f"SELECT first, checksum FROM {store.alias}.main.packs ORDER BY first"
            ).fetchall()
        )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE packs SET bodies = replace(bodies, 'Ada', 'Eve')",
        "UPDATE packs SET heads = replace(heads, 'f2', 'f9')",
        "UPDATE packs SET seqs = '[1,2,4]'",
        "UPDATE packs SET first = 0",
        "UPDATE packs SET collection = 'memories'",
        "UPDATE packs SET checksum = NULL, bodies = replace(bodies, '}', '')",
    ],
)
def test_reading_a_changed_segment_fences_its_account(tmp_path, statement):
    async def scenario(h, ada):
        bob = await h.person()
        for person in (ada, bob):
            await person.add("facts", fact("f1"), fact("f2", key="k2"), fact("f3", key="k3"))
        await change(h, ada, statement)
        detail = check_problem(await ada.call("GET", PULL), 503, "FENCED")["detail"]
        assert h.services.accounts.accounts[ada.id].email in detail and "segment" in detail
        assert len(await bob.pull("facts")) == 3

    run_for_one(tmp_path, scenario)


def test_recovery_rejects_file_with_damaged_segment(tmp_path):
    async def scenario(h, ada):
        await ada.add("facts", fact("f1"))
        await change(h, ada, "UPDATE packs SET bodies = replace(bodies, 'Ada', 'Eve')")
        async with h.services.users.detached(ada.id):
            with pytest.raises(OSError, match="checksum"):
                await recover(records(tmp_path, ada), set())

    run_for_one(tmp_path, scenario)


def test_valid_old_segments_get_checksums(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            for number in range(4):
                await ada.add("facts", fact(f"f{number}", key=f"k{number}"))
            written = await checksums(h, ada)
            await change(h, ada, CLEAR)
            await change(
                h,
                ada,
                "UPDATE packs SET bodies = replace(bodies, '\"confidence\":1', '\"confidence\":7') WHERE first = 2",
            )
            assert [value for _, value in await checksums(h, ada)] == [None] * 4
            async with h.services.users.open(ada.id) as store:
                while await store.add_checksums():
                    pass
            assert await checksums(h, ada) == [(n, None if n == 2 else value) for n, value in written]
            assert len(await ada.live("facts")) == 4
        async with serve(tmp_path) as h:
            assert await checksums(h, ada) == [(n, None if n == 2 else value) for n, value in written]

    run(scenario)


def test_old_segment_rewritten_by_deletes_stays_without_checksum(tmp_path):
    async def scenario(h, ada):
        rows = [fact(f"f{number}", key=f"k{number}") for number in range(3)]
        await ada.add("facts", *rows)
        await change(h, ada, CLEAR)
        await ada.push("facts", {**rows[0], "_deleted": True}, assumed=rows[0])
        [(_, old), (_, new)] = await checksums(h, ada)
        assert old is None and new is not None
        async with h.services.users.open(ada.id) as store:
            assert await store.add_checksums() and not await store.add_checksums()
        assert all(value for _, value in await checksums(h, ada))
        assert set(await ada.live("facts")) == {"f1", "f2"}

    run_for_one(tmp_path, scenario)


async def change_attached(h, person, statement):
    """Run a statement on the person's file through the server's connection, so that the file stays attached."""
    async with h.services.users.open(person.id) as store:
        await h.services.instance.run(lambda c: c.execute(statement.format(f"{store.alias}.main.packs")))


def test_segment_checksum_is_verified_once_per_attach(tmp_path, monkeypatch):
    verified = []
    verify = segments.verify

    def counted(collection, first, *columns, bodies=None, **more):
        verify(collection, first, *columns, bodies=bodies, **more)
        if bodies is not None:
            verified.append(first)

    monkeypatch.setattr(segments, "verify", counted)

    async def scenario(h, ada):
        for number in range(3):
            await ada.add("facts", fact(f"f{number}", key=f"k{number}"))
        for _ in range(3):
            assert len(await ada.pull("facts")) == 3
        assert sorted(verified) == [first for first, _ in await checksums(h, ada)]
        await change(h, ada, "SELECT 1")
        await ada.pull("facts")
        assert len(verified) == 6

    run_for_one(tmp_path, scenario)


@pytest.mark.parametrize("rewritten", [False, True])
def test_new_and_rewritten_segments_are_verified_when_first_read(tmp_path, rewritten):
    async def scenario(h, ada):
        rows = [fact(f"f{number}", key=f"k{number}") for number in range(3)]
        if rewritten:
            await ada.add("facts", *rows)
            assert len(await ada.pull("facts")) == 3
            await ada.add("facts", {**rows[0], "_deleted": True})
        else:
            await ada.add("facts", fact("f9", key="k9"))
            assert len(await ada.pull("facts")) == 1
            await ada.add("facts", *rows)
        await change_attached(
            h, ada, "UPDATE {} SET bodies = replace(bodies, 'Ada', 'Eve') WHERE bodies LIKE '%k1%'"
        )
        check_problem(await ada.call("GET", PULL), 503, "FENCED")

    run_for_one(tmp_path, scenario)


def test_rewrite_of_a_verified_segment_verifies_it_again(tmp_path):
    """Otherwise the rewrite would store damaged rows with a valid checksum."""

    async def scenario(h, ada):
        rows = [fact(f"f{number}", key=f"k{number}") for number in range(3)]
        await ada.add("facts", *rows)
        assert len(await ada.pull("facts")) == 3
        await change_attached(h, ada, "UPDATE {} SET bodies = replace(bodies, 'Ada', 'Eve')")
        batch = [{"newDocumentState": {**rows[0], "_deleted": True}}]
        check_problem(await ada.call("POST", "/v1/sync/facts/0/push", json=batch), 503, "FENCED")

    run_for_one(tmp_path, scenario)

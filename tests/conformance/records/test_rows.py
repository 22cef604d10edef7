"""Every records engine behaves the same for rows, pages, tombstones, epochs and savepoints."""

import asyncio
import json
import random

import msgspec
import pytest

from conformance.records.engines import NOW
from property.rows import document, episode, fact, memory, session
from vademecum.model.sync.cascade import delete_with_dependents
from vademecum.model.sync.transaction import SEQ_JUMP


def put(collection, *rows, **options):
    """Return a function for `store.write` that puts these rows as JSON with spaces, which engines must preserve."""

    def work(tx):
        for row in rows:
            tx.put(f"{collection}/{row['id']}", row, json.dumps(row).encode(), **options)

    return work


def delete(*keys):
    return lambda tx: delete_with_dependents(tx, *keys)


def keys_after(store, collection, seq=0, limit=100):
    return [key for _, key in store.entries_after(collection, seq, limit)]


def test_row_bytes_are_unchanged_after_a_restart(engine):
    row = fact("f", value='ü 😀 " \\ 1e2')
    body = json.dumps(row, ensure_ascii=False).replace(": ", " : ").encode()

    async def write(store):
        await store.write(lambda tx: tx.put("facts/f", row, body))
        assert await store.read_bodies(["facts/f", "facts/missing"]) == {"facts/f": body}
        assert store.is_live("facts/f") and not store.is_live("facts/missing")

    async def read(store):
        assert await store.read_bodies(["facts/f"]) == {"facts/f": body}

    engine.run_for_ada(write)
    engine.run_for_ada(read)


def test_transaction_reads_its_own_and_committed_rows(engine):
    async def scenario(store):
        await store.write(put("facts", fact("a", value="1")))

        def work(tx):
            put("facts", fact("b", value="2"))(tx)
            return [tx.row(key)["value"] for key in ("facts/a", "facts/b")], tx.row_state("facts/c")

        assert await store.write(work) == (["1", "2"], "missing")

    engine.run_for_ada(scenario)


def test_all_collections_share_one_sequence(engine):
    async def scenario(store):
        await store.write(put("facts", fact("a"), fact("b")))
        await store.write(put("sessions", session("s")))
        await store.write(put("facts", fact("c")))
        entries = store.entries_after("facts", 0, 10) + store.entries_after("sessions", 0, 10)
        assert sorted(entries) == [(1, "facts/a"), (2, "facts/b"), (3, "sessions/s"), (4, "facts/c")]
        assert (store.seq, store.latest_seq("facts"), store.latest_seq("sessions")) == (4, 4, 3)

    engine.run_for_ada(scenario)


def test_pages_list_each_row_once_at_its_latest_seq(engine):
    async def scenario(store):
        await store.write(put("facts", *(fact(name) for name in "abcde")))
        await store.write(put("facts", fact("b", value="new")))
        await store.write(delete("facts/d"))
        assert keys_after(store, "facts") == ["facts/a", "facts/c", "facts/e", "facts/b", "facts/d"]
        first = store.entries_after("facts", 0, 2)
        assert keys_after(store, "facts", first[-1][0], 2) == ["facts/e", "facts/b"]
        assert keys_after(store, "facts", store.seq) == []
        return store.entries_after("facts", 0, 10)

    async def entries(store):
        return store.entries_after("facts", 0, 10)

    assert engine.run_for_ada(scenario) == engine.run_for_ada(entries)


def test_delete_leaves_a_tombstone_without_content(engine):
    async def scenario(store):
        await store.write(put("facts", fact("f", value="secret")))
        await store.write(delete("facts/f"))
        (body,) = (await store.read_bodies(["facts/f"])).values()
        assert json.loads(body)["_deleted"] and b"secret" not in body
        assert not store.is_live("facts/f") and keys_after(store, "facts") == ["facts/f"]
        assert store.usage.bytes == 0

    engine.run_for_ada(scenario)


def test_purge_leaves_no_tombstone_and_reuses_no_seq(engine):
    async def purge(store):
        await store.write(put("facts", fact("f")))
        await store.write(delete("facts/f"))
        await store.write(lambda tx: tx.purge("facts/f"))
        assert await store.read_bodies(["facts/f"]) == {} and keys_after(store, "facts") == []
        return store.seq

    async def add(store):
        await store.write(put("facts", fact("g")))
        return store.seq

    assert engine.run_for_ada(purge) == 2 and engine.run_for_ada(add) > 2


def test_waiting_row_has_no_seq_and_is_not_listed(engine):
    async def wait(store):
        await store.write(put("episodes", episode("e", "s"), waiting=True))
        assert keys_after(store, "episodes") == [] and store.seq == 0
        assert not store.is_live("episodes/e") and store.usage.bytes > 0

    async def arrive(store):
        assert list(await store.read_bodies(["episodes/e"])) == ["episodes/e"]
        assert store.row_index.dependents["sessions/s"] == {"episodes/e"}
        await store.write(put("episodes", episode("e", "s")))
        assert keys_after(store, "episodes") == ["episodes/e"] and store.is_live("episodes/e")

    engine.run_for_ada(wait)
    engine.run_for_ada(arrive)


def test_failed_transaction_of_a_shared_commit_is_rolled_back_alone(engine):
    """Transactions that arrive together may share a commit; each sees the changes of those before it."""

    async def scenario(store):
        await store.write(put("sessions", session("s", externalId="x")))

        def fail(tx):
            put("facts", fact("lost"))(tx)
            put("sessions", session("s", externalId="y"))(tx)
            tx.forget_everything(tx.now)
            raise ValueError("halfway")

        works = (
            put("facts", fact("a")),
            fail,
            put("facts", fact("b")),
            lambda tx: tx.find_unique("sessions", "x"),
        )
        answers = await asyncio.gather(*(store.write(work) for work in works), return_exceptions=True)
        assert isinstance(answers[1], ValueError) and answers[3] == "sessions/s"
        assert keys_after(store, "facts") == ["facts/a", "facts/b"] and store.forgotten_at == ""
        assert [seq for seq, _ in store.entries_after("facts", 0, 9)] == [2, 3]

    engine.run_for_ada(scenario)


def test_transaction_without_changes_takes_no_seq(engine):
    async def scenario(store):
        assert await store.write(lambda tx: 7) == 7
        assert store.seq == 0

    engine.run_for_ada(scenario)


def test_seq_grows_across_restarts(engine):
    async def add(store):
        seq = store.seq
        await store.write(put("facts", fact(f"f{seq}")))
        return store.entries_after("facts", seq, 9)

    pages = [engine.run_for_ada(add) for _ in range(3)]
    assert all(len(page) == 1 for page in pages)
    seqs = [page[0][0] for page in pages]
    assert seqs == sorted(set(seqs))


def test_new_epoch_continues_above_the_old_seq(engine):
    async def begin(store):
        await store.write(put("facts", fact("a")))
        before = store.epoch, store.checkpoint_id(1)
        await store.write(lambda tx: tx.begin_epoch("new", 5 * SEQ_JUMP))
        await store.write(put("facts", fact("b")))
        assert store.epoch == "new" and not store.proves_rollback(1, before[1])
        assert store.meta.restored_seq == 1 and store.seq == 5 * SEQ_JUMP + 1
        return store.checkpoint_id(store.seq)

    async def check(store):
        assert store.epoch == "new" and store.meta.restored_seq == 1
        assert store.checkpoint_id(5 * SEQ_JUMP + 1) == signed

    signed = engine.run_for_ada(begin)
    engine.run_for_ada(check)


def test_signed_checkpoint_above_seq_proves_a_rollback(engine):
    async def scenario(store):
        await store.write(put("facts", fact("a")))
        assert store.checkpoint_id(1).startswith(f"{store.epoch}.")
        assert store.checkpoint_id(9) == store.epoch, "the checkpoint of an unassigned seq must not be signed"
        assert store.proves_rollback(9, store._signed_id(9))
        assert not store.proves_rollback(9, f"{store.epoch}.forged")
        assert not store.proves_rollback(1, store.checkpoint_id(1))

    engine.run_for_ada(scenario)


def test_forget_everything_changes_the_key_of_derived_ids(engine):
    async def forget(store):
        before = store.meta.id_key
        await store.write(lambda tx: tx.forget_everything(NOW))
        assert store.forgotten_at == NOW and store.meta.id_key not in ("", before)
        return store.meta

    async def meta(store):
        return store.meta

    forgotten, reopened = engine.run_for_ada(forget), engine.run_for_ada(meta)
    assert (forgotten.forgotten_at, forgotten.id_key) == (reopened.forgotten_at, reopened.id_key)


def test_users_do_not_see_rows_of_each_other(engine):
    async def scenario(stores):
        async with stores.open("ada") as ada, stores.open("bob") as bob:
            await ada.write(put("facts", fact("f")))
            assert await bob.read_bodies(["facts/f"]) == {} and keys_after(bob, "facts") == []
            assert ada.epoch != bob.epoch and bob.seq == 0

    engine.run(scenario)


def test_task_cannot_open_a_store_twice_at_the_same_time(engine):
    async def scenario(stores):
        async with stores.open("ada"):
            with pytest.raises(RuntimeError):
                async with stores.open("ada"):
                    pass

    engine.run(scenario)


def test_removed_user_starts_with_an_empty_store(engine):
    async def scenario(stores):
        assert not stores.has_records("ada")
        async with stores.open("ada") as store:
            await store.write(put("facts", fact("f")))
        assert stores.has_records("ada")
        await stores.remove("ada")
        assert not stores.has_records("ada")
        async with stores.open("ada") as store:
            assert await store.read_bodies(["facts/f"]) == {} and store.seq == 0

    engine.run(scenario)


def test_rewrite_erases_deleted_text_from_the_folder(engine):
    secret = "a sentence that is deleted and must leave the disk"

    async def scenario(stores):
        async with stores.open("ada") as store:
            await store.write(put("facts", fact("f", value=secret), fact("g")))
            await store.write(delete("facts/f"))
        await stores.rewrite("ada")
        async with stores.detached("ada") as folder:
            contents = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        async with stores.open("ada") as store:
            assert store.is_live("facts/g") and keys_after(store, "facts") == ["facts/g", "facts/f"]
        assert secret.encode() not in contents

    engine.run(scenario)


def test_hooks_see_each_commit_and_may_add_changes(engine):
    commits, attached = [], []

    async def attach(store):
        attached.append(store.user_id)

    def before_commit(tx):
        if "facts/f" in tx.changes and tx.row_state("facts/added") == "missing":
            put("facts", fact("added"))(tx)

    engine.hooks.on_attach = attach
    engine.hooks.before_commit = before_commit
    engine.hooks.on_commit = lambda store, changes: commits.append([c.key for c in changes])

    async def scenario(store):
        await store.write(put("facts", fact("f")))
        await store.write(lambda tx: None)
        assert store.is_live("facts/added")

    engine.run_for_ada(scenario)
    assert attached == ["ada"] and commits == [["facts/f", "facts/added"]]


@pytest.mark.parametrize("seed", range(3))
def test_restart_restores_the_row_index(engine, seed):
    chance = random.Random(seed)
    names = [f"r{number}" for number in range(8)]

    def change_some(tx):
        for _ in range(chance.choice((1, 3, 9))):
            name, other = chance.choice(names), chance.choice(names)
            match chance.randrange(5):
                case 0:
                    put("sessions", session(name, externalId=f"{name}.{other}"))(tx)
                case 1:
                    put("documents", document("ada", name, activeSessions=[other]))(tx)
                case 2:
                    waiting = tx.row_state(f"sessions/{other}") != "live"
                    put("episodes", episode(name, other), waiting=waiting)(tx)
                case 3:
                    put("memories", memory(name, sessionIds=[other]))(tx)
                case 4:
                    delete_with_dependents(
                        tx, f"{chance.choice(('sessions', 'documents', 'memories'))}/{name}"
                    )

    def state(store):
        index = store.row_index
        pages = [
            store.entries_after(name, 0, 1000) for name in ("sessions", "documents", "episodes", "memories")
        ]
        return index.rows, index.links, index.totals, pages

    async def write(store):
        for _ in range(15):
            await store.write(change_some)
        bodies = await store.read_bodies(list(store.row_index.rows))
        return state(store), {key: msgspec.json.decode(body) for key, body in bodies.items()}

    async def read(store):
        bodies = await store.read_bodies(list(store.row_index.rows))
        return state(store), {key: msgspec.json.decode(body) for key, body in bodies.items()}

    for _ in range(2):
        assert engine.run_for_ada(write) == engine.run_for_ada(read)

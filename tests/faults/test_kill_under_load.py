"""Kill the server at random moments under load. No acknowledged write is lost, and no write is duplicated or partial.

The settings make rare events frequent: fewer files are attached than there are users, and erasures start at once. So
kills also interrupt attaches, detaches, file rewrites and index compaction. A few rounds use the published model and
start each server in a new process, like users do; these starts are measured. `SEED` repeats the choices of a run, but
not its timing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import time
from dataclasses import dataclass
from random import Random

from faults.device_workload import (
    PARENT,
    READING_SESSION,
    Acknowledged,
    Deletion,
    Json,
    Push,
    Request,
    Upload,
    User,
    document,
    parent_of,
    session,
)
from faults.server_process import ROOT, ServerProcess
from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import download, manifest

MODELS = ROOT / ".cache" / "models"
MODEL = "all-minilm-l6-v2"
SETTINGS = {"attached_max": "2", "erase_delay_s": "0.2", "search_wait_s": "30"}
FIRST_ANSWER_S = 2.0  # maximum time from the start of the process to the first answered pull
READY_S = 10.0
SOAK = bool(os.environ.get("SOAK"))
ROUNDS, NEW_PROCESS_ROUNDS, DELETED_WORDS_MAX = (200, 50, 2000) if SOAK else (20, 3, 500)
WRITERS = ("write_sessions", "write_documents", "borrow_document", "upload_files")
READERS = ("pull", "stream_changes")
WORD = re.compile("zq[0-9a-f]{12}")
SETTLE_S = 60.0


def test_server_kills_under_load_lose_and_duplicate_no_write(tmp_path):
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng, tally, small = Random(seed), Tally(), tmp_path / "models"
    download.prepare_from_folder(write_source(tmp_path / "source", MODEL), tmp_path / "source", small)
    real = ServerProcess(tmp_path / "real", MODELS, SETTINGS)
    asyncio.run(run_rounds(real, rng, tally, NEW_PROCESS_ROUNDS, in_new_process=True))
    quick = ServerProcess(tmp_path / "quick", small, SETTINGS)
    asyncio.run(run_rounds(quick, rng, tally, ROUNDS - NEW_PROCESS_ROUNDS))
    report(real)
    assert tally.interrupting_kills > ROUNDS / 2 and tally.stored and tally.absent, tally
    assert len(real.first_answer_s) == NEW_PROCESS_ROUNDS + 2
    if SOAK:  # only then, because beside other tests a median of 2.07 s was measured
        assert statistics.median(real.first_answer_s) <= FIRST_ANSWER_S, real.first_answer_s
        assert max(real.ready_s) <= READY_S, real.ready_s


@dataclass
class Tally:
    """Counts of kills and interrupted writes. A run without interrupted writes would prove nothing."""

    stored: int = 0  # writes without a response that the server had stored
    absent: int = 0  # writes without a response that the server had not stored
    searched: int = 0
    killed_starts: int = 0
    interrupting_kills: int = 0


async def run_rounds(
    server: ServerProcess, rng: Random, tally: Tally, rounds: int, *, in_new_process: bool = False
) -> None:
    try:
        users = await create_users(server)
        for number in range(rounds):
            if number % 4 == 2:
                await kill_during_start(server, rng, in_new_process=in_new_process)
                tally.killed_starts += 1
            await start(server, users, first=number, in_new_process=in_new_process)
            await check_all(users, tally, search=number % 5 == 4)
            await load_until_killed(server, users, rng)
            tally.interrupting_kills += any(user.unanswered for user in users)
        await start(server, users, first=rounds, in_new_process=in_new_process)
        await check_all(users, tally, search=True)
        await close_client(users)
        server.stop()  # a normal stop, which checkpoints the files
        await start(server, users, first=0, in_new_process=in_new_process)
        await check_all(users, tally, search=True)
        await close_client(users)
    finally:
        server.kill()
        print(tally)
    assert all(user.acknowledged.rows and user.acknowledged.uploads for user in users)


def report(server: ServerProcess) -> None:
    measured = {
        "first sync answer": server.first_answer_s,
        "ready": server.ready_s,
        "ready, wall time": server.wall_s,
    }
    for name, figures in measured.items():
        if figures:
            middle, most = statistics.median(figures), max(figures)
            print(f"{name}: {len(figures)} starts, median {middle:.2f} s, longest {most:.2f} s")


# -- starts, load and kills -----------------------------------------------------------------------------------------


async def create_users(server: ServerProcess) -> list[User]:
    model = manifest.load(server.models / MODEL)
    client = await server.start()
    await client.aclose()
    users = []
    for name in ("ada", "bob", "cleo"):
        user_id, token = await server.add_user(f"{name}@example.org")
        users.append(User(name, user_id, token, model.hash, model.dims))
    server.kill()
    return users


async def start(
    server: ServerProcess, users: list[User], first: int, *, in_new_process: bool = False
) -> None:
    """Start the server. Use the token of a different user for the first pull each time."""
    client = await server.start(users[first % len(users)].token, in_new_process=in_new_process)
    for user in users:
        user.client = client


async def close_client(users: list[User]) -> None:
    assert users[0].client is not None
    await users[0].client.aclose()


async def kill_during_start(server: ServerProcess, rng: Random, *, in_new_process: bool) -> None:
    """Kill the server during its start, or just afterwards, while it completes work of the previous run."""
    server.spawn(in_new_process=in_new_process)
    await asyncio.sleep(rng.uniform(0.4, 1.4) if in_new_process else rng.uniform(0.1, 0.8))
    server.kill()


async def load_until_killed(server: ServerProcess, users: list[User], rng: Random) -> None:
    seeds = (str(rng.getrandbits(64)) for _ in iter(int, 1))
    tasks = [
        asyncio.create_task(user.run_until_killed(name, seed, 0.0 if name in READERS else 0.03))
        for user in users
        for name, seed in zip(WRITERS + READERS, seeds, strict=False)
    ]
    await asyncio.sleep(rng.uniform(0.05, 0.9))
    server.kill()
    await asyncio.gather(*tasks)
    await close_client(users)


# -- checks after each start ------------------------------------------------------------------------------------------


async def check_all(users: list[User], tally: Tally, *, search: bool) -> None:
    """Check all users concurrently, because each may wait for vectors."""
    counts = await asyncio.gather(*(check_user(user, tally, search=search) for user in users))
    tally.searched += sum(counts)


async def check_user(user: User, tally: Tally, *, search: bool) -> int:
    assert user.errors == [], user.errors
    await check_records(user, tally)
    await check_readers(user)
    await repeat_unanswered(user)
    return await check_search(user) if search else 0


async def check_records(user: User, tally: Tally) -> None:
    """Check that each acknowledged write is stored, and each unanswered write is stored completely or not at all."""
    unanswered = len(pushes(user))
    check_pull(user, await user.full_pull())
    if await push_missing_parents(user):
        check_pull(user, await user.full_pull())
    tally.absent += len(pushes(user))
    tally.stored += unanswered - len(pushes(user))


def check_pull(user: User, full: dict[str, Json]) -> None:
    """Compare a full pull with the acknowledged writes. Record unanswered writes that the server has stored."""
    live = {key: row for key, row in full.items() if not row["_deleted"]}
    uploaded = check_uploads(user, live)
    synced = {key: row for key, row in live.items() if key not in uploaded}
    before = user.acknowledged.visible()
    for request in [push for push in pushes(user) if was_stored(user.acknowledged, push, before, synced)]:
        user.acknowledged.apply(request.effects)
        user.unanswered.remove(request)
    assert_same(user.acknowledged.visible(), synced)
    assert words_of(full.values()) == words_of(live.values()), "a tombstone has content"


def pushes(user: User) -> list[Push]:
    return [request for request in user.unanswered if isinstance(request, Push)]


def was_stored(
    acknowledged: Acknowledged, request: Push, before: dict[str, Json], live: dict[str, Json]
) -> bool:
    """Return whether this unanswered push was stored. Fail if only a part was. Waiting rows are not in `live`."""
    after = acknowledged.visible(request.effects)
    changed = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
    states = {key: live.get(key) for key in changed}
    if states == {key: before.get(key) for key in changed}:
        return False
    assert states == {key: after.get(key) for key in changed}, (
        f"a partial unanswered write, or an acknowledged row is lost: {states}"
    )
    return True


async def push_missing_parents(user: User) -> bool:
    """Push missing parents of unanswered rows, so that stored rows do not wait but are visible."""
    parents = {parent_of(f"{push.collection}/{row['id']}", row) for push in pushes(user) for row in push.rows}
    missing = {key for key in parents if key and key not in user.acknowledged.rows}
    rng = Random("-".join(sorted(missing)))
    for key in missing:
        collection, _, row_id = key.partition("/")
        new = session(row_id, rng) if collection == "sessions" else document(user.id, row_id, rng, 1)
        await user.store(collection, new)
    return bool(missing)


def check_uploads(user: User, live: dict[str, Json]) -> set[str]:
    """Check that each acknowledged upload is stored once and completely. Return the keys of the rows of all uploads."""
    expected = dict(user.acknowledged.uploads)
    unanswered = [request for request in user.unanswered if isinstance(request, Upload | Deletion)]
    optional = {request.hash for request in unanswered}
    texts = {content_hash: text for content_hash, (_, text) in expected.items()}
    texts |= {request.hash: request.text for request in unanswered if isinstance(request, Upload)}
    keys: set[str] = set()
    for content_hash, text in texts.items():
        ids = [r["id"] for r in documents_of(live) if r["contentHash"] == content_hash]
        assert len(ids) <= 1, f"duplicate upload: {ids}"
        assert ids or content_hash in optional, "an acknowledged upload is lost"
        assert content_hash not in expected or ids in ([], [expected[content_hash][0]])
        for document_id in ids:
            blocks = blocks_of(live, document_id)
            check_complete(live[f"documents/{document_id}"], blocks, text)
            keys |= {f"documents/{document_id}", *(f"vectorEmbeddings/{b['id']}" for b in blocks)}
    return keys


def check_complete(row: Json, blocks: list[Json], text: str) -> None:
    chunks = [chunk for block in blocks for chunk in block["chunks"]]
    assert len(chunks) == row["chunkCount"], f"partial upload: {row}"
    assert words_of(chunks) == set(WORD.findall(text))


def documents_of(live: dict[str, Json]) -> list[Json]:
    return [row for key, row in live.items() if key.startswith("documents/")]


def blocks_of(live: dict[str, Json], document_id: str) -> list[Json]:
    rows = [row for key, row in live.items() if key.startswith("vectorEmbeddings/")]
    return [row for row in rows if row[PARENT["vectorEmbeddings"][1]] == document_id]


def assert_same(expected: dict[str, Json], actual: dict[str, Json]) -> None:
    lost = sorted(expected.keys() - actual.keys())
    unexpected = sorted(actual.keys() - expected.keys())
    changed = sorted(k for k in expected.keys() & actual.keys() if expected[k] != actual[k])
    assert not (lost or unexpected or changed), (
        f"{len(lost)} lost {lost[:5]}, {len(unexpected)} unexpected {unexpected[:5]}, "
        f"{len(changed)} changed {[(expected[k], actual[k]) for k in changed[:1]]}"
    )


def words_of(rows) -> set[str]:
    return set(WORD.findall(json.dumps(list(rows))))


async def repeat_unanswered(user: User) -> None:
    """Repeat all unanswered requests, as a device does. This is safe because they are idempotent."""
    requests: list[Request] = list(user.unanswered)
    user.unanswered.clear()
    for request in requests:
        await user.send(request)
    assert user.errors == [], user.errors


async def check_readers(user: User) -> None:
    """Check that both reading devices have the rows that a new device gets, once uploads have their vectors."""
    end = time.monotonic() + SETTLE_S
    while True:
        await user.pull_device.catch_up(user)
        await user.stream_device.catch_up(user)
        full = await user.full_pull()
        if user.pull_device.seen == full == user.stream_device.seen:
            return
        if time.monotonic() > end:
            assert_same(full, user.pull_device.seen)
            assert_same(full, user.stream_device.seen)
        await asyncio.sleep(0.3)


# -- the search index -------------------------------------------------------------------------------------------------


async def check_search(user: User) -> int:
    """Check that search finds each word of the session's live blocks in the right chunk, and no word of deleted blocks.

    Return the number of words found.
    """
    live = {key: row for key, row in (await user.full_pull()).items() if not row["_deleted"]}
    active = [row["id"] for row in documents_of(live) if READING_SESSION in row["activeSessions"]]
    chunks: dict[str, tuple[str, int, int]] = {}
    for document_id in active:
        for block in blocks_of(live, document_id):
            for chunk in block["chunks"]:
                for word in WORD.findall(chunk["text"]):
                    chunks[word] = (document_id, block["block"], chunk["index"])
    for batch in batches(list(chunks), 80):
        assert await search(user, batch) == {chunks[word] for word in batch}
    deleted = words_of(user.acknowledged.deleted.values()) | words_of(
        user.acknowledged.deleted_uploads.values()
    )
    for batch in batches(sorted(deleted - chunks.keys())[:DELETED_WORDS_MAX], 100):
        assert await search(user, batch) == set(), "a word of a deleted or changed row is found"
    return len(chunks)


def batches(words: list[str], size: int) -> list[list[str]]:
    return [words[start : start + size] for start in range(0, len(words), size)]


async def search(user: User, words: list[str]) -> set[tuple[str, int, int]]:
    """Search for the words. Return the found chunks as triples of document id, block and chunk index."""
    question = {"query": " ".join(words), "sessionId": READING_SESSION, "mode": "words", "k": 100}
    response = await user.call("POST", "/v1/search", json=question)
    assert response.status_code == 200, response.text
    result = response.json()
    assert result["scope"]["complete"] and result["scope"]["mode"] == "words"
    chunks = [(hit["documentId"], hit["block"], hit["chunkIndex"]) for hit in result["results"]]
    assert len(set(chunks)) == len(chunks), "search returned a chunk twice"
    return set(chunks)

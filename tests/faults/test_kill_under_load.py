"""Kill -9 at any moment, under load: nothing acknowledged is lost, nothing comes twice, no write is there by half.

The server is a real process on a real port. Its settings make rare things frequent: fewer files attached than there are
users, and erasures that begin at once, so that kills also meet attaches, detaches, rewrites of the file and clean-ups
of the index. A few of the rounds are as a person has it: with the model that is published, and each start from
nothing, which is what is measured. `SEED` repeats the choices of a run, though not its timing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from faults.server_process import ROOT, Served
from faults.writing_devices import (
    PARENT,
    READING,
    Attempt,
    Book,
    Json,
    Push,
    Removal,
    Upload,
    User,
    document,
    parent_of,
    session,
)
from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import download, manifest

MODELS = ROOT / ".cache" / "models"
MODEL = "all-minilm-l6-v2"
SETTINGS = {"attached_max": "2", "erase_delay_s": "0.2", "search_wait_s": "30"}
FIRST_ANSWER_S = 2.0  # the contract's: from the start of the process to the first answered pull
READY_S = 10.0
SOAK = bool(os.environ.get("SOAK"))
ROUNDS, ANEW, DEAD_MAX = (200, 50, 2000) if SOAK else (20, 3, 500)  # the last: words that must not be found
WRITERS = ("talk", "collect", "borrow", "upload")
READERS = ("pull", "follow")
WORD = re.compile("zq[0-9a-f]{12}")
SETTLE_S = 60.0


def test_twenty_kills_lose_nothing_double_nothing_and_leave_nothing_by_half(tmp_path):
    seed = int(os.environ.get("SEED", time.time_ns()))
    print(f"SEED={seed}")
    rng, tally, small = Random(seed), Tally(), tmp_path / "models"
    download.prepare_from_folder(write_source(tmp_path / "source", MODEL), tmp_path / "source", small)
    real = Served(tmp_path / "real", MODELS, SETTINGS)
    asyncio.run(besiege(real, rng, tally, ANEW, in_new_process=True))
    quick = Served(tmp_path / "quick", small, SETTINGS)
    asyncio.run(besiege(quick, rng, tally, ROUNDS - ANEW))
    report(real)
    assert tally.kills_in_the_act > ROUNDS / 2 and tally.stored and tally.absent, tally
    # The usual start: on a machine six times overloaded a single one of seven measured 2.6 s.
    assert len(real.first_answer_s) == ANEW + 2
    assert statistics.median(real.first_answer_s) <= FIRST_ANSWER_S, real.first_answer_s
    assert max(real.ready_s) <= READY_S, real.ready_s


@dataclass
class Tally:
    """What a run met, to be printed: a run that met nothing proves nothing."""

    stored: int = 0  # unanswered writes that were there
    absent: int = 0
    searched: int = 0
    starts_cut: int = 0
    kills_in_the_act: int = 0


async def besiege(
    served: Served, rng: Random, tally: Tally, rounds: int, *, in_new_process: bool = False
) -> None:
    try:
        users = await begin(served)
        for number in range(rounds):
            if number % 4 == 2:
                await cut_a_start(served, rng, in_new_process=in_new_process)
                tally.starts_cut += 1
            await start(served, users, first=number, in_new_process=in_new_process)
            await check_all(users, tally, search=number % 5 == 4)
            await load_until_killed(served, users, rng)
            tally.kills_in_the_act += any(user.unanswered for user in users)
        await start(served, users, first=rounds, in_new_process=in_new_process)
        await check_all(users, tally, search=True)
        await close(users)
        served.stop()  # and what it folds together when it is asked to stop is the same
        await start(served, users, first=0, in_new_process=in_new_process)
        await check_all(users, tally, search=True)
        await close(users)
    finally:
        served.kill()
        print(tally)
    assert all(user.book.rows and user.book.uploads for user in users)


def report(served: Served) -> None:
    measured = {
        "first sync answer": served.first_answer_s,
        "ready": served.ready_s,
        "by the wall": served.wall_s,
    }
    for name, figures in measured.items():
        if figures:
            middle, most = statistics.median(figures), max(figures)
            print(f"{name}: {len(figures)} starts, median {middle:.2f} s, longest {most:.2f} s")


# -- the siege ------------------------------------------------------------------------------------------------------


async def begin(served: Served) -> list[User]:
    model = manifest.load(served.models / MODEL)
    client = await served.start()
    await client.aclose()
    users = []
    for name in ("ada", "bob", "cleo"):
        user_id, token = await served.add_user(f"{name}@example.org")
        users.append(User(name, user_id, token, model.hash, model.dims))
    served.kill()
    return users


async def start(served: Served, users: list[User], first: int, *, in_new_process: bool = False) -> None:
    """Start; the first question is that of another user each time."""
    client = await served.start(users[first % len(users)].token, in_new_process=in_new_process)
    for user in users:
        user.client = client


async def close(users: list[User]) -> None:
    assert users[0].client is not None
    await users[0].client.aclose()


async def cut_a_start(served: Served, rng: Random, *, in_new_process: bool) -> None:
    """Kill it while it comes up, or just after, when it takes up what the last crash left undone."""
    served.spawn(in_new_process=in_new_process)
    await asyncio.sleep(rng.uniform(0.4, 1.4) if in_new_process else rng.uniform(0.1, 0.8))
    served.kill()


async def load_until_killed(served: Served, users: list[User], rng: Random) -> None:
    seeds = (str(rng.getrandbits(64)) for _ in iter(int, 1))
    tasks = [
        asyncio.create_task(user.go_on(name, seed, 0.0 if name in READERS else 0.03))
        for user in users
        for name, seed in zip(WRITERS + READERS, seeds, strict=False)
    ]
    await asyncio.sleep(rng.uniform(0.05, 0.9))
    served.kill()
    await asyncio.gather(*tasks)
    await close(users)


# -- what must hold after each start ----------------------------------------------------------------------------------


async def check_all(users: list[User], tally: Tally, *, search: bool) -> None:
    """All users beside each other: each waits for vectors of their own."""
    found = await asyncio.gather(*(check(user, tally, search=search) for user in users))
    tally.searched += sum(found)


async def check(user: User, tally: Tally, *, search: bool) -> int:
    assert user.wrong == [], user.wrong
    await check_records(user, tally)
    await check_readers(user)
    await send_again(user)
    return await check_search(user) if search else 0


async def check_records(user: User, tally: Tally) -> None:
    """All that was acknowledged, and of the unanswered each wholly or not at all."""
    unanswered = len(pushes(user))
    judge(user, await user.full_pull())
    if await reveal(user):
        judge(user, await user.full_pull())
    tally.absent += len(pushes(user))
    tally.stored += unanswered - len(pushes(user))


def judge(user: User, full: dict[str, Json]) -> None:
    live = {key: row for key, row in full.items() if not row["_deleted"]}
    uploaded = check_uploads(user, live)
    synced = {key: row for key, row in live.items() if key not in uploaded}
    before = user.book.visible()
    for attempt in [a for a in pushes(user) if is_there(user.book, a, before, synced)]:
        user.book.apply(attempt.effects)
        user.unanswered.remove(attempt)
    assert_same(user.book.visible(), synced)
    kept = words_of(live.values())
    assert words_of(full.values()) == kept, "a tombstone carries content"


def pushes(user: User) -> list[Push]:
    return [a for a in user.unanswered if isinstance(a, Push)]


def is_there(book: Book, attempt: Push, before: dict[str, Json], live: dict[str, Json]) -> bool:
    """Was this unanswered push stored? By half is an error. One that waits for a parent cannot be seen yet."""
    after = book.visible(attempt.effects)
    changed = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
    states = {key: live.get(key) for key in changed}
    if states == {key: before.get(key) for key in changed}:
        return False
    assert states == {key: after.get(key) for key in changed}, (
        f"half of an unanswered write, or something acknowledged before it is lost: {states}"
    )
    return True


async def reveal(user: User) -> bool:
    """Bring the parents of unanswered rows that may be waiting for them, so that they come to light."""
    wanted = {parent_of(f"{a.collection}/{row['id']}", row) for a in pushes(user) for row in a.rows}
    missing = {key for key in wanted if key and key not in user.book.rows}
    rng = Random("-".join(sorted(missing)))
    for key in missing:
        collection, _, row_id = key.partition("/")
        new = session(row_id, rng) if collection == "sessions" else document(user.id, row_id, rng, 1)
        await user.store(collection, new)
    return bool(missing)


def check_uploads(user: User, live: dict[str, Json]) -> set[str]:
    """Each acknowledged upload is there once and whole; returns the keys that uploads account for."""
    wanted = dict(user.book.uploads)
    optional = {a.hash: a for a in user.unanswered if isinstance(a, Upload | Removal)}
    texts = {h: text for h, (_, text) in wanted.items()} | {
        h: a.text for h, a in optional.items() if isinstance(a, Upload)
    }
    keys: set[str] = set()
    for content_hash, text in texts.items():
        ids = [r["id"] for r in documents_of(live) if r["contentHash"] == content_hash]
        assert len(ids) <= 1, f"one upload twice: {ids}"
        assert ids or content_hash in optional, "an acknowledged upload is lost"
        assert content_hash not in wanted or ids in ([], [wanted[content_hash][0]])
        for document_id in ids:
            blocks = blocks_of(live, document_id)
            check_whole(live[f"documents/{document_id}"], blocks, text)
            keys |= {f"documents/{document_id}", *(f"vectorEmbeddings/{b['id']}" for b in blocks)}
    return keys


def check_whole(row: Json, blocks: list[Json], text: str) -> None:
    chunks = [chunk for block in blocks for chunk in block["chunks"]]
    assert len(chunks) == row["chunkCount"], f"half of an upload: {row}"
    assert words_of(chunks) == set(WORD.findall(text))


def documents_of(live: dict[str, Json]) -> list[Json]:
    return [row for key, row in live.items() if key.startswith("documents/")]


def blocks_of(live: dict[str, Json], document_id: str) -> list[Json]:
    rows = [row for key, row in live.items() if key.startswith("vectorEmbeddings/")]
    return [row for row in rows if row[PARENT["vectorEmbeddings"][1]] == document_id]


def assert_same(expected: dict[str, Json], found: dict[str, Json]) -> None:
    lost = sorted(expected.keys() - found.keys())
    strange = sorted(found.keys() - expected.keys())
    changed = sorted(k for k in expected.keys() & found.keys() if expected[k] != found[k])
    assert not (lost or strange or changed), (
        f"lost {len(lost)} {lost[:5]}, came from nowhere or came back {len(strange)} {strange[:5]}, "
        f"other than acknowledged {len(changed)} {[(expected[k], found[k]) for k in changed[:1]]}"
    )


def words_of(rows) -> set[str]:
    return set(WORD.findall(json.dumps(list(rows))))


async def send_again(user: User) -> None:
    """As a device does that had no answer. Doing it twice must be as good as once."""
    attempts: list[Attempt] = list(user.unanswered)
    user.unanswered.clear()
    for attempt in attempts:
        await user.do(attempt)
    assert user.wrong == [], user.wrong


async def check_readers(user: User) -> None:
    """Whoever read on from where it was has what a new device gets. Vectors of uploads may still be on their way."""
    end = time.monotonic() + SETTLE_S
    while True:
        await user.puller.catch_up(user)
        await user.follower.catch_up(user)
        full = await user.full_pull()
        if user.puller.seen == full == user.follower.seen:
            return
        if time.monotonic() > end:
            assert_same(full, user.puller.seen)
            assert_same(full, user.follower.seen)
        await asyncio.sleep(0.3)


# -- the search index -------------------------------------------------------------------------------------------------


async def check_search(user: User) -> int:
    """Every word of the live blocks of the session's documents is found where it stands, and no word of a dead one."""
    live = {key: row for key, row in (await user.full_pull()).items() if not row["_deleted"]}
    active = [row["id"] for row in documents_of(live) if READING in row["activeSessions"]]
    places: dict[str, tuple[str, int, int]] = {}
    for document_id in active:
        for block in blocks_of(live, document_id):
            for chunk in block["chunks"]:
                for word in WORD.findall(chunk["text"]):
                    places[word] = (document_id, block["block"], chunk["index"])
    for some in pieces(places, 80):
        assert await hits(user, some) == {places[word] for word in some}
    dead = words_of(user.book.gone.values()) | words_of(user.book.gone_uploads.values())
    for some in pieces(sorted(dead - places.keys())[:DEAD_MAX], 100):
        assert await hits(user, some) == set(), "a word of a deleted or changed row is found"
    return len(places)


def pieces(words: Iterable[str], size: int) -> list[list[str]]:
    them = list(words)
    return [them[at : at + size] for at in range(0, len(them), size)]


async def hits(user: User, words: list[str]) -> set[tuple[str, int, int]]:
    question = {"query": " ".join(words), "sessionId": READING, "mode": "words", "k": 100}
    answer = await user.call("POST", "/v1/search", json=question)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["scope"]["complete"] and found["scope"]["mode"] == "words"
    places = [(hit["documentId"], hit["block"], hit["chunkIndex"]) for hit in found["results"]]
    assert len(set(places)) == len(places), "a chunk found twice"
    return set(places)

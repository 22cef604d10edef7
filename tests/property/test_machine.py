"""Three devices, a second user, and a model: whatever happens, the server answers and holds what the model says.

`model.py` is written from the design and shares no code with the server. After each step the answer, the rows that
took a `seq`, and what is pulled are compared with it; at the end all devices must hold the same. Each step makes its
choices from a seed of its own, so a failing run is cut down to the few steps that fail too, and those are named.

Not in the model: STORAGE_LIMIT (bytes), and documents that are `pending`, which the server settles by itself.
"""

import asyncio
import copy
import json
import os
import random
import re
import threading
import time

import pytest

from property import rows as make
from property.model import Limits, Model, unmarked
from property.wire import COLLECTIONS, epoch, page, send
from server.house import house
from vademecum.model.limits import Limits as TierLimits

SOAK = bool(os.environ.get("SOAK"))
SEEDS, STEPS = (range(60), 400) if SOAK else (range(10), 150)
SHRINKING_S = 60
ERASE_DELAY_S = 0.2 if SOAK else 3600  # in the long run files are rewritten meanwhile

BOUNDS = Limits(documents=3, file_bytes=100, row_bytes=3000, authoritative=False)
TIERS = {"JIGGA": TierLimits(documents=3, file_bytes=100, row_bytes=3000, authoritative=False)}
SESSIONS, PROJECTS, DOCUMENTS = ["s1", "s2", "s3"], ["p1", "p2"], ["d1", "d2", "d3", "d4", "d5"]
ENTITIES, MEMORIES = ["n1", "n2", "n3"], ["m1", "m2", "m3"]
IDS = {
    "documents": DOCUMENTS,
    "vectorEmbeddings": ["d1.0", "d1.1", "d2.0", "d3.0"],
    "projects": PROJECTS,
    "sessions": SESSIONS,
    "episodes": ["e1", "e2", "e3"],
    "facts": ["f1", "f2", "f3"],
    "memories": MEMORIES,
    "entities": ENTITIES,
    "relationships": ["r1", "r2", "r3"],
    "summaries": ["u1", "u2", "u3"],
}
ABSENT, TEXT, TOGGLE = (
    object(),
    object(),
    object(),
)  # a field that goes, a text never used before, a set's change
CHANGES = {  # what an edit may do; values that the server must refuse are among them
    "documents": {
        "activeSessions": [TOGGLE],
        "accessCount": [0, 5],
        "filename": [TEXT],
        "size": [1, 2, 3, 1000, -1],
        "contentHash": ["1" * 64, "2" * 64],
        "status": ["ready", "failed"],  # what is pending the server may settle at any time
        "statusDetail": [ABSENT, TEXT],
        "pageCount": [ABSENT, 1, 2],
        "lastAccessedAt": [make.day(n) for n in range(1, 9)],
        "originSessionId": SESSIONS,
        "userId": ["somebody"],
    },
    "vectorEmbeddings": {"model": [TEXT], "embedding": [None]},
    "projects": {"name": [TEXT, TEXT, "x" * 256], "description": [TEXT, ABSENT]},
    "sessions": {
        "title": [TEXT],
        "mode": ["analysis", "authoritative", "other"],
        "externalId": ["x", "y", ABSENT],
        "projectId": [*PROJECTS, ABSENT],
    },
    "episodes": {
        "sessionId": SESSIONS,
        "userMessage": [TEXT, TEXT, "x" * 4000],
        "aiResponse": [TEXT],
        "status": ["done", "stopped"],
        "citations": [[], [{"documentId": "d1", "filename": "d1.txt"}]],
        "model": [TEXT, ABSENT],
    },
    "facts": {
        "key": [TEXT],
        "value": [TEXT, TEXT, "x" * 4000],
        "confidence": [0, 0.5, 1, 2],
        "confirmed": [True, False],
        "sourceDocumentId": [*DOCUMENTS, ABSENT],
        "sourceRemoved": [False],
    },
    "memories": {
        "text": [TEXT],
        "sessionIds": [TOGGLE],
        "projectId": [*PROJECTS, ABSENT],
        "supersedes": [*MEMORIES, ABSENT],
        "supersededBy": [*MEMORIES, ABSENT],
        "pinned": [True, False],
    },
    "entities": {
        "name": [TEXT],
        "notes": [TEXT, ABSENT],
        "projectId": PROJECTS,
        "type": ["place", "concept"],
    },
    "relationships": {"label": [TEXT], "fromId": ENTITIES, "toId": ENTITIES},
    "summaries": {"content": [TEXT], "sessionId": [*SESSIONS, ABSENT], "projectId": [*PROJECTS, ABSENT]},
}


class Chance:
    def __init__(self, seed) -> None:
        self.random = random.Random(seed)

    def pick(self, options):
        return self.random.choice(list(options))

    def one_in(self, count):
        return self.random.randrange(count) == 0

    def some(self, options, at_least, at_most=3):
        options = list(options)
        return self.random.sample(options, self.random.randint(at_least, min(at_most, len(options))))

    def mixed(self, items):
        return self.random.sample(items, len(items))


class Served:
    """A house in a thread of its own, asked synchronously."""

    def __init__(self, data) -> None:
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.done = asyncio.Event()
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(self.live(data),))
        self.thread.start()
        assert self.ready.wait(30)

    async def live(self, data) -> None:
        async with house(data, tiers=TIERS, erase_delay_s=ERASE_DELAY_S, attached_max=1) as self.house:
            self.ready.set()
            await self.done.wait()

    def ask(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.done.set)
        self.thread.join()
        self.loop.close()


class Device:
    """What an RxDB client keeps: its rows, what it assumes of the server's, what it has not sent, how far it read."""

    def __init__(self) -> None:
        self.rows = {}
        self.assumed = {}
        self.unsent = []
        self.lwt = dict.fromkeys(COLLECTIONS, 0)
        self.mirror = {name: {} for name in COLLECTIONS}  # the server's rows as the pages told them
        self.lost = None  # a batch whose answer never came

    def write(self, key, row) -> None:
        self.rows[key] = row
        if key not in self.unsent:
            self.unsent.append(key)

    def take(self, key, row) -> None:
        self.rows[key] = self.assumed[key] = row
        if key in self.unsent:
            self.unsent.remove(key)

    def batch(self, collection):
        """Rows to send. One that was changed back is none, and takes what a pull told meanwhile."""
        for key in [k for k in self.unsent if k[0] == collection]:
            if self.rows[key] == self.assumed.get(key):
                self.take(key, self.mirror[collection].get(key[1], self.rows[key]))
        return [(self.rows[k], self.assumed.get(k)) for k in self.unsent if k[0] == collection]

    def hear(self, collection, batch, answers) -> None:
        told = {row["id"]: row for row in answers}
        for new, _ in batch:
            key = (collection, new["id"])
            row = told.get(new["id"], new)
            if self.rows[key] == new:
                self.take(key, row)
            else:
                self.assumed[key] = row

    def read(self, collection, documents) -> None:
        for row in documents:
            key = (collection, row["id"])
            self.mirror[collection][row["id"]] = row
            if key not in self.unsent or self.rows[key] == row:
                self.take(key, row)


class World:
    """One run: a user with three devices on the server, a second user, and the model beside them."""

    def __init__(self, served) -> None:
        self.served = served
        self.ada = self.served.ask(self.served.house.person())
        self.bob = self.served.ask(self.served.house.person())
        self.texts = 0
        self.steps = 0
        self.top = 0  # the highest seq seen
        self.lwt = dict.fromkeys(COLLECTIONS, 0)
        self.seen = {}  # key -> the server's row as last pulled
        self.history = {}  # key -> states this row was ever in, on a device or on the server
        self.erased = set()  # rows that waited when everything was forgotten: only a device may hold them
        self.forgotten = False
        self.devices = [Device(), Device(), Device()]
        self.model = Model(self.ada.id, self.served.ask(epoch(self.ada)), BOUNDS)
        self.canary = {}
        for name in COLLECTIONS:
            self.served.ask(send(self.bob, name, (self._canary_row(name), None)))
            self.canary[name] = self.served.ask(self.bob.pull(name))

    # -- what devices do ------------------------------------------------------------------------------------

    def edit(self, chance):
        device = chance.pick(self.devices)
        for _ in range(chance.pick([1, 1, 2, 3])):
            key = self._key(chance, device)
            row = device.rows.get(key)
            if row is None or row["_deleted"]:
                device.write(key, self._new_row(chance, *key))
            else:
                row = row if chance.one_in(2) else unmarked(row)
                device.write(key, self._edited(chance, key[0], row))
        if not chance.one_in(3):
            self._send(chance, device, key[0])

    def delete(self, chance):
        device = chance.pick(self.devices)
        here = [key for key, row in device.rows.items() if not row["_deleted"]]
        if here:
            key = chance.pick(here)
            device.write(key, {**device.rows[key], "_deleted": True})
            if chance.one_in(2):
                self._send(chance, device, key[0])

    def send_what_was_written_offline(self, chance):
        device = chance.pick(self.devices)
        if device.unsent:
            self._send(chance, device, chance.pick(device.unsent)[0])

    def repeat_what_got_no_answer(self, chance):
        for device in chance.mixed(self.devices):
            if device.lost is not None:
                collection, batch = device.lost
                device.lost = None
                device.hear(collection, batch, self._push(collection, batch))
                return

    def pull(self, chance):
        device, limit = chance.pick(self.devices), chance.pick([2, 3, 1000])
        for collection in COLLECTIONS:
            self._read(device, collection, limit)

    def pull_one_page_and_lose_touch(self, chance):
        self._read(chance.pick(self.devices), chance.pick(COLLECTIONS), 1, pages=1)

    # -- what else happens ----------------------------------------------------------------------------------

    def anything(self, chance):
        """Rows and assumed states of any age, with true and false marks: an old, a foreign or a hostile client."""
        collection = chance.pick([*COLLECTIONS, "documents", "memories"])  # these have the most to merge
        self._push(collection, [self._any_pair(chance, collection) for _ in range(chance.pick([1, 2, 3, 4]))])

    def delete_by_route(self, chance):
        collection = chance.pick(["documents", "sessions", "projects"])
        row_id = chance.pick(IDS[collection])
        with_sessions = collection == "projects" and chance.one_in(2)
        query = "?sessions=delete" if with_sessions else ""
        answer = self.served.ask(self.ada.call("DELETE", f"/v1/{collection}/{row_id}{query}"))
        live = self.model.life((collection, row_id)) == "live"
        assert answer.status_code == (200 if live else 404), answer.text
        if live:
            for (name, i), held in list(self.model.rows.items()):
                if with_sessions and name == "sessions" and held.row.get("projectId") == row_id:
                    self.model.delete((name, i))
            self.model.delete((collection, row_id))
        self._settle()

    def forget_everything(self, _):
        self.erased |= {key for key, held in self.model.rows.items() if held.waiting}
        body = {"confirm": "forget everything"}
        answer = self.served.ask(self.ada.call("POST", "/v1/forget", json=body))
        assert answer.status_code == 200, answer.text
        receipt = answer.json()
        assert receipt["leftovers"] == 0
        self.model.forget(receipt["at"])
        self.forgotten = True
        self._settle()

    def the_other_looks(self, chance):
        """Only one file is attached at a time: the user's is closed for this, and all of it is read anew afterwards."""
        for name in chance.some(COLLECTIONS, at_least=1, at_most=2):
            assert self.served.ask(self.bob.pull(name)) == self.canary[name]

    def all_meet(self, _=None):
        """Rows that are marked, or wait, stay with the device that has them; all else must be the same everywhere."""
        for _ in range(8):
            before = self.top, [dict(device.rows) for device in self.devices]
            self._meet()
            if before == (self.top, [device.rows for device in self.devices]):
                break
        else:
            raise AssertionError("the devices never came to rest")
        self._pull_all()
        for device in self.devices:
            assert not device.unsent
            self._holds_what_the_server_holds(device)
        for name in COLLECTIONS:
            assert self.served.ask(self.bob.pull(name)) == self.canary[name]

    # -- sending and reading --------------------------------------------------------------------------------

    def _send(self, chance, device, collection):
        batch = chance.mixed(device.batch(collection))
        answers = self._push(collection, batch)
        if chance.one_in(4):
            device.lost = collection, batch
        else:
            device.hear(collection, batch, answers)

    def _push(self, collection, batch):
        wanted = self.model.push(collection, copy.deepcopy(batch))
        answers = self.served.ask(send(self.ada, collection, *batch))
        assert [unmarked(row) for row in answers] == [unmarked(row) for row in wanted]
        for answer, want in zip(answers, wanted, strict=True):
            self._same_mark(answer.get("syncError"), want.get("syncError"))
        for row in (*(new for new, _ in batch), *answers):
            self._remember((collection, row["id"]), row)
        self._settle()
        return answers

    def _same_mark(self, mark, want):
        if want is None or mark is None:
            assert mark == want
            return
        assert mark["message"] and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", mark["at"])
        got = {name: mark[name] for name in mark if name not in ("message", "at")}
        if want.get("base") == "?":  # a row that took its seq in this very push
            stamp, _, seq = got.pop("base").partition(":")
            assert stamp == self.model.epoch and int(seq) > self.top
            want = {"code": want["code"]}
        assert got == want

    def _settle(self):
        """After each step: what took a seq is what should have, it is above all others, and holds what it should.

        Collections where nothing should have moved are looked at every few steps only, from where they were left.
        """
        self.steps += 1
        every = self.steps % 10 == 0
        names = [c for c in COLLECTIONS if every or any(key[0] == c for key in self.model.touched)]
        news = self.served.ask(self._news(names))
        known = {key: held.row for key, held in self.model.rows.items() if not held.waiting}
        changed = {key for key, row in known.items() if self.seen.get(key) != row}
        assert changed <= news.keys() <= self.model.touched
        assert len({seq for seq, _ in news.values()}) == len(news)
        for key, (seq, row) in news.items():
            assert seq > self.top
            assert row == known[key]
            self.model.rows[key].seq = seq
            self.seen[key] = row
            self._remember(key, row)
        self.top = max([self.top, *(seq for seq, _ in news.values())])
        self.model.touched.clear()
        if every:
            self._pull_all()

    async def _news(self, names):
        """Key -> (seq, row) of all that is new in these collections, a row a page."""
        found = {}
        for collection in names:
            lwt = self.lwt[collection]
            while (got := await page(self.ada, collection, lwt, limit=1))["documents"]:
                assert got["checkpoint"]["lwt"] > lwt
                lwt = got["checkpoint"]["lwt"]
                key = (collection, got["documents"][0]["id"])
                assert key not in found
                found[key] = lwt, got["documents"][0]
            assert got["checkpoint"] == {"lwt": lwt, "id": self.model.epoch}
            self.lwt[collection] = lwt
        return found

    def _pull_all(self):
        """From zero: every row the model lets be seen, in the order of seq, no more; the dead without a word."""
        live_documents = 0
        for collection in COLLECTIONS:
            rows = self.served.ask(page(self.ada, collection))["documents"]
            ids = sorted(self.model.pulled(collection), key=lambda i: self.model.rows[collection, i].seq)
            assert [row["id"] for row in rows] == ids
            assert {row["id"]: row for row in rows} == self.model.pulled(collection)
            assert "canary" not in json.dumps(rows)
            assert "zq" not in json.dumps([row for row in rows if row["_deleted"]])
            live_documents += sum(collection == "documents" and not row["_deleted"] for row in rows)
        assert live_documents <= BOUNDS.documents

    def _read(self, device, collection, limit, pages=1000):
        for _ in range(pages):
            lwt = device.lwt[collection]
            got = self.served.ask(page(self.ada, collection, lwt, self.model.epoch, limit))
            device.read(collection, got["documents"])
            device.lwt[collection] = got["checkpoint"]["lwt"]
            assert len(got["documents"]) <= limit
            assert (device.lwt[collection] > lwt) is bool(got["documents"])
            if len(got["documents"]) < limit:  # the end: nothing may be missing now
                assert device.mirror[collection] == self.model.pulled(collection)
                return

    def _meet(self):
        for device in self.devices:
            for collection in COLLECTIONS:
                if batch := device.batch(collection):
                    device.hear(collection, batch, self._push(collection, batch))
        for device in self.devices:
            for collection in COLLECTIONS:
                self._read(device, collection, 1000)

    def _holds_what_the_server_holds(self, device):
        for key, row in device.rows.items():
            held = self.model.rows.get(key)
            if "syncError" in row or (row["_deleted"] and (held is None or held.dead)):
                continue
            alone = held is None or held.waiting
            assert row == held.row if not alone else (held is not None or key in self.erased), key
        for collection in COLLECTIONS:
            assert set(self.model.pulled(collection)) <= {i for c, i in device.rows if c == collection}

    # -- making rows ----------------------------------------------------------------------------------------

    def _key(self, chance, device):
        here = [key for key, row in device.rows.items() if not row["_deleted"]]
        if here and not chance.one_in(3):
            return chance.pick(here)
        collection = chance.pick(COLLECTIONS)
        return collection, chance.pick(IDS[collection])

    def _text(self):
        self.texts += 1
        return f"zq{self.texts}"

    def _new_row(self, chance, collection, row_id):
        pick = chance.pick
        born = make.NEW if self.forgotten and not chance.one_in(4) else make.OLD
        optional = chance.one_in(2)
        match collection:
            case "documents":
                active = chance.some(SESSIONS, at_least=0)
                row = make.document(self.ada.id, row_id, originSessionId=pick(SESSIONS), filename=self._text(),
                                    activeSessions=active, accessCount=len(active))  # fmt: skip
            case "vectorEmbeddings":
                document_id, _, number = row_id.partition(".")
                row = make.block(document_id, int(number), self._text())
            case "projects":
                row = make.project(row_id, name=self._text())
            case "sessions":
                row = make.session(row_id, title=self._text())
                row |= {"projectId": pick(PROJECTS)} if optional else {"externalId": pick("xy")}
            case "episodes":
                row = make.episode(row_id, pick(SESSIONS), userMessage=self._text())
            case "facts":
                row = make.fact(row_id, value=self._text())
                row |= {"sourceDocumentId": pick(DOCUMENTS)} if optional else {}
            case "memories":
                row = make.memory(row_id, text=self._text(), sessionIds=[pick(SESSIONS)])
                row |= {"projectId": pick(PROJECTS)} if optional else {}
            case "entities":
                row = make.entity(row_id, pick(PROJECTS), name=self._text())
            case "relationships":
                row = make.relationship(row_id, pick(ENTITIES), pick(ENTITIES), label=self._text())
            case "summaries":
                row = make.summary(row_id, content=self._text())
                row |= {"sessionId": pick(SESSIONS)} if optional else {"projectId": pick(PROJECTS)}
        return {**row, "createdAt": born}

    def _edited(self, chance, collection, row):
        row = {**row, "updatedAt": make.day(chance.pick(range(1, 10)))}
        for name in chance.some(CHANGES[collection], at_least=1, at_most=2):
            value = chance.pick(CHANGES[collection][name])
            if value is ABSENT:
                row.pop(name, None)
            elif value is TEXT:
                row[name] = self._text()
            elif value is TOGGLE:
                row |= self._toggled(row, name, chance.pick(SESSIONS))
            else:
                row[name] = value
        return row

    def _toggled(self, row, name, session):
        """A borrow, which counts, or a return."""
        if session in row[name]:
            return {name: [i for i in row[name] if i != session]}
        counted = {"accessCount": row["accessCount"] + 1} if "accessCount" in row else {}
        return {name: [*row[name], session], **counted}

    def _any_pair(self, chance, collection):
        key = (collection, chance.pick(IDS[collection]))
        held = self.model.rows.get(key)
        stored = [] if held is None else [held.row]
        states = [*stored, *self.history.get(key, [])]
        live = [row for row in states if not row["_deleted"]]
        kind = chance.pick(["new", *["edit"] * 8, "stray", "stray", "repeat", "repeat", "delete"])
        if kind == "new" or not live or (held is not None and held.dead and chance.one_in(2)):
            old, new = chance.pick([None, *stored, *stored]), self._new_row(chance, *key)
        else:
            old = chance.pick(live)
            new = {**old, "_deleted": True} if kind == "delete" else old
            if kind in ("edit", "stray"):
                new = self._edited(chance, collection, old)
            if kind != "edit":
                old = chance.pick([None, *states])
        if old is not None and chance.one_in(4):
            bases = [None, "other:1", f"{self.model.epoch}:1", self.model.base(held)]
            old = make.marked(chance.pick([old, *live]), chance.pick(bases))
            if chance.one_in(2):
                new = {**new, "syncError": old["syncError"]}
        return new, old

    def _remember(self, key, row):
        states = self.history.setdefault(key, [])
        if row not in states:
            states.append(row)
            del states[:-6]

    def _canary_row(self, name):
        maker = {
            "documents": lambda i: make.document(self.bob.id, i, filename="canary"),
            "vectorEmbeddings": lambda i: make.block("d1", 0, "canary"),
            "projects": lambda i: make.project(i, name="canary"),
            "sessions": lambda i: make.session(i, title="canary"),
            "episodes": lambda i: make.episode(i, "s1", userMessage="canary"),
            "facts": lambda i: make.fact(i, value="canary"),
            "memories": lambda i: make.memory(i, text="canary"),
            "entities": lambda i: make.entity(i, "p1", name="canary"),
            "relationships": lambda i: make.relationship(i, "n1", "n1", label="canary"),
            "summaries": lambda i: make.summary(i, content="canary", sessionId="s1"),
        }[name]
        return maker(IDS[name][0])


WEIGHTS = {
    World.edit: 30,
    World.anything: 30,
    World.send_what_was_written_offline: 12,
    World.repeat_what_got_no_answer: 5,
    World.pull: 8,
    World.pull_one_page_and_lose_touch: 8,
    World.delete: 3,
    World.delete_by_route: 1,
    World.forget_everything: 0.5,
    World.the_other_looks: 3,
    World.all_meet: 0.5,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    one = Served(tmp_path_factory.mktemp("machine"))
    yield one
    one.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_server_does_what_the_model_says_and_all_devices_meet(served, seed):
    chance = random.Random(seed)
    acts = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS)
    plan = [(act, chance.randrange(2**32)) for act in acts]
    failure = play(served, plan)
    if failure is not None:
        short = shrunk(served, plan)
        names = "\n".join(f"    {act.__name__} {number}" for act, number in short)
        again = play(served, short)
        kind = "so do these steps alone" if again is not None else "but not when played again (a race?)"
        raise AssertionError(f"seed {seed} fails, {kind}:\n{names}") from again or failure


def play(served, plan):
    """The failure of these steps, each with the seed of its own choices, or None."""
    try:
        world = World(served)
        for act, seed in plan:
            act(world, Chance(seed))
        world.all_meet()
    except Exception as failure:
        return failure
    return None


def shrunk(served, plan):
    """A shorter plan that fails too, as far as time allows: halves are left out, then quarters, then single steps."""
    end = time.monotonic() + SHRINKING_S
    size = len(plan)
    while size > 1:
        size = (size + 1) // 2
        at = 0
        while at < len(plan) and time.monotonic() < end:
            fewer = plan[:at] + plan[at + size :]
            if play(served, fewer) is not None:
                plan = fewer
            else:
                at += size
    return plan

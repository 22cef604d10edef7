"""Run the server and the reference model side by side; compare each answer, assigned `seq` and pulled page."""

import copy
import json
import re

from property.reference_model import Model, unmarked
from property.sync_wire import COLLECTIONS, epoch, epoch_of, page, send


class Checked:
    """One user's rows on the server and in the reference model, with the checks that both agree."""

    def __init__(self, served, person, limits) -> None:
        self.served = served
        self.person = person
        self.model = Model(person.id, served.ask(epoch(person)), limits)
        self.steps = 0
        self.top = 0  # the highest seq seen
        self.lwt = dict.fromkeys(COLLECTIONS, 0)
        self.seen = {}  # key -> the row as last pulled from the server
        self.history = {}  # key -> the newest distinct states of this row

    def push(self, collection, batch):
        expected = self.model.push(collection, copy.deepcopy(batch))
        answers = self.served.ask(send(self.person, collection, *batch))
        assert [unmarked(row) for row in answers] == [unmarked(row) for row in expected]
        for answer, want in zip(answers, expected, strict=True):
            self._same_mark(answer.get("syncError"), want.get("syncError"))
        for row in (*(new for new, _ in batch), *answers):
            self._remember((collection, row["id"]), row)
        self.check_changes()
        return answers

    def _same_mark(self, mark, want):
        if want is None or mark is None:
            assert mark == want
            return
        assert mark["message"] and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", mark["at"])
        got = {name: mark[name] for name in mark if name not in ("message", "at")}
        if want.get("base") == "?":  # the row got its seq in this push, so the model does not know the number
            stamp, _, seq = got.pop("base").partition(":")
            assert stamp == self.model.epoch and int(seq) > self.top
            want = {"code": want["code"]}
        assert got == want

    def check_changes(self):
        """Check that the rows changed by the last step have the expected content and a seq above all earlier ones.

        The collections that the step should not have changed are pulled only at every tenth step.
        """
        self.steps += 1
        every = self.steps % 10 == 0
        names = [c for c in COLLECTIONS if every or any(key[0] == c for key in self.model.touched)]
        news = self.served.ask(self._news(names))
        known = {key: stored.row for key, stored in self.model.rows.items() if not stored.waiting}
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
            self.pull_all()

    async def _news(self, names):
        """Map the key of each new row to its seq and the row. Each pull returns one row, so that its seq is known."""
        found = {}
        for collection in names:
            lwt = self.lwt[collection]
            while (got := await page(self.person, collection, lwt, limit=1))["documents"]:
                assert got["checkpoint"]["lwt"] > lwt
                lwt = got["checkpoint"]["lwt"]
                key = (collection, got["documents"][0]["id"])
                assert key not in found
                found[key] = lwt, got["documents"][0]
            assert got["checkpoint"]["lwt"] == lwt and epoch_of(got["checkpoint"]) == self.model.epoch
            self.lwt[collection] = lwt
        return found

    def pull_all(self):
        """Check that a pull from zero returns the model's rows in seq order, and tombstones without text."""
        live_documents = 0
        for collection in COLLECTIONS:
            rows = self.served.ask(page(self.person, collection))["documents"]
            ids = sorted(self.model.pulled(collection), key=lambda i: self.model.rows[collection, i].seq)
            assert [row["id"] for row in rows] == ids
            assert {row["id"]: row for row in rows} == self.model.pulled(collection)
            assert "canary" not in json.dumps(rows)
            assert "zq" not in json.dumps([row for row in rows if row["_deleted"]])
            live_documents += sum(collection == "documents" and not row["_deleted"] for row in rows)
        assert live_documents <= self.model.limits.documents

    def read(self, device, collection, limit, pages=1000):
        for _ in range(pages):
            lwt = device.lwt[collection]
            got = self.served.ask(page(self.person, collection, lwt, self.model.epoch, limit))
            device.read(collection, got["documents"])
            device.lwt[collection] = got["checkpoint"]["lwt"]
            assert len(got["documents"]) <= limit
            assert (device.lwt[collection] > lwt) is bool(got["documents"])
            if len(got["documents"]) < limit:  # after the last page, no row may be missing
                assert device.mirror[collection] == self.model.pulled(collection)
                return

    def _remember(self, key, row):
        states = self.history.setdefault(key, [])
        if row not in states:
            states.append(row)
            del states[:-6]

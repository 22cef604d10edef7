"""Changes of rows create and delete jobs, and a failed attempt delays its job."""

import msgspec
import pytest

from property.rows import episode, fact, project, session
from vademecum.model.memory import job_triggers, jobs
from vademecum.model.memory.job_changes import JobChanges
from vademecum.model.schema import timestamps
from vademecum.model.schema.collections import Registry
from vademecum.model.sync.transaction import RecordsMeta, RowIndex, Transaction
from vademecum.services.sync.push import push
from vademecum.services.sync.push_decoding import decode_batch
from vademecum.settings import default_tiers

NOW = "2026-01-01T00:00:00.000Z"
KEY, ID = "episodes/e1", "extract.episodes.e1"


class File:
    """The row index and the jobs of one user, and commits that change them."""

    def __init__(self):
        self.row_index = RowIndex()
        self.bodies = {}
        self.jobs = {}  # including completed jobs
        self.stored = jobs.StoredJobs(extracted_up_to_seq=0)

    def commit(self, work):
        def read(keys):
            return {key: self.bodies[key] for key in keys}

        self.stored.read = lambda ids: {i: self.jobs[i] for i in ids if i in self.jobs}
        tx = Transaction(self.row_index, read, Registry(), RecordsMeta("epoch"), NOW, JobChanges(self.stored))
        work(tx)
        job_triggers.update_jobs(tx)
        self.stored.extracted_up_to_seq = tx.jobs.extracted_up_to_seq
        self.stored.apply(tx.jobs.changed)
        self.row_index.apply(tx.changes)
        self.bodies |= {key: change.body for key, change in tx.changes.items()}
        self.jobs = {i: job for i, job in (self.jobs | tx.jobs.changed).items() if job is not None}
        return tx

    def put(self, collection, row, *, waiting=False):
        body = msgspec.json.encode(row)
        key = f"{collection}/{row['id']}"
        return self.commit(lambda tx: tx.put(key, row, body, waiting=waiting))

    def take_up(self):
        turns = sorted(
            (head.seq, key) for key, head in self.row_index.rows.items() if key.startswith("episodes/")
        )
        self.commit(lambda tx: job_triggers.create_turn_jobs(tx, turns))

    def say(self, *rows, **more):
        for row in rows:
            self.put("episodes", row, **more)
        self.take_up()

    def finish(self):
        self.jobs = {i: jobs.complete(job) for i, job in self.jobs.items()}
        self.stored.apply(self.jobs)


@pytest.mark.parametrize("status", ["queued", "streaming", "done", "stopped", "failed"])
def test_only_finished_turn_creates_an_extraction_job(status):
    file = File()
    file.say(episode("e1", "s1", status=status))
    assert set(file.jobs) == ({ID} if status in ("done", "stopped") else set())
    assert all(job.subject == KEY and job.state == "waiting" and job.due == NOW for job in file.jobs.values())


def test_each_version_of_text_is_extracted_once():
    file = File()
    file.say(episode("e1", "s1"))
    first = file.jobs[ID]
    file.say(episode("e1", "s1", model="another"))
    assert file.jobs[ID] is first, "a waiting job was replaced"
    file.finish()
    file.say(episode("e1", "s1", status="stopped"))
    assert file.jobs[ID].state == "done", "the text was extracted again"
    file.say(episode("e1", "s1", aiResponse="something else."))
    assert file.jobs[ID].state == "waiting" and file.jobs[ID].text != first.text


def test_blank_or_waiting_turn_creates_no_job():
    file = File()
    file.say(episode("e1", "s1", userMessage=" ", aiResponse="\n"))
    file.say(episode("e2", "s1"), waiting=True)
    assert file.jobs == {}
    file.say(episode("e2", "s1"))
    assert set(file.jobs) == {"extract.episodes.e2"}, "the turn is no longer waiting"


def test_no_job_is_created_without_a_language_model():
    file = File()
    file.stored.extracted_up_to_seq = None
    file.say(episode("e1", "s1"))
    assert (file.jobs, file.stored.extracted_up_to_seq) == ({}, None)


def test_repeated_scan_creates_no_second_job():
    file = File()
    file.put("episodes", episode("e1", "s1"))
    file.put("episodes", episode("e2", "s1"))
    file.commit(lambda tx: job_triggers.create_turn_jobs(tx, [(1, KEY), (2, "episodes/e2")]))
    made = dict(file.jobs)
    file.commit(lambda tx: job_triggers.create_turn_jobs(tx, [(1, KEY)]))
    assert (file.jobs, file.stored.extracted_up_to_seq) == (made, 2) and len(made) == 2


def test_imported_turn_and_completed_job_share_a_commit():
    file = File()
    registry = Registry()
    row = msgspec.json.encode(episode("e1", "s1")).decode()
    body = f'[{{"newDocumentState": {row}, "imported": true}}]'.encode()
    batch = decode_batch(registry["episodes"], body, "u")
    tx = file.commit(lambda tx: push(tx, registry["episodes"], batch, default_tiers()["JIGGA"]))
    assert set(tx.changes) == {KEY} and tx.jobs.get(ID).state == "done"
    file.put("episodes", episode("e1", "s1"))
    file.take_up()
    assert file.jobs[ID].state == "done"


def test_turn_deleted_before_the_scan_creates_no_job():
    file = File()
    turn = episode("e1", "s1")
    file.put("episodes", turn)
    file.commit(lambda tx: tx.put_tombstone(KEY, turn))
    file.commit(lambda tx: job_triggers.create_turn_jobs(tx, [(1, KEY)]))
    assert file.jobs == {}


@pytest.mark.parametrize("followed", [0, None])
def test_deleting_a_row_deletes_its_job(followed):
    file = File()
    file.stored.extracted_up_to_seq = followed
    for collection, row in {
        "episodes": episode("x", "s1"),
        "sessions": session("x"),
        "projects": project("x"),
    }.items():
        file.put(collection, row)
        key = f"{collection}/x"
        asked = jobs.create(key, 1, "", NOW)
        file.commit(lambda tx, asked=asked: tx.jobs.put(asked))
        assert asked.id in file.jobs
        file.commit(lambda tx, key=key, row=row: tx.put_tombstone(key, row))
        assert file.jobs == {}


@pytest.mark.parametrize("collection", ["facts", "sessions"])
def test_deleting_extracted_rows_discards_unstored_answers(collection):
    file = File()
    file.say(episode("e1", "s1"))
    file.commit(lambda tx: tx.jobs.put(jobs.with_answer(file.jobs[ID], "an answer")))
    row = {"facts": fact, "sessions": session}[collection]("x")
    file.put(collection, row)
    assert file.stored.open[ID].found == "an answer"
    file.commit(lambda tx: tx.put_tombstone(f"{collection}/x", row))
    assert file.stored.open[ID].found == ("" if collection == "facts" else "an answer")


def test_savepoint_rollback_restores_jobs():
    def work(tx):
        undo = tx.savepoint()
        tx.jobs.put(jobs.create(KEY, 1, "", NOW))
        tx.jobs.extracted_up_to_seq = 7
        undo()

    tx = File().commit(work)
    assert (tx.jobs.changed, tx.jobs.extracted_up_to_seq) == ({}, 0)


def test_retry_delay_grows_until_the_job_fails():
    job = jobs.create(KEY, 1, "", NOW)
    waits = []
    while job.state == "waiting":
        job = jobs.retry_later(jobs.start(job, NOW), NOW, "It failed.")
        waits.append(timestamps.seconds_until(job.due, NOW))
    assert waits == [1, 4, 16, 64, 256, 1024, 3600, 3600, 3600, 0]  # 0: no automatic retry
    assert (job.state, job.attempts, job.error) == ("failed", jobs.TRIES, "It failed.")
    once_more = jobs.reset(job, NOW)
    assert (once_more.state, once_more.attempts, once_more.due, once_more.error) == ("waiting", 0, NOW, "")


def test_requested_retry_delay_is_respected():
    job = jobs.start(jobs.create(KEY, 1, "", NOW), NOW)
    assert timestamps.seconds_until(jobs.retry_later(job, NOW, "Busy.", 30).due, NOW) == 30
    assert timestamps.seconds_until(jobs.retry_later(job, NOW, "Busy.", 0.1).due, NOW) == 1


def test_edit_of_a_turn_deletes_its_job_only_if_text_changed():
    file = File()
    turn = episode("e1", "s1")
    file.say(turn)
    file.put("episodes", {**turn, "model": "another"})
    assert set(file.jobs) == {ID}
    file.put("episodes", {**turn, "userMessage": "something else"})
    assert file.jobs == {}


def test_answer_is_discarded_only_when_job_finally_fails():
    job = jobs.with_answer(jobs.start(jobs.create(KEY, 1, "", NOW), NOW), "an answer")
    assert jobs.retry_later(job, NOW, "Full.").found == "an answer"
    last = msgspec.structs.replace(job, attempts=jobs.TRIES)
    assert (jobs.retry_later(last, NOW, "Full.").state, jobs.retry_later(last, NOW, "Full.").found) == (
        "failed",
        "",
    )

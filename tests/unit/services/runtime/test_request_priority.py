"""Work behind the answers rests while somebody waits for an answer, and goes on all the same."""

from types import SimpleNamespace

import pytest

from vademecum.services.runtime import request_priority
from vademecum.services.runtime.request_priority import ALONE_S, GAP_S, NAP_S, REST, Foreground

WORK_S = 0.01


@pytest.fixture
def clock(monkeypatch):
    """Computing and sleeping take the time that they say; `naps` is what was slept, `in_nap` happens in each nap."""
    told = SimpleNamespace(now=100.0, computed=0.0, naps=0.0, in_nap=lambda: None)

    def sleep(seconds):
        told.now += seconds
        told.naps += seconds
        assert told.naps < 10, "it rests for ever"
        told.in_nap()

    told.monotonic, told.thread_time, told.sleep = lambda: told.now, lambda: told.computed, sleep
    monkeypatch.setattr(request_priority, "time", told)
    return told


def work(of, clock, rows=3):
    """The rows as they come out, each worked on for `WORK_S`."""
    for row in of.politely(range(rows)):
        clock.now += WORK_S
        clock.computed += WORK_S
        yield row


def test_nobody_waits_and_no_time_is_lost(clock):
    assert list(work(Foreground(), clock)) == [0, 1, 2]
    assert clock.naps == 0


def test_while_there_is_always_a_request_one_part_of_the_time_is_kept(clock):
    of = Foreground()
    of.begin()
    assert list(work(of, clock)) == [0, 1, 2]
    assert clock.naps == pytest.approx(3 * REST * WORK_S, abs=3 * 2 * NAP_S)


def test_it_rests_until_no_other_request_comes_soon(clock):
    of = Foreground()
    of.begin()
    of.begin()
    ends = iter([of.end, of.end])
    clock.in_nap = lambda: next(ends, lambda: None)()
    assert list(work(of, clock)) == [0, 1, 2]
    assert clock.naps == pytest.approx(2 * NAP_S + GAP_S, abs=2 * NAP_S)


def test_what_somebody_waits_for_is_not_held_up(clock):
    of = Foreground()
    of.begin()
    with of.waiting():
        assert list(work(of, clock)) == [0, 1, 2]
        assert clock.naps == 0
    assert list(work(of, clock)) == [0, 1, 2]
    assert clock.naps > 0


def test_nobody_is_there_some_time_after_the_last_answer(clock):
    of = Foreground()
    assert of.alone()
    of.begin()
    clock.now += 100 * ALONE_S
    assert not of.alone()
    of.end()
    clock.now += 0.9 * ALONE_S
    assert not of.alone()
    clock.now += 0.2 * ALONE_S
    assert of.alone()


def test_a_request_that_waits_for_another_program_is_not_waited_for(clock):
    of = Foreground()
    of.begin()
    with of.elsewhere():
        assert of.busy() and not of.alone()
        clock.now += GAP_S
        assert not of.busy() and not of.alone()
        clock.now += ALONE_S
        assert of.alone()
    assert of.busy() and not of.alone()

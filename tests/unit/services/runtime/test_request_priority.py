"""Background work yields to waiting requests, but never stops completely."""

from types import SimpleNamespace

import pytest

from vademecum.services.runtime import request_priority
from vademecum.services.runtime.request_priority import GAP_S, IDLE_S, NAP_S, REST, RequestPriority

WORK_S = 0.01


@pytest.fixture
def clock(monkeypatch):
    """A fake clock: `computed` and `naps` are the seconds spent computing and sleeping; `in_nap` runs in each nap."""
    fake = SimpleNamespace(now=100.0, computed=0.0, naps=0.0, in_nap=lambda: None)

    def sleep(seconds):
        fake.now += seconds
        fake.naps += seconds
        assert fake.naps < 10, "work rests forever"
        fake.in_nap()

    fake.monotonic, fake.thread_time, fake.sleep = lambda: fake.now, lambda: fake.computed, sleep
    monkeypatch.setattr(request_priority, "time", fake)
    return fake


def work(priority, clock, rows=3):
    """Yield throttled rows, each worked on for `WORK_S`."""
    for row in priority.throttled(range(rows)):
        clock.now += WORK_S
        clock.computed += WORK_S
        yield row


def test_background_work_is_not_throttled_without_requests(clock):
    assert list(work(RequestPriority(), clock)) == [0, 1, 2]
    assert clock.naps == 0


def test_background_work_keeps_its_share_under_constant_load(clock):
    priority = RequestPriority()
    priority.begin_request()
    assert list(work(priority, clock)) == [0, 1, 2]
    assert clock.naps == pytest.approx(3 * REST * WORK_S, abs=3 * 2 * NAP_S)


def test_background_work_rests_until_requests_have_ended(clock):
    priority = RequestPriority()
    priority.begin_request()
    priority.begin_request()
    ends = iter([priority.end_request, priority.end_request])
    clock.in_nap = lambda: next(ends, lambda: None)()
    assert list(work(priority, clock)) == [0, 1, 2]
    assert clock.naps == pytest.approx(2 * NAP_S + GAP_S, abs=2 * NAP_S)


def test_unthrottled_work_does_not_rest(clock):
    priority = RequestPriority()
    priority.begin_request()
    with priority.unthrottled():
        assert list(work(priority, clock)) == [0, 1, 2]
        assert clock.naps == 0
    assert list(work(priority, clock)) == [0, 1, 2]
    assert clock.naps > 0


def test_server_becomes_idle_after_the_last_request(clock):
    priority = RequestPriority()
    assert priority.is_idle()
    priority.begin_request()
    clock.now += 100 * IDLE_S
    assert not priority.is_idle()
    priority.end_request()
    clock.now += 0.9 * IDLE_S
    assert not priority.is_idle()
    clock.now += 0.2 * IDLE_S
    assert priority.is_idle()


def test_request_waiting_on_upstream_is_not_counted(clock):
    priority = RequestPriority()
    priority.begin_request()
    with priority.waiting_on_upstream():
        assert priority.is_busy() and not priority.is_idle()
        clock.now += GAP_S
        assert not priority.is_busy() and not priority.is_idle()
        clock.now += IDLE_S
        assert priority.is_idle()
    assert priority.is_busy() and not priority.is_idle()

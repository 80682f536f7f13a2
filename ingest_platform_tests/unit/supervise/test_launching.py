"""Waiting for a launched driver, by simulated time."""

from __future__ import annotations

from itertools import chain, repeat

from ingest_platform.errors import StorageUnavailableError
from ingest_platform.model.states import StreamState
from ingest_platform.model.status import ErrorReport
from ingest_platform.supervise.launching import Healthy, Looks, NotHealthy, await_healthy
from ingest_platform_tests.factories import make_status

ERROR = ErrorReport(kind="TopicMissingError", message="no topic")


def waited(*seen, alive=True, last_words=None) -> tuple[Healthy | NotHealthy, float]:
    """The outcome, and after how many seconds, when looks at the status see `seen` in turn."""
    time, looks = [0.0], chain(seen, repeat(seen[-1]))

    def status():
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return found

    def sleep(seconds):
        time[0] += seconds

    outcome = await_healthy(
        Looks(lambda: alive, status, lambda: last_words),
        after=1,
        seconds=10,
        clock=lambda: time[0],
        sleep=sleep,
    )
    return outcome, time[0]


def test_waits_for_a_later_generation_to_run():
    old = make_status(generation=1)
    starting = make_status(generation=2, state=StreamState.STARTING)
    running = make_status(generation=2)
    assert waited(None, old, starting, running) == (Healthy(running), 1.5)


def test_storage_that_fails_for_a_moment_is_no_verdict():
    running = make_status(generation=2)
    fault = StorageUnavailableError("busy", remedy="wait")
    assert waited(fault, fault, running) == (Healthy(running), 1.0)


def test_error_of_an_older_generation_is_not_this_drivers():
    old = make_status(generation=1, state=StreamState.FAILED, error=ERROR)
    outcome, _ = waited(old, alive=False)
    assert outcome == NotHealthy("the driver ended before it was healthy", None)


def test_status_and_last_words_tell_why():
    failed = make_status(generation=2, state=StreamState.FAILED, error=ERROR)
    expected = NotHealthy("the driver ended before it was healthy", ERROR)
    assert waited(failed) == (expected, 0)
    assert waited(None, alive=False, last_words=ERROR) == (expected, 0)


def test_slow_driver_is_waited_for_until_the_deadline():
    outcome, seconds = waited(None, alive=None)
    assert outcome == NotHealthy("the driver is not healthy after 10 s")
    assert seconds == 10

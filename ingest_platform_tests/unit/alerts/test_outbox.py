"""The outbox, and delivery from it: killed, repeated, raced, slow and down."""

from __future__ import annotations

import json
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from ingest_platform.adapters.alerts.delivery import Delivery
from ingest_platform.adapters.alerts.outbox import Attempt, Outbox
from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.adapters.objects import object_store
from ingest_platform.model.alert import AlertKind, Severity
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform_tests.factories import NOW, make_alert
from ingest_platform_tests.unit.adapters.conftest import storage_of

KEY = "clicks/needs_person"


class Clock:
    """A time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self):
        return self.now

    def pass_(self, **span) -> None:
        self.now += timedelta(**span)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def delivery(clock, receiver, *, channels=({"type": "webhook"},), **settings) -> Delivery:
    attributes = {"channels": list(channels), **settings}
    spec = parse_alerts(attributes, {}, where="defs.yaml")
    environ = {"ALERT_WEBHOOK_URL": receiver.url, "SLACK_WEBHOOK_URL": receiver.url}
    return Delivery(spec, environ, clock)


def raise_(outbox, clock, **overrides):
    alert = make_alert(**overrides)
    return outbox.raise_(alert, outbox.shelves().get(alert.key), clock())


def resolve(outbox, clock, key=KEY):
    return outbox.resolve(key, outbox.shelves()[key], "well", clock())


def statuses(receiver):
    return [a["status"] for got in receiver.taken for a in got.document["alerts"]]


def test_alert_is_raised_once_until_it_is_resolved(outbox, clock):
    assert raise_(outbox, clock)
    assert raise_(outbox, clock) is None
    assert resolve(outbox, clock)
    assert not outbox.shelves()[KEY].open
    again = raise_(outbox, clock)
    assert again
    assert again.number == 3


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_one_of_many_writers_raises(request, tmp_path, clock, kind):
    """Sensor and driver may find the same trouble at the same moment."""
    if kind == "s3":
        s3 = request.getfixturevalue("s3")
        objects = object_store(f"s3a://{s3.bucket}/state", storage_of(s3))
    else:
        objects = LocalObjects(tmp_path)
    start, won = threading.Barrier(8), []

    def race() -> None:
        start.wait()
        won.append(Outbox(objects).raise_(make_alert(), None, clock()))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(transition is not None for transition in won) == 1


def test_delivery_is_done_once_however_often_it_is_asked_for(outbox, clock, receiver):
    raise_(outbox, clock)
    one = delivery(clock, receiver)
    assert one.deliver([outbox], 10).left == 0
    clock.pass_(hours=2)
    one.deliver([outbox], 10)
    resolve(outbox, clock)
    one.deliver([outbox], 10)
    one.deliver([outbox], 10)
    assert statuses(receiver) == ["raised", "resolved"]


def test_what_is_left_of_a_resolved_alert_is_bounded(outbox, clock, receiver, tmp_path):
    one = delivery(clock, receiver)
    for _ in range(5):
        raise_(outbox, clock)
        one.deliver([outbox], 10)
        resolve(outbox, clock)
        one.deliver([outbox], 10)
    assert statuses(receiver) == ["raised", "resolved"] * 5
    left = LocalObjects(tmp_path / "state").list("alerts")
    assert left == [f"alerts/{KEY}/000010.done", f"alerts/{KEY}/000010.json"]


def test_alerts_of_one_stream_are_one_message(outbox, clock, receiver):
    raise_(outbox, clock)
    raise_(outbox, clock, kind=AlertKind.LAG_FAILURE)
    raise_(outbox, clock, stream="orders")
    delivery(clock, receiver).deliver([outbox], 10)
    messages = [[a["key"] for a in got.document["alerts"]] for got in receiver.taken]
    assert sorted(map(sorted, messages)) == [
        ["clicks/lag_failure", "clicks/needs_person"],
        ["orders/needs_person"],
    ]


def test_kill_between_outbox_and_delivery_loses_nothing(outbox, clock, receiver):
    """The process that claimed the first attempt is gone: another makes the second."""
    transition = raise_(outbox, clock)
    assert transition
    assert outbox.claim(KEY, 1, "webhook", 1, clock())
    one = delivery(clock, receiver)
    one.deliver([outbox], 10)
    assert not receiver.asked  # the first one may still be at it
    clock.pass_(seconds=61)
    one.deliver([outbox], 10)
    assert statuses(receiver) == ["raised"]
    assert outbox.shelves()[KEY].done == {1}


def test_kill_between_delivery_and_its_mark_repeats_with_the_same_id(outbox, clock, receiver):
    raise_(outbox, clock)
    one = delivery(clock, receiver)
    one.deliver([outbox], 10)
    # As if the marks had never been written: only the claim is there.
    other = Outbox(LocalObjects(Path(f"{outbox.root}-other")))
    other.raise_(make_alert(), None, clock())
    other.claim(KEY, 1, "webhook", 1, clock())
    clock.pass_(seconds=61)
    one.deliver([other], 10)
    first, again = receiver.taken
    assert first.headers["Idempotency-Key"] == again.headers["Idempotency-Key"]


def test_receiver_that_is_down_gets_it_later_once_and_in_order(outbox, clock, receiver):
    """Fault 30: also when the trouble is over before the receiver is back."""
    receiver.status = 503
    raise_(outbox, clock)
    one = delivery(clock, receiver)
    for _ in range(20):
        one.deliver([outbox], 10)
        clock.pass_(seconds=30)
    # 10 minutes: attempts after 0, 1, 3 and 7 minutes, not one in each tick.
    assert len(receiver.asked) == 4
    resolve(outbox, clock)
    receiver.status = 200
    clock.pass_(minutes=8)
    outcome = one.deliver([outbox], 10)
    assert outcome.left == 0
    assert statuses(receiver) == ["raised", "resolved"]


def test_slow_receiver_that_answers_in_time_is_asked_once(outbox, clock, receiver):
    """As one that takes 30 s of the 35 that it has: a repetition would be a second message."""
    raise_(outbox, clock)
    receiver.delay = 1
    assert delivery(clock, receiver).deliver([outbox], 20).left == 0
    assert len(receiver.asked) == 1


def test_slow_receiver_delays_neither_the_caller_nor_other_channels(outbox, clock, receiver):
    """Fault 30: 30 s slow. The caller's time is up first; the message arrives, and only once."""
    raise_(outbox, clock)
    receiver.delay = 3
    one = delivery(clock, receiver)
    began = time.monotonic()
    outcome = one.deliver([outbox], 1.5)
    assert time.monotonic() - began < 2.5
    assert outcome.left == 1
    receiver.delay = 0
    clock.pass_(seconds=61)
    one.deliver([outbox], 10)
    assert statuses(receiver) == ["raised"]
    assert outbox.shelves()[KEY].done == {1}


def test_each_channel_is_told_apart_from_the_others(outbox, clock, receiver):
    """One channel's missing secret keeps no other from being told."""
    raise_(outbox, clock)
    channels = [{"type": "webhook"}, {"type": "teams"}]
    one = delivery(clock, receiver, channels=channels)
    outcome = one.deliver([outbox], 10)
    assert statuses(receiver) == ["raised"]
    assert outcome.failed == {"teams": "environment variable TEAMS_WEBHOOK_URL is not set"}
    attempt = outbox.attempt(KEY, 1, "teams", 1)
    assert attempt
    assert "TEAMS_WEBHOOK_URL" in attempt.error


def test_two_deliveries_at_once_send_one_message(outbox, clock, receiver):
    """Two daemons, or sensor and driver."""
    for stream in ("a", "b", "c", "d"):
        raise_(outbox, clock, stream=stream)
    start = threading.Barrier(4)

    def deliver() -> None:
        start.wait()
        delivery(clock, receiver).deliver([outbox], 10)

    threads = [threading.Thread(target=deliver) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(receiver.taken) == 4


def test_receiver_may_ask_for_patience(outbox, clock, receiver):
    receiver.status, receiver.retry_after = 429, "300"
    raise_(outbox, clock)
    one = delivery(clock, receiver)
    one.deliver([outbox], 10)
    receiver.status = 200
    clock.pass_(seconds=200)
    one.deliver([outbox], 10)
    assert not receiver.taken
    clock.pass_(seconds=101)
    one.deliver([outbox], 10)
    assert statuses(receiver) == ["raised"]


def test_alert_that_no_channel_wants_is_done(outbox, clock, receiver):
    raise_(outbox, clock, severity=Severity.WARNING)
    channels = [{"type": "webhook", "min_severity": "critical"}]
    outcome = delivery(clock, receiver, channels=channels).deliver([outbox], 10)
    assert outcome.left == 0
    assert not receiver.asked
    assert outbox.shelves()[KEY].open


def test_new_channel_is_not_told_old_news(outbox, clock, receiver):
    raise_(outbox, clock)
    delivery(clock, receiver).deliver([outbox], 10)
    both = [{"type": "webhook"}, {"type": "slack"}]
    delivery(clock, receiver, channels=both).deliver([outbox], 10)
    assert len(receiver.asked) == 1


def test_clock_that_is_set_back_does_not_stop_deliveries():
    attempt = Attempt((NOW + timedelta(hours=1)).isoformat())
    assert attempt.due(1, NOW)


def test_foreign_and_torn_documents_are_passed_over(outbox, clock, receiver, tmp_path):
    raise_(outbox, clock)
    objects = LocalObjects(tmp_path / "state")
    objects.put("alerts/clicks/lag_failure/000001.json", b'{"alert": {"kind": "lag')
    objects.put("alerts/README", b"hello")
    objects.put("alerts/clicks/needs_person/000001/webhook.0001", b"{")
    delivery(clock, receiver).deliver([outbox], 10)
    assert statuses(receiver) == ["raised"]


def test_stored_alert_is_readable_json(outbox, clock, tmp_path):
    raise_(outbox, clock)
    data = LocalObjects(tmp_path / "state").get(f"alerts/{KEY}/000001.json")
    assert json.loads(data or "")["alert"]["what"] == "the stream needs a person"


def test_subjects_never_share_a_key():
    kinds = {
        make_alert(subject=subject).key for subject in ("a", "a:1", "a-1", "a/1", "../x", "x" * 99)
    }
    assert len(kinds) == 6
    assert all(key.count("/") == 1 for key in kinds)

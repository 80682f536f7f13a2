"""Receivers, and alerts to send."""

from __future__ import annotations

import pytest

from ingest_platform.adapters.alerts.outbox import Outbox
from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform_tests.alert_receivers import http_receiver, mailbox


@pytest.fixture
def receiver():
    """An HTTP receiver."""
    with http_receiver() as made:
        yield made


@pytest.fixture
def box():
    """An SMTP server without encryption and login."""
    with mailbox() as made:
        yield made


@pytest.fixture
def outbox(tmp_path) -> Outbox:
    """An empty outbox on a local path."""
    return Outbox(LocalObjects(tmp_path / "state"))

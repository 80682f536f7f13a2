"""The stream that is to be repaired."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest_platform.maintain.audit.topic_audit import BrokerRange
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.factories import make_spec
from ingest_platform_tests.ledger_tables import (
    TOPIC,
    write_batches,
)
from ingest_platform_tests.unit.steer.patient import Bench, batch, put_checkpoint


@pytest.fixture
def patient(tmp_path: Path) -> Bench:
    """Three batches of two partitions: 10, 20, 30 offsets each; the checkpoint agrees."""
    spec = make_spec(source={"topic": TOPIC}, table={"path": str(tmp_path / "lake" / "clicks")})
    write_batches(spec.table.path, *(batch(n) for n in range(3)))
    found = Bench(spec, StorageEnvironment(), {}, lambda: datetime.now(UTC))
    put_checkpoint(found, 3)
    found.brokers.update({(TOPIC, p): BrokerRange(0, 40) for p in (0, 1)})
    return found

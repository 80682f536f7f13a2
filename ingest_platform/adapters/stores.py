"""The stores of one stream, opened together."""

from __future__ import annotations

from dataclasses import dataclass

from ingest_platform.adapters.contact_store import ContactStore
from ingest_platform.adapters.control_store import ControlStore
from ingest_platform.adapters.lease_store import LeaseStore
from ingest_platform.adapters.objects import object_store
from ingest_platform.adapters.standby_store import StandbyStore
from ingest_platform.adapters.status_store import StatusStore
from ingest_platform.spec import StorageEnvironment, StreamSpec


@dataclass(frozen=True)
class Stores:
    """Status, lease, control and supervisor's contact of one stream."""

    status: StatusStore
    lease: LeaseStore
    control: ControlStore
    standby: StandbyStore
    contact: ContactStore

    @classmethod
    def of(cls, spec: StreamSpec, storage: StorageEnvironment) -> Stores:
        """Open the stores below the spec's `root`; nothing is read yet."""
        objects = object_store(spec.root, storage)
        return cls(
            StatusStore(objects),
            LeaseStore(objects, spec.name),
            ControlStore(objects, spec.name),
            StandbyStore(objects, spec.name),
            ContactStore(objects, spec.name),
        )

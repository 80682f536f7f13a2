"""Where the supervisor leaves that it looked, for alerts and for the driver."""

from __future__ import annotations

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.model.contact import Contact


class ContactStore:
    """The contact of stream `name`, at `streams/<name>/supervisor.json`."""

    def __init__(self, objects: ObjectStore, name: str) -> None:
        self._objects = objects
        self._key = f"streams/{name}/supervisor.json"

    def read(self) -> Contact | None:
        """The last contact; None before the first, or if it cannot be read."""
        return Contact.from_json(self._objects.get(self._key))

    def tell(self, contact: Contact) -> bool:
        """Write the contact, unless the last one says the same and is younger than a minute.

        Returns:
            Whether it was written.
        """
        if not contact.worth_writing(self.read()):
            return False
        self._objects.put(self._key, contact.to_json().encode())
        return True

"""Where people and the supervisor leave what they want of a stream, for driver and supervisor."""

from __future__ import annotations

from ingest_platform.adapters.objects import ObjectStore
from ingest_platform.model.control import Control, DrainRequest, Pause


class ControlStore:
    """The desired state of stream `name`, below `streams/<name>/control/`.

    Pause and drain request are objects of their own, because their writers differ: a supervisor
    that asked for a drain at the same moment must not undo a person's pause.
    """

    def __init__(self, objects: ObjectStore, name: str) -> None:
        self._objects = objects
        self._pause = f"streams/{name}/control/pause.json"
        self._drain = f"streams/{name}/control/drain.json"

    def read(self) -> Control:
        """What is wanted now; an empty `Control` when nothing was ever said."""
        pause, drain = self._objects.get(self._pause), self._objects.get(self._drain)
        return Control(
            pause=Pause.from_json(pause) if pause is not None else None,
            drain=DrainRequest.from_json(drain) if drain is not None else None,
        )

    def pause(self, pause: Pause) -> None:
        """Want no driver until `resume`."""
        self._objects.put(self._pause, pause.to_json().encode())

    def resume(self) -> None:
        """Want a driver again."""
        self._objects.delete(self._pause)

    def request_drain(self, request: DrainRequest) -> None:
        """Ask one generation to finish its batch and exit; later ones are not concerned."""
        self._objects.put(self._drain, request.to_json().encode())

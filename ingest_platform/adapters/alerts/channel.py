"""What a channel is: it tells people, within a bounded time, or says why it could not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ingest_platform.errors import SpecError
from ingest_platform.model.alert import Transition


class DeliveryFailed(Exception):  # noqa: N818 - an outcome, noted in the outbox and tried again
    """The channel did not take the message. The text holds no secret.

    Args:
        reason: For `alerts list` and the log.
        wait: Seconds that the receiver asked to wait, if it did.
    """

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class Sender(Protocol):
    """Sends to one channel; stateless, so that any thread may."""

    def __call__(self, told: Sequence[Transition], timeout: float) -> None:
        """Send what is told of one stream, oldest first.

        Args:
            told: At least one; a receiver may get them again, with the same ids.
            timeout: Seconds.

        Raises:
            DeliveryFailed: It may or may not have arrived; to be repeated.
        """
        ...


def secret(environ: Mapping[str, str], variable: str) -> str:
    """The value of a variable that settings name.

    Raises:
        SpecError: It is not set.
    """
    value = environ.get(variable, "").strip()
    if not value:
        raise SpecError(
            f"environment variable {variable} is not set",
            where="alert channels",
            remedy=f"export {variable}=... where Dagster's code location and the drivers run",
        )
    return value

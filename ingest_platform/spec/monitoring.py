"""Where a driver serves its health: the `monitoring` section of a stream's spec."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ingest_platform.spec.fields import Frozen


def _none_is_off(value: object) -> object:
    return 0 if value is None or value == "none" else value


class MonitoringSpec(Frozen):
    """`/healthz` and `/metrics` of the driver."""

    port: Annotated[
        Annotated[int, Field(ge=0, le=65535)] | Literal["auto"],
        BeforeValidator(_none_is_off, json_schema_input_type=int | str | None),
    ] = Field(default="auto", description="auto takes a free one; 0 or none: nothing is served.")
    address: str = Field(
        default="127.0.0.1",
        pattern=r"^[A-Za-z0-9.:_-]+$",
        description="Interface to listen on; there is no login, so loopback by default.",
    )

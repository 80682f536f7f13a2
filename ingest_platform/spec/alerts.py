"""Where alerts go: the one `ingest_platform.Alerts` of a deployment.

No field holds a secret: webhook addresses, keys and passwords are named by the environment variable
that has them, and read at the moment of sending.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ingest_platform.model.alert import Severity
from ingest_platform.spec.fields import Duration, Frozen, Name, StoragePath

Variable = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=128)]
_Address = Annotated[str, Field(pattern=r"^[^\s@<>\",;]+@[^\s@<>\",;]+$")]


class _Channel(Frozen):
    name: Name | None = Field(
        None, description="For messages and `alerts list`; default: the channel's type."
    )
    min_severity: Severity = Field(
        Severity.WARNING, description="warning, error or critical: nothing below is sent."
    )
    streams: tuple[Name, ...] = Field(
        (), description="Only alerts of these streams and of the deployment; default: all."
    )


class SlackChannel(_Channel):
    """A Slack incoming webhook."""

    type: Literal["slack"]
    url_env: Variable = Field(
        "SLACK_WEBHOOK_URL", description="Environment variable that holds the webhook's address."
    )


class TeamsChannel(_Channel):
    """A Microsoft Teams webhook (Workflows, or an older connector)."""

    type: Literal["teams"]
    url_env: Variable = Field(
        "TEAMS_WEBHOOK_URL", description="Environment variable that holds the webhook's address."
    )


class PagerDutyChannel(_Channel):
    """A PagerDuty service, by Events API v2."""

    type: Literal["pagerduty"]
    routing_key_env: Variable = Field(
        "PAGERDUTY_ROUTING_KEY", description="Environment variable that holds the integration key."
    )
    endpoint: str = Field(
        "https://events.pagerduty.com/v2/enqueue",
        pattern=r"^https?://[^\s@]+$",
        description="For the EU region or a proxy.",
    )


class EmailChannel(_Channel):
    """A mailbox, by SMTP."""

    type: Literal["email"]
    host: str = Field(pattern=r"^[^\s:/@]+$", description="SMTP server.")
    port: int = Field(587, ge=1, le=65535)
    encryption: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="tls is implicit TLS, mostly on port 465."
    )
    sender: _Address = Field(description="The From address.")
    to: tuple[_Address, ...] = Field(min_length=1, description="Who gets it.")
    username_env: Variable | None = Field(None, description="Environment variable; default: none.")
    password_env: Variable | None = Field(None, description="Environment variable; default: none.")

    @model_validator(mode="after")
    def _login_is_whole(self) -> Self:
        if bool(self.username_env) != bool(self.password_env):
            raise ValueError("give both `username_env` and `password_env`, or neither")
        if self.password_env and self.encryption == "none":
            raise ValueError("a password is not sent unencrypted: use starttls or tls")
        return self


class WebhookChannel(_Channel):
    """Any HTTP receiver of JSON."""

    type: Literal["webhook"]
    url_env: Variable = Field(
        "ALERT_WEBHOOK_URL", description="Environment variable that holds the address."
    )
    token_env: Variable | None = Field(
        None, description="Environment variable of a bearer token; default: none is sent."
    )


ChannelSpec = Annotated[
    SlackChannel | TeamsChannel | PagerDutyChannel | EmailChannel | WebhookChannel,
    Field(discriminator="type"),
]


class AlertsSpec(Frozen):
    """Where alerts go, and how patiently."""

    channels: tuple[ChannelSpec, ...] = Field((), description="Who is told; each gets every alert.")
    every: Duration = Field(
        timedelta(seconds=30), description="Time between two looks of the sensor."
    )
    resolve_after: Duration = Field(
        timedelta(minutes=2), description="An alert is resolved when all was well for so long."
    )
    environment_after: Duration = Field(
        timedelta(seconds=45), description="A broker or storage may be away for so long, untold."
    )
    supervisor_silent_after: Duration = Field(
        timedelta(minutes=5), description="A supervisor that was not heard of for so long is told."
    )
    timeout: Duration = Field(
        timedelta(seconds=35), description="What a channel may take for one message."
    )
    spare_path: StoragePath | None = Field(
        None,
        description="Outbox for when the streams' storage is away; default: INGEST_ALERTS_DIR, or "
        ".ingest/alerts here.",
    )

    @model_validator(mode="after")
    def _sane(self) -> Self:
        names = [channel.name or channel.type for channel in self.channels]
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise ValueError(f"several channels are called {', '.join(double)}: set their `name`")
        if not timedelta(seconds=5) <= self.every <= timedelta(minutes=10):
            raise ValueError("needs 5 seconds <= every <= 10 minutes")
        if not timedelta(seconds=1) <= self.timeout <= timedelta(seconds=40):
            raise ValueError("needs 1 second <= timeout <= 40 seconds: a tick has 60")
        if self.supervisor_silent_after < timedelta(minutes=3):
            raise ValueError("`supervisor_silent_after` must be at least 3 minutes")
        return self


def channel_name(channel: ChannelSpec) -> str:
    """The name, or the type where none is given."""
    return channel.name or channel.type

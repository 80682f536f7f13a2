"""From settings to senders."""

from __future__ import annotations

from collections.abc import Mapping

from ingest_platform.adapters.alerts.channel import Sender
from ingest_platform.adapters.alerts.email import Email
from ingest_platform.adapters.alerts.pagerduty import PagerDuty
from ingest_platform.adapters.alerts.slack import Slack
from ingest_platform.adapters.alerts.teams import Teams
from ingest_platform.adapters.alerts.webhook import Webhook
from ingest_platform.model.alert import Alert, AlertKind
from ingest_platform.spec.alerts import (
    ChannelSpec,
    EmailChannel,
    PagerDutyChannel,
    SlackChannel,
    TeamsChannel,
)


def sender(channel: ChannelSpec, environ: Mapping[str, str]) -> Sender:
    """What sends to the channel.

    Raises:
        SpecError: A variable that it needs is not set.
    """
    match channel:
        case SlackChannel():
            return Slack(channel, environ)
        case TeamsChannel():
            return Teams(channel, environ)
        case PagerDutyChannel():
            return PagerDuty(channel, environ)
        case EmailChannel():
            return Email(channel, environ)
        case _:
            return Webhook(channel, environ)


def wants(channel: ChannelSpec, alert: Alert) -> bool:
    """Whether the channel is told of the alert; a test is for all."""
    if alert.kind is AlertKind.TEST:
        return True
    mine = not channel.streams or not alert.stream or alert.stream in channel.streams
    return mine and alert.severity.rank >= channel.min_severity.rank


def variables(channel: ChannelSpec) -> list[str]:
    """Names of the environment variables that hold the channel's secrets."""
    named = ((name, getattr(channel, name)) for name in type(channel).model_fields)
    return [value for name, value in named if name.endswith("_env") and value]

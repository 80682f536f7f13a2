"""Would anyone be told?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from ingest_platform.adapters.alerts.channels import sender, variables
from ingest_platform.errors import IngestError
from ingest_platform.maintain.preflight.findings import Finding, of_error, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.spec.alerts import AlertsSpec, ChannelSpec, WebhookChannel, channel_name

_UNTOLD = "nobody would be told when a stream needs a person"


def check_alerts(spec: AlertsSpec | IngestError, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Judge the deployment's channels without sending anything; no finding quotes an address.

    Args:
        spec: The settings, or why they cannot be read.
        environ: Where the channels' secrets are.
    """
    if isinstance(spec, IngestError):
        yield of_error(Group.ALERTS, spec, _UNTOLD)
        return
    if not spec.channels:
        yield Finding(
            Level.WARNING,
            Group.ALERTS,
            Kind.NO_CHANNEL,
            "no alert channel is configured",
            _UNTOLD,
            "declare channels in a defs.yaml of type ingest_platform.Alerts (docs/spec.md)",
        )
        return
    problems = [finding for channel in spec.channels for finding in _channel(channel, environ)]
    yield from problems
    if not problems:
        names = ", ".join(map(channel_name, spec.channels))
        yield ok(Group.ALERTS, f"alert channels: {names}; try them: ingest-platform alerts test")


def _channel(channel: ChannelSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    name = channel_name(channel)
    try:
        sender(channel, environ)
    except IngestError as error:
        why = f"the channel {name} would stay silent"
        yield of_error(Group.ALERTS, error, why, kind=Kind.CHANNEL_INCOMPLETE)
        return
    for variable in variables(channel):
        url = urlsplit(environ.get(variable, ""))
        plain = url.scheme == "http" and url.hostname not in {"localhost", "127.0.0.1", "::1"}
        if variable.endswith("URL") and plain and not isinstance(channel, WebhookChannel):
            yield Finding(
                Level.WARNING,
                Group.ALERTS,
                Kind.CHANNEL_IN_THE_CLEAR,
                f"the address in {variable} is http://",
                "whoever can see the network can read it, and post in your name",
                "use the https:// address",
            )

"""Does a secret stand, or end up, where others can read it? No finding ever quotes one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from ingest_platform.errors import IngestError
from ingest_platform.maintain.preflight.findings import USER, Finding, of_error, ok
from ingest_platform.maintain.preflight.kinds import Group, Kind, Level
from ingest_platform.maintain.topic_bounds import kafka_of
from ingest_platform.spec import StorageEnvironment, StreamSpec

_SECRET_NAME = re.compile(r"SECRET|PASSWORD|PASSWD|TOKEN|CREDENTIAL|JAAS|PRIVATE", re.IGNORECASE)
_SHORTEST = 6  # a shorter value would match by chance

# The parts of a spec that are handed to Kafka and Spark, and redacted there.
_MAY_HOLD_SECRETS = (("source", "options"), ("spark", "conf"))


def check_secrets(spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Judge one stream; that no secret stands literally in the file, loading it has made sure."""
    problems = [*_leaks(spec, environ), *_in_the_clear(spec, environ)]
    yield from problems
    if not problems:
        yield ok(Group.SECRETS, "no secret in the spec or in table properties", spec.name)


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that hold secrets, by their names; values too short to be told from chance are not.

    Never log what this returns.
    """
    return {
        name: value
        for name, value in environ.items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST
    }


def _leaks(spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Values of secret variables, rendered into what table, log or UI show."""
    secrets = secrets_of(environ)
    for field, text in _texts(spec.model_dump(mode="json")):
        for name in sorted(n for n, value in secrets.items() if value in text):
            yield Finding(
                Level.ERROR,
                Group.SECRETS,
                Kind.SECRET_LEAKS,
                f"{'.'.join(field)} holds the value of {name}",
                "it would be written into the table's log and shown in the UI",
                f"remove {{{{ env.{name} }}}} from there",
                spec.name,
                USER,
            )


def _texts(value: Any, field: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text of the spec, keys included, with its place."""
    if field[:2] in _MAY_HOLD_SECRETS:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield field, str(key)
            yield from _texts(inner, (*field, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*field, str(index)))
    elif isinstance(value, str):
        yield field, value


def _in_the_clear(spec: StreamSpec, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Secrets that travel unencrypted."""
    try:
        kafka = kafka_of(spec.source, environ)
    except IngestError as error:
        why = "the brokers will refuse the login"
        yield of_error(Group.SECRETS, error, why, spec.name, Kind.LOGIN_INCOMPLETE)
        return
    if kafka.security_protocol == "SASL_PLAINTEXT" and not _loopback(kafka.bootstrap_servers):
        yield Finding(
            Level.WARNING,
            Group.SECRETS,
            Kind.LOGIN_IN_THE_CLEAR,
            f"the login to {kafka.bootstrap_servers} is SASL_PLAINTEXT",
            "whoever can see the network can read user and records",
            f"export {spec.source.environment_prefix}_SECURITY_PROTOCOL=SASL_SSL",
            spec.name,
        )
    endpoint = urlsplit(StorageEnvironment.from_env(environ).endpoint_url or "")
    on_s3 = spec.table.path.startswith("s3a://") or spec.root.startswith("s3a://")
    if on_s3 and endpoint.scheme == "http" and not _loopback(endpoint.netloc):
        yield Finding(
            Level.WARNING,
            Group.SECRETS,
            Kind.S3_IN_THE_CLEAR,
            f"S3 is reached without TLS at {endpoint.hostname}",
            "signed requests can be read and repeated by whoever can see the network",
            "use an https:// endpoint",
            spec.name,
        )


def _loopback(servers: str) -> bool:
    hosts = {server.rpartition(":")[0].strip("[] ") for server in servers.split(",")}
    return all(host == "localhost" or _is_loopback_address(host) for host in hosts)


def _is_loopback_address(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

"""What the environment says: credentials, endpoints, folders. Secrets are never logged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import SecretStr

from ingest_platform.errors import SpecError
from ingest_platform.spec.fields import Frozen
from ingest_platform.spec.stream import SourceSpec


def log_root(environ: Mapping[str, str]) -> Path:
    """Folder of all drivers' logs: `INGEST_LOG_DIR`, or `.ingest/logs` in the working directory."""
    return Path(environ.get("INGEST_LOG_DIR") or ".ingest/logs").absolute()


class KafkaEnvironment(Frozen):
    """How to reach and log in to a Kafka cluster.

    Read from `<PREFIX>_BOOTSTRAP_SERVERS`, `<PREFIX>_SECURITY_PROTOCOL`, ...; the prefix is the
    spec's `source.environment_prefix`, `KAFKA` by default, so that two clusters can be used side by
    side.
    """

    bootstrap_servers: str = "localhost:9092"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    ssl_ca_file: str | None = None
    ssl_keystore_file: str | None = None
    ssl_key_password: SecretStr | None = None

    @classmethod
    def from_env(cls, environ: Mapping[str, str], prefix: str = "KAFKA") -> Self:
        """Read the cluster's settings.

        Raises:
            SpecError: A login is asked for but user or password is not set.
        """
        found = {
            name: environ[f"{prefix}_{name.upper()}"]
            for name in cls.model_fields
            if environ.get(f"{prefix}_{name.upper()}")
        }
        settings = cls.model_validate(found)
        settings._check_login(prefix)
        return settings

    @classmethod
    def for_source(cls, source: SourceSpec, environ: Mapping[str, str]) -> Self:
        """The cluster that a stream reads: the spec's servers, the environment's credentials."""
        settings = cls.from_env(environ, source.environment_prefix)
        if source.bootstrap_servers is None:
            return settings
        return settings.model_copy(update={"bootstrap_servers": source.bootstrap_servers})

    def _check_login(self, prefix: str) -> None:
        if not self.security_protocol.startswith("SASL"):
            return
        for name in ("sasl_mechanism", "sasl_username", "sasl_password"):
            if getattr(self, name) is None:
                variable = f"{prefix}_{name.upper()}"
                raise SpecError(
                    f"{prefix}_SECURITY_PROTOCOL is {self.security_protocol}, "
                    f"but {variable} is not set",
                    where="environment",
                    remedy=f"export {variable}=...",
                )

    def spark_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source (`kafka.` prefix). Holds secrets: never log it."""
        options = {"kafka.bootstrap.servers": self.bootstrap_servers}
        if self.security_protocol != "PLAINTEXT":
            options["kafka.security.protocol"] = self.security_protocol
        if self.sasl_mechanism and self.sasl_username and self.sasl_password:
            options["kafka.sasl.mechanism"] = self.sasl_mechanism
            options["kafka.sasl.jaas.config"] = self._jaas()
        if self.ssl_ca_file:
            options["kafka.ssl.truststore.type"] = "PEM"
            options["kafka.ssl.truststore.location"] = self.ssl_ca_file
        if self.ssl_keystore_file:
            options["kafka.ssl.keystore.type"] = "PEM"
            options["kafka.ssl.keystore.location"] = self.ssl_keystore_file
        if self.ssl_key_password:
            options["kafka.ssl.key.password"] = self.ssl_key_password.get_secret_value()
        return options

    def _jaas(self) -> str:
        plain = (self.sasl_mechanism or "").upper() == "PLAIN"
        module = "plain.PlainLoginModule" if plain else "scram.ScramLoginModule"
        password = self.sasl_password.get_secret_value() if self.sasl_password else ""

        def quote(value: str) -> str:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'

        return (
            f"org.apache.kafka.common.security.{module} required "
            f"username={quote(self.sasl_username or '')} password={quote(password)};"
        )

    def client_options(self) -> dict[str, str]:
        """Options of librdkafka. Holds secrets: never log it."""
        options = {"bootstrap.servers": self.bootstrap_servers}
        if self.security_protocol != "PLAINTEXT":
            options["security.protocol"] = self.security_protocol
        if self.sasl_mechanism and self.sasl_username and self.sasl_password:
            options["sasl.mechanism"] = self.sasl_mechanism
            options["sasl.username"] = self.sasl_username
            options["sasl.password"] = self.sasl_password.get_secret_value()
        if self.ssl_ca_file:
            options["ssl.ca.location"] = self.ssl_ca_file
        if self.ssl_keystore_file:
            options["ssl.certificate.location"] = self.ssl_keystore_file
            options["ssl.key.location"] = self.ssl_keystore_file
        if self.ssl_key_password:
            options["ssl.key.password"] = self.ssl_key_password.get_secret_value()
        return options


class StorageEnvironment(Frozen):
    """How to reach S3: the variables that the AWS SDKs and CLI read too."""

    endpoint_url: str | None = None
    access_key_id: str | None = None
    secret_access_key: SecretStr | None = None
    session_token: SecretStr | None = None
    region: str = "us-east-1"
    path_style: bool = False

    if TYPE_CHECKING:  # Pydantic makes it, since the model is frozen; type checkers cannot see that

        def __hash__(self) -> int: ...

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read `AWS_ENDPOINT_URL_S3` (or `AWS_ENDPOINT_URL`), `AWS_ACCESS_KEY_ID`, ...

        Path-style addressing is the default when an endpoint is given, since such servers rarely
        have wildcard DNS; `AWS_S3_PATH_STYLE=false` turns it off.
        """
        endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or None
        style = environ.get("AWS_S3_PATH_STYLE", "true" if endpoint else "false")
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
        return cls.model_validate(
            {
                "endpoint_url": endpoint,
                "access_key_id": environ.get("AWS_ACCESS_KEY_ID") or None,
                "secret_access_key": environ.get("AWS_SECRET_ACCESS_KEY") or None,
                "session_token": environ.get("AWS_SESSION_TOKEN") or None,
                "region": region,
                "path_style": style,
            }
        )

"""Spark, S3 and the launcher as Dagster resources: typed fields, environment variables resolved."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
from boto3.session import Session
from botocore.config import Config
from dagster_aws.s3 import S3Resource as DagsterS3Resource
from dagster_pyspark import PySparkResource
from pydantic import Field, PrivateAttr

from ingest_platform.adapters.launcher import Launcher
from ingest_platform.adapters.launchers import launcher_of
from ingest_platform.adapters.local_launcher import DRIVER
from ingest_platform.components.maintenance_driver import MaintenanceDriver
from ingest_platform.spec import SparkSpec, StorageEnvironment, StreamSpec
from ingest_platform.spec.environment import log_root


class S3Resource(DagsterS3Resource):
    """`dagster-aws`'s S3 resource with path-style addressing, and as the platform's storage."""

    path_style: bool = Field(
        default=False,
        description="Address buckets as http://host/bucket: for servers without wildcard DNS.",
    )

    @classmethod
    def _is_dagster_maintained(cls) -> bool:
        return False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "S3Resource":
        """The resource for the variables that are set.

        Secrets are passed by the variable's name, so that the UI shows the name and not the value.
        """
        storage = StorageEnvironment.from_env(environ)

        def secret(name: str) -> Any:
            return dg.EnvVar(name) if environ.get(name) else None

        return cls(
            endpoint_url=storage.endpoint_url,
            region_name=storage.region,
            path_style=storage.path_style,
            aws_access_key_id=secret("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=secret("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=secret("AWS_SESSION_TOKEN"),
        )

    def storage(self) -> StorageEnvironment:
        """What the platform's own adapters and Spark sessions take."""
        return StorageEnvironment.model_validate(
            {
                "endpoint_url": self.endpoint_url,
                "access_key_id": self.aws_access_key_id,
                "secret_access_key": self.aws_secret_access_key,
                "session_token": self.aws_session_token,
                "region": self.region_name or "us-east-1",
                "path_style": self.path_style,
            }
        )

    def get_client(self) -> Any:
        """A boto3 client; `dagster-aws`'s own can only use virtual-hosted addresses."""
        return Session(profile_name=self.profile_name).client(
            "s3",
            region_name=self.region_name,
            endpoint_url=self.endpoint_url,
            use_ssl=self.use_ssl,
            verify=self.verify,
            aws_access_key_id=self.aws_access_key_id,
            aws_secret_access_key=self.aws_secret_access_key,
            aws_session_token=self.aws_session_token,
            config=Config(
                retries={"max_attempts": self.max_attempts},
                s3={"addressing_style": "path" if self.path_style else "auto"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )


class SparkResource(PySparkResource):
    """`dagster-pyspark`'s resource on the platform's own session.

    The session has the locked jars and the safe LogStore, is made when it is first asked for, and
    stopped when the op that asked is done.
    """

    spark_config: dict[str, Any] = Field(
        default={}, description="Further Spark settings by their names, over the defaults."
    )
    master: str = Field(default="local[*]", description="As in a stream's `spark.master`.")
    driver_memory: str = Field(default="2g", description="Heap of the driver, e.g. 2g.")
    executor_memory: str = Field(default="4g", description="Heap of each executor.")
    executor_cores: int = Field(default=2, description="Cores of each executor.")
    executors: int = Field(default=2, description="Executors at most.")
    s3: S3Resource

    _stack: ExitStack = PrivateAttr(default_factory=ExitStack)

    @classmethod
    def _is_dagster_maintained(cls) -> bool:
        return False

    def spec(self) -> SparkSpec:
        """The fields, validated as a stream's `spark` section is.

        Raises:
            pydantic.ValidationError: A field breaks a rule of that section.
        """
        return SparkSpec(
            master=self.master,
            driver_memory=self.driver_memory,
            executor_memory=self.executor_memory,
            executor_cores=self.executor_cores,
            executors=self.executors,
            conf={key: str(value) for key, value in self.spark_config.items()},
        )

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Make nothing yet: an op that never asks for a session need not wait for a JVM."""

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:  # noqa: ARG002
        """Stop the session, if one was made."""
        self._stack.close()
        self._spark_session = None

    @property
    def spark_session(self) -> Any:
        """The session; its first use starts a JVM and takes some seconds."""
        # PySpark takes a second to import: only those who ask for a session pay.
        from ingest_platform.spark.session import open_session  # noqa: PLC0415

        if self._spark_session is None:
            session = open_session(
                self.spec(),
                self.s3.storage(),
                app_name="dagster",
                environ=os.environ,
                on_s3=True,
            )
            self._spark_session = self._stack.enter_context(session)
        return self._spark_session


class LauncherResource(dg.ConfigurableResource):
    """Where drivers run: processes of this host, or Jobs, as spec and INGEST_LAUNCHER say."""

    command: list[str] = Field(
        default=list(DRIVER), description="Of local drivers: called with spec path and --name NAME."
    )
    log_dir: str | None = Field(
        default=None,
        description="Folder of the drivers' logs; default: INGEST_LOG_DIR, or .ingest/logs here.",
    )
    healthy_within: float = Field(
        default=180, description="Seconds that a launch waits for the driver's first heartbeat."
    )

    def launcher(self, spec: StreamSpec) -> Launcher:
        """The launcher of a stream.

        Raises:
            SpecError: It cannot be chosen from what spec and environment say.
        """
        return launcher_of(spec, os.environ, self.command)

    def logs_of(self, stream: str) -> Path:
        """Folder of one stream's logs."""
        root = Path(self.log_dir).absolute() if self.log_dir else log_root(os.environ)
        return root / stream


def default_resources(environ: Mapping[str, str]) -> dict[str, dg.ConfigurableResource]:
    """The resources that the platform's jobs and sensors ask for, by key."""
    s3 = S3Resource.from_environment(environ)
    return {
        "s3": s3,
        "spark": SparkResource(s3=s3),
        "launcher": LauncherResource(),
        "maintenance": MaintenanceDriver(),
    }

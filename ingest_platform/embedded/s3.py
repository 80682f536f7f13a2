"""A real S3 server (s3proxy) on loopback, with the objects as files below one folder."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import boto3
import httpx
from botocore.config import Config
from botocore.exceptions import ClientError
from rich.console import Console

from ingest_platform.embedded.folder import claim
from ingest_platform.embedded.ports import LOOPBACK, choose_ports
from ingest_platform.embedded.process import (
    ChildProcess,
    NotYetHealthyError,
    spawn,
    wait_until_healthy,
)
from ingest_platform.errors import ServiceStartError
from ingest_platform.spark.jar_lock import load_lock
from ingest_platform.spark.jars import JarCache, ensure
from ingest_platform.spark.java import find_java

START_SECONDS = 30.0
STOP_SECONDS = 5.0
REGION = "us-east-1"

# Not secrets: the server listens on loopback only, and a second start must accept the same ones.
ACCESS_KEY = "local-access-key"
SECRET_KEY = "local-secret-key"  # noqa: S105

# The server's own check, https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_JVM_OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", "-DLOG_LEVEL=warn")
_DATA = "data"
_PROBE_KEY = ".ingest-conditional-put-check"


@dataclass(frozen=True)
class S3Server:
    """A running S3 server.

    Attributes:
        endpoint: URL for clients, which must use path-style addresses.
        access_key: Fixed.
        secret_key: Fixed.
        region: What to sign for.
        child: The process; tests signal it.
    """

    endpoint: str
    child: ChildProcess
    _claim: IO[str]
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    region: str = REGION

    def client(self) -> Any:
        """A boto3 client for this server."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=self.region,
            config=Config(s3={"addressing_style": "path"}),
        )

    def ensure_bucket(self, name: str) -> None:
        """Make a bucket, if it is not there.

        Raises:
            ValueError: S3 does not allow the name.
        """
        if not _BUCKET.fullmatch(name):
            raise ValueError(
                f"bucket name {name!r} must be 3 to 63 lower-case letters, digits, dots or dashes"
            )
        try:
            self.client().create_bucket(Bucket=name)
        except ClientError as e:
            if e.response["Error"]["Code"] not in (
                "BucketAlreadyOwnedByYou",
                "BucketAlreadyExists",
            ):
                raise

    def on_disk(self, bucket: str) -> Path:
        """Folder whose files are the bucket's objects, by their keys."""
        return self.child.log.parent / _DATA / bucket

    def environment(self) -> dict[str, str]:
        """The variables that point the platform, and any AWS SDK, at this server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
        }

    def stop(self) -> None:
        """End it within 5 s. Idempotent; the data stays."""
        self.child.stop(STOP_SECONDS)
        self._claim.close()

    def __enter__(self) -> Self:
        """The running server; leaving the block stops it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()


def start_s3(
    folder: Path,
    *,
    env: Mapping[str, str],
    bucket: str,
    port: int | None = None,
    console: Console | None = None,
) -> S3Server:
    """Start a server on the data below `folder`, made if it is not there, with one bucket in it.

    Takes about 3 s. Checks with the bucket that a conditional PUT is conditional, because the
    commits of tables rest on it.

    Args:
        folder: Holds objects, configuration, log and the choice of the port.
        env: Where to look for Java and the jar cache.
        bucket: Made if it is not there.
        port: A free one, kept for the next start, if not given.
        console: Shows progress while the jar is downloaded.

    Raises:
        PortTakenError: `port` is in use.
        ServiceStartError: It did not become healthy, the file system cannot hold what S3 promises,
            or another process uses `folder`.
        JavaNotFoundError: There is no Java.
        JarLockError: The server's jar cannot be had.
    """
    java = find_java(env, for_spark=False)
    jars = ensure("s3", cache=JarCache.from_env(env), lock=load_lock(), console=console)
    claimed = claim(folder, service="S3 server", owner_pid=os.getpid())
    child: ChildProcess | None = None
    try:
        rng = random.Random()  # noqa: S311
        chosen = choose_ports(folder / "ports.json", {"s3": port}, rng=rng)
        endpoint = f"http://{LOOPBACK}:{chosen['s3']}"
        program = [str(java.executable), *_JVM_OPTIONS, "-jar", str(jars[0])]
        command = [*program, "--properties", str(_write_config(folder, endpoint))]
        child = spawn(command, name="S3 server", log=folder / "s3.log")
        wait_until_healthy(child, lambda: _check(endpoint), where=endpoint, deadline=START_SECONDS)
        server = S3Server(endpoint, child, claimed)
        server.ensure_bucket(bucket)
        _check_conditional_put(server.client(), bucket, folder)
    except BaseException:
        if child is not None:
            child.stop(STOP_SECONDS)
        claimed.close()
        raise
    return server


def _write_config(folder: Path, endpoint: str) -> Path:
    data = folder.absolute() / _DATA
    data.mkdir(parents=True, exist_ok=True)
    settings = {
        "s3proxy.endpoint": endpoint,
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": ACCESS_KEY,
        "s3proxy.credential": SECRET_KEY,
        "s3proxy.ignore-unknown-headers": "true",
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": data,
    }
    path = folder / "s3proxy.conf"
    path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
    return path


def _check(endpoint: str) -> None:
    try:
        httpx.get(endpoint, timeout=2, trust_env=False)  # any status means that it serves
    except httpx.TransportError as e:
        raise NotYetHealthyError(str(e) or type(e).__name__) from e


def _check_conditional_put(client: Any, bucket: str, folder: Path) -> None:
    """Prove both halves of a safe commit: one winner, and an id that comes back."""
    client.put_object(Bucket=bucket, Key=_PROBE_KEY, Body=b"1", Metadata={"ingest-write-id": "1"})
    try:
        client.put_object(Bucket=bucket, Key=_PROBE_KEY, Body=b"2", IfNoneMatch="*")
        refused = False
    except ClientError as e:
        refused = (
            e.response["ResponseMetadata"]["HTTPStatusCode"] == httpx.codes.PRECONDITION_FAILED
        )
    found = client.head_object(Bucket=bucket, Key=_PROBE_KEY)["Metadata"]
    client.delete_object(Bucket=bucket, Key=_PROBE_KEY)
    if not refused or found.get("ingest-write-id") != "1":
        broken = "loses object metadata" if refused else "overwrites despite If-None-Match"
        raise ServiceStartError(
            f"the S3 server {broken} on this file system",
            where=str(folder),
            remedy="use a folder on a disk with extended attributes (ext4, xfs, btrfs)",
        )

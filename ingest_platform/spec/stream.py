"""The spec of one stream: a Kafka topic that becomes a Delta table."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from ingest_platform.spec.checks import ChecksSpec
from ingest_platform.spec.fields import (
    AutoCompaction,
    Duration,
    Frozen,
    Name,
    PartitionColumn,
    StoragePath,
    Topic,
)
from ingest_platform.spec.kubernetes import KubernetesSpec
from ingest_platform.spec.maintenance import MaintenanceSpec
from ingest_platform.spec.monitoring import MonitoringSpec
from ingest_platform.spec.supervision import SupervisionSpec

COORDINATES = ("_kafka_topic", "_kafka_partition", "_kafka_offset", "_kafka_timestamp")

# Spark's options are the same in any case.
_RESERVED_OPTIONS = {
    *("subscribe", "subscribepattern", "assign", "startingoffsets", "startingtimestamp"),
    *("startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy", "failondataloss"),
    *("maxoffsetspertrigger", "kafka.bootstrap.servers"),
}

_positive = Annotated[int, Field(gt=0)]


class SourceSpec(Frozen):
    """Where records come from."""

    topic: Topic | None = Field(None, description="The topic to read.")
    topics: tuple[Topic, ...] = Field((), description="Several topics, instead of `topic`.")
    bootstrap_servers: str | None = Field(
        None, description="host:port,...; default: KAFKA_BOOTSTRAP_SERVERS of the environment."
    )
    environment_prefix: str = Field(
        "KAFKA",
        pattern=r"^[A-Z][A-Z0-9_]*$",
        description="Prefix of the environment variables that hold this cluster's credentials.",
    )
    starting_offsets: Literal["earliest", "latest"] | dict[str, dict[str, int]] = Field(
        "earliest", description="Where a new stream starts; an existing one goes on."
    )
    starting_timestamp: datetime | None = Field(
        None, description="Start a new stream at the first record at or after this time."
    )
    max_offsets_per_trigger: _positive = Field(
        1_000_000, description="Rate limit: records per batch at most, over all partitions."
    )
    min_partitions: _positive | None = Field(
        None, description="Split Kafka partitions further, when there are more cores."
    )
    gaps: Literal["fail", "count"] = Field(
        "fail",
        description="`count` for compacted or transactional topics, where offsets may be missing.",
    )
    options: dict[str, str] = Field(
        default_factory=dict, description="Further options of Spark's Kafka source, by their names."
    )

    @model_validator(mode="after")
    def _one_way_to_name_topics(self) -> Self:
        if bool(self.topic) == bool(self.topics):
            raise ValueError("give either `topic` or `topics`")
        if self.starting_timestamp and self.starting_timestamp.tzinfo is None:
            raise ValueError("`starting_timestamp` needs a time zone, e.g. 2026-01-31T00:00:00Z")
        taken = sorted(name for name in self.options if name.lower() in _RESERVED_OPTIONS)
        if taken:
            raise ValueError(f"`options` may not set {', '.join(taken)}: the platform does")
        return self

    @property
    def all_topics(self) -> tuple[str, ...]:
        """The topics, in order."""
        return (self.topic,) if self.topic else self.topics


class DecodeSpec(Frozen):
    """How a record's value becomes columns."""

    schema_: str | None = Field(
        None, alias="schema", description="Columns as Spark SQL DDL: `id STRING, ts TIMESTAMP`."
    )
    schema_file: str | None = Field(
        None, description="A JSON Schema file, relative to this file, instead of `schema`."
    )
    unexpected_fields: Literal["ignore", "rescue", "add_columns", "fail"] = Field(
        "ignore",
        description="Fields that the schema does not name: drop them, keep them as JSON in "
        "`_rescued_data`, add columns for them, or stop the stream.",
    )
    tombstones: Literal["skip", "quarantine"] = Field(
        "skip", description="Records with a null value: count and drop, or quarantine."
    )
    timestamp_format: str | None = Field(
        None, description="Pattern of timestamps; default ISO 8601, which is also the fastest."
    )

    @model_validator(mode="after")
    def _one_schema(self) -> Self:
        if bool(self.schema_) == bool(self.schema_file):
            raise ValueError("give either `schema` (DDL) or `schema_file` (JSON Schema)")
        return self


class TableSpec(Frozen):
    """The Delta table."""

    path: StoragePath = Field(description="s3a://bucket/prefix or an absolute local path.")
    quarantine_path: StoragePath | None = Field(
        None, description="Table of rejected records; default: `<path>_quarantine`."
    )
    partition_by: tuple[str, ...] = Field(
        (), description="Columns, hours(column) or days(column); e.g. [hours(_kafka_timestamp)]."
    )
    cluster_by: tuple[str, ...] = Field(
        (),
        max_length=4,
        description="Columns of liquid clustering, 4 at most, instead of `partition_by`.",
    )
    event_time: str | None = Field(
        None, description="TIMESTAMP column of the data that the ledger's max_event_time reports."
    )
    coordinates: bool = Field(True, description="Add _kafka_topic, _kafka_partition, ... columns.")
    target_writers: _positive | None = Field(
        None, description="Files per batch and partition; default: the number of cores."
    )
    max_records_per_file: _positive = Field(3_000_000, description="Larger files are split.")
    auto_compaction: AutoCompaction = Field(
        "off",
        description="Merge small files after batches: `inline`, within the batch, as Delta does; "
        "`async`, beside the batches.",
    )
    auto_compaction_fallback: bool = Field(
        True, description="With `async`: inline for a while after an attempt yielded to DML."
    )
    properties: dict[str, str] = Field(
        default_factory=dict, description="Delta table properties, over the platform's defaults."
    )

    @field_validator("partition_by")
    @classmethod
    def _partitions_parse(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            PartitionColumn.parse(text)
        return value

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        if self.partition_by and self.cluster_by:
            raise ValueError("give either `partition_by` or `cluster_by`: Delta allows one of them")
        return self

    @property
    def partitions(self) -> tuple[PartitionColumn, ...]:
        """The partition columns, parsed."""
        return tuple(PartitionColumn.parse(text) for text in self.partition_by)

    @property
    def quarantine(self) -> str:
        """Path of the quarantine table."""
        return self.quarantine_path or f"{self.path}_quarantine"


class SparkSpec(Frozen):
    """The driver's Spark session."""

    master: str = Field(
        default="local[*]",
        pattern=r"^(local(\[[\d*, ]+\])?|spark://.+|k8s://.+|yarn)$",
        description="local[*], spark://host:7077, k8s://https://host:port or yarn.",
    )
    driver_memory: str = Field(
        default="2g", pattern=r"^\d+[mg]$", description="Heap of the driver."
    )
    executor_memory: str = Field(default="4g", pattern=r"^\d+[mg]$")
    executor_cores: _positive = 2
    executors: _positive = Field(default=2, description="Executors at most (dynamic allocation).")
    conf: dict[str, str] = Field(
        default_factory=dict, description="Spark settings by their names, over the defaults."
    )


class FreshnessSpec(Frozen):
    """When lag becomes a warning, and when a failure."""

    warn: Duration = timedelta(minutes=15)
    fail: Duration = timedelta(hours=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not timedelta(seconds=60) <= self.warn < self.fail:
            raise ValueError("needs 60 seconds <= warn < fail")
        return self


def _report_every(data: dict[str, Any]) -> timedelta:
    """Often enough for the freshness policy, and seldom enough for an event log that keeps all."""
    return min(timedelta(minutes=8), data["freshness"].warn / 2)


class StreamSpec(Frozen):
    """One stream, as its `defs.yaml` declares it."""

    name: Name = Field(description="Name of stream, asset and state folder.")
    description: str | None = Field(None, description="For the asset page.")
    group: Name = Field("ingest", description="Asset group.")
    owners: tuple[str, ...] = Field((), description="team:name or an e-mail address.")
    source: SourceSpec
    decode: DecodeSpec
    transform: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$",
        description="module:function, DataFrame to DataFrame; one row in, one row out.",
    )
    table: TableSpec
    trigger: Duration = Field(timedelta(seconds=15), description="Time between batches; 0: none.")
    state_path: StoragePath | None = Field(
        None, description="Checkpoint, status and lease; default: `_ingest` beside the table."
    )
    spark: SparkSpec = SparkSpec()
    launcher: Literal["local", "kubernetes"] | None = Field(
        None,
        description="Where drivers run: processes of the host, or Jobs; default: INGEST_LAUNCHER, "
        "or local.",
    )
    kubernetes: KubernetesSpec | None = Field(None, description="Where a driver's pod runs.")
    freshness: FreshnessSpec = FreshnessSpec()
    supervision: SupervisionSpec = SupervisionSpec()
    monitoring: MonitoringSpec = MonitoringSpec()
    maintenance: MaintenanceSpec = MaintenanceSpec()
    checks: ChecksSpec = ChecksSpec()
    report_every: Duration = Field(
        default_factory=_report_every,
        description="At most one materialization per this time; default: half of freshness.warn, "
        "8 minutes at most.",
    )

    @field_validator("trigger")
    @classmethod
    def _trigger_sane(cls, value: timedelta) -> timedelta:
        if not timedelta(0) <= value <= timedelta(hours=24):
            raise ValueError("must be between 0 and 24 hours")
        return value

    @model_validator(mode="after")
    def _reported_in_time(self) -> Self:
        if self.report_every >= self.freshness.warn:
            # The freshness policy's clock is the last report's time.
            raise ValueError(
                "`report_every` must be shorter than `freshness.warn`, else the table looks stale "
                "between two reports"
            )
        return self

    @model_validator(mode="after")
    def _clustered_once(self) -> Self:
        if self.table.cluster_by and self.maintenance.compaction.z_order:
            raise ValueError(
                "give either `table.cluster_by` or `maintenance.compaction.z_order`: Delta refuses "
                "ZORDER BY for a clustered table"
            )
        return self

    @model_validator(mode="after")
    def _paths_apart(self) -> Self:
        table, quarantine, state = self.table.path, self.table.quarantine, self.state_dir
        for a, b in ((table, quarantine), (table, state), (quarantine, state)):
            if f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/"):
                # VACUUM of the outer one would delete the inner one's files.
                raise ValueError(f"paths {a} and {b} lie inside one another")
        return self

    @property
    def root(self) -> str:
        """`state_path`, or its default: `_ingest` beside the table."""
        return self.state_path or f"{self.table.path.rpartition('/')[0]}/_ingest"

    @property
    def paths(self) -> tuple[str, str, str]:
        """Table, quarantine table, and what lies beside them."""
        return self.table.path, self.table.quarantine, self.root

    @property
    def on_s3(self) -> bool:
        """Whether any of its paths is on S3."""
        return any(path.startswith("s3a://") for path in self.paths)

    @property
    def state_dir(self) -> str:
        """Folder of this stream's status, lease and checkpoint."""
        return f"{self.root}/streams/{self.name}"

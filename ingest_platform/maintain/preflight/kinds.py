"""Everything that a check can find, by name; docs/check.md has a line for each."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is; only an error keeps a stream from starting."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Group(StrEnum):
    """What a finding is about, in the order in which the groups are shown."""

    SPEC = "spec"
    VERSIONS = "versions"
    KAFKA = "kafka"
    STORAGE = "storage"
    TABLE = "table"
    PATHS = "paths"
    SECRETS = "secrets"
    CAPACITY = "capacity"
    ALERTS = "alerts"


class Kind(StrEnum):
    """Which finding it is: for scripts that act on one, and for the documentation."""

    OK = "ok"
    OTHER = "other"

    SPEC = "spec"

    PYTHON = "python"
    JAVA = "java"
    VERSIONS = "versions"
    JARS_NOT_CACHED = "jars_not_cached"
    JAR_IN_SPARK = "jar_in_spark"
    JAR_PACKAGES = "jar_packages"
    JAR_MISSING = "jar_missing"
    JAR_VERSION = "jar_version"
    JAR_SHADOWS = "jar_shadows"
    EXECUTORS_PYTHON = "executors_python"

    KAFKA_UNREACHABLE = "kafka_unreachable"
    KAFKA_DENIED = "kafka_denied"
    TOPIC_MISSING = "topic_missing"
    RETENTION_TIME = "retention_time"
    RETENTION_BYTES = "retention_bytes"
    COMPACTED = "compacted"
    TRANSACTIONS = "transactions"
    RECORD_SIZE = "record_size"
    RECORD_CLOCK = "record_clock"
    OFFSETS_DELETED = "offsets_deleted"
    TOPIC_RECREATED = "topic_recreated"

    STORAGE_DENIED = "storage_denied"
    STORAGE_UNAVAILABLE = "storage_unavailable"
    COMMITS_UNSAFE = "commits_unsafe"
    CONDITIONAL_WRITES = "conditional_writes"
    DISK_SPACE = "disk_space"
    STORAGE_CLOCK = "storage_clock"

    TABLE_LOG = "table_log"
    CHECKPOINT = "checkpoint"
    TABLE_PROTOCOL = "table_protocol"
    TABLE_FEATURE = "table_feature"
    COLUMN_TYPE = "column_type"
    COLUMN_NOT_NULL = "column_not_null"
    TABLE_PARTITIONS = "table_partitions"
    TABLE_CLUSTERING = "table_clustering"
    TABLE_PROPERTY = "table_property"
    APPEND_ONLY = "append_only"
    TABLE_RETENTION = "table_retention"
    Z_ORDER = "z_order"

    CHECKPOINT_MANAGER = "checkpoint_manager"
    LOCAL_PATHS = "local_paths"
    RETENTION_UNREADABLE = "retention_unreadable"
    RETENTION_ORDER = "retention_order"
    RETENTION_SHORT = "retention_short"
    FAST_LISTING = "fast_listing"
    SAME_NAME = "same_name"
    SAME_PATH = "same_path"
    PATH_INSIDE = "path_inside"

    SECRET_LEAKS = "secret_leaks"  # noqa: S105 - a name, no secret
    SECRET_IN_TABLE = "secret_in_table"  # noqa: S105
    LOGIN_INCOMPLETE = "login_incomplete"
    LOGIN_IN_THE_CLEAR = "login_in_the_clear"
    S3_IN_THE_CLEAR = "s3_in_the_clear"

    CORES = "cores"
    CORES_SHARED = "cores_shared"
    SHUFFLE_PARTITIONS = "shuffle_partitions"
    MEMORY = "memory"
    BATCH_MEMORY = "batch_memory"
    TRIGGER = "trigger"

    NO_CHANNEL = "no_channel"
    CHANNEL_INCOMPLETE = "channel_incomplete"
    CHANNEL_IN_THE_CLEAR = "channel_in_the_clear"

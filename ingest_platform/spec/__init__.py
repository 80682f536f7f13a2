"""Frozen, validated specs: the one reader of YAML and of the environment."""

from ingest_platform.spec.environment import KafkaEnvironment, StorageEnvironment
from ingest_platform.spec.files import load_spec, load_specs
from ingest_platform.spec.maintenance import CompactionSpec, MaintenanceSpec, VacuumSpec
from ingest_platform.spec.stream import (
    DecodeSpec,
    FreshnessSpec,
    SourceSpec,
    SparkSpec,
    StreamSpec,
    TableSpec,
)
from ingest_platform.spec.supervision import SupervisionSpec

__all__ = [
    "CompactionSpec",
    "DecodeSpec",
    "FreshnessSpec",
    "KafkaEnvironment",
    "MaintenanceSpec",
    "SourceSpec",
    "SparkSpec",
    "StorageEnvironment",
    "StreamSpec",
    "SupervisionSpec",
    "TableSpec",
    "VacuumSpec",
    "load_spec",
    "load_specs",
]

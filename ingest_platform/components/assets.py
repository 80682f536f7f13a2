"""A stream's assets: topic -> table, topic -> quarantine table."""

from __future__ import annotations

import dagster as dg

from ingest_platform.spec import StreamSpec
from ingest_platform.spec.ddl import columns
from ingest_platform.spec.stream import COORDINATES

_COORDINATE_TYPES = ("STRING", "INT", "BIGINT", "TIMESTAMP")


def table_key(spec: StreamSpec) -> dg.AssetKey:
    """The table's asset."""
    return dg.AssetKey([spec.name])


def quarantine_key(spec: StreamSpec) -> dg.AssetKey:
    """The asset of the rejected records."""
    return dg.AssetKey([f"{spec.name}_quarantine"])


def topic_keys(spec: StreamSpec) -> list[dg.AssetKey]:
    """The topics' assets, `kafka/clicks`; a second cluster's are told apart by its prefix."""
    cluster = spec.source.environment_prefix.lower()
    return [dg.AssetKey([cluster, topic]) for topic in spec.source.all_topics]


def table_assets(spec: StreamSpec) -> list[dg.AssetSpec]:
    """Table and quarantine table: computed outside of Dagster, reported by the supervisor."""
    topics = topic_keys(spec)
    policy = dg.FreshnessPolicy.time_window(
        warn_window=spec.freshness.warn, fail_window=spec.freshness.fail
    )
    table = dg.AssetSpec(
        table_key(spec),
        deps=topics,
        description=spec.description or f"Records of {', '.join(spec.source.all_topics)}.",
        metadata={
            "path": spec.table.path,
            "topic": ", ".join(spec.source.all_topics),
            "partition_by": ", ".join(spec.table.partition_by) or "none",
            "cluster_by": ", ".join(spec.table.cluster_by) or "none",
            "state": spec.state_dir,
            "dagster/table_name": spec.name,
            **_column_schema(spec),
        },
        group_name=spec.group,
        owners=list(spec.owners),
        kinds={"delta", "kafka", "spark"},
        freshness_policy=policy,
    )
    quarantine = dg.AssetSpec(
        quarantine_key(spec),
        deps=topics,
        description=f"Records that could not be decoded into {spec.name}: raw bytes, coordinates "
        "and reason.",
        metadata={"path": spec.table.quarantine},
        group_name=spec.group,
        owners=list(spec.owners),
        kinds={"delta", "kafka", "spark"},
    )
    return [table, quarantine]


def topic_assets(spec: StreamSpec) -> list[dg.AssetSpec]:
    """The topics, as what is upstream of the tables; who fills them is not known here."""
    return [
        dg.AssetSpec(
            key,
            description="Kafka topic.",
            metadata={"topic": key.path[-1]},
            group_name=spec.group,
            kinds={"kafka"},
        )
        for key in topic_keys(spec)
    ]


def _column_schema(spec: StreamSpec) -> dict[str, dg.TableSchema]:
    """Columns from the DDL; nothing for a JSON Schema file, or a transform that may change them."""
    if not spec.decode.schema_ or spec.transform:
        return {}
    found = columns(spec.decode.schema_)
    found += [(p.name, p.type) for p in spec.table.partitions if p.type]
    if spec.table.coordinates:
        found += zip(COORDINATES, _COORDINATE_TYPES, strict=True)
    schema = dg.TableSchema(columns=[dg.TableColumn(name, type_) for name, type_ in found])
    return {"dagster/column_schema": schema}

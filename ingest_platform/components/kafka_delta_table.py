"""The component `ingest_platform.KafkaDeltaTable`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import dagster as dg
from dagster.components.scaffold.scaffold import scaffold_with
from pydantic import BaseModel

from ingest_platform.components.assets import table_assets, topic_assets, topic_keys
from ingest_platform.components.attributes import StreamAttributes
from ingest_platform.components.checks import check_job, table_checks
from ingest_platform.components.maintenance import Table, maintenance_definitions
from ingest_platform.components.repair_job import repair_job
from ingest_platform.components.scaffolder import KafkaDeltaTableScaffolder
from ingest_platform.components.stream_jobs import stream_jobs
from ingest_platform.components.supervisor import supervisor_sensor
from ingest_platform.errors import SpecError
from ingest_platform.spec import StreamSpec
from ingest_platform.spec.files import parse_attributes


@scaffold_with(KafkaDeltaTableScaffolder)
class KafkaDeltaTable(dg.Component):
    """A Kafka topic that becomes a Delta table.

    A Spark driver in a process of its own appends micro-batches, exactly once; a sensor keeps it
    running and reports its progress as materializations of the table's asset.
    """

    def __init__(self, spec: StreamSpec, path: Path) -> None:
        self.spec = spec
        self.path = path

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """The attributes, which are the fields of `StreamSpec`."""
        return StreamAttributes

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """What component pickers show."""
        return dg.ComponentTypeSpec(
            description="A Kafka topic that becomes a Delta table.",
            tags=["kafka", "delta", "spark", "ingest"],
            produces=["asset", "sensor", "job", "schedule"],
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Read the attributes as the driver does: one reader, so both mean the same.

        Raises:
            SpecError: With file, field, rule and remedy.
        """
        path = yaml_of(context.path)
        if not isinstance(attributes, StreamAttributes):
            raise SpecError(
                "the stream has no attributes",
                where=str(path),
                remedy="give at least name, source, decode and table",
            )
        return cls(parse_attributes(attributes.root, os.environ, where=str(path)), path)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Assets, sensor, jobs; and the maintenance runs that this table is the first of."""
        others = self._others_topics(context)
        topics = [asset for asset in topic_assets(self.spec) if asset.key not in others]
        tables = context.component_tree.get_all_components(of_type=KafkaDeltaTable)
        return dg.Definitions.merge(
            stream_definitions(self.spec, self.path, topics),
            maintenance_definitions(
                [Table(table.spec, table.path) for table in tables], of=self.spec.name
            ),
        )

    def _others_topics(self, context: dg.ComponentLoadContext) -> set[dg.AssetKey]:
        """Topics that another table's component declares, since an asset has one definition.

        Of several tables that read one topic, the first by name declares it.
        """
        tables = context.component_tree.get_all_components(of_type=KafkaDeltaTable)
        return {
            key
            for table in tables
            if table.spec.name < self.spec.name
            for key in topic_keys(table.spec)
        }


def stream_definitions(
    spec: StreamSpec, path: Path, topics: Sequence[dg.AssetSpec] = ()
) -> dg.Definitions:
    """What Dagster gets for one stream; the resources `s3` and `launcher` must be added.

    Args:
        spec: The stream.
        path: The file that declares it, which the driver will read.
        topics: Assets of topics that are declared here.
    """
    jobs, checks = stream_jobs(spec, path), table_checks(spec)
    return dg.Definitions(
        assets=[*table_assets(spec), *topics],
        asset_checks=[checks],
        jobs=[*jobs, check_job(spec, checks), repair_job(spec, path)],
        sensors=[supervisor_sensor(spec, jobs)],
    )


def yaml_of(path: Path) -> Path:
    """The file that declares the component at `path`, which may be its folder."""
    if path.is_file():
        return path.absolute()
    found = [path / name for name in ("defs.yaml", "defs.yml") if (path / name).exists()]
    return (found or [path / "defs.yaml"])[0].absolute()

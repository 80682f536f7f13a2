"""The component `ingest_platform.Alerts`: one sensor that tells people what they must know."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Self

import dagster as dg
from dagster.components.scaffold.scaffold import scaffold_with
from pydantic import BaseModel

from ingest_platform.components.alert_tick import AlertTick
from ingest_platform.components.attributes import AlertsAttributes
from ingest_platform.components.kafka_delta_table import KafkaDeltaTable, yaml_of
from ingest_platform.components.resources import S3Resource
from ingest_platform.components.scaffolder import AlertsScaffolder
from ingest_platform.model.times import utc_now
from ingest_platform.spec import StreamSpec
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform.spec.alerts import AlertsSpec


@scaffold_with(AlertsScaffolder)
class Alerts(dg.Component):
    """Where alerts go: Slack, Microsoft Teams, PagerDuty, e-mail, webhooks.

    One for a deployment. A sensor watches freshness, checks, failed runs and the supervisors of all
    streams, and tells each channel what is raised and what is resolved.
    """

    def __init__(self, spec: AlertsSpec) -> None:
        self.spec = spec

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """The attributes, which are the fields of `AlertsSpec`."""
        return AlertsAttributes

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """What component pickers show."""
        return dg.ComponentTypeSpec(
            description="Alerts of all streams, to people.",
            tags=["alerts", "ingest"],
            produces=["sensor"],
        )

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Read the attributes as drivers and command line do.

        Raises:
            SpecError: With file, field, rule and remedy.
        """
        raw = attributes.root if isinstance(attributes, AlertsAttributes) else {}
        return cls(parse_alerts(raw, os.environ, where=str(yaml_of(context.path))))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The sensor, over all streams of the deployment."""
        tables = context.component_tree.get_all_components(of_type=KafkaDeltaTable)
        streams = sorted((table.spec for table in tables), key=lambda spec: spec.name)
        return dg.Definitions(sensors=[alert_sensor(self.spec, streams)])


def alert_sensor(spec: AlertsSpec, streams: Sequence[StreamSpec]) -> dg.SensorDefinition:
    """Build the sensor: running by default, no JVM; it asks for no runs."""

    @dg.sensor(
        name="alerts",
        description="Tells people what they must know: "
        + (", ".join(c.name or c.type for c in spec.channels) or "no channel is configured"),
        minimum_interval_seconds=round(spec.every.total_seconds()),
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def alerts(context: dg.SensorEvaluationContext, s3: S3Resource) -> dg.SensorResult:
        repository = context.repository_def
        tick = AlertTick(spec, streams, s3.storage(), os.environ, clock=utc_now)
        graph = repository.asset_graph if repository else None
        return tick.result(context.instance, graph, context.cursor)

    return alerts

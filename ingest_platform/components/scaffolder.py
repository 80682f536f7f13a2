"""`dg scaffold defs ingest_platform.KafkaDeltaTable orders`: a working YAML of ten lines.

And `dg scaffold defs ingest_platform.Alerts alerts`.
"""

from __future__ import annotations

from typing import Any

import dagster as dg
from dagster.components.scaffold.scaffold import Scaffolder, ScaffoldRequest

_YAML = """\
type: ingest_platform.KafkaDeltaTable
attributes:
  name: {name}
  source:
    topic: {topic}
  decode:
    schema: "id STRING, created_at TIMESTAMP"  # the record's JSON fields, as Spark SQL DDL
  table:
    path: "{{{{ env('INGEST_LAKE', 's3a://lake') }}}}/{name}"
"""

_ALERTS = """\
type: ingest_platform.Alerts
attributes:
  channels:
    - type: slack  # or teams, pagerduty, email, webhook
      url_env: SLACK_WEBHOOK_URL  # the variable that holds the address, never the address itself
"""


class KafkaDeltaTableScaffolder(Scaffolder):
    """Writes a `defs.yaml` whose name and topic are the folder's."""

    def scaffold(self, request: ScaffoldRequest[Any]) -> None:
        """Write the file.

        Raises:
            dagster.DagsterInvalidDefinitionError: The format is not YAML, or the folder's name is
                not one that a stream may have.
        """
        if request.scaffold_format != "yaml":
            raise dg.DagsterInvalidDefinitionError(
                "A stream is declared in YAML, so that it also runs without Dagster: leave out "
                "--format"
            )
        name = request.target_path.name.lower().replace("-", "_")
        _write(request, _YAML.format(name=name, topic=request.target_path.name))


class AlertsScaffolder(Scaffolder):
    """Writes a `defs.yaml` with one channel."""

    def scaffold(self, request: ScaffoldRequest[Any]) -> None:
        """Write the file."""
        _write(request, _ALERTS)


def _write(request: ScaffoldRequest[Any], text: str) -> None:
    file = request.target_path / "defs.yaml"
    mode, start = ("a", "---\n") if request.append else ("w", "")
    with file.open(mode, encoding="utf-8") as out:
        out.write(start + text)

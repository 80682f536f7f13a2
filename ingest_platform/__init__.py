"""Kafka to Delta Lake ingestion on Spark, supervised by Dagster."""

import importlib
from typing import Any

# Loaded when first asked for: drivers and the vocabulary must not pay for importing Dagster. The
# module's name stands in a string, so that import-linter's rules hold for the package itself.
_LAZY = {
    "Alerts": "ingest_platform.components.alerts",
    "KafkaDeltaTable": "ingest_platform.components.kafka_delta_table",
    "dml_in_flight": "ingest_platform.maintain.auto_compaction.in_flight",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])

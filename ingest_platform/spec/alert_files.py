"""The deployment's alert settings: which file declares them, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ingest_platform.errors import SpecError
from ingest_platform.spec.alerts import AlertsSpec
from ingest_platform.spec.files import declared, invalid, rendered_attributes

ALERTS_TYPE = "ingest_platform.Alerts"


def load_alerts(files: Iterable[Path], environ: Mapping[str, str]) -> AlertsSpec:
    """The settings of the file that `INGEST_ALERTS` names, or else of the one among `files`.

    Args:
        files: Where they may be declared.
        environ: For `INGEST_ALERTS`, and for what the file refers to.

    Returns:
        The defaults, without any channel, when no file declares alerts.

    Raises:
        SpecError: A file is not valid, or there are several.
    """
    named = environ.get("INGEST_ALERTS")
    files = [Path(named)] if named else files
    found = [(file, item) for file in files for item in _declared(file, named=named is not None)]
    if len(found) > 1:
        raise SpecError(
            f"{len(found)} components of type {ALERTS_TYPE} are declared",
            where=", ".join(str(file) for file, _ in found),
            remedy="put all channels into one of them",
        )
    if named and not found:
        raise SpecError(
            f"INGEST_ALERTS names a file without a component of type {ALERTS_TYPE}",
            where=named,
            remedy=f"declare one there (type: {ALERTS_TYPE}), or unset the variable",
        )
    if not found:
        return parse_alerts({}, environ, where="")
    [(file, attributes)] = found
    return parse_alerts(attributes, environ, where=str(file))


def beside(spec: Path) -> list[Path]:
    """Where the settings of the deployment that a stream's file belongs to may be declared.

    The file itself, the folders beside its own, and below it, where a pod has them: a file may lie
    anywhere, so nothing is searched in depth.
    """
    file = (spec / "defs.yaml" if spec.is_dir() else spec).absolute()
    folders = (file.parent, file.parent.parent)
    return sorted({file, *(found for folder in folders for found in folder.glob("*/defs.yaml"))})


def declaring(spec: Path, environ: Mapping[str, str]) -> Path | None:
    """The file that declares the alerts of a stream's deployment; None if there is none."""
    named = environ.get("INGEST_ALERTS")
    files = [Path(named)] if named else beside(spec)
    return next((file for file in files if _declared(file, named=False)), None)


def parse_alerts(attributes: Any, environ: Mapping[str, str], *, where: str) -> AlertsSpec:
    """Render `{{ env.NAME }}` and validate.

    Raises:
        SpecError: With the field's path and every broken rule in it.
        SecretInSpecError: A secret stands literally in the attributes.
    """
    rendered = rendered_attributes(attributes or {}, environ, where=where)
    try:
        return AlertsSpec.model_validate(rendered)
    except ValidationError as error:
        # Not chained: Pydantic's own text quotes the input, which may be a secret.
        raise invalid(error, where) from None


def _declared(file: Path, *, named: bool) -> list[Any]:
    try:
        return declared(file, ALERTS_TYPE)
    except SpecError:
        if named:
            raise
        return []  # a stream's broken file is told by whoever reads streams

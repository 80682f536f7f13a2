"""From what a person types, a stream's name or a path, to its spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ingest_platform.errors import SpecError
from ingest_platform.spec import StreamSpec, load_spec, load_specs
from ingest_platform.spec.alert_files import load_alerts
from ingest_platform.spec.alerts import AlertsSpec

DEFS = Path(__file__).parent.parent / "defs"


@dataclass(frozen=True)
class Found:
    """A spec, and the file that declares it."""

    spec: StreamSpec
    path: Path


@dataclass(frozen=True)
class Deployment:
    """All specs of a folder; a file that cannot be read does not hide the others."""

    folder: Path
    found: tuple[Found, ...]
    broken: tuple[tuple[Path, SpecError], ...]

    @property
    def names(self) -> list[str]:
        """Names of the streams, sorted."""
        return sorted(item.spec.name for item in self.found)


def defs_folder(environ: Mapping[str, str]) -> Path:
    """`INGEST_DEFS`, or the package's own `defs`."""
    return Path(environ["INGEST_DEFS"]) if environ.get("INGEST_DEFS") else DEFS


def read_deployment(environ: Mapping[str, str]) -> Deployment:
    """Read every `defs.yaml` below the folder.

    Raises:
        SpecError: The folder does not exist.
    """
    folder = defs_folder(environ)
    if not folder.is_dir():
        raise SpecError(
            "there is no such folder of specs",
            where=str(folder),
            remedy="set INGEST_DEFS to a folder with defs.yaml files, or unset it",
        )
    found: list[Found] = []
    broken: list[tuple[Path, SpecError]] = []
    for path in sorted(folder.rglob("defs.yaml")):
        try:
            found += [Found(spec, path) for spec in load_specs(path, environ)]
        except SpecError as error:
            broken.append((path, error))
    return Deployment(folder, tuple(found), tuple(broken))


def alert_settings(environ: Mapping[str, str]) -> AlertsSpec:
    """The deployment's alert settings.

    Raises:
        SpecError: They are not valid, or declared twice.
    """
    return load_alerts(sorted(defs_folder(environ).rglob("defs.yaml")), environ)


def is_path(text: str) -> bool:
    """Whether the text is meant as a path: a name has neither a slash nor a dot."""
    return "/" in text or "." in text


def find(text: str, environ: Mapping[str, str], name: str | None = None) -> Found:
    """The spec that a name or a path means.

    Args:
        text: A stream's name, or the path of a `defs.yaml` or of its folder.
        environ: For `INGEST_DEFS`, and for what specs refer to.
        name: Which stream, where the file declares several.

    Raises:
        SpecError: There is none, there are several, or its file is not valid.
    """
    if is_path(text):
        return Found(load_spec(Path(text), environ, name), Path(text))
    deployment = read_deployment(environ)
    matches = [item for item in deployment.found if item.spec.name == text]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise SpecError(
            f"{len(matches)} specs declare the stream {text!r}",
            where=", ".join(str(item.path) for item in matches),
            remedy="rename all but one",
        )
    for path, error in deployment.broken:
        if path.parent.name == text:
            raise error
    raise _unknown(text, deployment)


def select(texts: tuple[str, ...], environ: Mapping[str, str]) -> list[Found]:
    """The specs that the texts mean, or those of the whole deployment without any.

    Raises:
        SpecError: One is unknown or not valid.
    """
    if texts:
        return [find(text, environ) for text in texts]
    deployment = read_deployment(environ)
    for _, error in deployment.broken:
        raise error
    return list(deployment.found)


def _unknown(text: str, deployment: Deployment) -> SpecError:
    return SpecError(
        f"there is no stream {text!r}; known: {', '.join(deployment.names) or 'none'}"
        + "".join(_broken_ones(deployment)),
        where=str(deployment.folder),
        remedy=_remedy(text, deployment),
    )


def _broken_ones(deployment: Deployment) -> Iterator[str]:
    for path, error in deployment.broken:
        yield f"; {path} could not be read: {error.what}"


def _remedy(text: str, deployment: Deployment) -> str:
    close = get_close_matches(text, deployment.names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if deployment.names:
        return "give one of the known names, or the path of a defs.yaml"
    return "make one: dg scaffold defs ingest_platform.KafkaDeltaTable NAME; or set INGEST_DEFS"

"""YAML file to spec, with messages that name file, field, rule and remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml
from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from pydantic import ValidationError

from ingest_platform.errors import SecretInSpecError, SpecError
from ingest_platform.spec.stream import StreamSpec

COMPONENT_TYPE = "ingest_platform.KafkaDeltaTable"

_SECRET_KEY = re.compile(
    r"password|passwd|secret|token|credential|jaas|access\.?key", re.IGNORECASE
)
# Keys that name where a secret is, or what fetches it.
_NO_SECRET_KEY = re.compile(r"(provider|path|location|file|class|_env)$", re.IGNORECASE)
_REFERENCE = re.compile(r"""\{\{\s*env(\.\w+|\(\s*['"]\w+['"]\s*\))\s*\}\}""")
_PASSWORD_IN_TEXT = re.compile(r"""password\s*=\s*["']?[^"'\s;]""", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    r"\bAKIA[0-9A-Z]{16}\b|password\s*=|://[^/\s:@]+:[^/\s@]+@", re.IGNORECASE
)


def load_spec(path: Path, environ: Mapping[str, str], name: str | None = None) -> StreamSpec:
    """Read one stream's spec; `name` chooses among several documents in a file.

    Raises:
        SpecError: The file cannot be read, or does not hold exactly one matching valid spec.
    """
    specs = load_specs(path, environ)
    chosen = [s for s in specs if name is None or s.name == name]
    if len(chosen) != 1:
        names = ", ".join(s.name for s in specs) or "none"
        raise SpecError(
            f"{len(chosen)} streams match {name!r}" if name else f"{len(chosen)} streams found",
            where=f"{path} (streams: {names})",
            remedy="name one of them with --name"
            if specs
            else f"declare one: type: {COMPONENT_TYPE}",
        )
    return chosen[0]


def load_specs(path: Path, environ: Mapping[str, str]) -> list[StreamSpec]:
    """Read every stream that a `defs.yaml` declares; other component types are passed over."""
    file = path / "defs.yaml" if path.is_dir() else path
    return [
        parse_attributes(attributes, environ, where=str(file))
        for attributes in declared(file, COMPONENT_TYPE)
    ]


def declared(file: Path, component: str) -> list[Any]:
    """The attributes, as written, of every document of one component type.

    Raises:
        SpecError: The file cannot be read.
    """
    try:
        documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise SpecError(
            f"cannot read the spec: {error.strerror}",
            where=str(file),
            remedy="give the path of a defs.yaml",
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(
            f"not valid YAML: {error}", where=str(file), remedy="mend the syntax there"
        ) from error
    return [
        document.get("attributes")
        for document in (cast("dict[str, Any]", d) for d in documents if isinstance(d, dict))
        if document.get("type") == component
    ]


def parse_attributes(attributes: Any, environ: Mapping[str, str], *, where: str) -> StreamSpec:
    """Render `{{ env.NAME }}` and validate.

    Raises:
        SpecError: With the field's path and every broken rule in it.
        SecretInSpecError: A secret stands literally in the attributes.
    """
    rendered = rendered_attributes(attributes, environ, where=where)
    try:
        return StreamSpec.model_validate(_with_folder(rendered, where))
    except ValidationError as error:
        # Not chained: Pydantic's own text quotes the input, which may be a rendered secret.
        raise invalid(error, where) from None


def rendered_attributes(attributes: Any, environ: Mapping[str, str], *, where: str) -> Any:
    """Refuse literal secrets, then render `{{ env.NAME }}`.

    Raises:
        SpecError, SecretInSpecError: As `parse_attributes`.
    """
    refuse_literal_secrets(attributes, where=where)
    return _render(attributes, environ, where)


def refuse_literal_secrets(value: Any, *, where: str, field: str = "", key: str = "") -> None:
    """Walk the unrendered attributes; a secret may only be a reference to the environment."""
    children = _children(value, field)
    if children is not None:
        for child, inner, name in children:
            inner_key = child if isinstance(child, str) else key
            refuse_literal_secrets(inner, where=where, field=name, key=inner_key)
    elif isinstance(value, str) and _holds_secret(key, value):
        raise SecretInSpecError(
            "a secret stands literally in the spec",  # never quote the value itself
            where=f"{where}: {field}",
            remedy="put it into the environment and write '{{ env.NAME }}' here",
        )


def _holds_secret(key: str, value: str) -> bool:
    literal = _REFERENCE.sub("", value)
    if "jaas" in key.lower() and literal != value:  # a login line around references
        return bool(_PASSWORD_IN_TEXT.search(literal))
    named = _SECRET_KEY.search(key) and not _NO_SECRET_KEY.search(key)
    return bool((named and literal.strip()) or _SECRET_VALUE.search(literal))


def _children(value: Any, field: str) -> list[tuple[Any, Any, str]] | None:
    """Key, value and field path of what a mapping or list holds; None for a leaf."""
    if isinstance(value, dict):
        mapping = cast("dict[Any, Any]", value)
        return [(k, v, f"{field}.{k}".lstrip(".")) for k, v in mapping.items()]
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [(i, v, f"{field}[{i}]") for i, v in enumerate(items)]
    return None


class _Env:
    """`env.NAME` and `env('NAME', 'default')`, as in Dagster's templates, from a mapping."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __call__(self, name: str, default: str | None = None) -> str:
        value = self._environ.get(name, default)
        if value is None:
            raise KeyError(name)
        return value

    def __getattr__(self, name: str) -> str:
        if name.startswith(("jinja", "__")) or name in {"unsafe_callable", "alters_data"}:
            raise AttributeError(name)  # Jinja probes for its own markers
        return self(name)


def _render(value: Any, environ: Mapping[str, str], where: str, field: str = "") -> Any:
    children = _children(value, field)
    if children is not None:
        rendered = {key: _render(inner, environ, where, name) for key, inner, name in children}
        return list(rendered.values()) if isinstance(value, list) else rendered
    if not isinstance(value, str) or "{{" not in value:
        return value
    try:
        # Nothing is rendered into HTML here: escaping would corrupt passwords and paths. Sandboxed,
        # since specs of pull requests are checked on machines that their authors may not enter.
        environment = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
        return environment.from_string(value).render(env=_Env(environ))
    except KeyError as error:
        raise SpecError(
            f"environment variable {error.args[0]} is not set",
            where=f"{where}: {field}",
            remedy=f"export {error.args[0]}=... or give a default: env('{error.args[0]}', '...')",
        ) from error
    except Exception as error:  # whatever an expression may raise
        raise SpecError(
            f"template cannot be rendered: {error}",
            where=f"{where}: {field}",
            remedy="use {{ env.NAME }}",
        ) from error


def _with_folder(attributes: Any, where: str) -> object:
    """Resolve `decode.schema_file` against the spec's own folder: that is where people put it."""
    top = cast("dict[str, Any]", attributes) if isinstance(attributes, dict) else {}
    section: Any = top.get("decode")
    decode = cast("dict[str, Any]", section) if isinstance(section, dict) else {}
    if not isinstance(decode.get("schema_file"), str):
        return cast(object, attributes)
    file = Path(where).parent / decode["schema_file"]
    return {**top, "decode": {**decode, "schema_file": str(file)}}


def invalid(error: ValidationError, where: str) -> SpecError:
    """One message per broken rule; the input is left out, since it may be a rendered secret."""
    findings = [
        f"{'.'.join(str(part) for part in item['loc']) or 'attributes'}: {item['msg']}"
        for item in error.errors(include_url=False, include_input=False)
    ]
    return SpecError(
        "; ".join(findings),
        where=where,
        remedy="mend the named fields; `dg docs serve` and docs/spec.md list all of them",
    )

"""The component's attributes, as Dagster's tools see them: unrendered, checked by JSON schema.

The schema is that of `StreamSpec`, so there is one description of the fields; what it cannot say
(rules across fields, values of templates) `parse_attributes` says when definitions are loaded.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler, RootModel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ingest_platform.spec import StreamSpec
from ingest_platform.spec.alerts import AlertsSpec

_TEMPLATE = {"type": "string", "pattern": r"\{\{"}
_LEAVES = {"type", "enum", "const", "pattern"}


class StreamAttributes(RootModel[dict[str, Any]]):
    """A stream's fields as the YAML has them, `{{ env.NAME }}` included."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core_schema: CoreSchema,
        handler: GetJsonSchemaHandler,
    ) -> JsonSchemaValue:
        """`StreamSpec`'s schema, in which every leaf may also be a template."""
        return _templated(StreamSpec)


class AlertsAttributes(RootModel[dict[str, Any]]):
    """The fields of a deployment's alerts as the YAML has them."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        core_schema: CoreSchema,
        handler: GetJsonSchemaHandler,
    ) -> JsonSchemaValue:
        """`AlertsSpec`'s schema, in which every leaf may also be a template."""
        return _templated(AlertsSpec)


def _templated(model: type[BaseModel]) -> JsonSchemaValue:
    schema = model.model_json_schema()
    sections = schema.pop("$defs", {})
    return _inlined(schema, sections)


def _inlined(node: Any, sections: dict[str, Any]) -> Any:
    """Resolve references, since Pydantic puts this schema's `$defs` elsewhere; admit templates."""
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = sections[node["$ref"].rpartition("/")[2]]
        return _inlined({**target, **{k: v for k, v in node.items() if k != "$ref"}}, sections)
    known = {key: value for key, value in node.items() if key != "discriminator"}  # names `$defs`
    inner = {key: _inlined_value(key, value, sections) for key, value in known.items()}
    if "anyOf" in inner:
        return _optional(inner)
    return _or_template(inner) if inner.get("type") != "object" and _LEAVES & set(inner) else inner


def _inlined_value(key: str, value: Any, sections: dict[str, Any]) -> Any:
    if key == "properties":
        return {name: _inlined(field, sections) for name, field in value.items()}
    if key in {"items", "additionalProperties"}:
        return _inlined(value, sections)
    if key in {"anyOf", "oneOf", "allOf"}:
        return [_inlined(option, sections) for option in value]
    return value


def _optional(node: dict[str, Any]) -> dict[str, Any]:
    """Turn `anyOf [X, null]` into `null, else X`: then the message is X's, not "any of them"."""
    options = [option for option in node["anyOf"] if option.get("else") != {"type": "null"}]
    if len(options) != 1 or len(options) == len(node["anyOf"]):
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**rest, "if": {"type": "null"}, "else": options[0]}


def _or_template(leaf: dict[str, Any]) -> dict[str, Any]:
    """Admit a template instead of the leaf; `if`/`else` keeps the leaf's own error message."""
    about = {key: leaf[key] for key in ("title", "description", "default") if key in leaf}
    rule = {key: value for key, value in leaf.items() if key not in about}
    return {**about, "if": _TEMPLATE, "else": rule}

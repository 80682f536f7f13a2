"""The table's data columns, from Spark DDL or a JSON Schema file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812  (PySpark's own convention)

from ingest_platform.errors import SpecError
from ingest_platform.spec import DecodeSpec

RESCUED: Final = "_rescued_data"

_SCALARS: Final[dict[str, T.DataType]] = {
    "string": T.StringType(),
    "integer": T.LongType(),
    "number": T.DoubleType(),
    "boolean": T.BooleanType(),
}
_FORMATS: Final[dict[str, T.DataType]] = {"date-time": T.TimestampType(), "date": T.DateType()}


def data_schema(spark: SparkSession, decode: DecodeSpec) -> T.StructType:
    """The columns that a record's value is decoded into.

    Raises:
        SpecError: The schema cannot be read, or takes a name that the platform needs.
    """
    schema = (
        _from_file(Path(decode.schema_file)) if decode.schema_file else _from_ddl(spark, decode)
    )
    taken = [name for name in schema.names if name.startswith("_")]
    if taken or not schema.names:
        raise SpecError(
            f"columns {taken} start with an underscore" if taken else "the schema has no columns",
            where=f"decode.schema_file: {decode.schema_file}"
            if decode.schema_file
            else "decode.schema",
            remedy="name at least one column, none with a leading underscore: the platform adds "
            "its own (_kafka_offset, ...) so",
        )
    _refuse_what_is_lost(schema)
    return schema


def _refuse_what_is_lost(schema: T.StructType) -> None:
    """Delta keeps CHAR and VARCHAR as STRING, and no one would check a NOT NULL inside a column."""
    for field in schema.fields:
        text = field.dataType.json()
        if isinstance(field.dataType, T.CharType | T.VarcharType):
            finding = f"column {field.name} is {field.dataType.simpleString().upper()}"
        elif '"nullable":false' in text or '"containsNull":false' in text:
            finding = f"column {field.name} has a NOT NULL inside"
        else:
            continue
        raise SpecError(
            finding,
            where="decode.schema",
            remedy="use STRING, and NOT NULL for whole columns only",
        )


def _from_ddl(spark: SparkSession, decode: DecodeSpec) -> T.StructType:
    ddl = decode.schema_ or ""
    try:
        jvm: Any = spark._jvm  # the DDL parser has no other door that returns a nullable struct
        parsed = jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)
    except ParseException as error:
        raise SpecError(
            f"not valid DDL: {str(error).strip().splitlines()[0]}",
            where=f"decode.schema: {ddl!r}",
            remedy="write columns as in CREATE TABLE: id STRING, ts TIMESTAMP, tags ARRAY<STRING>",
        ) from error
    return T.StructType.fromJson(json.loads(parsed.json()))


def _from_file(path: Path) -> T.StructType:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        Draft202012Validator.check_schema(document)
    except (OSError, ValueError, SchemaError) as error:
        raise SpecError(
            f"not a JSON Schema: {str(error).splitlines()[0]}",
            where=f"decode.schema_file: {path}",
            remedy="give a JSON Schema (draft 2020-12) with type: object",
        ) from error
    converted = _convert(document, document, path)
    if not isinstance(converted, T.StructType):
        raise SpecError(
            "the schema's type is not object",
            where=f"decode.schema_file: {path}",
            remedy="records must be JSON objects",
        )
    return converted


def _convert(
    node: Any, root: dict[str, Any], path: Path, within: tuple[str, ...] = ()
) -> T.DataType:
    """One node of a JSON Schema; what has no column type becomes STRING, which keeps its JSON.

    `within` are the references that led here.
    """
    if isinstance(node, dict) and "$ref" in node:
        reference = node["$ref"]
        if reference in within:
            raise SpecError(
                f"$ref {reference!r} refers to itself",
                where=f"decode.schema_file: {path}",
                remedy="columns have a fixed depth: describe that part as a string",
            )
        return _convert(_resolve(reference, root, path), root, path, (*within, reference))
    kind = node.get("type") if isinstance(node, dict) else None
    if isinstance(kind, list):  # ["string", "null"]: every column is nullable anyway
        kinds = [k for k in kind if k != "null"]
        kind = kinds[0] if len(kinds) == 1 else "string"
    if kind == "object" and "properties" in node:
        fields = [
            T.StructField(name, _convert(child, root, path, within))
            for name, child in node["properties"].items()
        ]
        return T.StructType(fields)
    if kind == "object":
        values = _convert(node.get("additionalProperties"), root, path, within)
        return T.MapType(T.StringType(), values)
    if kind == "array":
        return T.ArrayType(_convert(node.get("items"), root, path, within))
    if kind == "string":
        return _FORMATS.get(node.get("format", ""), T.StringType())
    return _SCALARS.get(str(kind), T.StringType())


def _resolve(reference: str, root: dict[str, Any], path: Path) -> Any:
    node: Any = root
    if not reference.startswith("#"):
        raise SpecError(
            f"$ref {reference!r} leaves the file",
            where=f"decode.schema_file: {path}",
            remedy="bring the definition into the file, under $defs",
        )
    try:
        for part in reference[1:].split("/")[1:]:
            node = node[part.replace("~1", "/").replace("~0", "~")]
    except (KeyError, TypeError) as error:
        raise SpecError(
            f"$ref {reference!r} does not exist",
            where=f"decode.schema_file: {path}",
            remedy="define it under $defs, or mend the reference",
        ) from error
    return node

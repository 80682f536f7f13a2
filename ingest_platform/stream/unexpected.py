"""Fields of a record that the schema does not name, at any depth."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)
from pyspark.sql import types as T  # noqa: N812

_TEXT_MAP: Final = "map<string,string>"
_TEXT_LIST: Final = "array<string>"


def unexpected_fields(text: Column, schema: T.StructType) -> Column:
    """A map from the path of each such field in a JSON text to its value as JSON text.

    Paths look like `zip`, `address.zip`, `items[0].sku`. Null where the text is no JSON object.
    A name that one object holds twice counts once, its last value wins, as for declared fields;
    the session's `spark.sql.mapKeyDedupPolicy` must allow that.
    """
    return _of_object(text, schema, None)


def _below(text: Column, kind: T.DataType, path: Column) -> Column:
    if isinstance(kind, T.ArrayType):
        item_type = kind.elementType
        return _merged(
            F.transform(
                F.from_json(text, _TEXT_LIST),
                lambda item, index: _below(
                    item, item_type, F.concat(path, F.lit("["), index.cast("string"), F.lit("]"))
                ),
            )
        )
    if isinstance(kind, T.MapType):
        value_type = kind.valueType
        return _merged(
            F.transform(
                F.map_entries(F.from_json(text, _TEXT_MAP)),
                lambda entry: _below(entry["value"], value_type, _joined(path, entry["key"])),
            )
        )
    if isinstance(kind, T.StructType):
        return _of_object(text, kind, path)
    raise TypeError(f"{kind} holds no fields")


def _of_object(text: Column, kind: T.StructType, path: Column | None) -> Column:
    fields = F.from_json(text, _TEXT_MAP)
    known = F.array(*[F.lit(name) for name in kind.names])
    unknown = F.map_filter(fields, lambda name, _: ~F.array_contains(known, name))
    unknown = F.transform_keys(unknown, lambda name, _: _joined(path, name))
    below = [
        _below(fields[f.name], f.dataType, _joined(path, F.lit(f.name)))
        for f in kind.fields
        if _holds_fields(f.dataType)
    ]
    return _merged(F.array(unknown, *below)) if below else unknown


def _joined(path: Column | None, name: Column) -> Column:
    return name if path is None else F.concat(path, F.lit("."), name)


def _merged(maps: Column) -> Column:
    entries = F.transform(maps, lambda one: F.coalesce(F.map_entries(one), F.array()))
    return F.map_from_entries(F.flatten(entries))


def _holds_fields(kind: T.DataType) -> bool:
    if isinstance(kind, T.ArrayType):
        return _holds_fields(kind.elementType)
    if isinstance(kind, T.MapType):
        return _holds_fields(kind.valueType)
    return isinstance(kind, T.StructType)

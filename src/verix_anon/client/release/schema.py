"""The dictionary of a released table, beside it: what each column is, and how its cells read.

Its fields are those of Frictionless Table Schema where they fit. It is published with the table,
and holds nothing that the table's cells do not show, but for the labels of a column that has no
hierarchy, which `*` and `not {a}` speak of.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from verix_anon.client.release.cells import MISSING
from verix_anon.client.release.present import Representation
from verix_anon.client.release.ranges import Range
from verix_anon.client.table.categories import is_text
from verix_anon.client.table.roles import TableRole
from verix_anon.fields import to_json
from verix_anon.protocol.words import show_value

__all__ = ["FORMAT", "described", "schema_json", "schema_path"]

FORMAT = "verix/schema/2"
IN_WORDS = (Representation.INTERVAL, Representation.SET)
WITH_ENDS = (Representation.INTERVAL, Representation.BOUNDS)
TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "number"),
    (pa.types.is_decimal, "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "datetime"),
    (is_text, "string"),
)


def schema_path(table: str) -> str:
    """`released.schema.json` for `released.csv`."""
    head, slash, name = table.rpartition("/")
    return f"{head}{slash}{name.rpartition('.')[0] or name}.schema.json"


def schema_json(
    names: Sequence[str],
    types: Mapping[str, pa.DataType],
    roles: Mapping[str, str],
    shown: Iterable[tuple[Mapping[str, pa.Array], Mapping[str, object]]],
) -> str:
    """The dictionary of these published columns; `types` are those of the owner's.

    `shown` are the columns of each quasi-identifier, and how it is `described`.
    """
    fields: dict[str, dict[str, object]] = {}
    for columns, said in shown:
        for name, array in columns.items():
            fields[name] = {"name": name, "type": _type(array.type), **said}
    for name, kind in types.items():
        if roles[name] != TableRole.QUASI:
            fields[name] = {"name": name, "type": _type(kind), "role": str(roles[name])}
    document = {
        "format": FORMAT,
        "fields": [fields[name] for name in names],
        "missingValues": [""],
    }
    return to_json(document)


def described(found: Range) -> dict[str, object]:
    """What is to be known of a quasi-identifier's columns."""
    column, form = found.column, found.form
    said: dict[str, object] = {
        "role": TableRole.QUASI.value,
        "column": column.name,
        "kind": column.kind.value,
        "representation": form.representation.value,
    }
    if column.unit is not None:
        said["unit"] = column.unit.value
    if form.representation in IN_WORDS:
        said |= _words(found)
    # A mean does not tell the ends of its class.
    if form.representation in WITH_ENDS and found.sets is None and not found.is_empty.all():
        ends = found.low[~found.is_empty].min(), found.high[~found.is_empty].max()
        said["bounds"] = [show_value(column, float(end)) for end in ends]
    if found.missing.any():
        said["missing"] = MISSING
    return said


def _words(found: Range) -> dict[str, object]:
    """What the words of categories are."""
    column, form = found.column, found.form
    if form.hierarchy is not None and form.representation is Representation.INTERVAL:
        return {"hierarchy": form.hierarchy.kind}
    if found.sets is None or column.categories is None:
        return {}
    occurring = np.unique(found.sets.position)
    return {
        "ordered": form.is_ordered and form.representation is Representation.INTERVAL,
        "levels": [column.categories[i] for i in occurring],
    }


def _type(kind: pa.DataType) -> str:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return next((name for test, name in TYPES if test(plain)), "any")

"""From a user's table to typed columns and exact values, and back (spec §2).

Tables may be pandas, polars or pyarrow, or whatever gives a stream of Arrow data: narwhals reads
them all, and each column passes through one Arrow array, so that all give the same bytes.
"""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from verix_anon.arrays import Bytes, Flags, Floats, Ints
from verix_anon.client.table.categories import is_text, positions
from verix_anon.client.table.hierarchies import DATE, Hierarchy
from verix_anon.client.table.numbers import is_number, moments, numbers
from verix_anon.client.table.roles import SENT, Declared, Missing, TableRole
from verix_anon.client.table.target import encode_target
from verix_anon.client.table.task import Labels
from verix_anon.errors import ContractError, TableError
from verix_anon.files.tables.memory import held
from verix_anon.protocol.contract import Column, Kind, Role, Unit
from verix_anon.protocol.generalize import NUMPY_UNITS

__all__ = ["Encoded", "arrow_columns", "decode", "encode", "without_views"]

SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Encoded:
    """What may be sent of a table: quasi-identifiers, their values, labels, what was imputed."""

    quasi: tuple[Column, ...]
    values: Floats
    """(n_quasi, n_rows), in contract order"""
    labels: Labels
    absent: dict[str, Flags]
    """Which values of a quasi-identifier were missing and are imputed here; only where any was."""
    roles: dict[str, TableRole]
    hierarchies: dict[str, Hierarchy]
    """Of quasi-identifiers that have one, for the categories that occur."""

    @property
    def imputed(self) -> dict[str, int]:
        """How many missing values each quasi-identifier had; those without are not named."""
        return {name: int(is_missing.sum()) for name, is_missing in self.absent.items()}

    @property
    def columns(self) -> tuple[Column, ...]:
        """All in table order, the target among them if it has two classes."""
        target = [name for name, role in self.roles.items() if role is TableRole.TARGET]
        if not self.labels.is_binary:
            return self.quasi
        sent = [name for name, role in self.roles.items() if role in SENT]
        column = Column(
            name=target[0],
            role=Role.TARGET,
            kind=Kind.CATEGORICAL,
            categories=self.labels.classes,
        )
        at = sent.index(target[0])
        return (*self.quasi[:at], column, *self.quasi[at:])

    @property
    def target(self) -> Bytes:
        """The labels of two classes as the rule `variance-reduction` counts them."""
        n_rows = self.values.shape[1]
        if not self.labels.is_binary:
            return np.zeros(n_rows, np.uint8)
        return self.labels.values.astype(np.uint8)


def encode(table: object, declared: Declared) -> Encoded:
    """Encode the columns that are sent, in table order.

    Args:
        table: A pandas, polars or pyarrow table.
        declared: The role of every column, and what to read differently than by default.

    Raises:
        TableError: The table does not fit what was declared; the message says what to do.
    """
    arrays = arrow_columns(table)
    roles = declared.roles(list(arrays))
    if len(next(iter(arrays.values()))) == 0:
        raise TableError("the table has no rows")
    sent = {name: arrays[name] for name, role in roles.items() if role in SENT}
    try:
        return _encode_sent(sent, roles, declared)
    except ContractError as error:
        # A name or a label that no contract can have is, here, a fault of the table.
        raise TableError(str(error)) from None


def _encode_sent(
    sent: dict[str, pa.Array], roles: dict[str, TableRole], declared: Declared
) -> Encoded:
    n_rows = len(next(iter(sent.values())))
    quasi = [name for name in sent if roles[name] is TableRole.QUASI]
    values = np.empty((len(quasi), n_rows))

    def fill(name: str, out: Floats) -> tuple[Column, Flags]:
        """The column, and which of its values were imputed."""
        column, encoded = _encode_quasi(name, sent[name], declared)
        # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
        np.add(encoded, 0.0, out=out)
        return column, _impute(column, out, declared.missing)

    with ThreadPoolExecutor() as pool:
        found = list(pool.map(fill, quasi, values))
    labels = Labels.none(n_rows)
    for name in sent.keys() - set(quasi):
        labels = encode_target(name, sent[name], declared)
    return Encoded(
        quasi=tuple(column for column, _ in found),
        values=values,
        labels=labels,
        absent={column.name: is_missing for column, is_missing in found if is_missing.any()},
        roles=roles,
        hierarchies={
            column.name: declared.hierarchy(column.name).only(column.categories or ())
            for column, _ in found
            if column.name in declared.hierarchies
        },
    )


def decode(column: Column, values: Floats) -> pa.Array:
    """The user's values: labels, dates, or numbers."""
    if column.categories is not None:
        labels = pa.array(column.categories, pa.large_string())
        return labels.take(pa.array(values.astype(np.int64)))
    if column.unit is not None:
        return _decode_moments(column.unit, np.floor(values).astype(np.int64))
    return pa.array(values)


def _decode_moments(unit: Unit, counts: Ints) -> pa.Array:
    """Timestamps, or dates if every day has one: Arrow counts days in 32 bits."""
    farthest = int(np.abs(counts).max(initial=0))
    if unit is not Unit.DAY or farthest < 2**31:
        return pa.array(counts.astype(f"M8[{NUMPY_UNITS[unit]}]"))
    if farthest > (2**63 - 1) // SECONDS_PER_DAY:
        # No table gives such a day, for Arrow could not have held it.
        raise TableError(f"a date {farthest} days from 1970 is too far for a timestamp")
    return pa.array(counts * SECONDS_PER_DAY, pa.timestamp("s"))


def arrow_columns(table: object) -> dict[str, pa.Array]:
    """Every column as one Arrow array, by name, in table order."""
    try:
        frame = nw.from_native(held(table), eager_only=True)  # type: ignore[call-overload]
    except DuplicateError as error:
        name = re.search(r"'(.*)' \d+ times", str(error))
        raise TableError(f"column name {name[1] if name else '?'!r} occurs twice") from None
    except TypeError:
        raise TableError(
            f"a table is a pandas, polars or pyarrow table, not {type(table).__name__}"
        ) from None
    for name in frame.columns:
        if not isinstance(name, str):
            raise TableError(f"column names must be text; {name!r} is not")
    if not frame.columns:
        raise TableError("the table has no columns")
    return {name: _to_arrow(name, frame[name]) for name in frame.columns}


def _to_arrow(name: str, series: "nw.Series[Any]") -> pa.Array:
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray) and native.num_chunks == 1:
        # As it is: narwhals would copy it.
        return without_views(native.chunk(0))
    try:
        return without_views(series.to_arrow())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TableError(f"column {name!r} mixes types or cannot be read ({error})") from None


def without_views(array: pa.Array) -> pa.Array:
    """Views of text and bytes as text and bytes: much of Arrow does not know them."""
    if array.type == pa.string_view():
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if array.type == pa.binary_view() else array


def _encode_quasi(name: str, array: pa.Array, declared: Declared) -> tuple[Column, Floats]:
    """A quasi-identifier's column and values, with NaN where one is missing."""
    categories = unit = None
    if array.null_count == len(array):
        raise _no_values(name)
    kind = declared.kind(name) or _default_kind(name, array.type)
    if kind is Kind.NUMERIC:
        values = numbers(name, array)
    elif kind is Kind.DATETIME:
        unit, values = moments(name, array)
    else:
        categories, values = positions(name, array, declared.orders.get(name))
    hierarchy = _hierarchy(name, kind, declared)
    if hierarchy is not None and categories is not None:
        categories, values = _depth_first(name, hierarchy, categories, values)
    is_missing = np.isnan(values)
    if is_missing.all():
        raise _no_values(name)
    if categories is not None and hierarchy is None and is_text(array.type):
        n_distinct = np.count_nonzero(np.bincount(values[~is_missing].astype(np.int64)))
        if 2 * n_distinct > len(values):
            raise TableError(
                f"quasi-identifier {name!r} is text with more distinct values than half its"
                " rows; declare it as an identifier, or give it a hierarchy"
            )
    return Column(name=name, kind=kind, categories=categories, unit=unit), values


def _hierarchy(name: str, kind: Kind, declared: Declared) -> Hierarchy | None:
    if name not in declared.hierarchies:
        return None
    hierarchy = declared.hierarchy(name)
    wanted = Kind.DATETIME if hierarchy.kind == DATE else Kind.CATEGORICAL
    if kind is not wanted:
        raise TableError(
            f"column {name!r} is {kind}, and its hierarchy is for {wanted} columns;"
            f" declare its kind as {wanted}, or leave the hierarchy out"
        )
    return hierarchy


def _depth_first(
    name: str, hierarchy: Hierarchy, categories: Sequence[str], values: Floats
) -> tuple[tuple[str, ...], Floats]:
    """The categories as their hierarchy has them, and the positions moved with them."""
    hierarchy.check(name, categories)
    ordered = tuple(hierarchy.ordered(categories))
    place = {label: i for i, label in enumerate(ordered)}
    moved = np.array([place[label] for label in categories], np.float64)
    is_there = ~np.isnan(values)
    values[is_there] = moved[values[is_there].astype(np.int64)]
    return ordered, values


def _no_values(name: str) -> TableError:
    return TableError(f"quasi-identifier {name!r} has no values: drop it, or keep it back")


def _impute(column: Column, values: Floats, missing: str) -> Flags:
    """Fill NaN in place by lower median or mode; returns where it was."""
    is_missing = np.isnan(values)
    n_missing = int(is_missing.sum())
    if n_missing == 0:
        return is_missing
    if missing == Missing.ERROR:
        raise TableError(
            f"quasi-identifier {column.name!r} is missing in {n_missing} rows;"
            " mark them (missing='mark'), impute or drop them"
        )
    present = values[~is_missing]
    if column.categories is None:
        middle = (present.size + 1) // 2 - 1
        values[is_missing] = np.partition(present, middle)[middle]
    else:
        # argmax gives the first of equals.
        values[is_missing] = np.bincount(present.astype(np.int64)).argmax()
    return is_missing


def _default_kind(name: str, arrow_type: pa.DataType) -> Kind:
    if pa.types.is_dictionary(arrow_type) or pa.types.is_boolean(arrow_type):
        return Kind.CATEGORICAL
    if is_text(arrow_type):
        return Kind.CATEGORICAL
    if is_number(arrow_type):
        return Kind.NUMERIC
    if pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        return Kind.DATETIME
    raise TableError(
        f"column {name!r} has type {arrow_type}, which is neither a number, a date nor text"
    )

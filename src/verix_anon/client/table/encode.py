"""From a user's table to typed columns and exact values, and back (spec §2)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Bytes, Flags, Floats, Ints
from verix_anon.client.table.categories import is_text, positions
from verix_anon.client.table.columns import arrow_columns
from verix_anon.client.table.hierarchies import DATE, Hierarchy
from verix_anon.client.table.numbers import is_number, moments, numbers
from verix_anon.client.table.roles import SENT, Declared, Missing, TableRole
from verix_anon.client.table.target import encode_target
from verix_anon.client.table.task import Labels
from verix_anon.errors import ContractError, TableError
from verix_anon.protocol.contract import Column, Kind, Role, Unit
from verix_anon.protocol.generalize import NUMPY_UNITS

__all__ = ["Described", "Encoded", "decode", "encode", "encode_quasi", "encoding"]

SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Described:
    """What may be sent of a table, but for the values of quasi-identifiers."""

    quasi: tuple[Column, ...]
    labels: Labels
    imputed: Mapping[str, int]
    """How many missing values each quasi-identifier had; those without are not named."""
    roles: dict[str, TableRole]
    hierarchies: dict[str, Hierarchy]
    """Of quasi-identifiers that have one, for the categories that occur."""

    @classmethod
    def of(
        cls,
        quasi: Iterable[Column],
        n_missing: Iterable[int],
        labels: Labels,
        roles: dict[str, TableRole],
        declared: Declared,
    ) -> "Described":
        """With the labels of the hierarchies that were declared."""
        columns = tuple(quasi)
        return cls(
            quasi=columns,
            labels=labels,
            imputed={c.name: n for c, n in zip(columns, n_missing, strict=True) if n},
            roles=roles,
            hierarchies={
                column.name: declared.hierarchy(column.name).only(column.categories or ())
                for column in columns
                if column.name in declared.hierarchies
            },
        )

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
        if not self.labels.is_binary:
            return np.zeros(self.labels.values.size, np.uint8)
        return self.labels.values.astype(np.uint8)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Encoded(Described):
    """The same with the values, and which of them were imputed."""

    values: Floats
    """(n_quasi, n_rows), in contract order"""
    absent: dict[str, Flags]
    """Which values of a quasi-identifier were missing and are imputed here; only where any was."""


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
    n_rows = len(next(iter(arrays.values())))
    quasi = [name for name, role in roles.items() if role is TableRole.QUASI]
    values = np.empty((len(quasi), n_rows))
    labels = Labels.none(n_rows)

    def fill(name: str, out: Floats) -> tuple[Column, Flags]:
        return encode_quasi(name, arrays[name], declared, out)

    with encoding(n_rows), ThreadPoolExecutor() as pool:
        found = list(pool.map(fill, quasi, values))
        for name in (name for name, role in roles.items() if role is TableRole.TARGET):
            labels = encode_target(name, arrays[name], declared)
        columns = [column for column, _ in found]
        n_missing = [int(is_missing.sum()) for _, is_missing in found]
        described = Described.of(columns, n_missing, labels, roles, declared)
    return Encoded(
        **{name: getattr(described, name) for name in Described.__slots__},
        values=values,
        absent={column.name: is_missing for column, is_missing in found if is_missing.any()},
    )


@contextmanager
def encoding(n_rows: int) -> Iterator[None]:
    """Where a table of so many rows is encoded."""
    if n_rows == 0:
        raise TableError("the table has no rows")
    try:
        yield
    except ContractError as error:
        # A name or a label that no contract can have is, here, a fault of the table.
        raise TableError(str(error)) from None


def encode_quasi(
    name: str, array: pa.Array, declared: Declared, out: Floats
) -> tuple[Column, Flags]:
    """Fill in a quasi-identifier's values; returns the column, and which of them were imputed."""
    column, values = _encode_quasi(name, array, declared)
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
    np.add(values, 0.0, out=out)
    return column, _impute(column, out, declared.missing)


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
    if (
        categories is not None
        and hierarchy is None
        and is_text(array.type)
        # Without a look at the values: they cannot be more than there are categories.
        and 2 * len(categories) > len(values)
    ):
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

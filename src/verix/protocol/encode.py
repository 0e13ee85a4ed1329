"""From a user's table to typed columns and exact values, and back (spec §2).

Tables may be pandas, polars or pyarrow: narwhals reads them all, and each column passes
through one Arrow array, so that the three give the same bytes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError

from verix.errors import TableError
from verix.protocol.contract import Column, Kind, Role, Unit
from verix.protocol.generalize import NUMPY_UNITS
from verix.protocol.roles import Declared, Missing, TableRole

__all__ = ["Encoded", "arrow_columns", "decode", "default_order", "encode"]

Floats = npt.NDArray[np.float64]

EXACT = 2**53
BEYOND_EXACT = (
    "column {!r} has a number beyond 2^53, which a float cannot hold exactly;"
    " declare it as an identifier or as categorical"
)
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# How many of each source unit make one of ours; sources finer than a microsecond must be
# whole microseconds.
UNITS_PER = {
    "s": {Unit.DAY: 86_400, Unit.SECOND: 1},
    "ms": {Unit.DAY: 86_400_000, Unit.SECOND: 1_000, Unit.MILLISECOND: 1},
    "us": {
        Unit.DAY: 86_400_000_000,
        Unit.SECOND: 1_000_000,
        Unit.MILLISECOND: 1_000,
        Unit.MICROSECOND: 1,
    },
    "ns": {
        Unit.DAY: 86_400_000_000_000,
        Unit.SECOND: 1_000_000_000,
        Unit.MILLISECOND: 1_000_000,
        Unit.MICROSECOND: 1_000,
    },
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Encoded:
    """The sent part of a table: its columns, their values, and what was imputed."""

    columns: tuple[Column, ...]
    values: Floats
    """(n_quasi, n_rows), in contract order"""
    target: npt.NDArray[np.uint8]
    imputed: dict[str, int]
    """How many missing values each quasi-identifier had; those without are not named."""
    roles: dict[str, TableRole]


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
    if n_rows == 0:
        raise TableError("the table has no rows")
    sent = {name: arrays[name] for name, role in roles.items() if role in ("quasi", "target")}
    values = np.empty((len(sent) - 1, n_rows))
    target = np.empty(0, np.uint8)
    columns: list[Column] = []
    imputed: dict[str, int] = {}
    for name, array in sent.items():
        if roles[name] is TableRole.TARGET:
            column, target = _encode_target(name, array, declared)
        else:
            column, encoded = _encode_quasi(name, array, declared)
            n_missing = _impute(column, encoded, declared.missing)
            if n_missing:
                imputed[name] = n_missing
            # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
            np.add(encoded, 0.0, out=values[sum(c.role is Role.QUASI for c in columns)])
        columns.append(column)
    return Encoded(
        columns=tuple(columns), values=values, target=target, imputed=imputed, roles=roles
    )


def decode(column: Column, values: Floats) -> pa.Array:
    """The user's values: labels, dates, or numbers."""
    if column.categories is not None:
        labels = pa.array(column.categories, pa.large_string())
        return labels.take(pa.array(values.astype(np.int64)))
    if column.unit is not None:
        return pa.array(values.astype(np.int64).astype(f"M8[{NUMPY_UNITS[column.unit]}]"))
    return pa.array(values)


def arrow_columns(table: object) -> dict[str, pa.Array]:
    """Every column as one Arrow array, by name, in table order."""
    try:
        frame = nw.from_native(table, eager_only=True)  # type: ignore[call-overload]
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
    try:
        return series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TableError(f"column {name!r} mixes types or cannot be read ({error})") from None


def _encode_quasi(name: str, array: pa.Array, declared: Declared) -> tuple[Column, Floats]:
    """A quasi-identifier's column and values, with NaN where one is missing."""
    if array.null_count == len(array):
        raise TableError(f"quasi-identifier {name!r} has no values: drop it, or keep it back")
    kind = declared.kinds.get(name) or _default_kind(name, array.type)
    if kind is Kind.NUMERIC:
        column, values = Column(name=name, kind=kind), _numbers(name, array)
    elif kind is Kind.DATETIME:
        unit, values = _moments(name, array)
        column = Column(name=name, kind=kind, unit=unit)
    else:
        labels, values = _positions(name, array, declared)
        if _is_text(array.type) and 2 * len(np.unique(values[~np.isnan(values)])) > len(values):
            raise TableError(
                f"quasi-identifier {name!r} is text with more distinct values than half its"
                " rows; declare it as an identifier, or group its values first"
            )
        column = Column(name=name, kind=kind, categories=labels)
    if np.isnan(values).all():
        raise TableError(f"quasi-identifier {name!r} has no values: drop it, or keep it back")
    return column, values


def _encode_target(
    name: str, array: pa.Array, declared: Declared
) -> tuple[Column, npt.NDArray[np.uint8]]:
    labels, values = _positions(name, array, declared)
    n_missing = int(np.isnan(values).sum())
    if n_missing:
        raise TableError(f"target {name!r} is missing in {n_missing} rows; drop those first")
    if len(labels) != 2:
        shown = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
        raise TableError(f"target {name!r} has {len(labels)} classes ({shown}), not two")
    positive = labels[1] if declared.positive is None else declared.positive
    if positive not in labels:
        raise TableError(
            f"positive class {positive!r} is not a class of target {name!r}: {', '.join(labels)}"
        )
    if positive == labels[0]:
        labels, values = labels[::-1], 1 - values
    column = Column(name=name, role=Role.TARGET, kind=Kind.CATEGORICAL, categories=labels)
    return column, values.astype(np.uint8)


def _impute(column: Column, values: Floats, missing: Missing) -> int:
    """Fill NaN in place by lower median or mode; returns how many there were."""
    is_missing = np.isnan(values)
    n_missing = int(is_missing.sum())
    if n_missing == 0:
        return 0
    if missing is Missing.ERROR:
        raise TableError(
            f"quasi-identifier {column.name!r} is missing in {n_missing} rows;"
            " impute (missing='impute') or drop them"
        )
    present = values[~is_missing]
    if column.categories is None:
        middle = (present.size + 1) // 2 - 1
        values[is_missing] = np.partition(present, middle)[middle]
    else:
        # argmax gives the first of equals.
        values[is_missing] = np.bincount(present.astype(np.int64)).argmax()
    return n_missing


def _default_kind(name: str, arrow_type: pa.DataType) -> Kind:
    if pa.types.is_dictionary(arrow_type) or pa.types.is_boolean(arrow_type):
        return Kind.CATEGORICAL
    if _is_text(arrow_type):
        return Kind.CATEGORICAL
    if _is_number(arrow_type):
        return Kind.NUMERIC
    if pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        return Kind.DATETIME
    raise TableError(
        f"column {name!r} has type {arrow_type}, which is neither a number, a date nor text"
    )


def _is_text(arrow_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(arrow_type) for test in tests)


def _is_number(arrow_type: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(arrow_type) for test in tests)


def _numbers(name: str, array: pa.Array) -> Floats:
    array = _plain(array)
    if not (_is_number(array.type) or _is_text(array.type) or pa.types.is_boolean(array.type)):
        raise TableError(f"column {name!r} has type {array.type} and cannot be numeric")
    if pa.types.is_integer(array.type):
        extremes = pc.min_max(array)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if low < -EXACT or high > EXACT:
            raise TableError(BEYOND_EXACT.format(name))
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    try:
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise TableError(f"column {name!r} is not numeric ({error})") from None
    if np.isinf(values).any():
        raise TableError(f"column {name!r} has an infinite value")
    if not pa.types.is_floating(array.type) and (np.abs(values) > EXACT).any():
        raise TableError(BEYOND_EXACT.format(name))
    return _writable(values)


def _moments(name: str, array: pa.Array) -> tuple[Unit, Floats]:
    array = _plain(array)
    if _is_text(array.type):
        array = _parse_moments(name, array)
    if pa.types.is_date32(array.type):
        source, counts = "day", array.cast(pa.int32())
    elif pa.types.is_date64(array.type):
        source, counts = "ms", array.cast(pa.int64())
    elif pa.types.is_timestamp(array.type):
        source, counts = array.type.unit, array.cast(pa.int64())
    else:
        raise TableError(f"column {name!r} has type {array.type} and cannot be a datetime")
    present = counts.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
    unit, divisor = _coarsest_unit(name, source, present)
    whole = present // divisor
    if (np.abs(whole) > EXACT).any():
        raise TableError(f"column {name!r} has a date more than 2^53 {unit} from 1970")
    values = np.full(len(array), np.nan)
    values[np.asarray(counts.is_valid())] = whole
    return unit, values


def _coarsest_unit(name: str, source: str, present: npt.NDArray[np.int64]) -> tuple[Unit, int]:
    if source == "day":
        return Unit.DAY, 1
    for unit, divisor in UNITS_PER[source].items():
        if not (present % divisor).any():
            return unit, divisor
    raise TableError(f"column {name!r} has times finer than a microsecond; round them first")


def _parse_moments(name: str, array: pa.Array) -> pa.Array:
    """ISO 8601 text as timestamps, without or with a zone."""
    for zone in (None, "UTC"):
        try:
            return array.cast(pa.timestamp("us", tz=zone))
        except pa.ArrowInvalid as problem:
            error = problem
    raise TableError(f"column {name!r} is not a date in ISO 8601 form ({error})")


def _positions(name: str, array: pa.Array, declared: Declared) -> tuple[tuple[str, ...], Floats]:
    """The categories, and each value's position among them, NaN where it is missing."""
    given = declared.orders.get(name)
    if given is None and pa.types.is_dictionary(array.type) and array.type.ordered:
        # An ordered dtype is the owner's own order.
        given = _labels(name, array.dictionary).to_pylist()
    encoded = _labels(name, _plain(array)).dictionary_encode()
    try:
        present: list[str] = encoded.dictionary.to_pylist()
    except UnicodeDecodeError:
        raise TableError(f"column {name!r} has text that is not UTF-8") from None
    labels = tuple(default_order(present) if given is None else given)
    if len(set(labels)) != len(labels):
        raise TableError(f"the order given for column {name!r} names a category twice")
    position = {label: i for i, label in enumerate(labels)}
    unknown = [label for label in present if label not in position]
    if unknown:
        raise TableError(f"column {name!r} has {unknown[0]!r}, which its given order lacks")
    lookup = np.array([position[label] for label in present], np.float64)
    values = np.full(len(array), np.nan)
    is_present = np.asarray(encoded.indices.is_valid())
    values[is_present] = lookup[encoded.indices.drop_null().to_numpy(zero_copy_only=False)]
    return labels, values


def default_order(labels: Sequence[str]) -> list[str]:
    """By value if all are numbers, else by code point; equal values by code point."""
    try:
        if all(NUMBER.fullmatch(label) for label in labels):
            return sorted(labels, key=lambda label: (Decimal(label), label))
    except InvalidOperation:
        # An exponent past what Decimal holds: not a number anyone orders by.
        pass
    return sorted(labels)


def _labels(name: str, array: pa.Array) -> pa.Array:
    """Values as labels: text as it is, `false` and `true`, integers in decimal."""
    if pa.types.is_floating(array.type):
        values = array.to_numpy(zero_copy_only=False)
        if not (np.isnan(values) | ((values == np.floor(values)) & (abs(values) <= EXACT))).all():
            raise TableError(
                f"column {name!r} has fractions and cannot be categorical; declare it numeric"
            )
        array = pa.array(values, from_pandas=True).cast(pa.int64())
    if not (
        _is_text(array.type) or pa.types.is_integer(array.type) or pa.types.is_boolean(array.type)
    ):
        raise TableError(f"column {name!r} has type {array.type} and cannot be categorical")
    return array.cast(pa.large_string())


def _plain(array: pa.Array) -> pa.Array:
    """The array without dictionary encoding."""
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def _writable(values: Floats) -> Floats:
    return values if values.flags.writeable else values.copy()

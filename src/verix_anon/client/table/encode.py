"""From a user's table to typed columns and exact values, and back (spec §2).

Tables may be pandas, polars or pyarrow: narwhals reads them all, and each column passes
through one Arrow array, so that the three give the same bytes.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.exceptions import DuplicateError

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.client.table.categories import as_label, is_text, positions
from verix_anon.client.table.roles import SENT, Declared, Missing, TableRole
from verix_anon.errors import ContractError, TableError
from verix_anon.protocol.contract import EXACT, Column, Kind, Role, Unit
from verix_anon.protocol.generalize import NUMPY_UNITS

__all__ = ["Encoded", "arrow_columns", "decode", "encode"]

BEYOND_EXACT = (
    "column {!r} has a number beyond 2^53, which a float cannot hold exactly;"
    " declare it as an identifier or as categorical"
)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
SECONDS_PER_DAY = 86_400
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
    target: Bytes
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
    values = np.empty((len(sent) - 1, len(next(iter(sent.values())))))
    unfilled = iter(values)
    target = np.empty(0, np.uint8)
    columns: list[Column] = []
    imputed: dict[str, int] = {}
    for name, array in sent.items():
        if roles[name] is TableRole.TARGET:
            column, target = _encode_target(name, array, declared)
        else:
            column, encoded = _encode_quasi(name, array, declared)
            # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
            filled = np.add(encoded, 0.0, out=next(unfilled))
            n_missing = _impute(column, filled, declared.missing)
            if n_missing:
                imputed[name] = n_missing
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
    categories = unit = None
    if array.null_count == len(array):
        raise _no_values(name)
    kind = declared.kind(name) or _default_kind(name, array.type)
    if kind is Kind.NUMERIC:
        values = _numbers(name, array)
    elif kind is Kind.DATETIME:
        unit, values = _moments(name, array)
    else:
        categories, values = positions(name, array, declared.orders.get(name))
    is_missing = np.isnan(values)
    if is_missing.all():
        raise _no_values(name)
    if categories is not None and is_text(array.type):
        n_distinct = np.count_nonzero(np.bincount(values[~is_missing].astype(np.int64)))
        if 2 * n_distinct > len(values):
            raise TableError(
                f"quasi-identifier {name!r} is text with more distinct values than half its"
                " rows; declare it as an identifier, or group its values first"
            )
    return Column(name=name, kind=kind, categories=categories, unit=unit), values


def _no_values(name: str) -> TableError:
    return TableError(f"quasi-identifier {name!r} has no values: drop it, or keep it back")


def _encode_target(name: str, array: pa.Array, declared: Declared) -> tuple[Column, Bytes]:
    labels, values = positions(name, array, declared.orders.get(name), is_target=True)
    n_missing = int(np.isnan(values).sum())
    if n_missing:
        raise TableError(f"target {name!r} is missing in {n_missing} rows; drop those first")
    if len(labels) != 2:
        shown = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
        classes = "1 class" if len(labels) == 1 else f"{len(labels)} classes"
        raise TableError(f"target {name!r} has {classes} ({shown}), not two")
    positive = labels[1] if declared.positive is None else as_label(declared.positive)
    if positive not in labels:
        raise TableError(
            f"positive class {positive!r} is not a class of target {name!r}: {', '.join(labels)}"
        )
    if positive == labels[0]:
        labels, values = labels[::-1], 1 - values
    column = Column(name=name, role=Role.TARGET, kind=Kind.CATEGORICAL, categories=labels)
    return column, values.astype(np.uint8)


def _impute(column: Column, values: Floats, missing: str) -> int:
    """Fill NaN in place by lower median or mode; returns how many there were."""
    is_missing = np.isnan(values)
    n_missing = int(is_missing.sum())
    if n_missing == 0:
        return 0
    if missing == Missing.ERROR:
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
    if is_text(arrow_type):
        return Kind.CATEGORICAL
    if _is_number(arrow_type):
        return Kind.NUMERIC
    if pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        return Kind.DATETIME
    raise TableError(
        f"column {name!r} has type {arrow_type}, which is neither a number, a date nor text"
    )


def _is_number(arrow_type: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(arrow_type) for test in tests)


def _numbers(name: str, array: pa.Array) -> Floats:
    array = _plain(array)
    if not (_is_number(array.type) or is_text(array.type) or pa.types.is_boolean(array.type)):
        raise TableError(f"column {name!r} has type {array.type} and cannot be numeric")
    if pa.types.is_integer(array.type) or pa.types.is_decimal(array.type):
        extremes = pc.min_max(array)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if low is not None and (low < -EXACT or high > EXACT):
            raise TableError(BEYOND_EXACT.format(name))
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if pa.types.is_decimal(array.type):
        # Arrow's own conversion of decimals is not always to the nearest float.
        array = array.cast(pa.string())
    try:
        values: Floats = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException as error:
        raise TableError(f"column {name!r} is not numeric ({error})") from None
    if is_text(array.type):
        _check_literals(name, array, values)
    if np.isinf(values).any():
        raise TableError(f"column {name!r} has an infinite value")
    return values


def _check_literals(name: str, texts: pa.Array, values: Floats) -> None:
    """Whole numbers written out must be exact; `1e300` is a float like any other."""
    # Rounding is monotonic, so a number beyond 2^53 rounds to no less.
    suspects = texts.filter(pa.array(np.abs(values) >= EXACT)).unique().to_pylist()
    for text in suspects:
        if WHOLE.fullmatch(text) and not -EXACT <= Decimal(text) <= EXACT:
            raise TableError(BEYOND_EXACT.format(name))


def _moments(name: str, array: pa.Array) -> tuple[Unit, Floats]:
    array = _plain(array)
    if is_text(array.type):
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
    # Not by np.abs, which leaves the least integer negative.
    if whole.size and (whole.min() < -EXACT or whole.max() > EXACT):
        raise TableError(f"column {name!r} has a date more than 2^53 {unit} from 1970")
    values = np.full(len(array), np.nan)
    values[np.asarray(counts.is_valid())] = whole
    return unit, values


def _coarsest_unit(name: str, source: str, present: Ints) -> tuple[Unit, int]:
    if source == "day":
        return Unit.DAY, 1
    for unit, divisor in UNITS_PER[source].items():
        if not (present % divisor).any():
            return unit, divisor
    raise TableError(f"column {name!r} has times finer than a microsecond; round them first")


def _parse_moments(name: str, array: pa.Array) -> pa.Array:
    """ISO 8601 text as timestamps, without or with a zone."""
    errors: list[str] = []
    for zone in (None, "UTC"):
        try:
            return array.cast(pa.timestamp("us", tz=zone))
        except pa.ArrowInvalid as error:
            errors.append(str(error))
    # The first says what is wrong, unless it only finds a zone, as the second then expects.
    reason = errors[1] if "zone offset" in errors[0] else errors[0]
    raise TableError(f"column {name!r} is not a date in ISO 8601 form ({reason})")


def _plain(array: pa.Array) -> pa.Array:
    """The array without dictionary encoding."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

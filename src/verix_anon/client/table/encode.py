"""Columns of the owner's table as exact binary64 numbers, and back (spec §2).

Numbers are themselves, dates and times count from 1970, and categories are positions in their
order. A value that no float holds exactly is refused with a sentence that says what to do.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats
from verix_anon.client.table.categories import as_label, is_text, positions
from verix_anon.client.table.hierarchies import DATE, Hierarchy
from verix_anon.client.table.roles import Declared, Missing
from verix_anon.client.table.task import MAX_CLASSES, Labels, Task
from verix_anon.errors import TableError
from verix_anon.files.tables.dates import dates_in
from verix_anon.files.tables.number_marks import marks_in, numbers_in
from verix_anon.protocol.contract import EXACT, Column, Kind, Unit
from verix_anon.protocol.tree import NUMPY_UNITS

BEYOND_EXACT = (
    "column {!r} has a number beyond 2^53, which a float cannot hold exactly;"
    " declare it as an identifier or as categorical"
)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
PER_DAY = {"day": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
"""How many of each unit, ours or Arrow's, a day has."""


class EncodedColumn(NamedTuple):
    """A quasi-identifier as exact numbers."""

    column: Column
    values: Floats
    """NaN where one is missing."""
    missing: tuple[int, float]
    """How many are missing, and what is imputed for them."""


def encode_quasi(name: str, array: pa.Array, declared: Declared) -> EncodedColumn:
    """Encode a quasi-identifier, in memory of its own."""
    categories = unit = None
    if array.null_count == len(array):
        raise _no_values(name)
    kind = declared.kind(name) or kind_of(array.type)
    if kind is None:
        raise TableError(
            f"column {name!r} has type {array.type}, which is neither a number, a date nor text"
        )
    if kind is Kind.NUMERIC:
        values = numbers(name, array)
    elif kind is Kind.DATETIME:
        unit, values = moments(name, array)
    else:
        categories, values = positions(name, array, declared.orders.get(name))
    hierarchy = _hierarchy(name, kind, declared)
    if hierarchy is not None and categories is not None:
        categories, values = _depth_first(name, hierarchy, categories, values)
    if np.isnan(values).all():
        raise _no_values(name)
    if (
        categories is not None
        and hierarchy is None
        and is_text(array.type)
        and 2 * len(categories) > len(values)
    ):
        raise TableError(
            f"quasi-identifier {name!r} is text with more distinct values than half its"
            " rows; declare it as an identifier, or give it a hierarchy"
        )
    column = Column(name=name, kind=kind, categories=categories, unit=unit)
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
    values = values + 0.0
    return EncodedColumn(column, values, _missing(column, values, declared.missing))


def kind_of(given: pa.DataType) -> Kind | None:
    """Return the kind of a type's values if no other is declared; None if they cannot be sent."""
    if is_text(given) or pa.types.is_boolean(given) or pa.types.is_dictionary(given):
        return Kind.CATEGORICAL
    if _is_number(given):
        return Kind.NUMERIC
    is_moment = pa.types.is_date(given) or pa.types.is_timestamp(given)
    return Kind.DATETIME if is_moment else None


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
    """Put categories in the order of their hierarchy, and change the positions to match."""
    hierarchy.check(name, categories)
    ordered = tuple(hierarchy.ordered(categories))
    place = {label: i for i, label in enumerate(ordered)}
    moved = np.array([place[label] for label in categories], np.float64)
    is_there = ~np.isnan(values)
    values[is_there] = moved[values[is_there].astype(np.int64)]
    return ordered, values


def _no_values(name: str) -> TableError:
    return TableError(f"quasi-identifier {name!r} has no values: drop it, or keep it back")


def _missing(column: Column, values: Floats, missing: str) -> tuple[int, float]:
    """Return how many values are missing, and the lower median or mode that replaces them."""
    is_missing = np.isnan(values)
    n_missing = int(is_missing.sum())
    if n_missing == 0:
        return 0, np.nan
    if missing == Missing.ERROR:
        raise TableError(
            f"quasi-identifier {column.name!r} is missing in {n_missing} rows;"
            " mark them (missing='mark'), impute or drop them"
        )
    present = values[~is_missing]
    if column.categories is None:
        middle = (present.size + 1) // 2 - 1
        return n_missing, float(np.partition(present, middle)[middle])
    # argmax gives the first of equals.
    return n_missing, float(np.bincount(present.astype(np.int64)).argmax())


def encode_target(name: str, array: pa.Array, declared: Declared) -> Labels:
    """Return the labels for the declared task, or for the one that the column looks like."""
    task = declared.task or _likely_task(name, array, declared)
    if task is Task.NONE:
        raise TableError(
            f"target {name!r} is named, but the task is 'none'; leave out one of the two"
        )
    if task is Task.QUANTITY:
        is_counted = any(test(array.type) for test in (_is_number, is_text, pa.types.is_boolean))
        values = numbers(name, array) if is_counted else moments(name, array)[1]
        return Labels(task=task, values=_present(name, values))
    return _classes(name, array, declared)


def _likely_task(name: str, array: pa.Array, declared: Declared) -> Task:
    """Text, booleans and columns of two values are classes; other columns are a quantity."""
    kind = array.type
    if pa.types.is_nested(kind):
        raise TableError(
            f"target {name!r} has type {kind}, which is neither a number, a date nor text"
        )
    is_class = (
        is_text(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_dictionary(kind)
        or declared.kind(name) is Kind.CATEGORICAL
        or declared.positive is not None
    )
    if is_class or len(pc.unique(array.drop_null())) <= 2:
        return Task.CLASSES
    return Task.QUANTITY


def _present(name: str, values: Floats) -> Floats:
    n_missing = int(np.isnan(values).sum())
    if n_missing:
        raise TableError(f"target {name!r} is missing in {n_missing} rows; drop those first")
    return values + 0.0


def _classes(name: str, array: pa.Array, declared: Declared) -> Labels:
    labels, values = positions(name, array, declared.orders.get(name), is_target=True)
    values = _present(name, values)
    if not 2 <= len(labels) <= MAX_CLASSES:
        shown = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
        classes = "1 class" if len(labels) == 1 else f"{len(labels):,} classes"
        raise TableError(f"target {name!r} has {classes} ({shown}), not 2 to {MAX_CLASSES}")
    if declared.positive is not None:
        chosen = as_label(declared.positive)
        if chosen not in labels:
            raise TableError(
                f"positive class {chosen!r} is not a class of target {name!r}: {', '.join(labels)}"
            )
        if len(labels) != 2:
            raise TableError(f"a positive class goes with two classes; target {name!r} has more")
        if chosen != labels[1]:
            labels, values = labels[::-1], 1 - values
    return Labels(task=Task.CLASSES, values=values, classes=labels)


def _is_number(arrow_type: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(arrow_type) for test in tests)


def numbers(name: str, array: pa.Array) -> Floats:
    """A column's numbers, with NaN where one is missing."""
    array = plain(array)
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
        if is_text(array.type) and (written := _written(array)) is not None:
            return numbers(name, written)
        raise TableError(f"column {name!r} is not numeric ({error})") from None
    if is_text(array.type):
        # Whole numbers written out must be exact; `1e300` is a float like any other.
        # Rounding is monotonic, so a number beyond 2^53 rounds to no less.
        suspects = array.filter(pa.array(np.abs(values) >= EXACT)).unique().to_pylist()
        for text in suspects:
            if WHOLE.fullmatch(text) and not -EXACT <= Decimal(text) <= EXACT:
                raise TableError(BEYOND_EXACT.format(name))
    if np.isinf(values).any():
        raise TableError(f"column {name!r} has an infinite value")
    return values


def _written(texts: pa.Array) -> pa.Array | None:
    """Numbers with a decimal comma or thousands, if they can be read in one way only."""
    column = pa.chunked_array([texts.cast(pa.string())])
    found = numbers_in(column, marks_in(column))
    return found[0].values.combine_chunks() if len(found) == 1 else None


def moments(name: str, array: pa.Array) -> tuple[Unit, Floats]:
    """A column's dates or times as whole numbers of the coarsest unit, NaN where missing."""
    array = plain(array)
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
    # Take the coarsest unit in which all are whole numbers.
    per = {unit: PER_DAY[source] // PER_DAY[unit] for unit in Unit}
    # A unit that is finer than the source's has 0 here, and is skipped.
    whole_in = (each for each in per.items() if each[1] and not (present % each[1]).any())
    unit, divisor = next(whole_in, (None, 1))
    if unit is None:
        raise TableError(f"column {name!r} has times finer than a microsecond; round them first")
    whole = present // divisor
    # Do not use np.abs, which leaves the least integer negative.
    if whole.size and (whole.min() < -EXACT or whole.max() > EXACT):
        raise TableError(f"column {name!r} has a date more than 2^53 {unit} from 1970")
    values = np.full(len(array), np.nan)
    values[np.asarray(counts.is_valid())] = whole
    return unit, values


def _parse_moments(name: str, array: pa.Array) -> pa.Array:
    """Read text as dates or times, in ISO 8601 or in the one form that all values have."""
    errors: list[str] = []
    for zone in (None, "UTC"):
        try:
            return array.cast(pa.timestamp("us", tz=zone))
        except pa.ArrowInvalid as error:
            errors.append(str(error))
    column = pa.chunked_array([array.cast(pa.string())])
    found = [] if marks_in(column).others else dates_in(column, None)
    if len(found) == 1 and not found[0].lacks_century:
        return found[0].values.combine_chunks()
    if found:
        forms = " or ".join(str(dates.form) for dates in found)
        raise TableError(
            f"column {name!r} has dates as {forms}, so it is not clear which days they mean;"
            " write them as yyyy-mm-dd"
        )
    # The first error says what is wrong, unless it is about a zone, which the second try allows.
    reason = errors[1] if "zone offset" in errors[0] else errors[0]
    raise TableError(f"column {name!r} is not a date in ISO 8601 form ({reason})")


def plain(array: pa.Array) -> pa.Array:
    """Return the array without dictionary encoding."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def decode(column: Column, values: Floats) -> pa.Array:
    """Return the owner's values: labels, dates, or numbers."""
    if column.categories is not None:
        labels = pa.array(column.categories, pa.large_string())
        return labels.take(pa.array(values.astype(np.int64)))
    if column.unit is None:
        return pa.array(values)
    counts = np.floor(values).astype(np.int64)
    farthest = int(np.abs(counts).max(initial=0))
    # Timestamps, or dates if every day has one: Arrow counts days in 32 bits.
    if column.unit is not Unit.DAY or farthest < 2**31:
        return pa.array(counts.astype(f"M8[{NUMPY_UNITS[column.unit]}]"))
    if farthest > (2**63 - 1) // PER_DAY["s"]:
        # Such a day cannot come from a table, because Arrow could not have held it.
        raise TableError(f"a date {farthest} days from 1970 is too far for a timestamp")
    return pa.array(counts * PER_DAY["s"], pa.timestamp("s"))

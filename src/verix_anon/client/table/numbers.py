"""Numbers and moments of a column as exact binary64, or a sentence that says why not (spec §2)."""

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats, Ints
from verix_anon.client.table.categories import is_text
from verix_anon.errors import TableError
from verix_anon.files.tables.dates import dates_in
from verix_anon.files.tables.numbers import marks_in, numbers_in
from verix_anon.protocol.contract import EXACT, Unit

__all__ = ["is_number", "moments", "numbers"]

BEYOND_EXACT = (
    "column {!r} has a number beyond 2^53, which a float cannot hold exactly;"
    " declare it as an identifier or as categorical"
)
WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
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


def is_number(arrow_type: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(arrow_type) for test in tests)


def numbers(name: str, array: pa.Array) -> Floats:
    """A column's numbers, with NaN where one is missing."""
    array = _plain(array)
    if not (is_number(array.type) or is_text(array.type) or pa.types.is_boolean(array.type)):
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
        _check_literals(name, array, values)
    if np.isinf(values).any():
        raise TableError(f"column {name!r} has an infinite value")
    return values


def _written(texts: pa.Array) -> pa.Array | None:
    """Numbers with a decimal comma or thousands, if they can be read in one way only."""
    column = pa.chunked_array([texts.cast(pa.string())])
    found = numbers_in(column, marks_in(column))
    return found[0].values.combine_chunks() if len(found) == 1 else None


def _check_literals(name: str, texts: pa.Array, values: Floats) -> None:
    """Whole numbers written out must be exact; `1e300` is a float like any other."""
    # Rounding is monotonic, so a number beyond 2^53 rounds to no less.
    suspects = texts.filter(pa.array(np.abs(values) >= EXACT)).unique().to_pylist()
    for text in suspects:
        if WHOLE.fullmatch(text) and not -EXACT <= Decimal(text) <= EXACT:
            raise TableError(BEYOND_EXACT.format(name))


def moments(name: str, array: pa.Array) -> tuple[Unit, Floats]:
    """A column's dates or times as whole numbers of the coarsest unit, NaN where missing."""
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
    """Text as dates or times: as in ISO 8601, or in the one form that all values have."""
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
            f"column {name!r} has dates as {forms}, and which days they mean is not told;"
            " write them as yyyy-mm-dd"
        )
    # The first says what is wrong, unless it only finds a zone, as the second then expects.
    reason = errors[1] if "zone offset" in errors[0] else errors[0]
    raise TableError(f"column {name!r} is not a date in ISO 8601 form ({reason})")


def _plain(array: pa.Array) -> pa.Array:
    """The array without dictionary encoding."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

"""Classes as cells: what is read of a quasi-identifier in the published table (spec §12)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats
from verix_anon.client.release.present import Representation
from verix_anon.client.release.ranges import EXACT, Range, Sets
from verix_anon.client.table.encode import decode
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column
from verix_anon.protocol.generalize import NUMPY_UNITS

__all__ = ["represent"]

USUAL = (1e-4, 1e10)
"""Between these neither Arrow nor Python writes an exponent."""
MOST_TEXT = 1 << 30
"""Bytes that one column of sets of categories may take."""
MOST_SHARES = 1 << 27
"""Numbers that the shares of one column may be."""
MISSING = "missing"


def represent(found: Range, representation: Representation) -> dict[str, pa.Array]:
    """The published columns, by name, with one value per class.

    Midpoints and means of dates are rounded down to the column's unit. Where values are missing,
    intervals and sets say so; beside other representations a column holds the share.
    """
    name = found.column.name
    if representation is Representation.INTERVAL:
        return {name: _intervals(found)}
    columns = _numbers(found, representation)
    if found.missing.any():
        columns[f"{name}_{MISSING}"] = pa.array(found.missing / found.records)
    return columns


def _numbers(found: Range, representation: Representation) -> dict[str, pa.Array]:
    name = found.column.name
    match representation:
        case Representation.BOUNDS:
            low, high = _bound(found, found.low), _bound(found, found.high)
            return {f"{name}_min": low, f"{name}_max": high}
        case Representation.MIDPOINT:
            # Halved before adding, so that nothing overflows.
            return {name: _user_values(found, found.low / 2 + found.high / 2)}
        case Representation.MEAN:
            return {name: _user_values(found, found.mean)}
    return _shares(found)


def _shares(found: Range) -> dict[str, pa.Array]:
    """A column for each label that occurs: the share of the class's records that have it."""
    sets, labels = found.sets, found.column.categories
    assert sets is not None
    assert labels is not None
    name = found.column.name
    occurring = np.unique(sets.position)
    if occurring.size * int(found.records.sum()) > MOST_SHARES:
        raise TableError(
            f"column {name!r} has {occurring.size:,} labels, too many to publish a share of each;"
            " group them first, or publish sets of it"
        )
    class_of = np.repeat(np.arange(found.records.size), np.diff(sets.start))
    shares = np.zeros((occurring.size, found.records.size))
    shares[np.searchsorted(occurring, sets.position), class_of] = sets.records
    shares /= found.records
    return {
        f"{name}_{labels[at]}": pa.array(row) for at, row in zip(occurring, shares, strict=True)
    }


def _bound(found: Range, values: Floats) -> pa.Array:
    is_number = found.column.categories is None and found.column.unit is None
    is_whole = is_number and pa.types.is_integer(found.source) and found.stays_whole
    if is_whole and np.abs(values).max() < 2**63:
        return pa.array(values.astype(np.int64), mask=found.is_empty)
    return _user_values(found, values)


def _user_values(found: Range, values: Floats) -> pa.Array:
    """Numbers, dates or labels, in the type of the owner's column where that is possible."""
    column = found.column
    if column.categories is None and column.unit is None:
        return pa.array(values, mask=found.is_empty)
    array = decode(column, np.floor(values))
    if found.is_empty.any():
        array = pc.if_else(pa.array(found.is_empty), pa.scalar(None, array.type), array)
    plain = found.source.value_type if pa.types.is_dictionary(found.source) else found.source
    try:
        return array.cast(plain)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array


def _intervals(found: Range) -> pa.Array:
    """Text `lo..hi` with the marks of top-coding, or `{a, b}` for categories, `or missing`."""
    texts = _spans(found) if found.sets is None else _category_sets(found, found.sets)
    if not found.missing.any():
        return texts
    texts = pc.if_else(pa.array(found.missing > 0), _joined(texts, MISSING, " or "), texts)
    return pc.if_else(pa.array(found.is_empty), pa.scalar(MISSING, pa.large_string()), texts)


def _spans(found: Range) -> pa.Array:
    low, high = _texts(found.column, found.low), _texts(found.column, found.high)
    low = pc.if_else(pa.array(found.is_below), _joined("<=", low, ""), low)
    high = pc.if_else(pa.array(found.is_above), _joined(">=", high, ""), high)
    both = _joined(low, high, "..")
    is_one = found.low == found.high
    both = pc.if_else(pa.array(is_one & found.is_below), low, both)
    return pc.if_else(pa.array(is_one & found.is_above), high, both)


def _joined(first: pa.Array | str, second: pa.Array | str, between: str) -> pa.Array:
    parts = (
        pa.scalar(part, pa.large_string()) if isinstance(part, str) else part
        for part in (first, second, between)
    )
    return pc.binary_join_element_wise(*parts)


def _texts(column: Column, values: Floats) -> pa.Array:
    """`show_value` of many numbers or dates at once: a call for each would take seconds."""
    if column.unit is not None:
        moments = values.astype(np.int64).astype(f"M8[{NUMPY_UNITS[column.unit]}]")
        return pa.array(np.datetime_as_string(moments).tolist(), pa.large_string())
    size = np.abs(values)
    is_whole = (values == np.floor(values)) & (size <= EXACT)
    texts = pa.array(np.where(is_whole, values, 0.0).astype(np.int64)).cast(pa.large_string())
    # Here Arrow writes what repr does, in a seventh of the time.
    is_usual = ~is_whole & (size >= USUAL[0]) & (size < USUAL[1])
    if is_usual.any():
        usual = pa.array(values[is_usual]).cast(pa.large_string())
        texts = pc.replace_with_mask(texts, pa.array(is_usual), usual)
    is_other = ~(is_whole | is_usual)
    if is_other.any():
        others = pa.array(list(map(repr, values[is_other].tolist())), pa.large_string())
        texts = pc.replace_with_mask(texts, pa.array(is_other), others)
    return texts


def _category_sets(found: Range, sets: Sets) -> pa.Array:
    """One text per class, if the rows can bear it."""
    labels = pa.array(found.column.categories, pa.large_string())
    n_bytes = np.append(0, np.cumsum(pc.binary_length(labels).to_numpy()[sets.position] + 2))
    total = int(found.records @ np.diff(n_bytes[sets.start]))
    if total > MOST_TEXT:
        raise TableError(
            f"column {found.column.name!r} would take {total / 1e9:.0f} GB as sets of categories;"
            " group its categories first"
        )
    lists = pa.LargeListArray.from_arrays(
        pa.array(sets.start), labels.take(pa.array(sets.position))
    )
    return _joined(
        "{", _joined(pc.binary_join(lists, pa.scalar(", ", pa.large_string())), "}", ""), ""
    )

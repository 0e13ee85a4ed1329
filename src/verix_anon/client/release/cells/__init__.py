"""Classes as cells: what is read of a quasi-identifier in the published table (spec §12)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats, Ints
from verix_anon.client.release.cells.labels import exact_sets, named
from verix_anon.client.release.cells.numbers import spans
from verix_anon.client.release.cells.plain import joined
from verix_anon.client.release.present import Representation
from verix_anon.client.release.ranges import Range
from verix_anon.client.table.encode import decode
from verix_anon.errors import TableError

__all__ = ["MISSING", "Cells", "represent"]

MOST_SHARES = 1 << 27
"""Numbers that the shares of one column may be."""
MISSING = "missing"


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What is published of one quasi-identifier."""

    columns: Mapping[str, pa.Array]
    """By name, with one value per class."""
    covered: Ints | None = None
    """How many of the table's categories a class may have; None for numbers and dates."""


def represent(found: Range) -> Cells:
    """Write out what is published.

    Midpoints and means of dates are rounded down to the column's unit. Where values are missing,
    intervals and sets say so; beside other representations a column holds the share.
    """
    name, representation = found.column.name, found.form.representation
    covered = None
    if representation in (Representation.INTERVAL, Representation.SET):
        texts = spans(found) if found.sets is None else None
        if texts is None:
            is_exact = representation is Representation.SET
            texts, covered = exact_sets(found) if is_exact else named(found)
        return Cells({name: _or_missing(found, texts)}, covered)
    columns = _numbers(found, representation)
    if found.missing.any():
        columns[f"{name}_{MISSING}"] = pa.array(found.missing / found.records)
    if found.sets is not None:
        covered = np.diff(found.sets.start)
    return Cells(columns, covered)


def _or_missing(found: Range, texts: pa.Array) -> pa.Array:
    if not found.missing.any():
        return texts
    texts = pc.if_else(pa.array(found.missing > 0), joined(texts, MISSING, " or "), texts)
    return pc.if_else(pa.array(found.is_empty), pa.scalar(MISSING, pa.large_string()), texts)


def _numbers(found: Range, representation: Representation) -> dict[str, pa.Array]:
    name = found.column.name
    match representation:
        case Representation.BOUNDS:
            low, high = _bound(found, found.low), _bound(found, found.high)
            return {f"{name}_min": low, f"{name}_max": high}
        case Representation.MIDPOINT:
            # Halved before adding, so that nothing overflows.
            return {name: _user_values(found, found.low / 2 + found.high / 2)}
        case Representation.MEAN if found.form.is_filled:
            return {name: pa.array(found.mean)}
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

"""Read numbers in text columns, and find the marks they are written with (spec §2.5)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Ints

SPACES, APOSTROPHES = (" ", "\u00a0", "\u202f"), ("'", "\u2019")
GROUPING = (*SPACES, *APOSTROPHES)
GROUPS: dict[str | None, tuple[str, ...]] = {
    " ": SPACES,
    "'": APOSTROPHES,
    ".": (".",),
    ",": (",",),
}
"""The marks that may group digits, for each mark that a form can name."""
CLOSE = "+,-./:"
"""The marks next to the digits in ASCII."""
MARKS = (*CLOSE, *"eETZ", *GROUPING)
DIGITS = b"0123456789"
FEW = 1000
PLAIN = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
# Bytes that numbers, dates and times may hold beside digits.
KNOWN = b".,+-eE/: TZ'" + "\u00a0\u202f\u2019".encode()


@dataclass(frozen=True, slots=True)
class Marks:
    """What a column has besides digits, in any row."""

    found: frozenset[str]
    others: bool
    """Whether the column has a character that neither numbers nor dates have."""


@dataclass(frozen=True, slots=True)
class Written:
    """How the numbers of a column are written; None for a mark that does not occur."""

    decimal: str | None = None
    thousands: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A form that fits every value of a column, and the numbers it gives."""

    form: Written
    values: pa.ChunkedArray


def marks_in(column: pa.ChunkedArray) -> Marks:
    """Find the marks in all bytes of a column, up to the first that no number has."""
    found: set[str] = set()
    for chunk in _present(column):
        text = _bytes(chunk)
        array = np.frombuffer(text, np.uint8)
        if not text or (array.min() >= ord(CLOSE[0]) and array.max() <= ord(CLOSE[-1])):
            found |= {c for c in CLOSE if c.encode() in text}
            continue
        rest = text.translate(None, DIGITS)
        if rest.translate(None, KNOWN):
            return Marks(frozenset(found), True)
        found |= {c for c in MARKS if c.encode() in rest}
    return Marks(frozenset(found), False)


def _present(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield the values that are not missing; a missing value may still have bytes."""
    return (chunk.drop_null() if chunk.null_count else chunk for chunk in column.chunks)


def _bytes(chunk: pa.Array) -> bytes:
    """Return the bytes of all values, one after another."""
    if not len(chunk):
        return b""
    at, data = _offsets(chunk), chunk.buffers()[2]
    return b"" if data is None else bytes(memoryview(data)[at[0] : at[-1]])


def _offsets(chunk: pa.Array) -> Ints:
    """Return where each value begins, and where the last one ends."""
    if not len(chunk):
        return np.zeros(1, np.int64)
    return np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1, chunk.offset * 4)


def numbers_in(column: pa.ChunkedArray, marks: Marks) -> list[Numbers]:
    """Return the forms that fit every value of a column; several if it is not clear."""
    if marks.others or marks.found & set("/:TZ"):
        return []
    points = marks.found & {".", ","}
    groups = marks.found & set(GROUPING)
    if groups:
        alike = [kind for kind in (SPACES, APOSTROPHES) if groups <= set(kind)]
        pairs = [Written(next(iter(points), None), kind[0]) for kind in alike]
        return _grouped(column, pairs) if len(points) < 2 else []
    if len(points) == 2:
        return _grouped(column, [Written(",", "."), Written(".", ",")])
    mark = next(iter(points), None)
    is_whole = mark is None and not marks.found & {"e", "E"}
    if "+" in marks.found:
        if not _fits(column, PLAIN.replace(r"\.", re.escape(mark or "."))):
            return []
        column = pc.replace_substring_regex(column, r"^\+", "")
    found = _cast(column, Written(decimal=mark), is_whole)
    return [*found, *([] if mark is None else _grouped(column, [Written(thousands=mark)]))]


def _grouped(column: pa.ChunkedArray, forms: Sequence[Written]) -> list[Numbers]:
    """Return those of these forms, with groups of three digits, that fit every value."""
    found = []
    for form in forms:
        marks = GROUPS.get(form.thousands, ())
        group = "|".join(rf"({re.escape(mark)}[0-9]{{3}})*" for mark in marks)
        rest = rf"({re.escape(form.decimal)}[0-9]+)?" if form.decimal else ""
        if _fits(column, rf"^[+-]?([1-9][0-9]{{0,2}}({group})|0){rest}$"):
            found += _cast(column, form, form.decimal is None)
    return found


def _fits(column: pa.ChunkedArray, pattern: str) -> bool:
    """Whether every value matches; the first are tried first, as one of them often does not."""
    return all(
        pc.all(pc.match_substring_regex(part, pattern), min_count=0).as_py()
        for part in (column.slice(0, FEW), column)
    )


def _cast(column: pa.ChunkedArray, form: Written, is_whole: bool) -> list[Numbers]:
    """Cast to numbers; return an empty list if a value is not one, or too large to be whole.

    Arrow would also accept inf or 0x10 as numbers, but the marks have ruled these out.
    """
    for mark in GROUPS.get(form.thousands, ()):
        column = pc.replace_substring(column, mark, "")
    if form.decimal == ",":
        column = pc.replace_substring(column, ",", ".")
    try:
        cast = column.cast(pa.int64() if is_whole else pa.float64())
    except pa.ArrowInvalid:
        return []
    return [Numbers(form, cast)]


def starts_with_zero(column: pa.ChunkedArray) -> bool:
    """Whether a value has a leading zero, as codes do, with or without a sign before it."""
    for chunk in _present(column):
        if not (text := chunk.buffers()[2]):
            continue
        data, ends = np.frombuffer(text, np.uint8), _offsets(chunk)
        at, last = ends[:-1], ends[1:] - 1
        first = data[np.minimum(at, data.size - 1)]
        # Few values begin with a zero or a sign, and only these are looked at again.
        begins = (first == ord("0")) | (first == ord("-")) | (first == ord("+"))
        at, last, first = at[begins], last[begins], first[begins]
        at = at + (first != ord("0"))
        at = at[at < last]
        after = data[at + 1]
        if ((data[at] == ord("0")) & (after >= ord("0")) & (after <= ord("9"))).any():
            return True
    return False


def is_varied(column: pa.ChunkedArray) -> bool:
    """Whether values differ in length, as amounts do and codes do not."""
    ends = pc.min_max(pc.binary_length(column))
    return bool(ends["min"].as_py() != ends["max"].as_py())

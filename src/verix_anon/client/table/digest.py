"""A digest of the owner's table, the same whichever library holds it (spec §7).

Equal content in equal types gives equal digests from pandas, polars, pyarrow or a file:
widths of numbers, encodings of text, resolutions of times and chunks do not count; names,
order, values and what is missing do. A pandas index is not part of the table.
"""

import contextlib
import struct
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Bytes
from verix_anon.protocol.contract import Digest

FORMAT = b"verix/table/1\0"
PART_ROWS = 1 << 18
"""Numbers that are looked at together; a multiple of 8, for each has a bit."""
# What a column becomes if its type passes the test and every value survives.
PLAIN_TYPES: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_integer, pa.uint64()),
    (pa.types.is_boolean, pa.bool_()),
    (pa.types.is_string, pa.large_string()),
    (pa.types.is_large_string, pa.large_string()),
    (pa.types.is_string_view, pa.large_string()),
    (pa.types.is_binary, pa.large_binary()),
    (pa.types.is_large_binary, pa.large_binary()),
    (pa.types.is_date, pa.date32()),
    (pa.types.is_time, pa.time64("us")),
    (pa.types.is_duration, pa.duration("us")),
    (pa.types.is_duration, pa.duration("ns")),
)


def digest_over(columns: Sequence[bytes], n_rows: int) -> Digest:
    """The table's digest, from those of its columns."""
    head = FORMAT + struct.pack("<QQ", len(columns), n_rows)
    return Digest(sha256(head + b"".join(columns)).digest())


def plain_column(array: pa.Array) -> pa.Array:
    """The column in one of a few types, with NaN as missing, so that equal content is equal.

    Times become UTC microseconds, or nanoseconds where they must; what has no plain type,
    such as a list, becomes its text; a column without any value has the type null.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_floating(array.type):
        array = _plain_floats(array)
    if array.null_count == len(array):
        return pa.nulls(len(array))
    if pa.types.is_float64(array.type):
        return array
    if pa.types.is_timestamp(array.type):
        # Without a zone. Some are finer than a microsecond, or too far away to count in them.
        with contextlib.suppress(pa.ArrowInvalid):
            array = array.cast(pa.timestamp("us", tz=array.type.tz))
        return array.cast(pa.int64()).cast(pa.timestamp(array.type.unit))
    for test, plain in PLAIN_TYPES:
        if test(array.type):
            try:
                return array.cast(plain)
            except pa.ArrowInvalid:
                # A value that this type cannot hold; the next may.
                continue
    texts = [None if value is None else str(value) for value in array.to_pylist()]
    return pa.array(texts, pa.large_string())


def _plain_floats(array: pa.Array) -> pa.Array:
    # Adding 0.0 turns -0.0 into 0.0 and changes nothing else.
    values = pc.add(array.cast(pa.float64()), 0.0)
    is_nan = pc.is_nan(values)
    # Most columns have none, and need no other copy.
    has_nan = pc.any(is_nan).as_py()
    return pc.if_else(is_nan, pa.scalar(None, pa.float64()), values) if has_nan else values


def column_digest(name: str, array: pa.Array) -> bytes:
    """SHA-256 over the name, type and values of one column."""
    if pa.types.is_floating(array.type):
        kind, parts = _float_bytes(array)
    else:
        plain = plain_column(array)
        kind, parts = plain.type, _value_bytes(plain)
    label, said = name.encode("utf-8", "surrogatepass"), str(kind).encode()
    digest = sha256(struct.pack("<QQ", len(label), len(said)) + label + said)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _float_bytes(array: pa.Array) -> tuple[pa.DataType, Iterator[memoryview | pa.Buffer]]:
    """The type and bytes of `plain_column`, some values at a time: numbers are most of a table."""
    parts = [array.slice(at, PART_ROWS) for at in range(0, len(array), PART_ROWS)]
    is_there = [_bits(_plain_floats(part)) for part in parts]
    if not any(bits.any() for bits in is_there):
        return pa.null(), iter(())
    values = (_little_endian(_plain_floats(part).fill_null(0.0), "<f8") for part in parts)
    return pa.float64(), chain((bits.data for bits in is_there), values)


def _value_bytes(plain: pa.Array) -> Iterator[memoryview | pa.Buffer]:
    """Which values are there, then the values, with zero or nothing for a missing one."""
    if pa.types.is_null(plain.type):
        return
    yield _bits(plain).data
    if pa.types.is_large_string(plain.type) or pa.types.is_large_binary(plain.type):
        yield from _text_bytes(plain)
    elif pa.types.is_boolean(plain.type):
        yield _little_endian(plain.fill_null(False), "u1")
    else:
        width = pa.int32() if pa.types.is_date32(plain.type) else pa.int64()
        counts = plain if pa.types.is_integer(plain.type) else plain.cast(width)
        kind = "<u8" if pa.types.is_uint64(plain.type) else "<i8"
        yield _little_endian(counts.fill_null(0), kind)


def _bits(plain: pa.Array) -> Bytes:
    """Which values are there."""
    return np.packbits(plain.is_valid().to_numpy(zero_copy_only=False), bitorder="little")


def _little_endian(array: pa.Array, dtype: str) -> memoryview:
    return np.ascontiguousarray(array.to_numpy(zero_copy_only=False).astype(dtype, copy=False)).data


def _text_bytes(plain: pa.Array) -> Iterator[memoryview | pa.Buffer]:
    """The length of each text, then all texts in a row: no two columns give the same bytes."""
    filled = plain.fill_null("" if pa.types.is_large_string(plain.type) else b"")
    _, offsets, data = filled.buffers()
    ends = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    yield np.diff(ends).astype("<i8", copy=False).data
    if data is not None:
        yield data.slice(int(ends[0]), int(ends[-1] - ends[0]))

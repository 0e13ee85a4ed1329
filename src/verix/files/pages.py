"""How much a Parquet column chunk decodes to, read off its page headers before decoding.

The footer says how large a column is; a hostile one says it wrongly, and a page of a few
hundred bytes can then unfold to two gigabytes. Page headers are what the decoder goes by,
so their sizes are summed first. They are Thrift structs in compact protocol; whatever could
be read in two ways is refused, so that the decoder sees the same numbers.
"""

import sys
from typing import NamedTuple

__all__ = ["PageError", "uncompressed_size"]

# Wire types of the compact protocol.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
VARINTS = (I16, I32, I64)
# PageHeader nests two levels deep; anything deeper is not one.
MAX_NESTING = 6
# Fields of PageHeader.
TYPE, UNCOMPRESSED, COMPRESSED = 1, 2, 3
# By the type of a page: the field that describes its content, and the field of the encoding
# in that; the number of values is the first field of each.
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
CONTENT = {DATA: (5, 2), DICTIONARY: (7, 2), DATA_V2: (8, 4)}
N_VALUES = 1
# PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY and BYTE_STREAM_SPLIT: they
# cannot make more of a page than its values. DELTA_BYTE_ARRAY can: each of its values may
# repeat the one before and add to it, so that 400 bytes of file took 900 MB to decode.
ENCODINGS = frozenset({0, 2, 3, 5, 8, 9})

Fields = dict[int, "int | Fields"]


class PageError(ValueError):
    """These bytes are not a sequence of pages, or not one that is safe to decode."""


class _Page(NamedTuple):
    uncompressed: int
    compressed: int
    n_values: int
    start: int


def uncompressed_size(
    data: memoryview,
    start: int,
    length: int,
    n_values: int,
    *,
    least: int = 0,
    most: int = sys.maxsize,
) -> int:
    """The sum of the uncompressed page sizes, headers included, of a chunk of `n_values`.

    A page counts as at least `least` bytes; a sum beyond `most` is returned as it stands.
    """
    if start < 0 or length < 0 or start + length > len(data):
        raise PageError("a column lies outside the file")
    at, end, total, values_left = start, start + length, 0, n_values
    while at < end and total <= most:
        page = _page(data, at)
        total += max(least, page.start - at + page.uncompressed)
        values_left -= page.n_values
        at = page.start + page.compressed
    if total > most:
        return total
    if at != end:
        raise PageError("a page reaches beyond its column")
    # A decoder that misses values looks for more pages, in some versions beyond the chunk.
    if values_left != 0:
        raise PageError(f"the pages of a column do not hold its {n_values} values")
    return total


def _page(data: memoryview, at: int) -> _Page:
    header, start = _struct(data, at, MAX_NESTING)
    kind, uncompressed, compressed = (header.get(i) for i in (TYPE, UNCOMPRESSED, COMPRESSED))
    if not isinstance(kind, int) or kind not in CONTENT:
        raise PageError("a page is of an unknown type")
    if not isinstance(uncompressed, int) or not isinstance(compressed, int):
        raise PageError("a page has no size")
    if uncompressed < 0 or compressed < 0:
        raise PageError("a page has a negative size")
    field, encoding_field = CONTENT[kind]
    content = header.get(field)
    if not isinstance(content, dict):
        raise PageError("a page does not say what it holds")
    n_values, encoding = content.get(N_VALUES), content.get(encoding_field)
    if not isinstance(n_values, int) or n_values < 0:
        raise PageError("a page does not say how many values it holds")
    if encoding not in ENCODINGS:
        raise PageError(f"a page has encoding {encoding}, which is not read here")
    if kind != DICTIONARY:
        return _Page(uncompressed, compressed, n_values, start)
    if n_values > uncompressed:
        raise PageError("a dictionary is larger than its page")
    return _Page(uncompressed, compressed, 0, start)


def _struct(data: memoryview, at: int, nesting: int) -> tuple[Fields, int]:
    """The I32 and struct fields of a struct, and where it ends; others are passed over."""
    if nesting == 0:
        raise PageError("a page header is nested too deep")
    fields: Fields = {}
    number = 0
    while True:
        head, at = _byte(data, at)
        kind, delta = head & 15, head >> 4
        if kind == 0:
            return fields, at
        # Numbers that do not ascend by less than 16 are written in full, which no page
        # header needs. In full they could repeat a field, or be one modulo 65536.
        if delta == 0:
            raise PageError("a page header has an unknown field")
        number += delta
        if kind == STRUCT:
            fields[number], at = _struct(data, at, nesting - 1)
        elif kind == I32:
            fields[number], at = _i32(data, at)
        else:
            at = _skip(data, at, kind)


def _skip(data: memoryview, at: int, kind: int) -> int:
    if kind in (TRUE, FALSE):
        return at
    if kind in VARINTS:
        return _varint(data, at)[1]
    if kind == BYTE:
        return at + 1
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        size, at = _varint(data, at)
        return at + size
    # Lists, sets and maps do not occur in page headers.
    raise PageError("a page header has an unknown field")


def _i32(data: memoryview, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    if number >= 1 << 32:
        raise PageError("a page header has a number beyond 32 bits")
    return (number >> 1) ^ -(number & 1), at


def _byte(data: memoryview, at: int) -> tuple[int, int]:
    if not 0 <= at < len(data):
        raise PageError("a page header is cut short")
    return data[at], at + 1


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte, at = _byte(data, at)
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise PageError("a page header has an endless number")

"""How much a Parquet column chunk decodes to, read off its page headers before decoding.

The footer says how large a column is; a hostile one says it wrongly, and a page of a few
hundred bytes can then unfold to two gigabytes. Page headers are what the decoder goes by,
so their sizes are summed first. They are Thrift structs in compact protocol, of which only
two numbers and the length matter here.
"""

from typing import NamedTuple

__all__ = ["PageError", "uncompressed_size"]

# Wire types of the compact protocol.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
VARINTS = (I16, I32, I64)
# PageHeader nests two levels deep; anything deeper is not one.
MAX_NESTING = 6
UNCOMPRESSED_FIELD, COMPRESSED_FIELD = 2, 3


class PageError(ValueError):
    """These bytes are not a sequence of pages."""


class _Header(NamedTuple):
    uncompressed: int
    compressed: int
    end: int


def uncompressed_size(data: memoryview, start: int, length: int) -> int:
    """The sum of the uncompressed page sizes of a column chunk."""
    if start < 0 or length < 0 or start + length > len(data):
        raise PageError("a column lies outside the file")
    at, end, total = start, start + length, 0
    while at < end:
        header = _page_header(data, at)
        if header.uncompressed < 0 or header.compressed < 0:
            raise PageError("a page has a negative size")
        total += header.uncompressed
        at = header.end + header.compressed
    if at != end:
        raise PageError("a page reaches beyond its column")
    return total


def _page_header(data: memoryview, at: int) -> _Header:
    sizes = {UNCOMPRESSED_FIELD: -1, COMPRESSED_FIELD: -1}
    field = 0
    while True:
        kind, field, at = _field(data, at, field)
        if kind == 0:
            return _Header(sizes[UNCOMPRESSED_FIELD], sizes[COMPRESSED_FIELD], at)
        if field in sizes and kind == I32:
            number, at = _varint(data, at)
            sizes[field] = (number >> 1) ^ -(number & 1)
        else:
            at = _skip(data, at, kind, MAX_NESTING)


def _field(data: memoryview, at: int, previous: int) -> tuple[int, int, int]:
    """The type and number of the next field; type 0 ends the struct."""
    head, at = _byte(data, at)
    kind, delta = head & 15, head >> 4
    if kind == 0:
        return 0, previous, at
    if delta:
        return kind, previous + delta, at
    number, at = _varint(data, at)
    return kind, (number >> 1) ^ -(number & 1), at


def _skip(data: memoryview, at: int, kind: int, nesting: int) -> int:
    if nesting == 0:
        raise PageError("a page header is nested too deep")
    if kind in (TRUE, FALSE):
        return at
    if kind in VARINTS:
        return _varint(data, at)[1]
    if kind == BYTE:
        return _byte(data, at)[1]
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        size, at = _varint(data, at)
        return at + size
    if kind == STRUCT:
        field = 0
        while True:
            kind, field, at = _field(data, at, field)
            if kind == 0:
                return at
            at = _skip(data, at, kind, nesting - 1)
    # Lists, sets and maps do not occur in page headers.
    raise PageError("a page header has an unknown field")


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

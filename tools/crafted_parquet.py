"""Parquet files taken apart and put together again with lies in them.

Thrift's compact protocol, both ways: a struct is a mapping from field number to (type,
value), a list is (type, values), so that any number in a footer or a page header can be
replaced by another.
"""

import io
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
MAGIC = b"PAR1"
Struct = dict[int, tuple[int, Any]]

# Field numbers of parquet.thrift.
SCHEMA, N_ROWS, GROUPS, KEY_VALUES, CREATED_BY = 2, 3, 4, 5, 6  # FileMetaData
COLUMNS, GROUP_BYTES, GROUP_ROWS = 1, 2, 3  # RowGroup
META = 3  # ColumnChunk
CODEC, N_VALUES, UNCOMPRESSED, COMPRESSED, DATA_OFFSET, DICT_OFFSET = 4, 5, 6, 7, 9, 11
PAGE_TYPE, PAGE_UNCOMPRESSED, PAGE_COMPRESSED, DATA_PAGE, DICT_PAGE, DATA_PAGE_V2 = 1, 2, 3, 5, 7, 8


def packed(table: pa.Table, **options: Any) -> bytes:
    """Return the table as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def encode(fields: Struct) -> bytes:
    """A struct as bytes; fields may stand in any order, under any number."""
    out, last = b"", 0
    for number, (kind, value) in fields.items():
        short = 0 < number - last < 16
        out += bytes([number - last << 4 | kind]) if short else bytes([kind]) + zigzag(number)
        out += _encode(kind, value)
        last = number
    return out + b"\0"


def _encode(kind: int, value: Any) -> bytes:
    if kind in (TRUE, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value & 255])
    if kind in (I16, I32, I64):
        return zigzag(value)
    if kind == DOUBLE:
        return struct.pack("<d", value)
    if kind == BINARY:
        return varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return encode(value)
    if kind not in (LIST, SET):
        return bytes(value)
    of, values = value
    head = bytes([len(values) << 4 | of]) if len(values) < 15 else bytes([0xF0 | of])
    head += b"" if len(values) < 15 else varint(len(values))
    return head + b"".join(bytes([v]) if of in (TRUE, FALSE) else _encode(of, v) for v in values)


class Decoder:
    """Reads one struct after another off bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def zigzag(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            fields[number] = (head & 15, self.value(head & 15))
        return fields

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            return self.byte()
        if kind in (I16, I32, I64):
            return self.zigzag()
        if kind == DOUBLE:
            self.at += 8
            return struct.unpack("<d", self.data[self.at - 8 : self.at])[0]
        if kind == BINARY:
            size = self.varint()
            self.at += size
            return self.data[self.at - size : self.at]
        if kind == STRUCT:
            return self.struct()
        assert kind == LIST
        head = self.byte()
        size = head >> 4 if head >> 4 < 15 else self.varint()
        of = head & 15
        return of, [self.byte() if of in (TRUE, FALSE) else self.value(of) for _ in range(size)]


def footer(data: bytes) -> Struct:
    """The file's metadata."""
    size = int.from_bytes(data[-8:-4], "little")
    return Decoder(data[-8 - size : -8]).struct()


def with_footer(body: bytes, metadata: Struct) -> bytes:
    """Everything before the footer, and a footer."""
    packed = encode(metadata)
    return body + packed + len(packed).to_bytes(4, "little") + MAGIC


def body(data: bytes) -> bytes:
    """Everything before the footer."""
    return data[: -8 - int.from_bytes(data[-8:-4], "little")]


def lying(data: bytes, change: Callable[[Struct], None]) -> bytes:
    """The same file, its footer changed."""
    metadata = footer(data)
    change(metadata)
    return with_footer(body(data), metadata)


def chunks(metadata: Struct) -> Iterator[Struct]:
    """The metadata of every column chunk, in the order of the file."""
    for group in metadata[GROUPS][1][1]:
        for chunk in group[COLUMNS][1][1]:
            yield chunk[META][1]


def put(fields: Struct, number: int, value: Any) -> None:
    """Replace a field's value, keeping its type."""
    fields[number] = (fields[number][0], value)


def pages(data: bytes, chunk: Struct) -> list[tuple[Struct, bytes]]:
    """Header and content of every page of a chunk."""
    start = chunk[DATA_OFFSET][1]
    if DICT_OFFSET in chunk:
        start = min(start, chunk[DICT_OFFSET][1])
    decoder, end = Decoder(data, start), start + chunk[COMPRESSED][1]
    found = []
    while decoder.at < end:
        header = decoder.struct()
        size = header[PAGE_COMPRESSED][1]
        found.append((header, data[decoder.at : decoder.at + size]))
        decoder.at += size
    return found


Page = tuple[Struct, bytes]


def rebuilt(data: bytes, change: Callable[[int, list[Page]], list[Page]]) -> bytes:
    """The same file with the pages of each chunk changed, and offsets and sizes set right."""
    metadata, out = footer(data), MAGIC
    for i, chunk in enumerate(chunks(metadata)):
        found = change(i, pages(data, chunk))
        start = len(out)
        put(chunk, DATA_OFFSET, start)
        for header, content in found:
            if DICT_PAGE not in header and chunk[DATA_OFFSET][1] == start:
                put(chunk, DATA_OFFSET, len(out))
            out += encode(header) + content
        if DICT_OFFSET in chunk:
            put(chunk, DICT_OFFSET, start)
        put(chunk, COMPRESSED, len(out) - start)
    return with_footer(out, metadata)

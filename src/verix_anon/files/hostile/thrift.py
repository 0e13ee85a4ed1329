"""Reads and writes Thrift's compact protocol, which Parquet uses for its footer and page headers.

Bytes that could be read in two ways are refused. Otherwise Arrow might see other numbers than the
ones checked here. So fields must ascend, and no number may be wider than its type.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from verix_anon.files.scratch import Window

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
BITS = {I16: 16, I32: 32, I64: 64}
# How deep structs and lists may nest; Parquet needs nine levels at most.
MAX_NESTING = 12


class List(NamedTuple):
    """The type of a list's members, and the members."""

    kind: int
    members: "list[Value]"


Data: TypeAlias = memoryview | Window
Value: TypeAlias = "int | bytes | List | Fields"
Fields: TypeAlias = dict[int, tuple[int, Value]]
"""A struct: the type and value of each field, by number."""


class ThriftError(ValueError):
    """The bytes are not a struct."""


def decode(data: Data, at: int) -> tuple[Fields, int]:
    """Return the struct that begins at a position, and where it ends."""
    try:
        return _struct(data, at, MAX_NESTING)
    except IndexError:
        raise ThriftError("it is cut short") from None


def number(fields: Mapping[int, tuple[int, object]], field: int, kind: int) -> int:
    """Return a field that must exist, as a number of that type that is not negative."""
    found, value = fields.get(field, (0, None))
    if found != kind or not isinstance(value, int) or value < 0:
        raise ThriftError(f"field {field} is not there, not a number or negative")
    return value


def structs(fields: Fields, field: int) -> list[Fields]:
    """Return a field that must exist, as a list of structs."""
    _, value = fields.get(field, (0, None))
    if not isinstance(value, List) or not all(isinstance(m, dict) for m in value.members):
        raise ThriftError(f"field {field} is not there or not a list of structs")
    return [member for member in value.members if isinstance(member, dict)]


def _struct(data: Data, at: int, nesting: int) -> tuple[Fields, int]:
    fields: Fields = {}
    field = 0
    while True:
        head, at = data[at], at + 1
        kind, delta = head & 15, head >> 4
        if kind == 0:
            return fields, at
        # Parquet's fields ascend by 1 to 15. A number written in full could repeat a field, or
        # name one modulo 65536.
        if delta == 0:
            raise ThriftError("a field's number is written in full")
        field += delta
        value, at = _value(data, at, kind, nesting)
        fields[field] = (kind, value)


def _value(data: Data, at: int, kind: int, nesting: int) -> tuple[Value, int]:
    if kind in BITS:
        unsigned, at = _varint(data, at)
        if unsigned >> BITS[kind]:
            raise ThriftError("a number is wider than its type")
        return (unsigned >> 1) ^ -(unsigned & 1), at
    if kind in (TRUE, FALSE):
        return int(kind == TRUE), at
    if kind == BYTE:
        return data[at], at + 1
    if kind == DOUBLE:
        return _bytes(data, at, 8)
    if kind == BINARY:
        size, at = _varint(data, at)
        return _bytes(data, at, size)
    if kind not in (LIST, STRUCT):
        raise ThriftError("a field has a type that Parquet does not use")
    if nesting == 0:
        raise ThriftError("it is nested too deep")
    return (_list if kind == LIST else _struct)(data, at, nesting - 1)


def _list(data: Data, at: int, nesting: int) -> tuple[List, int]:
    head, at = data[at], at + 1
    kind, size = head & 15, head >> 4
    if size == 15:
        size, at = _varint(data, at)
    if size > len(data) - at:
        raise ThriftError("a list is longer than what is left")
    members = []
    for _ in range(size):
        # Among the members of a list, true and false are bytes.
        member, at = _value(data, at, BYTE if kind in (TRUE, FALSE) else kind, nesting)
        members.append(member)
    return List(kind, members), at


def _bytes(data: Data, at: int, size: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise ThriftError("it is cut short")
    return bytes(data[at : at + size]), at + size


def _varint(data: Data, at: int) -> tuple[int, int]:
    if (value := data[at]) < 128:
        return value, at + 1
    value &= 127
    for shift in range(7, 70, 7):
        byte, at = data[at + 1], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
    raise ThriftError("a number does not end")


def encode(fields: Fields) -> bytes:
    """A struct as bytes; its fields ascend by 1 to 15."""
    out, last = bytearray(), 0
    for field, (kind, value) in fields.items():
        assert 0 < field - last < 16
        out += bytes([(field - last) << 4 | kind]) + _encoded(kind, value)
        last = field
    return bytes(out) + b"\0"


def _encoded(kind: int, value: Value) -> bytes:
    if kind in (TRUE, FALSE):
        return b""
    if isinstance(value, dict):
        return encode(value)
    if isinstance(value, List):
        head = bytes([0xF0 | value.kind]) + _as_varint(len(value.members))
        return head + b"".join(_encoded(value.kind, member) for member in value.members)
    if isinstance(value, int):
        zigzag = value << 1 if value >= 0 else ~(value << 1)
        return bytes([value]) if kind == BYTE else _as_varint(zigzag)
    return value if kind == DOUBLE else _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])

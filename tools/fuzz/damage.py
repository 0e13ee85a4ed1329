"""Ways to spoil the bytes of one file, blindly and by what stands where."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from struct import error as unpack_error
from typing import Any

from tools import crafted_parquet as crafted

Spoil = Callable[[random.Random, bytearray, bytes], None]
"""Changes the bytes in place; the third argument is the same file of another job."""

DEEP = 100_000
ODD_NUMBERS = [0, 1, -1, 127, 128, 2**31 - 1, -(2**31), 2**31, 2**32, 2**40, 2**63 - 1, -(2**63)]
ODD_VALUES = [
    *("null", "true", "false", "1.5", "-0.0", "1e3", "1e999", "NaN", "-Infinity", "9" * 400),
    *("[]", "{}", "[[]]", '{"a": {}}', '""', '"a"', r'"\ud800"', r'"\u0000"', r'"\u001b[2J"'),
    *("[" * DEEP, "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, '"' + "a" * DEEP + '"'),
    *map(str, ODD_NUMBERS),
]
PLACE = "@place@"
UNFIT = (LookupError, ValueError, TypeError, ArithmeticError, AssertionError, RecursionError)
"""What a way to spoil raises that cannot take apart what another has spoiled."""


def flip(rng: random.Random, data: bytearray, _: bytes) -> None:
    for _i in range(rng.choice([1, 1, 1, 2, 5])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(rng: random.Random, data: bytearray, _: bytes) -> None:
    at = rng.randrange(len(data))
    size = rng.choice([1, 1, 2, 4, 8, 50])
    fill = rng.choice([b"\0" * size, b"\xff" * size, b"\x7f" * size, rng.randbytes(size)])
    data[at : at + size] = fill


def near_the_end(rng: random.Random, data: bytearray, _: bytes) -> None:
    """One byte of the footer, where most of the lies can be told."""
    data[-1 - rng.randrange(min(600, len(data)))] = rng.randrange(256)


def truncate(rng: random.Random, data: bytearray, _: bytes) -> None:
    del data[rng.randrange(len(data)) :]


def cut(rng: random.Random, data: bytearray, _: bytes) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 1, 4, 100])]


def insert(rng: random.Random, data: bytearray, _: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice([1, 1, 4, 100]))


def repeat(rng: random.Random, data: bytearray, _: bytes) -> None:
    """A piece of the file once more, or many times."""
    at = rng.randrange(len(data))
    size = rng.choice([1, 16, 200])
    data[at:at] = data[at : at + size] * rng.choice([1, 1, 2, 500])


def swap(rng: random.Random, data: bytearray, _: bytes) -> None:
    size = rng.choice([1, 4, 16])
    one, other = rng.randrange(len(data)), rng.randrange(len(data))
    data[one : one + size], data[other : other + size] = (
        data[other : other + size],
        data[one : one + size],
    )


def splice(rng: random.Random, data: bytearray, other: bytes) -> None:
    """A piece of the other job's file in the same place."""
    at = rng.randrange(len(data))
    size = rng.choice([1, 8, 100, 1000])
    data[at : at + size] = other[at : at + size]


def lie(rng: random.Random, data: bytearray, _: bytes) -> None:
    """Another number in some field of the footer, however deep, the lengths set right."""

    def change(metadata: crafted.Struct) -> None:
        struct, number = rng.choice(list(_numbers(metadata)))
        crafted.put(struct, number, _other_number(rng, struct[number][1]))

    data[:] = crafted.lying(bytes(data), change)


def reshape(rng: random.Random, data: bytearray, _: bytes) -> None:
    """A member of some list of the footer less, more, many times, or in another place."""

    def change(metadata: crafted.Struct) -> None:
        _, members = rng.choice(list(_lists(metadata)))
        at = rng.randrange(len(members))
        match rng.randrange(4):
            case 0:
                del members[at]
            case 1:
                members.insert(rng.randrange(len(members) + 1), members[at])
            case 2:
                members.extend([members[at]] * 300)
            case _:
                rng.shuffle(members)

    data[:] = crafted.lying(bytes(data), change)


def forget(rng: random.Random, data: bytearray, _: bytes) -> None:
    """A field of the footer gone, or a text in it another."""

    def change(metadata: crafted.Struct) -> None:
        struct = rng.choice(list(_structs(metadata)))
        number = rng.choice(list(struct))
        kind, value = struct[number]
        if kind == crafted.BINARY and rng.random() < 0.7:
            odd = [b"", b"\xff" * 9, b"a" * DEEP, bytes(value)[::-1], bytes(value) * 2]
            crafted.put(struct, number, rng.choice(odd))
        else:
            del struct[number]

    data[:] = crafted.lying(bytes(data), change)


def repage(rng: random.Random, data: bytearray, _: bytes) -> None:
    """A page less, twice, in another place, of other content, or with a header that lies."""
    n_chunks = sum(1 for _ in crafted.chunks(crafted.footer(bytes(data))))
    chosen, way = rng.randrange(n_chunks), rng.randrange(6)

    def change(i: int, pages: list[crafted.Page]) -> list[crafted.Page]:
        if i != chosen:
            return pages
        at = rng.randrange(len(pages))
        header, content = pages[at]
        if way == 0:
            return pages[:at] + pages[at + 1 :]
        if way == 1:
            return pages[:at] + [pages[at]] * rng.choice([2, 2, 50]) + pages[at + 1 :]
        if way == 2:
            return rng.sample(pages, len(pages))
        if way == 3:
            spoiled = bytearray(content or b"\0")
            rng.choice([flip, overwrite, truncate, insert])(rng, spoiled, b"")
            content = bytes(spoiled)
            if rng.random() < 0.7:
                crafted.put(header, crafted.PAGE_COMPRESSED, len(content))
        else:
            struct, number = rng.choice(list(_numbers(header)))
            crafted.put(struct, number, _other_number(rng, struct[number][1]))
        return [*pages[:at], (header, content), *pages[at + 1 :]]

    data[:] = crafted.rebuilt(bytes(data), change)


def field(rng: random.Random, data: bytearray, _: bytes) -> None:
    """A field of JSON gone, renamed, twice, or with another value, however deep."""
    top = json.loads(bytes(data))
    holder, key = rng.choice(list(_fields(top)))
    way, odd = rng.randrange(6), rng.choice(ODD_VALUES)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, dict):
        holder[rng.choice([f"{key}x", "", "a" * 1000, "files", "\ud800"])] = holder.pop(key)
    elif way == 2 and isinstance(holder, dict):
        # The same name twice: a reader that takes the last sees another value than one that
        # takes the first.
        odd = f"{odd}, {json.dumps(key)}: {json.dumps(holder[key])}"
        holder[key] = PLACE
    elif way == 3:
        holder[key] = _near(rng, holder[key])
    else:
        holder[key] = PLACE
    data[:] = json.dumps(top).replace(f'"{PLACE}"', odd).encode()


def _near(rng: random.Random, value: Any) -> Any:
    """A value of the same kind that is nearly the same."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + rng.choice([1, -1, 0.5, value, 1e-12])
    if isinstance(value, str) and value:
        at = rng.randrange(len(value))
        return value[:at] + rng.choice("0f zé\n") + value[at + rng.choice([0, 1]) :]
    if isinstance(value, list) and value:
        return rng.choice([value[1:], value + value[-1:], value * 50, value[::-1]])
    return [value]


def _fields(value: Any) -> Iterator[tuple[Any, Any]]:
    found = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in found:
        yield value, key
        if isinstance(inner, dict | list):
            yield from _fields(inner)


def _other_number(rng: random.Random, old: int) -> int:
    return rng.choice([rng.choice(ODD_NUMBERS), old + 1, old - 1, old * 2, -old])


def _structs(struct: crafted.Struct) -> Iterator[crafted.Struct]:
    if struct:
        yield struct
    for kind, value in struct.values():
        if kind == crafted.STRUCT:
            yield from _structs(value)
        elif kind == crafted.LIST and value[0] == crafted.STRUCT:
            for member in value[1]:
                yield from _structs(member)


def _numbers(top: crafted.Struct) -> Iterator[tuple[crafted.Struct, int]]:
    for struct in _structs(top):
        for number, (kind, _) in struct.items():
            if kind in (crafted.I16, crafted.I32, crafted.I64):
                yield struct, number


def _lists(top: crafted.Struct) -> Iterator[tuple[int, list[Any]]]:
    for struct in _structs(top):
        for kind, value in struct.values():
            if kind == crafted.LIST and value[1]:
                yield value


BLIND: list[Spoil] = [flip, flip, overwrite, truncate, cut, insert, repeat, swap, splice]
PARQUET: list[Spoil] = [*BLIND, near_the_end, lie, lie, reshape, forget, repage, repage]
JSON: list[Spoil] = [flip, truncate, cut, insert, splice, field, field, field, field]


def spoil(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """The bytes spoiled in one way, or one after another in several."""
    spoiled = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 1, 2, 3])):
        if not spoiled:
            break
        if spoiled[:4] == crafted.MAGIC:
            way = rng.choice(PARQUET)
        else:
            way = rng.choice(JSON if spoiled[:1] == b"{" else BLIND)
        try:
            way(rng, spoiled, other)
        except (*UNFIT, unpack_error):
            with suppress(IndexError):
                flip(rng, spoiled, other)
    return bytes(spoiled)

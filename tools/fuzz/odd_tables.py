"""Tables of odd types with marks in everything that must not be published."""

import base64
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa

Text = Sequence[str | None]


@dataclass
class Marks:
    """Values that stand nowhere but where they were put, told again in a search."""

    rng: random.Random
    secret: list[bytes] = field(default_factory=list)
    """What no published file may hold."""
    public: list[bytes] = field(default_factory=list)
    """What a published table must hold, so that the search is known to find."""
    names: list[bytes] = field(default_factory=list)
    """Of identifier columns."""

    def text(self, what: str) -> str:
        found = f"{what}~{self.rng.randbytes(7).hex()}"
        self.secret += [found.encode(), found.encode("utf-16-le")]
        return found

    def texts(self, what: str, n: int) -> list[str]:
        return [self.text(what) for _ in range(n)]

    def whole(self) -> int:
        found = self.rng.randrange(2**56, 2**62)
        self.secret += [str(found).encode(), found.to_bytes(8, "little")]
        return found

    def raw(self) -> bytes:
        found = self.rng.randbytes(16)
        self.secret += [found, found.hex().encode(), base64.b64encode(found)[:20]]
        return found

    def name(self) -> str:
        found = f"name~{self.rng.randbytes(7).hex()}"
        self.names += [found.encode(), found.encode("utf-16-le")]
        return found

    def shown(self, n: int) -> list[str]:
        found = [f"shown~{self.rng.randbytes(7).hex()}" for _ in range(n)]
        self.public += [text.encode() for text in found]
        return found


@dataclass
class OddTable:
    """A table, and the roles of its columns."""

    table: Any
    roles: dict[str, list[str]]
    marks: Marks


def _coded(values: Text, unused: Sequence[str], rng: random.Random) -> pa.Array:
    """A dictionary that knows more than occurs, the unused at the beginning, the end or between."""
    labels = [*dict.fromkeys(value for value in values if value is not None), *unused]
    rng.shuffle(labels)
    places = pa.array([None if v is None else labels.index(v) for v in values], pa.int16())
    kind = rng.choice([pa.string(), pa.large_string()])
    return pa.DictionaryArray.from_arrays(
        places, pa.array(labels, kind), ordered=rng.random() < 0.3
    )


def _nested(marks: Marks, leaves: pa.Array, rng: random.Random) -> pa.Array:
    """Values in lists, structs or both, whose fields have metadata of their own."""
    meta = {marks.text("child"): marks.text("child")}
    inner = pa.field("inner", leaves.type, metadata=meta)
    struct = pa.StructArray.from_arrays([leaves], fields=[inner])
    listed = pa.ListArray.from_arrays(
        pa.array(range(len(leaves) + 1), pa.int32()), leaves, type=pa.list_(inner)
    )
    return rng.choice([struct, listed])


def _views(values: Text) -> pa.Array:
    return pa.array(values, pa.string()).cast(pa.string_view())


def identifiers(marks: Marks, n: int) -> dict[str, pa.Array]:
    """Columns that name people, one to three, as text, numbers, bytes, dictionaries or nested."""
    rng = marks.rng
    makers: list[Callable[[], pa.Array]] = [
        lambda: pa.array(marks.texts("person", n)),
        lambda: _views(marks.texts("person", n)),
        lambda: pa.array([marks.whole() for _ in range(n)]),
        lambda: pa.array([marks.raw() for _ in range(n)], pa.binary()),
        lambda: pa.array([marks.raw() for _ in range(n)], pa.binary(16)),
        lambda: _coded(marks.texts("person", n), marks.texts("unused", 5), rng),
        lambda: _nested(marks, pa.array(marks.texts("person", n)), rng),
        lambda: pa.array([Decimal(marks.whole()) for _ in range(n)], pa.decimal128(25)),
        lambda: pa.array([UUID(bytes=marks.raw()).bytes for _ in range(n)], pa.binary(16)),
    ]
    chosen = rng.sample(makers, rng.choice([1, 1, 2, 3]))
    return {marks.name(): make() for make in chosen}


def quasi(marks: Marks, n: int) -> dict[str, pa.Array]:
    """Columns to generalize; some know of values that do not occur."""
    rng = marks.rng
    day, towns = date(2000, 1, 1), ["ash", "elm", "fir", "oak"]
    columns: dict[str, Callable[[], pa.Array]] = {
        "age": lambda: pa.array([rng.randrange(90) for _ in range(n)], pa.int8()),
        "score": lambda: pa.array([rng.choice([None, rng.random()]) for _ in range(n)]),
        "day": lambda: pa.array([day + timedelta(rng.randrange(900)) for _ in range(n)]),
        "town": lambda: pa.array([rng.choice(towns) for _ in range(n)]),
        "coded": lambda: _coded(
            [rng.choice([*towns, None]) for _ in range(n)], marks.texts("unused", 6), rng
        ),
        "flag": lambda: pa.array([rng.random() < 0.5 for _ in range(n)]),
    }
    chosen = rng.sample(list(columns), rng.choice([2, 3, 4]))
    return {name: columns[name]() for name in chosen}


def kept(marks: Marks, n: int) -> dict[str, pa.Array]:
    """Columns that are published as they are, but for what only their types know of."""
    rng = marks.rng
    unused = marks.texts("unused", 6)
    columns: dict[str, Callable[[], pa.Array]] = {
        "note": lambda: pa.array(marks.shown(n)),
        "seen": lambda: _views(marks.shown(n)),
        "mood": lambda: _coded([rng.choice(["a", "b", None]) for _ in range(n)], unused, rng),
        "lone": lambda: _coded([None] * n, unused, rng),
        "bits": lambda: pa.array([rng.choice([b"x", None]) for _ in range(n)]),
        "when": lambda: pa.array([datetime(2020, 1, 1 + rng.randrange(28)) for _ in range(n)]),
        "deep": lambda: _nested(marks, pa.array(["u", "v"] * (n // 2)), rng),
        "deep coded": lambda: _nested(marks, _coded(["u", "v"] * (n // 2), unused, rng), rng),
        "price": lambda: pa.array([Decimal(rng.randrange(99)) / 4 for _ in range(n)]),
        "nothing": lambda: pa.nulls(n),
    }
    return {name: columns[name]() for name in rng.sample(list(columns), rng.randrange(4))}


def odd_table(rng: random.Random) -> OddTable:
    """Columns of every role in any order, in one of the libraries."""
    marks, n = Marks(rng), rng.choice([30, 44, 60])
    by_role = {role.__name__: role(marks, n) for role in (identifiers, quasi, kept)}
    by_role["target"] = {}
    if rng.random() < 0.2:
        by_role["target"] = {"y": pa.array([rng.choice(["no", "yes"]) for _ in range(n)])}
    columns = [each for found in by_role.values() for each in found.items()]
    rng.shuffle(columns)
    table = rng.choice(LIBRARIES)(marks, _with_metadata(marks, dict(columns)))
    return OddTable(table, {role: list(found) for role, found in by_role.items()}, marks)


def _with_metadata(marks: Marks, columns: dict[str, pa.Array]) -> pa.Table:
    fields = [
        pa.field(name, array.type, metadata={marks.text("field"): marks.text("field")})
        for name, array in columns.items()
    ]
    schema = pa.schema(fields, metadata={marks.text("schema"): marks.text("schema")})
    return pa.table(list(columns.values()), schema=schema)


def _arrow(marks: Marks, table: pa.Table) -> pa.Table:
    """In one piece, in several, or a part of a larger table of which other people are."""
    match marks.rng.randrange(3):
        case 0:
            return table
        case 1:
            at = marks.rng.randrange(1, table.num_rows)
            return pa.concat_tables([table.slice(0, at), table.slice(at)])
        case _:
            return pa.concat_tables([table, table]).combine_chunks().slice(table.num_rows)


def _pandas(marks: Marks, table: pa.Table) -> pd.DataFrame:
    """With an index that names people, attributes, and a name above the columns."""
    rng = marks.rng
    mapper = rng.choice([None, pd.ArrowDtype])
    # pandas knows no views of its own.
    plain = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in table.schema]
    table = table.cast(pa.schema(plain, metadata=table.schema.metadata))
    frame: pd.DataFrame = table.to_pandas(types_mapper=mapper)
    frame.attrs[marks.text("attribute")] = marks.text("attribute")
    frame.columns.name = marks.text("columns")
    match rng.randrange(5):
        case 0:
            frame.index = pd.Index(marks.texts("index", len(frame)))
        case 1:
            tuples = [(text, marks.whole()) for text in marks.texts("index", len(frame))]
            frame.index = pd.MultiIndex.from_tuples(tuples)
        case 2:
            frame.index = pd.Index([marks.whole() for _ in range(len(frame))])
        case 3:
            # It needs a role, and is refused.
            frame.index = pd.Index(marks.texts("index", len(frame)), name=marks.text("index"))
        case _:
            pass
    return frame


def _polars(marks: Marks, table: pa.Table) -> pl.DataFrame:
    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame)
    enums = [
        pl.col(name).cast(pl.Enum([*found[name].unique().drop_nulls(), *marks.texts("unused", 3)]))
        for name, kind in found.schema.items()
        if kind == pl.String and marks.rng.random() < 0.3 and found[name].n_unique() < 10
    ]
    return found.with_columns(enums)


LIBRARIES: list[Callable[[Marks, pa.Table], Any]] = [_arrow, _arrow, _pandas, _pandas, _polars]

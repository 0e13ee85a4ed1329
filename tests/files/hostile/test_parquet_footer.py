"""Arrow is given a footer of our own: the same table comes out, and no lie gets through."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files.samples import delivered, read, refused
from tools import crafted_parquet as crafted
from tools.crafted_parquet import BINARY, I32, I64, LIST, STRUCT, TRUE, Struct, packed, put
from verix_anon.files.hostile.parquet_footer import Footer, FooterError, read_footer

TABLE = pa.table(
    {
        "row": np.arange(2000),
        "tracker": pa.array([bytes([i % 256]) * 32 for i in range(2000)], pa.binary(32)),
        "gaps": pa.array([None if i % 3 else 1.5 * i for i in range(2000)]),
        "target": np.zeros(2000, np.uint8),
    }
)
DATA = packed(TABLE, compression="none", row_group_size=700)


def table_under(footer: Footer, data: bytes) -> pa.Table:
    """The table that Arrow makes of the pages under our footer, in the types that it has."""
    metadata = pq.read_metadata(pa.BufferReader(footer.clean))
    table = pq.ParquetFile(pa.BufferReader(data), metadata=metadata).read()
    assert table.column_names == [str(i) for i in range(len(footer.names))]
    schema = pq.read_metadata(pa.BufferReader(footer.schema)).schema.to_arrow_schema()
    return table.cast(schema).rename_columns(footer.names)


def column(metadata: Struct) -> Struct:
    """The first column chunk."""
    first: Struct = metadata[crafted.GROUPS][1][1][0][crafted.COLUMNS][1][1][0]
    return first


def schema(metadata: Struct) -> list[Struct]:
    elements: list[Struct] = metadata[crafted.SCHEMA][1][1]
    return elements


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd", "brotli"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"data_page_version": "2.0"},
        {"use_dictionary": False},
        {"write_page_index": True, "row_group_size": 333},
        {"version": "1.0", "store_schema": False},
        {"dictionary_pagesize_limit": 100},
        {"data_page_size": 1, "write_batch_size": 10},
    ],
)
def test_the_same_table_comes_out(codec: str, options: dict[str, Any]) -> None:
    data = packed(TABLE, compression=codec, **options)
    footer = read_footer(data, most=1 << 20)
    assert table_under(footer, data).equals(TABLE)
    assert data[: footer.body] == crafted.body(data)


def test_nothing_else_is_handed_on() -> None:
    clean = crafted.footer(read_footer(DATA, most=1 << 20).clean)
    assert set(clean) == {1, crafted.SCHEMA, crafted.N_ROWS, crafted.GROUPS}
    assert {i for chunk in crafted.chunks(clean) for i in chunk} == {1, 2, 3, 4, 5, 6, 7, 9}


def nested(metadata: Struct) -> None:
    put(schema(metadata)[0], 5, 1)


def group_in_place_of_a_column(metadata: Struct) -> None:
    schema(metadata)[1][5] = (I32, 1)
    metadata[crafted.SCHEMA] = (LIST, (STRUCT, [dict(sorted(e.items())) for e in schema(metadata)]))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (nested, "nested"),
        (group_in_place_of_a_column, "nested"),
        (lambda m: m.pop(crafted.SCHEMA), "field 2 is not there"),
        (lambda m: m.pop(crafted.N_ROWS), "field 3 is not there"),
        (lambda m: m.pop(crafted.GROUPS), "field 4 is not there"),
        (lambda m: put(m, crafted.N_ROWS, -1), "negative"),
        (lambda m: put(m, crafted.N_ROWS, 2**63), "wider than its type"),
        (lambda m: put(m, crafted.SCHEMA, (STRUCT, [])), "field 5 is not there"),
        (lambda m: put(m, crafted.SCHEMA, (I32, [1, 2])), "not a list of structs"),
        (lambda m: schema(m)[1].pop(4), "no name"),
        (lambda m: schema(m)[1].pop(1), "field 1 is not there"),
        (lambda m: column(m).pop(crafted.META), "not described"),
        (lambda m: put(column(m)[crafted.META][1], crafted.N_VALUES, -1), "negative"),
        (lambda m: column(m)[crafted.META][1].pop(crafted.CODEC), "field 4 is not there"),
        (lambda m: m[crafted.GROUPS][1][1][0][crafted.COLUMNS][1][1].pop(), "all columns"),
        (lambda m: m.update({99: (I32, 1)}), "written in full"),
        (lambda m: m.update({65538: (I32, 1)}), "written in full"),
    ],
)
def test_lies(change: Callable[[Struct], object], sentence: str) -> None:
    data = crafted.lying(DATA, change)  # type: ignore[arg-type]
    with pytest.raises(FooterError, match=sentence):
        read_footer(data, most=1 << 20)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 2, b"PAR1" + b"\xff" * 4 + b"PAR1"])
def test_no_footer(data: bytes) -> None:
    with pytest.raises(FooterError, match=r"does not end as one|not there"):
        read_footer(data, most=1 << 20)


def test_deep_lists_and_long_ones() -> None:
    for footer in (
        b"\x19\x19" * 1000,
        b"\x1c" * 1000,
        b"\x19\xfc\xff\xff\xff\xff\x0f",
        b"\x18\xff\x7f",
    ):
        data = crafted.MAGIC + footer + len(footer).to_bytes(4, "little") + crafted.MAGIC
        with pytest.raises(FooterError, match="damaged"):
            read_footer(data, most=1 << 20)


def test_what_used_to_end_the_process(folder: Path) -> None:
    """Arrow throws where pyarrow does not catch: on size statistics that do not fit."""

    def mismatched(metadata: Struct) -> None:
        for chunk in crafted.chunks(metadata):
            chunk.pop(16, None)
            chunk[16] = (STRUCT, {2: (LIST, (I64, [])), 3: (LIST, (I64, [1, 2, 3]))})

    path = folder / "records.parquet"
    path.write_bytes(crafted.lying(path.read_bytes(), mismatched))
    assert read(folder).delivery.header == delivered().header


def test_encrypted_columns_and_other_files(folder: Path) -> None:
    def encrypted(metadata: Struct) -> None:
        for chunk in crafted.chunks(metadata):
            chunk[17] = (STRUCT, {})
        for group in metadata[crafted.GROUPS][1][1]:
            for chunk in group[crafted.COLUMNS][1][1]:
                chunk[8] = (STRUCT, {1: (STRUCT, {})})
                chunk[9] = (BINARY, b"secret")

    def elsewhere(metadata: Struct) -> None:
        for group in metadata[crafted.GROUPS][1][1]:
            for i, chunk in enumerate(group[crafted.COLUMNS][1][1]):
                group[crafted.COLUMNS][1][1][i] = {1: (BINARY, b"/etc/passwd"), **chunk}

    path = folder / "records.parquet"
    honest = path.read_bytes()
    for change in (encrypted, elsewhere):
        path.write_bytes(crafted.lying(honest, change))
        assert read(folder).delivery.header == delivered().header


class Picky(pa.ExtensionType):  # type: ignore[misc]
    """A type, such as those of pandas, that is registered and does not like its metadata."""

    def __init__(self) -> None:
        super().__init__(pa.int32(), "picky")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> "Picky":
        raise KeyError("freq")


def test_extension_types_are_not_asked(folder: Path) -> None:
    """A file may name extension types, whose own code then reads the file."""
    path = folder / "nodes.parquet"
    table = pq.read_table(path)
    schema = pa.schema([pa.field("column", Picky()), *list(table.schema)[1:]])
    stored = base64.b64encode(schema.serialize().to_pybytes())

    def extended(metadata: Struct) -> None:
        pair = {1: (BINARY, b"ARROW:schema"), 2: (BINARY, stored)}
        metadata[crafted.KEY_VALUES] = (LIST, (STRUCT, [pair]))
        for later in (crafted.CREATED_BY, 7):
            metadata[later] = metadata.pop(later)

    path.write_bytes(crafted.lying(packed(table, store_schema=False), extended))
    pa.register_extension_type(Picky())
    try:
        with pytest.raises(KeyError):
            pq.ParquetFile(path)
        assert read(folder).delivery.header == delivered().header
    finally:
        pa.unregister_extension_type("picky")


def test_names_that_are_long_or_not_text(folder: Path) -> None:
    path = folder / "records.parquet"
    honest = path.read_bytes()
    for name in (b"\xff\xfe", b"x" * 200_000, b"\x1b[2J", b""):

        def renamed(metadata: Struct, name: bytes = name) -> None:
            put(schema(metadata)[1], 4, name)

        path.write_bytes(crafted.lying(honest, renamed))
        with refused(r"records\.parquet"):
            read(folder)


def test_booleans_and_doubles_are_passed_over() -> None:
    def added(metadata: Struct) -> None:
        metadata.pop(6, None)
        metadata.pop(7, None)
        metadata[8] = (LIST, (TRUE, [1, 2, 1]))
        metadata[9] = (crafted.DOUBLE, 1.5)
        metadata[10] = (crafted.BYTE, 5)
        metadata[11] = (TRUE, True)

    data = crafted.lying(DATA, added)
    assert table_under(read_footer(data, most=1 << 20), data).equals(TABLE)

"""Page sizes are those that Parquet's own metadata gives; anything else is a PageError."""

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tools import crafted_parquet as crafted
from tools.crafted_parquet import (
    BINARY,
    DOUBLE,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    STRUCT,
    TRUE,
    Struct,
    packed,
    put,
)
from verix_anon.files.hostile.parquet_reader import PageError, uncompressed_size

RNG = np.random.default_rng(0)
N_ROWS = 20_000
TABLE = pa.table(
    {
        "row": np.arange(N_ROWS),
        "tracker": pa.array([RNG.bytes(32) for _ in range(N_ROWS)], pa.binary(32)),
        "leaf": RNG.integers(0, 50, N_ROWS).astype(np.int32),
        "value": RNG.normal(size=N_ROWS),
        "gaps": pa.array([None if i % 3 else i for i in range(N_ROWS)], pa.int32()),
        "target": RNG.integers(0, 2, N_ROWS).astype(np.uint8),
    }
)
ENCODINGS = {
    "row": "DELTA_BINARY_PACKED",
    "tracker": "PLAIN",
    "leaf": "PLAIN",
    "value": "BYTE_STREAM_SPLIT",
    "gaps": "PLAIN",
    "target": "DELTA_BINARY_PACKED",
}


def sizes(data: bytes) -> list[tuple[int, int]]:
    """Of each chunk: the sum of its pages, and what the metadata says."""
    found = []
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    for i in range(metadata.num_row_groups):
        for j in range(metadata.num_columns):
            chunk = metadata.row_group(i).column(j)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            length = chunk.total_compressed_size
            size = uncompressed_size(memoryview(data), start, length, chunk.num_values)
            found.append((size, chunk.total_uncompressed_size))
    return found


def assert_as_stated(**options: Any) -> None:
    found = sizes(packed(TABLE, **options))
    assert [ours for ours, _ in found] == [theirs for _, theirs in found]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_codecs(codec: str, version: str) -> None:
    assert_as_stated(compression=codec, data_page_version=version)


@pytest.mark.parametrize("size", [1, 1000, 100_000, 1 << 20])
def test_page_sizes(size: int) -> None:
    assert_as_stated(data_page_size=size, write_batch_size=64)


@pytest.mark.parametrize("rows", [1000, 7777, N_ROWS])
def test_row_groups(rows: int) -> None:
    assert_as_stated(row_group_size=rows)


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": ENCODINGS},
        {"dictionary_pagesize_limit": 1000},
        {"write_statistics": False},
        {"write_statistics": True, "write_page_index": True},
        {"write_page_checksum": True},
        {"store_schema": False, "version": "1.0"},
        {"bloom_filter_options": {"row": {"ndv": 1000, "fpp": 0.01}}},
    ],
)
def test_options(options: dict[str, Any]) -> None:
    try:
        assert_as_stated(**options)
    except TypeError:
        pytest.skip("this version of pyarrow lacks the option")


DATA = packed(TABLE.slice(0, 500), compression="zstd")
CHUNK = next(crafted.chunks(crafted.footer(DATA)))
PAGES = crafted.pages(DATA, CHUNK)


def chunk_of(*headers: Struct, content: bytes = b"") -> bytes:
    return b"".join(crafted.encode(header) + content for header in headers)


def data_page(**changed: tuple[int, Any]) -> Struct:
    """The header of a data page without content, some fields changed."""
    names = {"type": 1, "uncompressed": 2, "compressed": 3, "crc": 4, "content": 5, "six": 6}
    values = {1: (I32, 10), 2: (I32, 0), 3: (I32, 3), 4: (I32, 3)}
    header: Struct = {1: (I32, 0), 2: (I32, 100), 3: (I32, 0), 5: (STRUCT, values)}
    header |= {names[name]: value for name, value in changed.items()}
    return dict(sorted(header.items()))


def measure(data: bytes, n_values: int = 10, **limits: int) -> int:
    return uncompressed_size(memoryview(data), 0, len(data), n_values, **limits)


def test_made_by_hand() -> None:
    header = chunk_of(data_page())
    assert measure(header) == len(header) + 100
    assert measure(header * 3, 30) == 3 * (len(header) + 100)
    assert measure(header * 3, 30, least=1000) == 3000
    assert measure(header * 1000, 0, most=500) < 1000
    assert measure(b"", 0) == 0


def test_fields_that_are_passed_over() -> None:
    statistics = {1: (BINARY, b"abc"), 3: (I64, 2**40), 7: (TRUE, True), 9: (DOUBLE, 1.5)}
    values = {1: (I32, 10), 2: (I32, 0), 3: (I32, 3), 4: (I32, 3), 5: (STRUCT, statistics)}
    header = chunk_of(data_page(content=(STRUCT, values), crc=(I32, -5), six=(I16, 3)))
    assert measure(header) == len(header) + 100


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"type": (I32, 1)}, "unknown type"),
        ({"type": (I32, 4)}, "unknown type"),
        ({"type": (I64, 0)}, "field 1 is not there"),
        ({"type": (I32, 3)}, "does not say what it holds"),
        ({"uncompressed": (I32, -1)}, "field 2 is not there, not a number or negative"),
        ({"compressed": (I32, -1)}, "field 3 is not there, not a number or negative"),
        ({"compressed": (I64, 0)}, "field . is not there"),
        ({"uncompressed": (STRUCT, {})}, "field . is not there"),
        ({"uncompressed": (I32, 2**31)}, "a number is wider than its type"),
        ({"uncompressed": (I32, 2**40)}, "a number is wider than its type"),
        ({"compressed": (I32, 5)}, "reaches beyond"),
        ({"content": (I32, 5)}, "does not say what it holds"),
        ({"content": (STRUCT, {2: (I32, 0)})}, "field 1 is not there"),
        ({"content": (STRUCT, {1: (I32, -1), 2: (I32, 0)})}, "field 1 is not there"),
        ({"content": (STRUCT, {1: (I32, 10)})}, "field 2 is not there"),
        ({"content": (STRUCT, {1: (I32, 10), 2: (I32, 7)})}, "encoding 7"),
        ({"content": (STRUCT, {1: (I32, 10), 2: (I32, 6)})}, "encoding 6"),
        ({"content": (STRUCT, {1: (I32, 9), 2: (I32, 0)})}, "do not hold its 10 values"),
        ({"six": (MAP, b"")}, "a type that Parquet does not use"),
        ({"six": (LIST, (I32, [1, 2, 3] * 9))}, None),
        ({"six": (LIST, (TRUE, [1, 2]))}, None),
        ({"six": (BINARY, b"")}, None),
    ],
)
def test_wrong_headers(changed: dict[str, tuple[int, Any]], sentence: str | None) -> None:
    header = chunk_of(data_page(**changed))
    if sentence is None:
        assert measure(header) == len(header) + 100
        return
    with pytest.raises(PageError, match=sentence):
        measure(header)


def test_dictionary_pages() -> None:
    values = {1: (I32, 5), 2: (I32, 0)}
    header: Struct = {1: (I32, 2), 2: (I32, 40), 3: (I32, 0), 7: (STRUCT, values)}
    assert measure(chunk_of(header), 0) == len(chunk_of(header)) + 40
    put(values, 1, 41)
    with pytest.raises(PageError, match="larger than its page"):
        measure(chunk_of(header), 0)


def test_numbers_written_in_full_or_without_end() -> None:
    full = b"\x05" + crafted.zigzag(1) + b"\0"
    for data in (full, b"\x15" + b"\xff" * 11, b"\x18" + crafted.varint(2**40), b"\x1d", b"\x10"):
        with pytest.raises(PageError):
            measure(data)


def test_nested_too_deep() -> None:
    with pytest.raises(PageError, match="nested too deep"):
        measure(b"\x1c" * 1000)


@pytest.mark.parametrize(
    ("start", "length"), [(-1, 5), (0, -1), (0, 10**9), (10**9, 5), (10**9, 0), (0, 2**63)]
)
def test_outside_the_file(start: int, length: int) -> None:
    with pytest.raises(PageError, match="outside the file"):
        uncompressed_size(memoryview(DATA), start, length, 1)


def test_every_cut_of_a_chunk() -> None:
    start, length = CHUNK[crafted.DICT_OFFSET][1], CHUNK[crafted.COMPRESSED][1]
    n_values = CHUNK[crafted.N_VALUES][1]
    whole = uncompressed_size(memoryview(DATA), start, length, n_values)
    assert whole == CHUNK[crafted.UNCOMPRESSED][1]
    for less in range(1, length):
        with pytest.raises(PageError):
            uncompressed_size(memoryview(DATA), start, length - less, n_values)


def test_garbage() -> None:
    """Random bytes, and an honest chunk with a random byte, give a number or a PageError."""
    rng = random.Random(7)
    chunk = DATA[CHUNK[crafted.DICT_OFFSET][1] :][: CHUNK[crafted.COMPRESSED][1]]
    refused = 0
    for i in range(20_000):
        spoiled = bytearray(rng.randbytes(rng.randrange(40)) if i % 2 else chunk[:60])
        for _ in range(3 if spoiled else 0):
            spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
        try:
            measure(bytes(spoiled))
        except PageError:
            refused += 1
    assert refused > 19_000

"""Small files that would unfold to gigabytes are refused in little memory.

Each runs in an interpreter of its own, which reports how much its memory grew.
"""

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files.samples import delivered, read, refused, restate, sent
from tools import crafted_parquet as crafted
from tools.crafted_parquet import Page, Struct, packed, put
from verix_anon.files.folder_writer import write_submission

MOST_MEGABYTES = 100
GIGABYTE = 1 << 30
READ = """
import resource, sys
from files.samples import read
from verix_anon.errors import Error
from verix_anon.files.submissions import read_submission
from pathlib import Path
if "submission" in sys.argv[1]:
    read = read_submission

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

read(Path(sys.argv[1]))
before = peak()
try:
    read(Path(sys.argv[2]))
except Error as error:
    print(error)
else:
    print("accepted")
print(peak() - before)
"""


def assert_harmless(honest: Path, name: str, data: bytes, sentence: str, **stated: object) -> None:
    bomb = honest.with_name("bomb")
    bomb.mkdir(exist_ok=True)
    for path in honest.iterdir():
        (bomb / path.name).write_bytes(data if path.name == name else path.read_bytes())
    restate(bomb, **stated)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", READ, str(honest), str(bomb)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    said, megabytes = done.stdout.splitlines()
    assert sentence in said
    assert int(megabytes) < MOST_MEGABYTES


def records(folder: Path, **options: object) -> bytes:
    return packed(pq.read_table(folder / "records.parquet"), **options)


@functools.cache
def zeros(codec: str, size: int) -> bytes:
    return bytes(pa.Codec(codec).compress(bytes(size)))


def test_many_equal_rows(folder: Path) -> None:
    """A few hundred kilobytes, 600 MB decoded, and a footer that says so."""
    n = 12_000_000
    table = pa.table(
        {
            "row": np.zeros(n, np.int64),
            "tracker": pa.DictionaryArray.from_arrays(
                np.zeros(n, np.int32), pa.array([bytes(32)], pa.binary(32))
            ),
            "leaf": np.zeros(n, np.int32),
            "target": np.zeros(n, np.uint8),
        }
    )
    data = packed(table, compression="zstd", store_schema=False)
    assert len(data) < 1_000_000
    assert_harmless(folder, "records.parquet", data, "has 12000000 rows, more than 300")


def first_page(change: Callable[[Struct, bytes], Page]) -> Callable[[int, list[Page]], list[Page]]:
    """A change of the first page of the first column."""

    def changed(i: int, pages: list[Page]) -> list[Page]:
        return pages if i else [change(*pages[0]), *pages[1:]]

    return changed


def swollen(header: Struct, content: bytes) -> Page:
    """A page of zeros to the gigabyte."""
    packed_zeros = zeros("zstd", GIGABYTE)
    put(header, crafted.PAGE_UNCOMPRESSED, GIGABYTE)
    put(header, crafted.PAGE_COMPRESSED, len(packed_zeros))
    return header, packed_zeros


def test_unused_dictionary(folder: Path) -> None:
    """A dictionary of millions of entries, of which the column uses 300."""

    def stuffed(header: Struct, content: bytes) -> Page:
        put(header[crafted.DICT_PAGE][1], 1, GIGABYTE // 8)
        return swollen(header, content)

    data = crafted.rebuilt(records(folder, compression="zstd"), first_page(stuffed))
    assert len(data) < 100_000
    assert_harmless(folder, "records.parquet", data, "unfolds to more than")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_swollen_page_under_a_lying_footer(folder: Path, version: str) -> None:
    honest = records(folder, compression="zstd", data_page_version=version)
    data = crafted.rebuilt(honest, first_page(swollen))
    assert len(data) < 100_000
    assert_harmless(folder, "records.parquet", data, "unfolds to more than")


def test_page_size_hidden_behind_a_field_number_modulo_65536(folder: Path) -> None:
    """Thrift keeps 16 bits of a field's number: 65538 is field 2, the uncompressed size."""

    def hidden(header: Struct, content: bytes) -> Page:
        small = header[crafted.PAGE_UNCOMPRESSED]
        header, content = swollen(header, content)
        big = header[crafted.PAGE_UNCOMPRESSED]
        header[crafted.PAGE_UNCOMPRESSED] = small
        return {**header, 65538: big}, content

    data = crafted.rebuilt(records(folder, compression="zstd"), first_page(hidden))
    assert_harmless(folder, "records.parquet", data, "a field's number is written in full")


def test_page_size_said_twice(folder: Path) -> None:
    """Of two fields with one number Thrift takes the last."""

    def twice(header: Struct, content: bytes) -> Page:
        swollen_header, content = swollen(dict(header), content)
        return {**header, 3: swollen_header[3], 9: swollen_header[2]}, content

    data = crafted.rebuilt(records(folder, compression="zstd"), first_page(twice))
    # Field 9 is one after 8 or 7: made 2 by hand, with its number written in full.
    size = crafted.zigzag(GIGABYTE)
    at = data.index(size)
    data = data[: at - 1] + bytes([crafted.I32]) + crafted.zigzag(2) + data[at:]
    assert_harmless(folder, "records.parquet", data, "a field's number is written in full")


def delta_packed(first: int, then: int, n: int) -> bytes:
    """DELTA_BINARY_PACKED of `first` and n - 1 times `then`."""
    out = crafted.varint(128) + crafted.varint(4) + crafted.varint(n) + crafted.zigzag(first)
    step = then - first
    for start in range(0, n - 1, 128):
        # One block: the least difference, then what each is above it, in bits.
        low, high = min(step, 0), max(step, 0)
        width = (high - low).bit_length() if start == 0 else 0
        out += crafted.zigzag(low if start == 0 else 0) + bytes([width] * 4)
        if start == 0:
            above = [step - low, *[0 - low] * 127]
            for block in range(0, 128, 32):
                bits = sum(v << i * width for i, v in enumerate(above[block : block + 32]))
                out += bits.to_bytes(4 * width, "little")
    return out


def test_trackers_that_grow_out_of_each_other(folder: Path) -> None:
    """DELTA_BYTE_ARRAY: each value repeats 900,000 bytes of the one before."""
    n, size = 300, 900_000

    def grown(i: int, pages: list[Page]) -> list[Page]:
        if i != 1:
            return pages
        (header, _), *_ = pages
        levels = crafted.varint(n << 1) + b"\1"
        content = len(levels).to_bytes(4, "little") + levels
        content += delta_packed(0, size, n) + delta_packed(size, 1, n) + b"a" * (size + n)
        put(header, crafted.PAGE_UNCOMPRESSED, len(content))
        content = bytes(pa.Codec("zstd").compress(content))
        put(header, crafted.PAGE_COMPRESSED, len(content))
        return [(header, content)]

    honest = records(
        folder,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"tracker": "DELTA_BYTE_ARRAY"},
    )
    data = crafted.rebuilt(honest, grown)
    assert len(data) < 10_000
    assert_harmless(folder, "records.parquet", data, "a page has encoding 7")


def test_values_beyond_the_rows(folder: Path) -> None:
    """A run of a billion values in a few bytes; the row count in the footer is honest."""
    n = 1_000_000_000

    def longer(i: int, pages: list[Page]) -> list[Page]:
        header, _ = pages[-1]
        levels = crafted.varint(n << 1) + b"\1"
        content = len(levels).to_bytes(4, "little") + levels
        content += b"\1" + crafted.varint(n << 1) + b"\0"
        put(header[crafted.DATA_PAGE][1], 1, n)
        put(header, crafted.PAGE_UNCOMPRESSED, len(content))
        put(header, crafted.PAGE_COMPRESSED, len(content))
        return [*pages[:-1], (header, content)]

    data = crafted.rebuilt(records(folder, compression="none"), longer)
    assert_harmless(folder, "records.parquet", data, "do not hold its 300 values")

    def claim(metadata: Struct) -> None:
        for chunk in crafted.chunks(metadata):
            put(chunk, crafted.N_VALUES, n)

    data = crafted.lying(data, claim)
    assert_harmless(folder, "records.parquet", data, "do not have as many values as rows")


def test_dictionary_that_claims_to_be_large(folder: Path) -> None:
    def claiming(header: Struct, content: bytes) -> Page:
        put(header[crafted.DICT_PAGE][1], 1, 2**31 - 1)
        return header, content

    data = crafted.rebuilt(records(folder), first_page(claiming))
    assert_harmless(folder, "records.parquet", data, "a dictionary is larger than its page")


def test_page_beyond_the_chunk(folder: Path) -> None:
    """Readers go a hundred bytes beyond the chunks of a writer that once had a bug."""
    honest = records(folder, compression="brotli")

    def cut(metadata: Struct) -> None:
        metadata[crafted.CREATED_BY] = (crafted.BINARY, b"parquet-mr version 1.2.8")
        put(next(crafted.chunks(metadata)), crafted.COMPRESSED, 0)

    data = crafted.lying(honest, cut)
    assert_harmless(folder, "records.parquet", data, "do not hold its 300 values")


def test_footer_of_many_empty_columns(folder: Path) -> None:
    def many(metadata: Struct) -> None:
        group = metadata[crafted.GROUPS][1][1][0]
        empty = {2: (crafted.I64, 0)}
        group[crafted.COLUMNS] = (crafted.LIST, (crafted.STRUCT, [empty] * 300_000))

    data = crafted.lying(records(folder), many)
    assert_harmless(folder, "records.parquet", data, "its footer is larger than")


def test_deeply_nested_schema(folder: Path) -> None:
    def deep(metadata: Struct) -> None:
        group = {4: (crafted.BINARY, b""), 5: (crafted.I32, 1)}
        leaf = {1: (crafted.I32, 2), 4: (crafted.BINARY, b"")}
        metadata[crafted.SCHEMA] = (crafted.LIST, (crafted.STRUCT, [group] * 30_000 + [leaf]))

    data = crafted.lying(records(folder), deep)
    assert_harmless(folder, "records.parquet", data, "is not a readable Parquet file")


def test_one_chunk_of_empty_pages_referred_to_again_and_again(folder: Path) -> None:
    """Nothing is large, but reading it would take hours."""
    honest = records(folder, compression="none")

    def emptied(i: int, pages: list[Page]) -> list[Page]:
        header, _ = pages[-1]
        put(header, crafted.PAGE_UNCOMPRESSED, 0)
        put(header, crafted.PAGE_COMPRESSED, 0)
        put(header[crafted.DATA_PAGE][1], 1, 0)
        return [(header, b"")] * 5_000 if i == 0 else pages

    def repeated(metadata: Struct) -> None:
        groups = metadata[crafted.GROUPS][1][1]
        groups[0][crafted.COLUMNS][1][1][:] = groups[0][crafted.COLUMNS][1][1][:1] * 4
        empty = dict(groups[0])
        put(empty, crafted.GROUP_ROWS, 0)
        metadata[crafted.GROUPS] = (crafted.LIST, (crafted.STRUCT, [groups[0], *[empty] * 300]))

    data = crafted.lying(crafted.rebuilt(honest, emptied), repeated)
    assert_harmless(folder, "records.parquet", data, "unfolds to more than")


def test_parts_share_what_they_may_unfold_to(folder: Path) -> None:
    """A thousand parts without rows that each unfold to almost a megabyte."""
    table = pq.read_table(folder / "records.parquet")
    size = 900_000

    def larger(header: Struct, content: bytes) -> Page:
        packed_zeros = zeros("zstd", size)
        put(header, crafted.PAGE_UNCOMPRESSED, size)
        put(header, crafted.PAGE_COMPRESSED, len(packed_zeros))
        return header, packed_zeros

    (folder / "records.parquet").unlink()
    (folder / "records.parquet").mkdir()
    for i in range(300):
        data = packed(table.slice(i, 1), compression="zstd")
        part = folder / "records.parquet" / f"{i:03}.parquet"
        part.write_bytes(crafted.rebuilt(data, first_page(larger)))
    # At the third of them, so no more than that is unfolded.
    with refused(r"002\.parquet unfolds to more than"):
        read(folder)


def test_what_an_honest_delivery_may_unfold_to(folder: Path) -> None:
    """The limits leave room: small pages, many row groups, a column index."""
    (folder / "records.parquet").write_bytes(
        records(folder, row_group_size=3, data_page_size=1, write_page_index=True)
    )
    assert read(folder).delivery.header == delivered().header


def test_submissions_are_read_as_carefully(tmp_path: Path) -> None:
    """A provider takes them from anybody."""
    folder = tmp_path / "submission"
    write_submission(sent(), folder)
    honest = records(folder, compression="zstd")
    bomb = crafted.rebuilt(honest, first_page(swollen))
    assert len(bomb) < 100_000
    assert_harmless(folder, "records.parquet", bomb, "unfolds to more than")
    n_rows = 12_000_000
    row = pq.read_table(folder / "records.parquet").slice(0, 1)
    table = row.take(pa.array(np.zeros(n_rows, np.int32)))
    bomb = packed(table, compression="zstd", store_schema=False)
    assert len(bomb) < 1_000_000
    assert_harmless(folder, "records.parquet", bomb, "too small for the trackers", rows=n_rows)

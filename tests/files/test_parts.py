"""records.parquet as a folder of parts, on both sides, as clusters write it (spec §8.3)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files.samples import (
    N_ROWS,
    delivered,
    digest_of,
    read,
    refused,
    restate,
    rewrite,
    sent,
    with_value,
    with_values,
)
from tools import crafted_parquet as crafted
from tools.crafted_parquet import Page, Struct, packed, put
from verix_anon.errors import Error, TableError
from verix_anon.files.folder_writer import write_delivery, write_submission
from verix_anon.files.store import MAX_PARTS
from verix_anon.files.submissions import read_submission

SIDES = ("submission", "delivery")
TARGETS = {"submission": "y", "delivery": "target"}
BINARY, SHORT = pa.binary(), pa.int16()


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of a submission or delivery, named so."""
    write_submission(sent(), tmp_path / "submission")
    write_delivery(delivered(), tmp_path / "delivery")
    return tmp_path / str(request.param)


def trackers_of(folder: Path) -> bytes:
    """The trackers by row, of a folder as it now is."""
    if folder.name == "submission":
        return read_submission(folder).records.tracker.tobytes()
    snapshot = read(folder)
    assert snapshot.damaged == ()
    records = snapshot.delivery.records
    np.testing.assert_array_equal(records.target[np.argsort(records.row)], sent().records.target)
    return records.tracker[np.argsort(records.row)].tobytes()


def wrong(sentence: str) -> Any:
    return pytest.raises(Error, match=sentence)


def split(folder: Path, cuts: list[int], change: Callable[[pa.Table], pa.Table]) -> Path:
    """Replace records.parquet by a folder of parts, in another order, and state its digest."""
    path = folder / "records.parquet"
    table = change(pq.read_table(path))
    path.unlink()
    path.mkdir()
    order = np.random.default_rng(1).permutation(len(table))
    for i, rows in enumerate(np.split(order, cuts)):
        # Clusters write what may be missing in principle, and snappy.
        (path / f"part-{i:05}.snappy.parquet").write_bytes(packed(table.take(rows)))
    restate(folder)
    return path


def as_a_cluster_writes(target: str) -> Callable[[pa.Table], pa.Table]:
    """Without the two types that it does not have."""

    def change(table: pa.Table) -> pa.Table:
        for name, kind in (("tracker", BINARY), (target, SHORT)):
            table = with_values(name, table.column(name).to_pylist(), kind)(table)
        return table

    return change


@pytest.mark.parametrize("is_cluster", [False, True])
def test_parts_are_read(side: Path, is_cluster: bool) -> None:
    change = as_a_cluster_writes(TARGETS[side.name]) if is_cluster else lambda table: table
    path = split(side, [0, 10, 11, 200], change)
    for name in ("_SUCCESS", ".part-00000.snappy.parquet.crc"):
        (path / name).write_bytes(b"bookkeeping")
    assert trackers_of(side) == sent().records.tracker.tobytes()


def test_the_digest_is_that_of_names_and_parts(side: Path) -> None:
    path = split(side, [100, 200], lambda table: table)
    honest = digest_of(path)
    (path / "part-00001.snappy.parquet").rename(path / "part-00009.snappy.parquet")
    assert digest_of(path) != honest
    if side.name == "delivery":
        assert read(side).damaged == ("records.parquet",)
    else:
        with pytest.raises(TableError, match=r"damaged on the way: records\.parquet differs"):
            read_submission(side)
    restate(side)
    assert trackers_of(side) == sent().records.tracker.tobytes()


def test_other_encodings_of_trackers(side: Path) -> None:
    """A dictionary, none, and one that was given up half-way."""
    path = split(side, [], as_a_cluster_writes(TARGETS[side.name])) / "part-00000.snappy.parquet"
    table = pq.read_table(path)
    for options in (
        {"use_dictionary": False},
        {"use_dictionary": ["tracker"], "row_group_size": 100},
        {"dictionary_pagesize_limit": 2_000, "data_page_size": 500},
        {"data_page_version": "2.0", "compression": "zstd"},
    ):
        path.write_bytes(packed(table, **options))
        restate(side)
        assert trackers_of(side) == sent().records.tracker.tobytes()


def test_types_of_parts_only_in_parts(side: Path) -> None:
    rewrite(side / "records.parquet", as_a_cluster_writes(TARGETS[side.name]))
    restate(side)
    with wrong("column 'tracker' has type binary, not fixed_size_binary"):
        trackers_of(side)


@pytest.mark.parametrize("tracker", [b"", b"x" * 31, b"x" * 33, b"x" * 1000])
def test_trackers_of_other_lengths(side: Path, tracker: bytes) -> None:
    path = split(side, [], as_a_cluster_writes(TARGETS[side.name])) / "part-00000.snappy.parquet"
    rewrite(path, with_value("tracker", 7, tracker))
    restate(side)
    with wrong("a tracker does not have 32 bytes"):
        trackers_of(side)


def test_missing_trackers(side: Path) -> None:
    path = split(side, [], as_a_cluster_writes(TARGETS[side.name])) / "part-00000.snappy.parquet"
    rewrite(path, with_value("tracker", 7, None))
    restate(side)
    with wrong("column 'tracker' has missing values"):
        trackers_of(side)


@pytest.mark.parametrize(("value", "sentence"), [(2, "target"), (256, "256"), (-1, "-1")])
def test_targets_that_are_none(side: Path, value: int, sentence: str) -> None:
    """256 is 0 in a byte, and is not taken for it."""
    target = TARGETS[side.name]
    path = split(side, [], as_a_cluster_writes(target)) / "part-00000.snappy.parquet"
    rewrite(path, with_value(target, 7, value))
    restate(side)
    with wrong(sentence):
        trackers_of(side)


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("more", [1 << 16, -1 << 31])
def test_targets_with_bits_to_spare(side: Path, in_parts: bool, more: int) -> None:
    """Parquet stores 32 bits for a number of 8 or 16: Arrow would drop all but the lowest."""
    target, path = TARGETS[side.name], side / "records.parquet"
    if in_parts:
        path = split(side, [], as_a_cluster_writes(target)) / "part-00000.snappy.parquet"
    narrow, table = crafted.footer(path.read_bytes()), pq.read_table(path)
    values = table.column(target).to_pylist()
    values[7] += more
    wide = packed(with_values(target, values, pa.int32())(table), store_schema=False)
    path.write_bytes(
        crafted.lying(wide, lambda m: put(m, crafted.SCHEMA, narrow[crafted.SCHEMA][1]))
    )
    # Arrow by itself sees nothing.
    assert pq.read_table(path).column(target).equals(table.column(target))
    restate(side)
    with wrong("not in range"):
        trackers_of(side)


def test_a_dictionary_with_one_long_tracker(folder: Path) -> None:
    """300 rows that all name one entry of 900 KB would unfold to 270 MB."""
    size = 900_000
    path = split(folder, [], as_a_cluster_writes("target")) / "part-00000.snappy.parquet"
    table = with_values("tracker", [b"x" * 32] * N_ROWS, BINARY)(pq.read_table(path))

    def swollen(i: int, pages: list[Page]) -> list[Page]:
        header, content = pages[0]
        if i == 1:
            content = size.to_bytes(4, "little") + b"y" * size
            put(header, crafted.PAGE_UNCOMPRESSED, len(content))
            put(header, crafted.PAGE_COMPRESSED, len(content))
        return [(header, content), *pages[1:]]

    path.write_bytes(crafted.rebuilt(packed(table, compression="none"), swollen))
    restate(folder)
    before = pa.total_allocated_bytes(), pa.default_memory_pool().max_memory()
    with refused("a tracker does not have 32 bytes"):
        read(folder)
    assert pa.default_memory_pool().max_memory() - before[1] < 30_000_000


def test_rows_over_several_parts(tmp_path: Path) -> None:
    """Doubled, missing and out of range: refused in a submission."""
    folder = tmp_path / "submission"
    write_submission(sent(), folder)
    path = split(folder, [100], lambda table: table)
    one, two = sorted(path.iterdir())
    honest = one.read_bytes()
    doubled = pq.read_table(two).column("row")[0].as_py()
    lost = pq.read_table(one).column("row")[3].as_py()
    for row, sentence in (
        (doubled, f"row {lost} is missing, and another occurs twice"),
        (N_ROWS, r"part-00000.*: a row is not one of 0 to 299"),
        (-1, r"part-00000.*: a row is not one of 0 to 299"),
    ):
        rewrite(one, with_value("row", 3, row))
        restate(folder)
        with pytest.raises(TableError, match=sentence):
            read_submission(folder)
        one.write_bytes(honest)
    two.unlink()
    restate(folder)
    with pytest.raises(TableError, match=r"damaged on the way: records\.parquet has 100 rows"):
        read_submission(folder)
    two.write_bytes(honest)
    (path / "part-00002.parquet").write_bytes(honest)
    (path / "part-00003.parquet").write_bytes(honest)
    restate(folder)
    with pytest.raises(TableError, match=r"part-00003\.parquet has 100 rows, more than 0"):
        read_submission(folder)


def test_a_limit_is_called_one(side: Path) -> None:
    path = split(side, [], lambda table: table)
    for i in range(MAX_PARTS):
        (path / f"more-{i}.parquet").touch()
    with wrong(f"records.parquet has {MAX_PARTS + 1} parts; the limit is {MAX_PARTS}"):
        trackers_of(side)


def test_checksums_do_not_count_as_parts(side: Path) -> None:
    path = split(side, [], lambda table: table)
    for i in range(MAX_PARTS + 100):
        (path / f".{i}.crc").touch()
    assert trackers_of(side) == sent().records.tracker.tobytes()
    for i in range(2 * MAX_PARTS):
        (path / f"_{i}").touch()
    with wrong("holds more than 30000 files, which is the limit"):
        trackers_of(side)


def test_a_row_in_each_part(side: Path) -> None:
    """What a part takes besides its rows does not count against them."""
    split(side, list(range(1, N_ROWS)), as_a_cluster_writes(TARGETS[side.name]))
    assert trackers_of(side) == sent().records.tracker.tobytes()


STRANGE = (
    "a\nb.parquet",
    "\udcff.parquet",
    "é.parquet",
    "a b.parquet",
    "a::b.parquet",
    "a\\b.parquet",
    "-a.parquet",
    "a" * 182 + ".parquet",
)


def test_strange_names(side: Path) -> None:
    path = split(side, [], lambda table: table)
    part = next(path.iterdir())
    for name in STRANGE:
        part = part.rename(path / name)
        with wrong("a part's name has ASCII letters, digits and . _ = - alone"):
            trackers_of(side)
    part = part.rename(path / "part.txt")
    with wrong("which is not a Parquet file"):
        trackers_of(side)
    part.rename(path / ("9._=-" + "Z" * 176 + ".parquet"))
    restate(side)
    assert trackers_of(side) == sent().records.tracker.tobytes()


def lying(metadata: Struct) -> None:
    put(metadata, crafted.N_ROWS, 5)


def test_a_part_that_lies_about_its_rows(side: Path) -> None:
    part = next(split(side, [], lambda table: table).iterdir())
    part.write_bytes(crafted.lying(part.read_bytes(), lying))
    restate(side)
    with wrong("its row groups do not add up to 5 rows"):
        trackers_of(side)

"""What was written is read back, however it was packed; anything else is refused (spec §11)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import support
from files.samples import (
    FILES,
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
from tools.crafted_parquet import packed
from verix_anon.errors import TableError
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_facts import inspect_folder, read_header
from verix_anon.files.folder_writer import write_delivery
from verix_anon.files.store import MAX_PARTS
from verix_anon.protocol.messages import Delivery
from verix_anon.provider.local import LocalProvider

N_LEAVES = delivered().header.leaves
TYPES = {
    "leaves.parquet": {
        "leaf": pa.int64(),
        "count": pa.int32(),
        "min_0": pa.float32(),
        "max_2": pa.int64(),
    },
    "nodes.parquet": {
        "column": pa.int64(),
        "threshold": pa.float32(),
        "left": pa.uint32(),
        "right": pa.int64(),
        "leaf": pa.float64(),
    },
    "records.parquet": {
        "row": pa.int32(),
        "tracker": pa.binary(),
        "leaf": pa.int64(),
        "target": pa.bool_(),
    },
}
COLUMNS = [(name, column) for name, columns in TYPES.items() for column in columns]


def assert_equal(one: Delivery, other: Delivery) -> None:
    """The same delivery; the records may stand in another order."""
    assert one.header == other.header
    for part in ("leaves", "tree"):
        for name in getattr(one, part).__slots__:
            np.testing.assert_array_equal(
                getattr(getattr(one, part), name), getattr(getattr(other, part), name)
            )
    mine, theirs = np.argsort(one.records.row), np.argsort(other.records.row)
    for name in ("row", "tracker", "leaf", "target"):
        left, right = getattr(one.records, name)[mine], getattr(other.records, name)[theirs]
        np.testing.assert_array_equal(left, right)


def split(folder: Path, cuts: list[int]) -> Path:
    """Replace records.parquet by a folder of parts, in another order."""
    path = folder / "records.parquet"
    table = pq.read_table(path)
    path.unlink()
    path.mkdir()
    order = np.random.default_rng(1).permutation(len(table))
    for i, rows in enumerate(np.split(order, cuts)):
        (path / f"part-{i:03}.parquet").write_bytes(packed(table.take(rows)))
    return path


def test_what_was_written_is_read(folder: Path) -> None:
    snapshot = read(folder)
    assert_equal(snapshot.delivery, delivered())
    assert sorted(p.name for p in folder.iterdir()) == sorted(FILES)
    assert snapshot.files == {name: digest_of(folder / name) for name in FILES}
    assert read_header(folder) == delivered().header


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_any_codec_and_row_group_size(folder: Path, codec: str, version: str) -> None:
    options = {"compression": codec, "data_page_version": version, "write_page_index": True}
    for name in FILES[1:]:
        rewrite(folder / name, lambda table: table, row_group_size=17, **options)
    assert_equal(read(folder).delivery, delivered())


def test_a_folder_of_parts(folder: Path) -> None:
    path = split(folder, [0, 10, 11, 200])
    for other in ("_SUCCESS", ".part-000.parquet.crc", "_committed_1"):
        (path / other).write_bytes(b"bookkeeping")
    (path / "_temporary").mkdir()
    snapshot = read(folder)
    assert_equal(snapshot.delivery, delivered())
    assert snapshot.files == {name: digest_of(folder / name) for name in FILES}


def test_two_hundred_parts_of_one_row_or_two(folder: Path) -> None:
    split(folder, list(range(1, 200)))
    assert_equal(read(folder).delivery, delivered())


def test_parts_with_too_many_rows(folder: Path) -> None:
    path = split(folder, [100])
    (path / "part-002.parquet").write_bytes((path / "part-000.parquet").read_bytes())
    with refused(r"part-002\.parquet has 100 rows, more than 0"):
        read(folder)


def test_parts_with_too_few_rows(folder: Path) -> None:
    (split(folder, [100]) / "part-000.parquet").unlink()
    with refused(r"records\.parquet has 200 rows, but delivery\.json says 300"):
        read(folder)


def test_no_part_and_too_many(folder: Path) -> None:
    path = split(folder, [])
    (path / "part-000.parquet").unlink()
    with refused("a folder without a Parquet file"):
        read(folder)
    for i in range(MAX_PARTS + 1):
        (path / f"{i}.parquet").touch()
    with refused(f"records.parquet has {MAX_PARTS + 1} parts; the limit is {MAX_PARTS}: write"):
        read(folder)


def test_further_files_may_stand_beside_and_are_not_opened(folder: Path) -> None:
    for name in ("receipt.dsse.json", "contract.json", "submission.json", "notes"):
        (folder / name).symlink_to("/dev/zero")
    assert_equal(read(folder).delivery, delivered())
    assert inspect_folder(folder)["kind"] == "delivery"


def test_the_folder_of_a_job_accuses_no_provider(folder: Path) -> None:
    (folder / "delivery.json").rename(folder / "manifest.verix")
    with pytest.raises(TableError, match=r"is a job's folder; did you mean .*/delivery\?"):
        read(folder)


def test_a_submission_is_no_delivery(folder: Path) -> None:
    (folder / "delivery.json").rename(folder / "submission.json")
    with pytest.raises(TableError, match="is a submission, not a delivery"):
        read(folder)
    (folder / "submission.json").rename(folder / "contract.json")
    with refused(r"delivery\.json is missing"):
        read(folder)


@pytest.mark.parametrize("name", FILES[1:])
def test_files_that_are_not_those_named(folder: Path, name: str) -> None:
    """What can be decoded is left to the layers; what cannot is said to be damaged, too."""
    assert read(folder).damaged == ()
    rewrite(folder / name, lambda table: table)
    assert read(folder).damaged == (name,)
    assert_equal(read(folder).delivery, delivered())
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-9])
    with refused(f"{name} is not a readable .*; {name} damaged on the way or altered"):
        read(folder)
    restate(folder)
    with refused(f"{name} is not a readable") as caught:
        read(folder)
    assert "damaged" not in str(caught.value)


def test_a_digest_of_another_file(folder: Path) -> None:
    path = folder / "delivery.json"
    stated = json.loads(path.read_bytes())
    files = stated["files"]
    files["leaves.parquet"], files["nodes.parquet"] = (
        files["nodes.parquet"],
        files["leaves.parquet"],
    )
    path.write_text(json.dumps(stated))
    assert read(folder).damaged == ("leaves.parquet", "nodes.parquet")


def test_no_folder_is_the_callers_mistake(tmp_path: Path) -> None:
    for name in ("nothing", "x" * 300):
        with pytest.raises(TableError, match="there is no folder"):
            read(tmp_path / name)


def test_size_for_many_rows(tmp_path: Path) -> None:
    """Spec §8.4: at most 75 MB for a million rows and 16 columns; the share of these."""
    rng = np.random.default_rng(0)
    n = 100_000
    submission = support.submission(
        rng.normal(size=(4, n)).tolist(), rng.integers(0, 2, n).tolist(), k=5
    )
    write_delivery(LocalProvider().anonymize(submission), tmp_path / "delivery")
    size = sum(path.stat().st_size for path in (tmp_path / "delivery").iterdir())
    assert size < 4_500_000


@pytest.mark.parametrize("name", FILES)
def test_each_file_missing_or_empty(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"")
    with refused(f"{name}(:| is) not"):
        read(folder)
    (folder / name).unlink()
    with refused(f"{name} is missing"):
        read(folder)


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_truncated(folder: Path, name: str, share: float) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(share * len(data))])
    with refused(f"{name} is not a readable Parquet file"):
        read(folder)


@pytest.mark.parametrize(("name", "column"), COLUMNS)
def test_wrong_type(folder: Path, name: str, column: str) -> None:
    wrong = TYPES[name][column]
    values: Any = [None] * len(pq.read_table(folder / name))
    rewrite(folder / name, with_values(column, values, wrong))
    with refused(f"{name}: column '{column}' has type {wrong}, not"):
        read(folder)


@pytest.mark.parametrize(("name", "column"), COLUMNS)
def test_missing_values(folder: Path, name: str, column: str) -> None:
    rewrite(folder / name, with_value(column, 3, None))
    with refused(f"{name}: column '{column}' has missing values"):
        read(folder)


@pytest.mark.parametrize("name", FILES[1:])
def test_wrong_columns(folder: Path, name: str) -> None:
    whole = pq.read_table(folder / name)
    first, last = whole.column_names[0], whole.column_names[-1]
    extra = whole.append_column("extra", whole.column(0))
    for table, sentence in (
        (whole.drop_columns([last]), f"column '{last}' is missing"),
        (extra, "column 'extra' does not belong there"),
        (whole.append_column(first, whole.column(0)), "columns are not in the agreed order"),
        (whole.select(whole.column_names[::-1]), "columns are not in the agreed order"),
        (pa.table({}), "is missing"),
    ):
        (folder / name).write_bytes(packed(table))
        with refused(f"{name}: .*{sentence}"):
            read(folder)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none(folder: Path, bad: float) -> None:
    spoiled = {"leaves.parquet": ("min_1", "max_0"), "nodes.parquet": ("threshold",)}
    for name, columns in spoiled.items():
        honest = (folder / name).read_bytes()
        for column in columns:
            rewrite(folder / name, with_value(column, 0, bad))
            with refused("finite"):
                read(folder)
            (folder / name).write_bytes(honest)


@pytest.mark.parametrize(
    ("name", "column", "row", "value", "sentence"),
    [
        ("leaves.parquet", "min_0", 2, 1e9, "bounds are not finite and in order"),
        ("leaves.parquet", "leaf", 2, 1, "'leaf' does not count from 0"),
        ("leaves.parquet", "count", 0, -1, "count is out of range"),
        ("leaves.parquet", "count", 0, 2**62, "count is out of range"),
        ("nodes.parquet", "column", 0, 3, "not one of the quasi-identifiers"),
        ("nodes.parquet", "column", 0, -2, "not one of the quasi-identifiers"),
        ("nodes.parquet", "threshold", -1, 0.5, "not 0 at a leaf"),
        ("nodes.parquet", "left", 0, 0, "children are not where preorder puts them"),
        ("nodes.parquet", "right", 0, 0, "children are not where preorder puts them"),
        ("nodes.parquet", "right", 0, 2**31 - 1, "children are not where preorder puts them"),
        ("nodes.parquet", "right", 0, -(2**31), "children are not where preorder puts them"),
        ("nodes.parquet", "left", -1, 0, "children are not where preorder puts them"),
        ("nodes.parquet", "leaf", -1, 0, "leaf number is not the next"),
        ("nodes.parquet", "leaf", 0, 5, "leaf number is not the next"),
        ("records.parquet", "row", 9, N_ROWS, "a row is not one of the 300 sent"),
        ("records.parquet", "row", 9, -1, "a row is not one of the 300 sent"),
        ("records.parquet", "row", 9, 2**63 - 1, "a row is not one of the 300 sent"),
        ("records.parquet", "leaf", 9, N_LEAVES, f"a leaf is not one of the {N_LEAVES} delivered"),
        ("records.parquet", "leaf", 9, -1, f"a leaf is not one of the {N_LEAVES} delivered"),
        ("records.parquet", "target", 9, 2, "a target is neither 0 nor 1"),
    ],
)
def test_values_out_of_range(
    folder: Path, name: str, column: str, row: int, value: float, sentence: str
) -> None:
    rewrite(folder / name, with_value(column, row, value))
    with refused(sentence):
        read(folder)


def test_doubled_rows_and_unknown_trackers_are_left_to_the_layers(folder: Path) -> None:
    rewrite(folder / "records.parquet", with_value("row", 1, 0))
    rewrite(folder / "records.parquet", with_value("tracker", 2, bytes(32)))
    records = read(folder).delivery.records
    assert (records.row == 0).sum() == 2
    assert not records.tracker[2].any()


def chain(depth: int) -> pa.Table:
    """A tree whose right children go down and down."""
    n = 2 * depth + 1
    number = np.arange(n, dtype=np.int32)
    inner = (number % 2 == 0) & (number < n - 1)

    def either(yes: npt.NDArray[np.int32], no: npt.NDArray[np.int32] | int) -> Any:
        return np.where(inner, yes, no).astype(np.int32)

    return pa.table(
        {
            "column": either(0 * number, -1),
            "threshold": np.zeros(n),
            "left": either(number + 1, -1),
            "right": either(number + 2, -1),
            "leaf": either(0 * number - 1, np.cumsum(~inner).astype(np.int32) - 1),
        }
    )


def test_a_million_deep_tree(folder: Path) -> None:
    (folder / "nodes.parquet").write_bytes(packed(chain(1_000_000)))
    with refused(r"nodes\.parquet is larger than|nodes\.parquet has 2000001 rows"):
        read(folder)


def test_a_deep_tree_with_the_right_number_of_nodes(folder: Path) -> None:
    assert N_LEAVES > 52
    (folder / "nodes.parquet").write_bytes(packed(chain(N_LEAVES - 1)))
    with refused("deeper than the contract's max_depth"):
        read(folder)


def test_rows_are_judged_before_anything_is_decoded(folder: Path) -> None:
    many = pa.table({"row": np.zeros(N_ROWS + 1, np.int64)})
    for name in FILES[1:]:
        whole = pq.read_table(folder / name)
        table = whole.take(pa.array(np.zeros(len(many), np.int64)))
        (folder / name).write_bytes(packed(table))
        with refused(rf"{name} has 301 rows, more than"):
            read(folder)
        (folder / name).write_bytes(packed(whole))


def test_another_number_of_rows_than_stated(folder: Path) -> None:
    rewrite(folder / "leaves.parquet", lambda table: table.slice(0, N_LEAVES - 1))
    with refused(rf"leaves\.parquet has {N_LEAVES - 1} rows, but delivery\.json says {N_LEAVES}"):
        read(folder)


def test_files_of_another_job(folder: Path) -> None:
    """A contract with another number of columns does not fit the leaves."""
    two = support.submission([[0.0] * N_ROWS] * 2, [0, 1] * (N_ROWS // 2)).contract
    with refused("column 'min_2' does not belong there"):
        read_delivery(folder, two, n_rows=N_ROWS)
    with refused(f"10 records make 1 to 2 leaves, not {N_LEAVES}"):
        read_delivery(folder, sent().contract, n_rows=10)

"""Records of a delivery, in parts and in any order: read as if all were held and then sorted."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.samples import N_ROWS, delivered, read, refused, restate
from tools.crafted_parquet import packed
from verix_anon.arrays import Ints
from verix_anon.files.folder_writer import write_delivery
from verix_anon.files.hostile import parquet_reader as parquet
from verix_anon.protocol.messages import Delivered

ROWS = st.lists(st.integers(0, N_ROWS - 1), min_size=1, max_size=N_ROWS).map(np.array)
CUTS = st.lists(st.integers(0, N_ROWS), max_size=6).map(sorted)
GROUPS = st.integers(1, N_ROWS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("delivered") / "delivery"
    write_delivery(delivered(), folder)
    return folder


def made(row: Ints) -> Delivered:
    """Records of these rows, which no two of them share anything else but by chance."""
    rng = np.random.default_rng(row.size)
    return Delivered(
        row=row,
        tracker=rng.integers(0, 256, (row.size, 32), np.uint8),
        leaf=rng.integers(0, delivered().header.leaves, row.size, np.int32),
        target=rng.integers(0, 2, row.size, np.uint8),
    )


def write(folder: Path, records: Delivered, cuts: list[int], group_rows: int) -> None:
    """Put these records in place of those of a delivery, as a cluster writes them."""
    table = pa.table(
        {
            "row": records.row,
            "tracker": pa.array(map(bytes, records.tracker), pa.binary()),
            "leaf": records.leaf,
            "target": records.target.astype(np.int16),
        }
    )
    path = folder / "records.parquet"
    path.unlink()
    path.mkdir()
    for i, part in enumerate(np.split(np.arange(records.row.size), cuts)):
        data = packed(table.take(part), row_group_size=group_rows)
        (path / f"part-{i:05}.parquet").write_bytes(data)
    restate(folder, rows=records.row.size)


@given(row=ROWS, cuts=CUTS, group_rows=GROUPS, has_large_groups=st.booleans())
def test_it_is_the_plain_order(
    whole: Path, row: Ints, cuts: list[int], group_rows: int, has_large_groups: bool
) -> None:
    records = made(row)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(shutil.copytree(whole, Path(name) / "delivery"))
        write(folder, records, cuts, group_rows)
        patch.setattr(parquet, "LARGE_GROUP", 1 if has_large_groups else N_ROWS)
        found = read(folder)
    assert found.damaged == ()
    plain = records.in_order()
    for each in ("row", "tracker", "leaf", "target"):
        np.testing.assert_array_equal(getattr(found.delivery.records, each), getattr(plain, each))


@pytest.mark.parametrize("wrong", [-1, N_ROWS, 2**40])
def test_a_row_that_was_not_sent(whole: Path, tmp_path: Path, wrong: int) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "delivery"))
    write(folder, made(np.array([7, wrong, 3, 7])), [2], 1)
    with refused(f"a row is not one of the {N_ROWS} sent"):
        read(folder)

"""What leaves memory comes back as it was, and leaves nothing on the disk."""

import os
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest

from verix_anon.errors import TableError
from verix_anon.files import scratch
from verix_anon.files.scratch import Scratch


@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.uint8, np.uint64])
@pytest.mark.parametrize("shape", [(0,), (1,), (1000,), (7, 32), (0, 32)])
def test_arrays_come_back(dtype: type[np.generic], shape: tuple[int, ...]) -> None:
    held = Scratch()
    arrays = [
        np.random.default_rng(seed).integers(0, 200, shape).astype(dtype) for seed in range(3)
    ]
    kept = [held.put(array) for array in arrays]
    for array, each in zip(arrays, kept, strict=True):
        found = each.read()
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_some_rows_are_written_and_read() -> None:
    held = Scratch()
    before, rows = held.put(np.arange(5)), held.empty((6, 2), np.int32)
    whole = np.arange(12, dtype=np.int32).reshape(6, 2)
    rows.write(4, whole[4:])
    # As Fortran lays it out, too: what is written is what is seen.
    rows.write(0, np.asfortranarray(whole[:4]))
    np.testing.assert_array_equal(rows.read(), whole)
    np.testing.assert_array_equal(rows.read(3, 5), whole[3:5])
    np.testing.assert_array_equal(rows.read(4, 99), whole[4:])
    np.testing.assert_array_equal(before.read(), np.arange(5))


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((3, 2), np.int32)])
def test_an_array_takes_no_other_place(wrong: np.ndarray) -> None:
    kept = Scratch().put(np.zeros(3, np.int32))
    with pytest.raises(AssertionError):
        kept.write(0, wrong)
    with pytest.raises(AssertionError):
        kept.write(1, np.zeros(3, np.int32))


def test_nothing_has_a_name_and_only_the_owner_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    held = Scratch()
    held.put(np.arange(1000))
    found = os.fstat(held.descriptor)
    assert found.st_size == 8000
    assert found.st_nlink == 0
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_dev == tmp_path.stat().st_dev
    assert list(tmp_path.iterdir()) == []


def test_without_a_named_folder_it_is_not_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in scratch.NAMED:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(scratch, "ON_DISK", str(tmp_path))
    assert Scratch().folder == str(tmp_path)
    monkeypatch.setattr(scratch, "ON_DISK", str(tmp_path / "missing"))
    assert Scratch().folder is None


def test_room_is_given_back() -> None:
    held = Scratch()
    kept, descriptor = held.put(np.arange(3)), held.descriptor
    del held
    os.fstat(descriptor)
    np.testing.assert_array_equal(kept.read(), np.arange(3))
    del kept
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Scratch()

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(TableError, match=r"no room left on the disk of .*TMPDIR"):
        held.put(np.zeros(4))


def test_a_folder_that_cannot_be_written_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with pytest.raises(TableError, match=r"nothing can be written to .* \(Permission denied\)"):
        Scratch()

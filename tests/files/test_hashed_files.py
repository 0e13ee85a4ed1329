"""Bytes in a scratch file are read as those in memory are, by us and by Arrow."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from files.samples import N_ROWS, delivered, restate, sent
from verix_anon.errors import Error
from verix_anon.files import hashed_files
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_writer import digests_of_folder, write_delivery
from verix_anon.files.scratch import InMemory, InScratch, Scratch
from verix_anon.files.store import open_folder

DATA = np.random.default_rng(0).bytes(20_000)


def spilled(data: bytes) -> InScratch:
    scratch = Scratch()
    scratch.put(np.zeros(3))
    return InScratch(scratch.put(np.frombuffer(data, np.uint8)))


def test_parts_and_windows() -> None:
    held, other = InMemory(DATA), spilled(DATA)
    assert held.size == other.size == len(DATA)
    for start, end in ((0, 0), (0, 20_000), (5, 9), (19_990, 20_000)):
        assert bytes(other.part(start, end)) == bytes(held.part(start, end)) == DATA[start:end]
    one, two = held.window(15_000), other.window(15_000)
    assert len(one) == len(two) == 15_000
    for at in (0, 1, 4095, 4096, 14_999, 3, 9000):
        assert one[at] == two[at] == DATA[at]
    assert bytes(one[14_990:15_100]) == bytes(two[14_990:15_100]) == DATA[14_990:15_000]
    for window in (one, two):
        with pytest.raises(IndexError):
            window[15_000]


def test_files_for_arrow() -> None:
    with InMemory(DATA).open() as one, spilled(DATA).open() as two:
        assert one.size() == two.size() == len(DATA)
        for at, size in ((0, 10), (15_000, 100), (19_995, 100), (7, 0)):
            one.seek(at)
            two.seek(at)
            assert one.read(size) == two.read(size) == DATA[at : at + size]
            assert one.tell() == two.tell()
        assert two.read_at(50, 100) == DATA[100:150]


def outcome(folder: Path) -> object:
    """The digests and columns of a delivery, or what is wrong with it."""
    try:
        found = read_delivery(folder, sent().contract, n_rows=N_ROWS)
    except Error as error:
        return type(error), str(error)
    records = found.delivery.records
    arrays = (records.row, records.tracker, records.leaf, records.target)
    return found.files, found.damaged, [array.tobytes() for array in arrays]


def both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[object, object]:
    held = outcome(folder)
    with monkeypatch.context() as patched:
        patched.setattr(hashed_files, "HELD_BYTES", 0)
        return held, outcome(folder)


@pytest.mark.parametrize("name", ["records.parquet", "leaves.parquet", "nodes.parquet"])
def test_damage_is_told_alike(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever byte is changed, or wherever it is cut: the same sentence, or the same data."""
    write_delivery(delivered(), tmp_path / "whole")
    data = (tmp_path / "whole" / name).read_bytes()
    rng, seen = np.random.default_rng(1), set()
    held, other = both(tmp_path / "whole", monkeypatch)
    assert held == other
    shutil.copytree(tmp_path / "whole", tmp_path / "spoiled")
    # Page headers come first, the footer last.
    places = [*range(40), *range(len(data) - 60, len(data)), *rng.integers(0, len(data), 60)]
    for at in places:
        spoiled = bytearray(data)
        spoiled[at] ^= 1 << int(rng.integers(8))
        cut = rng.random() < 0.1
        (tmp_path / "spoiled" / name).write_bytes(spoiled[:at] if cut else spoiled)
        restate(tmp_path / "spoiled")
        held, other = both(tmp_path / "spoiled", monkeypatch)
        assert held == other
        seen.add(type(held[1]) if isinstance(held, tuple) else None)
    assert seen == {str, tuple}


def test_parts_share_what_may_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What of a folder's parts is too much goes to the scratch file, and the rest stays."""
    for name, data in (("a", DATA), ("b", DATA[:100]), ("c", DATA)):
        (tmp_path / "records.parquet").mkdir(exist_ok=True)
        (tmp_path / "records.parquet" / f"{name}.parquet").write_bytes(data)
    monkeypatch.setattr(hashed_files, "HELD_BYTES", 20_050)
    files = hashed_files.Files(open_folder(tmp_path, Error))
    _, parts = files.hold_records({}, 0)
    assert [type(part) for part in parts.values()] == [InMemory, InScratch, InScratch]
    assert [bytes(p.part(0, p.size)) for p in parts.values()] == [DATA, DATA[:100], DATA]
    assert files.digests == digests_of_folder(tmp_path, ["records.parquet"])


def test_a_large_file_that_was_cut_to_nothing_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes.parquet").touch()
    # As if its size had been more than may be held.
    monkeypatch.setattr(hashed_files, "HELD_BYTES", -1)
    held = hashed_files.Files(open_folder(tmp_path, Error)).hold("nodes.parquet", 100)
    assert held == InMemory(b"")

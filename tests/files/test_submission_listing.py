"""A submission as it goes over a wire, and how large what comes back may be."""

from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from files import samples
from verix_anon.errors import TableError
from verix_anon.files.folder_facts import most_bytes
from verix_anon.files.folder_writer import write_delivery, write_submission
from verix_anon.files.submission_listing import list_submission
from verix_anon.files.submissions import read_submission


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    write_submission(samples.sent(), tmp_path / "submission")
    return tmp_path / "submission"


def divide(folder: Path) -> None:
    """The records as a folder of two parts."""
    table = pq.read_table(folder / "records.parquet")
    (folder / "records.parquet").unlink()
    (folder / "records.parquet").mkdir()
    for number, rows in enumerate((table.slice(0, 100), table.slice(100))):
        pq.write_table(rows, folder / "records.parquet" / f"part-{number}.parquet")
    (folder / "records.parquet" / "_SUCCESS").write_text("")
    samples.restate(folder)


def test_every_file_with_its_size_and_digest(submission: Path) -> None:
    listed = list_submission(submission)
    names = [file.name for file in listed.files]
    assert names == ["submission.json", "contract.json", "records.parquet"]
    for file in listed.files:
        data = (submission / file.name).read_bytes()
        assert (file.size, file.sha256) == (len(data), sha256(data).hexdigest())
    sent = samples.sent()
    assert (listed.n_rows, listed.contract) == (300, sent.contract)
    assert listed.digest == sent.digest().hex()


def test_parts_are_files_of_their_own(submission: Path) -> None:
    divide(submission)
    assert read_submission(submission).digest() == samples.sent().digest()
    names = [file.name for file in list_submission(submission).files[2:]]
    assert names == ["records.parquet/part-0.parquet", "records.parquet/part-1.parquet"]
    (submission / "records.parquet" / "part-1.parquet").write_bytes(b"x")
    with pytest.raises(TableError, match="differs from the SHA-256"):
        list_submission(submission)


@pytest.mark.parametrize("name", ["submission.json", "contract.json", "records.parquet"])
def test_what_was_damaged_is_not_sent(submission: Path, name: str) -> None:
    data = (submission / name).read_bytes()
    (submission / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(TableError):
        list_submission(submission)
    (submission / name).unlink()
    with pytest.raises(TableError, match="missing"):
        list_submission(submission)


def test_a_delivery_is_no_submission(tmp_path: Path) -> None:
    write_delivery(samples.delivered(), tmp_path / "delivery")
    with pytest.raises(TableError, match="is a delivery, not a submission"):
        list_submission(tmp_path / "delivery")


def test_an_honest_delivery_is_within_its_limits(tmp_path: Path) -> None:
    write_delivery(samples.delivered(), tmp_path / "delivery")
    limits = most_bytes(samples.sent().contract, n_rows=300)
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "delivery").iterdir()}
    assert sizes.keys() == limits.keys()
    assert all(0 < sizes[name] <= limits[name] for name in sizes)
    assert sum(limits.values()) < 4 << 20
    divided = most_bytes(samples.sent().contract, n_rows=300, n_parts=10)
    assert divided["records.parquet"] > limits["records.parquet"]

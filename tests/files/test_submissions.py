"""A submission is read as it was written, and whatever does not fit its contract is refused."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import support
from files.samples import N_ROWS, restate, rewrite, sent, with_value, with_values
from tools import crafted_parquet as crafted
from tools.crafted_parquet import Struct, packed, put
from verix_anon.errors import ContractError, Error, TableError
from verix_anon.files import hashed_files, submissions
from verix_anon.files.folder_writer import write_submission
from verix_anon.files.submissions import SpilledSubmission
from verix_anon.protocol import merkle
from verix_anon.protocol.contract import Column, Contract, Kind, Role, Unit
from verix_anon.protocol.messages import Submission
from verix_anon.protocol.records import Records

WEIRD = [
    "a.b",
    "a",
    "two words",
    "emoji 🦉",
    "",
    '"',
    "'",
    "target",
    "x,y|z:w",
    "Ünï",
    "{}",
    "a\tb",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_submission(sent(), tmp_path / "submission")
    return tmp_path / "submission"


def made(columns: list[Column], n_rows: int = 40) -> Submission:
    """A submission of those columns with random values."""
    rng = np.random.default_rng(3)
    target = support.TARGET
    contract = Contract(
        submission_id=support.SUBMISSION_ID, k=2, min_leaf=4, columns=(*columns, target)
    )
    values = np.empty((len(columns), n_rows))
    for column, out in zip(columns, values, strict=True):
        if column.categories is not None:
            out[:] = rng.integers(0, len(column.categories), n_rows)
        else:
            out[:] = rng.normal(size=n_rows) if column.unit is None else rng.integers(0, 9, n_rows)
    records = Records(
        tracker=support.trackers(n_rows),
        values=values,
        target=rng.integers(0, 2, n_rows).astype(np.uint8),
    )
    return Submission(contract=contract, records=records)


def read_submission(path: str | Path) -> Submission:
    """A submission as it is read in memory; from a scratch file it is the same, faults included."""
    try:
        found = submissions.read_submission(path)
    except Error as error:
        with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"):
            read_spilled(path)
        raise
    spilled, records = read_spilled(path), found.records
    assert spilled.contract == found.contract
    assert spilled.digest() == found.digest()
    assert spilled.records.n_rows == records.n_rows
    assert spilled.records.target.tobytes() == records.target.tobytes()
    assert spilled.records.trackers(0, records.n_rows).tobytes() == records.tracker.tobytes()
    for number, values in enumerate(records.values):
        assert spilled.records.column(number).astype(np.float64).tobytes() == values.tobytes()
    return found


def read_spilled(path: str | Path) -> SpilledSubmission:
    with mock.patch.object(hashed_files, "HELD_BYTES", 0):
        found = submissions.read_submission_by_column(path, most_values=0)
    assert isinstance(found, SpilledSubmission)
    return found


def assert_equal(one: Submission, other: Submission) -> None:
    assert one.contract == other.contract
    for name in ("tracker", "values", "target"):
        left, right = getattr(one.records, name), getattr(other.records, name)
        assert left.tobytes() == right.tobytes()
    assert one.digest() == other.digest()


def assert_round_trip(submission: Submission, path: Path) -> None:
    write_submission(submission, path)
    assert_equal(read_submission(path), submission)


def refused(sentence: str) -> Any:
    return pytest.raises(TableError, match=sentence)


def read_spoiled(folder: Path, **stated: Any) -> Submission:
    """Read a submission that was written as it is, its digests included."""
    restate(folder, **stated)
    return read_submission(folder)


def test_round_trip_of_all_kinds(tmp_path: Path) -> None:
    units = [Column(name=f"d {u}", kind=Kind.DATETIME, unit=u) for u in Unit]
    kinds = [support.numeric("n"), *units, support.categorical("c", 3), support.categorical("1", 1)]
    assert_round_trip(made(kinds), tmp_path / "submission")


def test_weird_names(tmp_path: Path) -> None:
    columns = [
        support.numeric(name) if i % 2 else support.categorical(name, 3)
        for i, name in enumerate(WEIRD)
    ]
    assert_round_trip(made(columns), tmp_path / "submission")
    assert_round_trip(made(columns[::-1], 3000), tmp_path / "varied")


def test_the_target_may_have_any_name(tmp_path: Path) -> None:
    target = Column(name="", role=Role.TARGET, kind=Kind.CATEGORICAL, categories=("", "0"))
    contract = Contract(
        submission_id=support.SUBMISSION_ID, k=2, min_leaf=4, columns=(target, support.numeric("y"))
    )
    values = np.arange(40.0).reshape(1, 40)
    records = Records(
        tracker=support.trackers(40), values=values, target=np.array([0, 1] * 20, np.uint8)
    )
    assert_round_trip(Submission(contract=contract, records=records), tmp_path / "submission")


def test_two_hundred_columns(tmp_path: Path) -> None:
    columns = [support.numeric(f"x{i}") for i in range(200)]
    assert_round_trip(made(columns), tmp_path / "submission")


def test_extreme_numbers(tmp_path: Path) -> None:
    values = [[5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, 2.0**53]]
    assert_round_trip(support.submission(values, [0, 1] * 3), tmp_path / "submission")


def test_negative_zero_is_read_as_zero(folder: Path) -> None:
    rewrite(folder / "records.parquet", with_values("x", [-0.0] * N_ROWS))
    records = sent().records
    values = records.values.copy()
    values[0] = 0.0
    meant = replace(sent(), records=replace(records, values=values))
    found = read_spoiled(folder, submission=meant.digest().hex()).records.values[0]
    assert not np.signbit(found).any()


def test_other_packings(folder: Path) -> None:
    path = folder / "records.parquet"
    table = pq.read_table(path)
    for options in ({"compression": "gzip"}, {"compression": "none", "row_group_size": 7}):
        path.write_bytes(packed(table, **options))
        assert_equal(read_spoiled(folder), sent())


def test_rows_in_any_order(folder: Path) -> None:
    order = np.random.default_rng(2).permutation(N_ROWS)
    rewrite(folder / "records.parquet", lambda table: table.take(order), row_group_size=70)
    assert_equal(read_spoiled(folder), sent())


def test_a_large_group_in_any_order(tmp_path: Path) -> None:
    """Threads share its columns."""
    columns = [support.numeric("a.b"), support.numeric("a"), support.categorical("c", 5)]
    large = made(columns, 70_000)
    assert_round_trip(large, tmp_path / "submission")
    order = np.random.default_rng(2).permutation(70_000)
    rewrite(tmp_path / "submission" / "records.parquet", lambda table: table.take(order))
    assert_equal(read_spoiled(tmp_path / "submission"), large)


def test_behind_a_url(folder: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/job/submission", recursive=True)
    try:
        assert_equal(read_submission("memory://job/submission"), sent())
        for url in (
            "memory://job/nothing",
            "nonsense://job",
            "memory://job/submission/records.parquet",
        ):
            with refused("there is no folder|cannot be opened"):
                read_submission(url)
        memory.rm("/job/submission/contract.json")
        with refused("contract.json is missing"):
            read_submission("memory://job/submission")
    finally:
        memory.rm("/job", recursive=True)


@pytest.mark.parametrize(
    ("column", "row", "value", "sentence"),
    [
        ("row", 5, 6, "row 5 is missing, and another occurs twice"),
        ("row", 0, -1, "a row is not one of 0 to 299"),
        ("row", 7, N_ROWS, "a row is not one of 0 to 299"),
        ("row", 7, 2**63 - 1, "a row is not one of 0 to 299"),
        ("row", 5, None, "column 'row' has missing values"),
        ("tracker", 5, None, "column 'tracker' has missing values"),
        ("x", 5, None, "column 'x' has missing values"),
        (
            "x",
            5,
            float("nan"),
            "does not fit the contract: column 'x' has a value that is not finite",
        ),
        ("n", 5, float("inf"), "column 'n' has a value that is not finite"),
        ("c", 5, 4, "column 'c' has a position outside its 4 values"),
        ("c", 5, -1, "column 'c' has a position outside its 4 values"),
        ("y", 5, 2, "the target has a value other than 0 and 1"),
    ],
)
def test_wrong_values(folder: Path, column: str, row: int, value: Any, sentence: str) -> None:
    rewrite(folder / "records.parquet", with_value(column, row, value))
    with refused(sentence):
        read_spoiled(folder)


def test_a_signalling_nan_is_refused_without_a_warning(folder: Path) -> None:
    values = np.zeros(N_ROWS)
    values.view(np.uint64)[7] = 0x7FF0_0000_0000_0001
    rewrite(folder / "records.parquet", with_values("x", values))
    with refused("not finite"):
        read_spoiled(folder)


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("row", pa.int32()),
        ("tracker", pa.binary(31)),
        ("tracker", pa.binary()),
        ("x", pa.float32()),
        ("c", pa.int64()),
        ("c", pa.string()),
        ("y", pa.bool_()),
    ],
)
def test_wrong_types(folder: Path, column: str, wrong: pa.DataType) -> None:
    rewrite(folder / "records.parquet", with_values(column, [None] * N_ROWS, wrong))
    with refused(f"column '{column}' has type .*, not"):
        read_spoiled(folder)


def test_wrong_columns(folder: Path) -> None:
    whole = pq.read_table(folder / "records.parquet")
    for table, sentence in (
        (whole.drop_columns(["n"]), "column 'n' is missing"),
        (whole.append_column("leaf", whole.column("c")), "column 'leaf' does not belong there"),
        (whole.select(["row", "tracker", "n", "x", "c", "y"]), "not in the agreed order"),
    ):
        (folder / "records.parquet").write_bytes(packed(table))
        with refused(sentence):
            read_spoiled(folder)


def test_too_few_rows(folder: Path) -> None:
    for n_rows in (3, 0):
        rewrite(folder / "records.parquet", lambda table: table.slice(0, n_rows))  # noqa: B023
        with refused(f"damaged on the way: records.parquet has {n_rows} rows, and not the 300"):
            read_spoiled(folder)


def test_fewer_rows_than_a_leaf_needs(folder: Path) -> None:
    rewrite(folder / "records.parquet", lambda table: table.slice(0, 3))
    with refused("needs at least min_leaf = 4 records .*, not 3"):
        read_spoiled(folder, rows=3)


def test_a_footer_with_more_rows_than_stated(folder: Path) -> None:
    def claim(metadata: Struct) -> None:
        put(metadata, crafted.N_ROWS, 2**31 - 1)
        put(metadata[crafted.GROUPS][1][1][0], crafted.GROUP_ROWS, 2**31 - 1)

    path = folder / "records.parquet"
    path.write_bytes(crafted.lying(path.read_bytes(), claim))
    with refused("records.parquet has 2147483647 rows, more than 300"):
        read_spoiled(folder)
    with refused("its columns do not have as many values as rows"):
        read_spoiled(folder, rows=2**31 - 1)
    path.write_bytes(crafted.lying(path.read_bytes(), lambda m: put(m, crafted.N_ROWS, 2**40)))
    with refused("records.parquet has 1099511627776 rows"):
        read_spoiled(folder, rows=N_ROWS)


def test_many_rows_of_one_tracker(folder: Path) -> None:
    """A few kilobytes that would be decoded to 160 MB: no two records have one tracker."""
    n_rows = 2_000_000
    table = pq.read_table(folder / "records.parquet").slice(0, 1)
    many = table.take(pa.array(np.zeros(n_rows, np.int32)))
    (folder / "records.parquet").write_bytes(packed(many, compression="zstd"))
    with refused("records.parquet is too small for the trackers of 2,000,000 rows"):
        read_spoiled(folder, rows=n_rows)


def test_missing_files(folder: Path) -> None:
    for name in ("records.parquet", "contract.json", "submission.json"):
        (folder / name).unlink()
        with refused(f"{name} is missing"):
            read_submission(folder)
    with refused("there is no folder"):
        read_submission(folder / "nothing")
    with refused("there is no folder"):
        read_submission(folder.parent / ("x" * 300))


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[" * 100_000, b"\xff", b'{"format":"verix/contract/2"}']
)
def test_another_contract(folder: Path, data: bytes) -> None:
    (folder / "contract.json").write_bytes(data)
    with refused("damaged on the way: contract.json differs from the SHA-256"):
        read_submission(folder)
    with pytest.raises(ContractError, match=r"^contract\.json: contract: "):
        read_spoiled(folder)


def test_a_contract_that_does_not_fit(folder: Path) -> None:
    other = support.submission([[0.0] * 8], [0, 1] * 4).contract
    (folder / "contract.json").write_bytes(other.to_bytes())
    with refused("damaged on the way: contract.json is not the contract"):
        read_spoiled(folder)
    with refused("column 'x0' is missing"):
        read_spoiled(folder, contract=other.digest.hex())


def test_links_are_not_followed(folder: Path) -> None:
    for name in ("submission.json", "contract.json", "records.parquet"):
        (folder / name).rename(folder / "real")
        (folder / name).symlink_to(folder / "real")
        with refused("it is a link"):
            read_submission(folder)
        (folder / name).unlink()
        (folder / "real").rename(folder / name)


def test_damage_that_another_codec_would_not_show(folder: Path) -> None:
    """One byte of one file, or the same records packed anew."""
    for name in ("contract.json", "records.parquet"):
        honest = (folder / name).read_bytes()
        for data in (honest[:-1], honest + b" ", honest.replace(honest[20:24], b"0000", 1)):
            (folder / name).write_bytes(data)
            with refused(f"was damaged on the way: {name} differs from the SHA-256 that"):
                read_submission(folder)
        (folder / name).write_bytes(honest)
    rewrite(folder / "records.parquet", lambda table: table)
    with refused("was damaged on the way: records.parquet differs from the SHA-256 that"):
        read_submission(folder)


def test_records_of_another_submission(folder: Path) -> None:
    """Every file is the one that is named, but the digest of the records is another's."""
    with refused("was damaged on the way: its records are not those of the digest"):
        read_spoiled(folder, submission=sent(1).digest().hex())
    with refused("records.parquet has 300 rows, more than 299"):
        read_spoiled(folder, submission=sent().digest().hex(), rows=N_ROWS - 1)
    with refused("damaged on the way: records.parquet has 300 rows, and not the 301"):
        read_spoiled(folder, rows=N_ROWS + 1)


def test_a_delivery_is_no_submission(folder: Path) -> None:
    (folder / "delivery.json").write_text("{}")
    with refused("is a delivery, not a submission"):
        read_submission(folder)


def test_other_files_are_never_opened(folder: Path) -> None:
    for name in ("leaves.parquet", "receipt.dsse.json", "manifest.verix"):
        (folder / name).symlink_to("/dev/zero")
    assert_equal(read_submission(folder), sent())


def test_the_digest_is_computed_once(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    submission = read_submission(folder)
    monkeypatch.setattr(merkle, "submission_digest", None)
    assert submission.digest() == sent().digest()
    assert replace(submission, contract=submission.contract)._digest is None

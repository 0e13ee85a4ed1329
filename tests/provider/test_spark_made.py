"""The engine's own steps on a cluster that is made of functions: faults, places, progress."""

import errno
import importlib.util
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import support
from cli.jobs import Run
from files.samples import restate, sent
from provider.made_cluster import MadeCluster, TaskError
from provider.spark_cluster import read
from tools import crafted_parquet as crafted
from verix_anon.conform.kit import Kit
from verix_anon.conform.trials import Answer, ProviderOutcome, try_provider
from verix_anon.errors import Error, ProviderError, TableError
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol import merkle
from verix_anon.protocol.messages import Submission
from verix_anon.provider import spark
from verix_anon.provider.local import LocalProvider
from verix_anon.provider.spark import SparkProvider, executors, submission_reader
from verix_anon.provider.spark.delivery_writer import STAGING, Place
from verix_anon.provider.spark.driver import SparkJob
from verix_anon.provider.spark.submission_reader import Piece, share_out

HAS_SPARK = importlib.util.find_spec("pyspark") is not None


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> SparkProvider:
    """The engine on a cluster that is none, to try where it reads and writes."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(spark, "session", lambda configuration: nullcontext(MadeCluster(2, rng)))
    monkeypatch.setattr(spark, "_told", nullcontext)
    return SparkProvider(task_rows=100)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[str]:
    """A store behind a URL, with a submission."""
    write_submission(sent_alone(), tmp_path / "submission")
    store = fsspec.filesystem("memory")
    store.put(str(tmp_path / "submission"), "/bucket/submission", recursive=True)
    yield "memory://bucket"
    store.rm("/bucket", recursive=True)


def sent_alone() -> Submission:
    return support.coded([[*range(40)] * 10], weights=[1], k=5)


def names_in(url: str) -> set[str]:
    store, top = fsspec.core.url_to_fs(url)
    return {str(path).removeprefix(f"{top}/") for path in store.find(top)}


def test_from_url_to_url(made: SparkProvider, bucket: str) -> None:
    header = made.anonymize_folder(f"{bucket}/submission", f"{bucket}/delivery")
    assert header.root == LocalProvider(threads=1).anonymize(sent_alone()).header.root
    assert read(f"{bucket}/delivery", sent_alone()).header == header
    files = names_in(f"{bucket}/delivery")
    records = {name for name in files if name.startswith("records.parquet/part-")}
    assert len(records) > 1
    assert files - records == {"delivery.json", "leaves.parquet", "nodes.parquet"}


@pytest.mark.long
def test_the_conformance_kit(made: SparkProvider, small_kit: Kit) -> None:
    def ask(submission: Path, delivery: Path) -> Answer:
        try:
            made.anonymize_folder(submission, delivery)
        except Error as error:
            return Answer(ProviderOutcome.REFUSED, str(error))
        return Answer(ProviderOutcome.DELIVERED, "delivered")

    cases = [case for case in small_kit.cases if case.kind.side == "provider"]
    results = try_provider(small_kit, cases, ask)
    assert [(r.case.id, r.failures) for r in results if not r.passed] == []


def damage_page(folder: Path) -> None:
    """Break the pages of the last column, whose headers are as they were."""
    path = folder / "records.parquet"
    place = pq.read_metadata(path).row_group(0).column(2)
    data = bytearray(path.read_bytes())
    end = place.data_page_offset + place.total_compressed_size
    data[end - 40 : end] = bytes(40)
    path.write_bytes(data)
    restate(folder)


def shorten_tracker(folder: Path) -> None:
    path = folder / "records.parquet"
    table = pq.read_table(path)
    trackers = pa.array([b"short", *table.column("tracker").to_pylist()[1:]], pa.binary())
    path.unlink()
    path.mkdir()
    pq.write_table(table.set_column(1, "tracker", trackers), path / "part-0.parquet")
    restate(folder)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [(damage_page, "not a readable Parquet file"), (shorten_tracker, "32 bytes")],
)
def test_the_submissions_faults_are_told_apart(
    made: SparkProvider, tmp_path: Path, spoil: Any, sentence: str
) -> None:
    write_submission(sent_alone(), tmp_path / "submission")
    spoil(tmp_path / "submission")
    with pytest.raises(TableError, match=sentence):
        made.anonymize_folder(tmp_path / "submission", tmp_path / "delivery")


@pytest.mark.parametrize("more", [1 << 8, 1 << 16])
def test_labels_with_bits_to_spare(made: SparkProvider, tmp_path: Path, more: int) -> None:
    """Parquet stores 32 bits for a number of 8: Arrow would drop all but the lowest."""
    write_submission(sent(), tmp_path / "submission")
    path = tmp_path / "submission" / "records.parquet"
    narrow, table = crafted.footer(path.read_bytes()), pq.read_table(path)
    labels = pa.array([more + value for value in table.column("y").to_pylist()], pa.int32())
    table = table.set_column(table.column_names.index("y"), "y", labels)
    data, schema = crafted.packed(table, store_schema=False), narrow[crafted.SCHEMA][1]
    path.write_bytes(crafted.lying(data, lambda m: crafted.put(m, crafted.SCHEMA, schema)))
    restate(tmp_path / "submission")
    with pytest.raises(TableError, match=r"other than 0 and 1|not in range"):
        made.anonymize_folder(tmp_path / "submission", tmp_path / "delivery")


@pytest.mark.parametrize("first", [0, 300, -1, 400])
def test_rows_that_crowd_in_one_chunk_are_sent_nowhere(
    made: SparkProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    write_submission(sent_alone(), tmp_path / "submission")
    path = tmp_path / "submission" / "records.parquet"
    table = pq.read_table(path)
    rows = pa.array([first + i % 100 for i in range(400)])
    pq.write_table(table.set_column(0, "row", rows), path)
    restate(path.parent)

    def never(*given: object) -> None:
        raise AssertionError("no task is sent a chunk")

    monkeypatch.setattr(executors.HashChunk, "__call__", never)
    monkeypatch.setattr(submission_reader, "CHUNK_ROWS", 100)
    with pytest.raises(TableError, match="not each row from 0 to 399 is there once"):
        made.anonymize_folder(path.parent, tmp_path / "delivery")


@pytest.mark.parametrize("n_rows", [1, 65_536, 65_537, 10**8, 10**9, 2**31])
def test_rows_are_counted_in_few_ranges_of_whole_chunks(n_rows: int) -> None:
    bins = submission_reader.rows_of_bins(n_rows)
    assert bins.sum() == n_rows
    assert len(bins) <= submission_reader.MOST_BINS
    assert not (bins[:-1] % merkle.CHUNK_ROWS).any()
    assert bins.max() <= max(65_536, 2 * n_rows // submission_reader.MOST_BINS)


def test_trouble_of_an_executor_is_no_fault_of_the_submission(
    made: SparkProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_submission(sent_alone(), tmp_path / "submission")

    def full(*given: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(submission_reader, "HELD_BYTES", 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(TaskError, match="there is no room left on the disk"):
            made.anonymize_folder(tmp_path / "submission", tmp_path / "delivery")
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetFile, "iter_batches", full)
        with pytest.raises(TaskError, match="No space left"):
            made.anonymize_folder(tmp_path / "submission", tmp_path / "delivery")
    made.anonymize_folder(tmp_path / "submission", tmp_path / "delivery")


def test_of_what_spark_says_the_last_line_of_a_traceback_is_told() -> None:
    python = (
        "Job aborted due to stage failure: Task 0 failed 4 times: Traceback (most recent call"
        ' last):\n  File "a.py", line 1, in work\nKeyError: 7\n\nDuring handling of the above'
        " exception, another exception occurred:\n\nTraceback (most recent call last):\n"
        '  File "b.py", line 2, in more\n    fail()\n'
    )
    java = "\n\n\tat org.apache.spark.Worker\n\nDriver stacktrace:\n"
    ours = "verix_anon.errors.TableError: there is no room: free some\n"
    assert spark._reason(python + ours + java) == "there is no room: free some"
    assert spark._reason(f"{python}OSError: [Errno 5] ill\n{java}") == "OSError: [Errno 5] ill"
    lost = "An error occurred while calling o7.collect.\n: org.apache.SparkException: lost\n\tat x"
    assert spark._reason(lost) == "org.apache.SparkException: lost"
    assert spark._reason("") == "?"


def test_it_tells_its_progress_by_stage(made: SparkProvider, tmp_path: Path) -> None:
    write_submission(sent_alone(), tmp_path / "submission")
    words: list[tuple[str, int, int]] = []
    telling = replace(made, progress=lambda *word: words.append(word))
    telling.anonymize_folder(tmp_path / "submission", tmp_path / "delivery")
    assert list(dict.fromkeys(stage for stage, _, _ in words)) == [
        "check",
        "split",
        "grow",
        "write",
    ]
    # 400 records are halved twice for tasks of 100.
    assert [word for word in words if word[0] == "split"] == [("split", 0, 2), ("split", 1, 2)]
    assert all(words[words.index((s, 0, 1)) + 1] == (s, 1, 1) for s in ("check", "grow", "write"))


def test_a_url_is_not_written_over_unless_asked(made: SparkProvider, bucket: str) -> None:
    made.anonymize_folder(f"{bucket}/submission", f"{bucket}/delivery")
    fsspec.filesystem("memory").pipe("/bucket/delivery/records.parquet/part-99999.parquet", b"old")
    with pytest.raises(TableError, match="exists already"):
        made.anonymize_folder(f"{bucket}/submission", f"{bucket}/delivery")
    made.anonymize_folder(f"{bucket}/submission", f"{bucket}/delivery", overwrite=True)
    assert "records.parquet/part-99999.parquet" not in names_in(f"{bucket}/delivery")
    read(f"{bucket}/delivery", sent_alone())
    for out, sentence in (
        (f"{bucket}/submission", "is, or holds, the input"),
        (f"{bucket}/", "is, or holds, the input"),
    ):
        with pytest.raises(TableError, match=sentence):
            made.anonymize_folder(f"{bucket}/submission", out, overwrite=True)
    fsspec.filesystem("memory").pipe("/bucket/other/file", b"mine")
    with pytest.raises(TableError, match=r"not a folder with a delivery\.json"):
        made.anonymize_folder(f"{bucket}/submission", f"{bucket}/other", overwrite=True)
    assert names_in(f"{bucket}/other") == {"file"}


@pytest.mark.parametrize("step", ["check", "finish", "write_records", "subtrees"])
def test_what_fails_leaves_the_old_delivery_behind_a_url(
    made: SparkProvider, bucket: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    given = (f"{bucket}/submission", f"{bucket}/delivery")
    old = made.anonymize_folder(*given)
    before, done = names_in(given[1]), getattr(SparkJob, step)

    def failing(*words: Any) -> None:
        done(*words)
        raise ProviderError("no")

    with monkeypatch.context() as patch:
        patch.setattr(SparkJob, step, failing)
        with pytest.raises(ProviderError, match="no"):
            made.anonymize_folder(*given, overwrite=True)
    assert names_in(given[1]) == before
    assert read(given[1], sent_alone()).header == old
    new = made.anonymize_folder(*given, overwrite=True)
    assert read(given[1], sent_alone()).header == new
    assert len(names_in(given[1])) == len(before)


def test_a_damaged_submission_replaces_nothing_behind_a_url(
    made: SparkProvider, bucket: str
) -> None:
    given = (f"{bucket}/submission", f"{bucket}/delivery")
    old = made.anonymize_folder(*given)
    fsspec.filesystem("memory").pipe("/bucket/submission/records.parquet", b"damaged")
    with pytest.raises(TableError, match="damaged on the way"):
        made.anonymize_folder(*given, overwrite=True)
    assert read(given[1], sent_alone()).header == old


def test_what_fails_leaves_nothing_behind_a_url(
    made: SparkProvider, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: object) -> None:
        assert any(name.startswith(STAGING) for name in names_in(f"{bucket}/delivery"))
        raise ProviderError("no")

    monkeypatch.setattr(SparkJob, "write_records", failing)
    with pytest.raises(ProviderError, match="no"):
        made.anonymize_folder(f"{bucket}/submission", f"{bucket}/delivery")
    assert not names_in(f"{bucket}/delivery")


def test_a_url_of_a_file_is_a_path(made: SparkProvider, tmp_path: Path) -> None:
    write_submission(sent_alone(), tmp_path / "submission")
    out = tmp_path / "delivery"
    header = made.anonymize_folder(f"file://{tmp_path}/submission", f"file://{out}")
    assert read(out, sent_alone()).header == header
    with pytest.raises(TableError, match="exists already"):
        made.anonymize_folder(tmp_path / "submission", f"file://{out}")


def test_what_is_held_here_is_for_one_machine(
    made: SparkProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = LocalProvider(threads=1).anonymize(sent_alone()).header.root
    assert made.anonymize(sent_alone()).header.root == root
    far = MadeCluster(2, np.random.default_rng(0))
    far.sparkContext.master = "spark://head:7077"
    monkeypatch.setattr(spark, "session", lambda configuration: nullcontext(far))
    with pytest.raises(ProviderError, match="give anonymize_folder folders or URLs"):
        made.anonymize(sent_alone())


def test_a_late_task_leaves_nothing_in_a_delivery(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    place.begin()
    place.check()
    with place.new("records.parquet/first") as path:
        path.touch()

    def late(name: str) -> None:
        with place.new(name) as path:
            place.delete(STAGING)
            path.touch()

    for name in (f"{STAGING}/second", "records.parquet/second"):
        with pytest.raises(FileNotFoundError):
            late(name)
    assert [path.name for path in tmp_path.rglob("*")] == ["records.parquet", "first"]
    with pytest.raises(
        ProviderError, match=r"an executor cannot write .* run as the driver's user"
    ):
        place.check()


def test_a_receipt_needs_a_folder(made: SparkProvider, bucket: str) -> None:
    with pytest.raises(ProviderError, match="a receipt needs the files of a local folder"):
        made.anonymize_folder(f"{bucket}/submission", f"{bucket}/out", finish=lambda folder: None)


def test_only_spark_writes_behind_a_url(run: Run, tmp_path: Path) -> None:
    outcome = run("anonymize", tmp_path / "submission", "--out", "s3://bucket/delivery")
    assert outcome.code == 2
    assert "results are written to local folders" in outcome.err


def test_each_record_is_read_by_one_task() -> None:
    pieces = [Piece(f"{i}", j, 700 + i) for i in range(9) for j in range(3)]
    for n_cores in (1, 2, 5, 100):
        shares = share_out(pieces, n_cores)
        assert [piece for share in shares for piece in share] == pieces
        assert len(shares) <= max(2 * n_cores, 1)
    assert len(share_out([Piece("x", i, 1 << 20) for i in range(64)], 2)) == 16


@pytest.mark.skipif(HAS_SPARK, reason="Spark is installed here")
def test_without_spark_it_says_what_to_install(tmp_path: Path) -> None:
    sent = support.submission([[*range(40)]], [0, 1] * 20)
    with pytest.raises(ProviderError, match=r"-m pip install .*\[spark\]"):
        SparkProvider().anonymize(sent)


@pytest.mark.parametrize("words", [["--task-rows", "5"], ["--spark", "spark.master=local"]])
def test_settings_of_spark_are_for_spark(run: Run, tmp_path: Path, words: list[str]) -> None:
    outcome = run("anonymize", tmp_path / "submission", "--out", tmp_path / "out", *words)
    assert outcome.code == 2
    assert "go with --engine spark" in outcome.err


def test_a_setting_has_a_name_and_a_value(run: Run, tmp_path: Path) -> None:
    words = ["--engine", "spark", "--spark", "master"]
    outcome = run("anonymize", tmp_path / "submission", "--out", tmp_path / "out", *words)
    assert outcome.code == 2
    assert "not of the form spark.NAME=VALUE" in outcome.err

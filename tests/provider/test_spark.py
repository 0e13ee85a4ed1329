"""The engine on Spark, on two executors that are processes of their own: the local engine's root.

One session serves all of it, in an environment of its own (`make spark-env`).
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import s3_store
import support
from conformance import honest
from files.samples import restate
from properties.tables import any_submissions
from provider.spark_cluster import Cluster, read, running, scatter
from verix_anon.conform.kit import Kit
from verix_anon.conform.trials import Answer, ProviderOutcome, try_provider
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol.messages import Submission
from verix_anon.provider.local import LocalProvider

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("quick_models")]

BUCKET = "jobs"
SOME = 6
"""Every so many-th case of the kit"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with (
        s3_store.running() as endpoint,
        s3_store.reached(endpoint),
        running(tmp_path_factory.mktemp("spark")) as made,
    ):
        yield made


def local_root(sent: Submission) -> str:
    return LocalProvider(threads=1).anonymize(sent).header.root.hex()


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    database=None,
    # A smaller example is looked for where it costs less, without a cluster.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(any_submissions(), st.integers(1, 5), st.sampled_from([0.5, 1.5, 4]), st.integers(0, 2**32))
def test_any_table_any_parts_any_order_any_switch_over(
    cluster: Cluster, sent: Submission, n_parts: int, switch_over: float, seed: int
) -> None:
    folder = cluster.new_folder()
    write_submission(sent, folder / "submission")
    scatter(folder / "submission", n_parts, np.random.default_rng(seed))
    task_rows = int(sent.records.n_rows / switch_over)
    assert cluster.root(folder / "submission", task_rows=task_rows) == local_root(sent)


def test_the_same_delivery_in_all_that_it_holds(cluster: Cluster) -> None:
    """A table of several tasks, with names that trip a reader up, in parts."""
    rng = np.random.default_rng(2)
    n_rows = 5_000
    columns = [
        rng.standard_normal(n_rows).tolist(),
        rng.choice([-1e300, -5e-324, 0.0, 1e-300, 1e300], n_rows).tolist(),
        rng.integers(0, 7, n_rows).tolist(),
    ]
    described = [support.numeric("a.b"), support.numeric("Row"), support.categorical("`c`", 7)]
    sent = support.submission(columns, rng.integers(0, 2, n_rows).tolist(), described=described)
    folder = cluster.new_folder()
    write_submission(sent, folder / "submission")
    scatter(folder / "submission", 5, rng)
    expected = LocalProvider(threads=1).anonymize(sent)
    assert cluster.root(folder / "submission", task_rows=900) == expected.header.root.hex()
    found = read(folder / "delivery", sent)
    for name in ("column", "threshold", "left", "right", "leaf"):
        np.testing.assert_array_equal(getattr(found.tree, name), getattr(expected.tree, name))
    for name in ("count", "minimum", "maximum"):
        np.testing.assert_array_equal(getattr(found.leaves, name), getattr(expected.leaves, name))
    in_order = np.argsort(found.records.row)
    for name in ("row", "tracker", "leaf", "target"):
        delivered = getattr(found.records, name)[in_order]
        np.testing.assert_array_equal(delivered, getattr(expected.records, name))
    # No trace of the work is left.
    assert not list((folder / "delivery").glob(".*"))
    assert sorted(path.name for path in folder.iterdir()) == ["delivery", "submission"]


@pytest.mark.parametrize("name", honest.SUITE)
def test_conformance(cluster: Cluster, name: str) -> None:
    made = honest.SUITE[name]()
    honest.assert_verified(made, cluster.anonymize(made.submission, task_rows=600))


def test_the_conformance_kit(cluster: Cluster, small_kit: Kit) -> None:
    def ask(submission: Path, delivery: Path) -> Answer:
        *_, last = cluster.ask(submission=str(submission), out=str(delivery), task_rows=200)
        if "root" in last:
            return Answer(ProviderOutcome.DELIVERED, "delivered")
        return Answer(ProviderOutcome.REFUSED, last["sentence"])

    # All of them are in test_spark_made.py, where a job costs no cluster.
    cases = [case for case in small_kit.cases if case.kind.side == "provider"][::SOME]
    results = try_provider(small_kit, cases, ask)
    assert [(r.case.id, r.failures) for r in results if not r.passed] == []


PHASES = {"split": 0, "grow": 1, "write": 0}
"""In which an executor is killed, and while it has a task of which of its stages: in `split` those
that count, in `grow` those that finish subtrees from what others have sent them."""


def test_an_executor_killed_in_a_phase_costs_its_tasks_of_that_pass(cluster: Cluster) -> None:
    rng = np.random.default_rng(0)
    sent = support.coded(rng.integers(0, 10_000, (4, 20_000)).tolist(), weights=[4, 3, 2, 1], k=5)
    folder = cluster.new_folder()
    write_submission(sent, folder / "submission")
    scatter(folder / "submission", 8, rng)
    n_before = len(cluster.events())
    *_, last = cluster.ask(
        submission=str(folder / "submission"),
        out=str(folder / "delivery"),
        task_rows=3_000,
        kill=list(PHASES.items()),
    )
    assert last.get("root") == local_root(sent), last
    assert last["killed"] == list(PHASES)
    ran = Ran(cluster.events()[n_before:])
    assert len(ran.removed) == len(PHASES)
    # An executor had a task when it was killed, of the phase that was meant. On a busy machine a
    # task may still end at the last moment; then nothing of that phase is lost.
    lost = {ran.group[stage] for stage, _ in ran.lost}
    assert lost
    assert lost <= {f"verix-anon {name}" for name in PHASES}
    again = {task: n for task, n in ran.starts.items() if n > 1}
    # No pass that was over, and no task of another executor unless it lacked what the lost one had.
    assert again.keys() <= ran.of_removed | ran.lacking
    jobs = Counter(ran.job[stage] for stage, _ in again)
    assert len(jobs) <= 2 * len(PHASES)
    assert len(ran.group) > 3 * len(jobs)


class Ran:
    """What Spark's log says of one of our jobs; a task is a stage and a partition of it."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for event in events:
            by_kind.setdefault(event["Event"].removeprefix("SparkListener"), []).append(event)
        self.group: dict[int, str] = {}
        self.job: dict[int, int] = {}
        for start in by_kind["JobStart"]:
            for stage in start["Stage IDs"]:
                self.group[stage] = start["Properties"]["spark.jobGroup.id"]
                self.job.setdefault(stage, start["Job ID"])
        self.removed = {event["Executor ID"] for event in by_kind["ExecutorRemoved"]}
        starts, ends = by_kind["TaskStart"], by_kind["TaskEnd"]
        self.starts = Counter(map(self.task, starts))
        self.of_removed = {
            self.task(e) for e in starts if e["Task Info"]["Executor ID"] in self.removed
        }
        self.lost = self.ended(ends, "ExecutorLostFailure")
        self.lacking = self.ended(ends, "FetchFailed")

    def task(self, event: dict[str, Any]) -> tuple[int, int]:
        return event["Stage ID"], event["Task Info"]["Partition ID"]

    def ended(self, ends: list[dict[str, Any]], reason: str) -> set[tuple[int, int]]:
        return {self.task(e) for e in ends if e["Task End Reason"]["Reason"] == reason}


def test_from_s3_to_s3_by_the_command(cluster: Cluster, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sent = support.coded(rng.integers(0, 50, (2, 3_000)).tolist(), weights=[2, 1], k=5)
    write_submission(sent, tmp_path / "submission")
    scatter(tmp_path / "submission", 3, rng)
    store = fsspec.filesystem("s3", use_listings_cache=False)
    store.mkdir(BUCKET)
    store.put(str(tmp_path / "submission"), f"{BUCKET}/submission", recursive=True)
    words = ["anonymize", f"s3://{BUCKET}/submission", "--out", f"s3://{BUCKET}/delivery"]
    more = ["--json", "--quiet", "--engine", "spark", "--task-rows", "1000"]
    *_, done = cluster.ask(command=[*words, *more, "--spark", "spark.sql.shuffle.partitions=3"])
    assert done["code"] == 0, done
    assert json.loads(done["said"])["root"] == local_root(sent)
    found = read(f"s3://{BUCKET}/delivery", sent)
    assert found.header.engine == "verix-spark"
    names = {path.removeprefix(f"{BUCKET}/delivery/") for path in store.find(f"{BUCKET}/delivery")}
    assert {name.partition("/")[0] for name in names} == {
        *("delivery.json", "leaves.parquet", "nodes.parquet", "records.parquet")
    }
    *_, refused = cluster.ask(command=[*words, *more])
    assert refused["code"] == 2
    assert "exists already" in refused["said"]


def test_a_task_that_fails_is_told_by_its_own_words(cluster: Cluster) -> None:
    *_, last = cluster.ask(fails=True)
    # The caller's own session goes on, and with it its group of jobs.
    assert (last["cores"], last["group"]) == (1, "mine")
    assert last["error"] == "ProviderError"
    assert last["sentence"] == "Spark has failed: OSError: [Errno 28] No space left on device"


def damage_byte(folder: Path) -> None:
    path = folder / "records.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def alter_value(folder: Path) -> None:
    path = folder / "records.parquet"
    table = pq.read_table(path)
    values = table.column("q0").to_pylist()
    changed = pa.array([39 - values[0], *values[1:]], pa.int32())
    pq.write_table(table.set_column(2, "q0", changed), path)
    restate(folder)


def repeat_row(folder: Path) -> None:
    path = folder / "records.parquet"
    table = pq.read_table(path)
    rows = table.column("row").to_pylist()
    pq.write_table(table.set_column(0, "row", pa.array([rows[1], *rows[1:]])), path)
    restate(folder)


def drop_column(folder: Path) -> None:
    path = folder / "records.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["q0"]), path)
    restate(folder)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (damage_byte, "damaged on the way: records.parquet differs"),
        (alter_value, "damaged on the way: its records are not those"),
        (repeat_row, "not each row from 0 to 399 is there once"),
        (drop_column, "column"),
    ],
)
def test_a_damaged_submission_is_refused(cluster: Cluster, spoil: Any, sentence: str) -> None:
    sent = support.coded([[*range(40)] * 10], weights=[1], k=5)
    folder = cluster.new_folder()
    write_submission(sent, folder / "submission")
    spoil(folder / "submission")
    asked = {"submission": str(folder / "submission"), "out": str(folder / "delivery")}
    *_, last = cluster.ask(**asked)
    assert last["error"] == "TableError"
    assert sentence in last["sentence"]
    assert [path.name for path in folder.iterdir()] == ["submission"]

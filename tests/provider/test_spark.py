"""The engine on Spark, on two executors that are processes of their own: the local engine's root.

One session serves all of it, in an environment of its own (`make spark-env`).
"""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import support
from conformance import honest
from files.samples import restate
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.conform.kit import Kit
from verix_anon.conform.providers import Answer, Outcome
from verix_anon.conform.trying import try_provider
from verix_anon.datasets import census
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.submissions import write_submission
from verix_anon.protocol.contract import Commitment
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.provider.local import LocalProvider

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".cache" / "spark"
PATIENCE = 600
EXECUTOR = b"CoarseGrainedExecutorBackend"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_models")]


class Cluster:
    """The other end of `spark_driver.py`; a Provider, as the conformance suite wants one."""

    def __init__(self, process: "subprocess.Popen[str]", answers: Any, folder: Path) -> None:
        self.process, self.answers, self.folder = process, answers, folder
        self.n_jobs = 0

    def new_folder(self) -> Path:
        self.n_jobs += 1
        folder = self.folder / str(self.n_jobs)
        folder.mkdir()
        return folder

    def ask(self, **asked: Any) -> Iterator[dict[str, Any]]:
        """The words of progress, and then the result."""
        assert self.process.stdin is not None
        # Nobody waits for ever for a cluster that is stuck.
        stuck = threading.Timer(PATIENCE, self.process.kill)
        stuck.start()
        try:
            print(json.dumps(asked), file=self.process.stdin, flush=True)
            for line in self.answers:
                yield json.loads(line)
                if "progress" not in json.loads(line):
                    return
            raise AssertionError("Spark's driver has ended")
        finally:
            stuck.cancel()

    def root(self, sent: Path, **settings: Any) -> str:
        """The root of the delivery for a submission in a folder."""
        *_, last = self.ask(submission=str(sent), out=str(sent.parent / "delivery"), **settings)
        assert "root" in last, last
        return str(last["root"])

    def anonymize(self, submission: Submission, **settings: Any) -> Delivery:
        folder = self.new_folder()
        write_submission(submission, folder / "submission")
        self.root(folder / "submission", **settings)
        return read(folder / "delivery", submission)

    def executors(self) -> list[int]:
        """The processes of executors, which are among the driver's descendants."""
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    status = (entry / "stat").read_text().rpartition(")")[2].split()
                    is_executor = EXECUTOR in (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                parents[int(entry.name)] = (int(status[1]), is_executor)
        return [
            pid for pid, (_, is_one) in parents.items() if is_one and self._is_ours(pid, parents)
        ]

    def _is_ours(self, pid: int, parents: dict[int, tuple[int, bool]]) -> bool:
        while pid in parents and pid != self.process.pid:
            pid = parents[pid][0]
        return pid == self.process.pid


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if not (ENVIRONMENT / "installed").is_file():
        pytest.skip("Spark's environment is not there; `make spark-env` makes it")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java; `make system` installs it")
    reading, writing = os.pipe()
    folder = tmp_path_factory.mktemp("spark")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("COV")},
        "PYTHONPATH": str(ROOT / "src"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [ENVIRONMENT / "bin" / "python", ROOT / "tests/provider/spark_driver.py", str(writing)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
            cwd=folder,
            env=environment,
            pass_fds=[writing],
        )
    os.close(writing)
    try:
        with os.fdopen(reading) as answers:
            ready = answers.readline()
            assert ready, (folder / "log").read_text()[-2000:]
            yield Cluster(process, answers, folder)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def read(folder: Path, sent: Submission) -> Delivery:
    snapshot = read_delivery(folder, sent.contract, n_rows=sent.records.n_rows)
    assert not snapshot.damaged
    return snapshot.delivery


def random_submission(rng: np.random.Generator) -> Submission:
    n_rows, k = int(rng.integers(400, 3_000)), int(rng.integers(2, 9))
    if rng.random() < 0.5:
        sizes = rng.choice([2, 9, 300, 2**31 - 1], 3)
        columns = [rng.integers(0, size, n_rows).tolist() for size in sizes]
        labels = rng.integers(0, 2, n_rows).tolist() if rng.random() < 0.5 else None
        return support.coded(columns, labels, k=k, weights=None if labels else [1, 1, 1])
    columns = [
        rng.standard_normal(n_rows).tolist(),
        rng.choice([-1e300, -5e-324, 0.0, 1e-300, 1e300], n_rows).tolist(),
        rng.integers(0, 7, n_rows).tolist(),
    ]
    described = [support.numeric("a.b"), support.numeric("Row"), support.categorical("`c`", 7)]
    commitment = list(Commitment)[int(rng.integers(0, 2))]
    target = rng.integers(0, 2, n_rows).tolist()
    return support.submission(columns, target, k=k, described=described, commitment=commitment)


def scatter(folder: Path, n_parts: int, rng: np.random.Generator) -> None:
    """Write a submission's records as a cluster would: in parts, in any order, of its own types."""
    path = folder / "records.parquet"
    table = pq.read_table(path)
    table = table.take(rng.permutation(table.num_rows))
    types = {pa.binary(32): pa.binary(), pa.uint8(): pa.int16()}
    table = table.cast(pa.schema([(f.name, types.get(f.type, f.type)) for f in table.schema]))
    path.unlink()
    path.mkdir()
    cuts = np.sort(rng.integers(0, table.num_rows, n_parts - 1)).tolist()
    for i, (first, last) in enumerate(zip([0, *cuts], [*cuts, table.num_rows], strict=True)):
        pq.write_table(table.slice(first, last - first), path / f"part-{i:05}.parquet")
    restate(folder)


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_any_table_any_parts_any_switch_over(cluster: Cluster, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sent = random_submission(rng)
    folder = cluster.new_folder()
    write_submission(sent, folder / "submission")
    scatter(folder / "submission", int(rng.integers(1, 6)), rng)
    task_rows = int(sent.records.n_rows / rng.choice([0.5, 3, 20]))
    expected = LocalProvider(threads=1).anonymize(sent)
    assert cluster.root(folder / "submission", task_rows=task_rows) == expected.header.root.hex()
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


@pytest.mark.parametrize(
    "options",
    [
        PrepareOptions(unsafe_seed=1),
        PrepareOptions.paper(unsafe_seed=3),
    ],
    ids=["coded", "paper"],
)
def test_conformance(cluster: Cluster, options: PrepareOptions) -> None:
    made = prepare(census(2_000), target="income", quasi="all", k=5, options=options)
    honest.assert_verified(made, cluster.anonymize(made.submission, task_rows=500))


def test_the_conformance_kit(cluster: Cluster, small_kit: Kit) -> None:
    def ask(submission: Path, delivery: Path) -> Answer:
        *_, last = cluster.ask(submission=str(submission), out=str(delivery), task_rows=200)
        if "root" in last:
            return Answer(Outcome.DELIVERED, "delivered")
        return Answer(Outcome.REFUSED, last["sentence"])

    cases = [case for case in small_kit.cases if case.kind.is_for_provider]
    results = try_provider(small_kit, cases, ask)
    assert [(r.case.id, r.failures) for r in results if not r.passed] == []


def test_a_killed_executor_costs_its_tasks_only(cluster: Cluster) -> None:
    rng = np.random.default_rng(0)
    sent = support.coded(rng.integers(0, 10_000, (4, 20_000)).tolist(), weights=[4, 3, 2, 1], k=5)
    folder = cluster.new_folder()
    write_submission(sent, folder / "submission")
    scatter(folder / "submission", 4, rng)
    killed = 0
    asked = {"submission": str(folder / "submission"), "out": str(folder / "delivery")}
    for word in cluster.ask(**asked, task_rows=3_000):
        # Once while the top is split, and once before the subtrees are finished.
        if word.get("progress", [None])[0] == ("split" if killed == 0 else "grow") and killed < 2:
            os.kill(cluster.executors()[0], signal.SIGKILL)
            killed += 1
    assert killed == 2
    assert word.get("root") == LocalProvider(threads=1).anonymize(sent).header.root.hex(), word


def test_the_command(cluster: Cluster) -> None:
    sent = support.coded([[*range(40)] * 10], weights=[1], k=5)
    folder = cluster.new_folder()
    write_submission(sent, folder / "submission")
    words = ["anonymize", folder / "submission", "--out", folder / "delivery", "--json", "--quiet"]
    more = ["--engine", "spark", "--task-rows", "100", "--spark", "spark.sql.shuffle.partitions=3"]
    *_, done = cluster.ask(command=[*map(str, words), *more])
    assert done["code"] == 0, done
    said = json.loads(done["said"])
    assert said["root"] == LocalProvider(threads=1).anonymize(sent).header.root.hex()
    assert read(folder / "delivery", sent).header.engine == "verix-spark"


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

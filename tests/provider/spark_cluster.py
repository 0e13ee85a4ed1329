"""The other end of `spark_driver.py`: a cluster of two executors, with an S3 beside it."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files.samples import restate
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_writer import write_submission
from verix_anon.protocol.messages import Delivery, Submission

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".cache" / "spark"
PYTHON = ENVIRONMENT / "bin" / "python"
PATIENCE = 600


class Cluster:
    """A Provider, as the conformance suite wants one."""

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

    def events(self) -> list[dict[str, Any]]:
        """Spark's own log of what has run."""
        (log,) = self.folder.glob("app-*")
        return [json.loads(line) for line in log.read_text().splitlines()]


def environment() -> dict[str, str]:
    """What a process of Spark's is started with; skips where Spark is not."""
    if not (ENVIRONMENT / "installed").is_file():
        pytest.skip("Spark's environment is not there; `make spark-env` makes it")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java; `make system` installs it")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("COV")},
        "PYTHONPATH": str(ROOT / "src"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster that keeps its files in a folder."""
    reading, writing = os.pipe()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [PYTHON, ROOT / "tests/provider/spark_driver.py", str(writing)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
            cwd=folder,
            env=environment(),
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
    assert process.returncode == 0, (folder / "log").read_text()[-2000:]


def read(folder: Path | str, sent: Submission) -> Delivery:
    snapshot = read_delivery(folder, sent.contract, n_rows=sent.records.n_rows)
    assert not snapshot.damaged
    return snapshot.delivery


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

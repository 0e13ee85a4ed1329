"""A standalone cluster as an operator starts it: a master, two workers, and the command."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

import support
from provider.spark_cluster import ENVIRONMENT, PATIENCE, PYTHON, environment, read, scatter
from verix_anon.files.folder_writer import write_submission
from verix_anon.provider.local import LocalProvider

pytestmark = pytest.mark.long

HOST = "127.0.0.1"
N_WORKERS = 2


@contextmanager
def started(folder: Path, name: str, *words: str) -> Iterator[Path]:
    """One of Spark's own programs, by the script that Spark's package brings; its log."""
    variables = {**environment(), "PYSPARK_PYTHON": str(PYTHON)}
    (program,) = ENVIRONMENT.glob("lib/python*/site-packages/pyspark/bin/spark-class")
    log = folder / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [program, *words],
            stdout=file,
            stderr=file,
            cwd=folder,
            env=variables,
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def said(log: Path, pattern: str) -> str:
    """What a program has said, once it has."""
    deadline = time.monotonic() + PATIENCE
    while (found := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.1)
    return found[0]


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a master with two workers of one core each."""
    where = ["--host", HOST, "--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        words = ["org.apache.spark.deploy.master.Master", *where]
        log = stack.enter_context(started(tmp_path, "master", *words))
        url = said(log, rf"spark://{HOST}:[1-9]\d*")
        words = ["org.apache.spark.deploy.worker.Worker", *where, "--cores", "1", "--memory", "1g"]
        logs = [
            stack.enter_context(started(tmp_path, f"worker{i}", *words, url))
            for i in range(N_WORKERS)
        ]
        for log in logs:
            said(log, "Successfully registered with master")
        yield url


def test_the_command_on_a_standalone_cluster(master: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sent = support.coded(rng.integers(0, 500, (3, 6_000)).tolist(), weights=[3, 2, 1], k=5)
    write_submission(sent, tmp_path / "submission")
    scatter(tmp_path / "submission", 3, rng)
    words = ["anonymize", "submission", "--out", "delivery", "--json", "--quiet"]
    words += ["--engine", "spark", "--task-rows", "2000", "--spark", f"spark.master={master}"]
    given = {
        "spark.driver.host": HOST,
        "spark.executor.memory": "600m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{tmp_path}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    # Spark's other way to be configured: a file in a folder of settings.
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 3\n")
    more = [word for name, value in given.items() for word in ("--spark", f"{name}={value}")]
    done = subprocess.run(
        [PYTHON, "-m", "verix_anon", *words, *more],
        cwd=tmp_path,
        env={**environment(), "SPARK_CONF_DIR": str(tmp_path / "conf")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    expected = LocalProvider(threads=1).anonymize(sent).header.root
    assert json.loads(done.stdout)["root"] == expected.hex()
    assert read(tmp_path / "delivery", sent).header.engine == "verix-spark"
    (log,) = tmp_path.glob("app-*")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    added = [e["Executor ID"] for e in events if e["Event"] == "SparkListenerExecutorAdded"]
    assert len(added) == N_WORKERS
    (settings,) = (e for e in events if e["Event"] == "SparkListenerEnvironmentUpdate")
    found = settings["Spark Properties"]
    assert given.items() <= found.items()
    assert found["spark.sql.shuffle.partitions"] == "3"

"""The engine on Spark in bounded memory, phase by phase, and what a larger table would cost.

python -m tools.bench.spark [ROWS]

It runs in Spark's environment (`make spark-env`), on two executors that are processes of their
own. The whole of it, the driver and what executors start included, is to stay within 8 GB.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tools.bench import machine, spark_log, spark_table
from tools.bench.record import record
from tools.bench.spark_estimate import estimate
from tools.bench.spark_page import render

ROWS, COLUMNS = 20_000_000, 16
MOST_BYTES = 8_000_000_000
ROOT = Path(__file__).parent.parent.parent
PYTHON = ROOT / ".cache" / "spark" / "bin" / "python"
TASK_ROWS = 500_000
"""And of a small table an eighth, so that it has a top to split"""
SETTINGS = {
    # Two executors of one core; each has a process of Python beside it.
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "1g",
    "spark.driver.memory": "1g",
    # What Java keeps beside its heap.
    "spark.executor.extraJavaOptions": "-XX:MaxDirectMemorySize=512m -XX:+UseSerialGC",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executorEnv.PYTHONPATH": str(ROOT / "src"),
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}

Result = dict[str, Any]


def measure(n_rows: int) -> Result:
    """One job, from a submission in parts to a delivery."""
    with tempfile.TemporaryDirectory(prefix="verix-spark-", dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        spark_table.write(folder / "submission", n_rows, COLUMNS)
        load = os.getloadavg()[0]
        found, seconds, taken = run(folder, n_rows, "delivery")
        assert taken.peak <= MOST_BYTES, f"{taken.peak:,} bytes"
        (log,) = folder.glob("app-*")
        result: Result = {
            "rows": n_rows,
            "columns": COLUMNS,
            "task_rows": task_rows(n_rows),
            # Of others on the same cores, before this begins.
            "load_average": load,
            "seconds": seconds,
            "engine_seconds": found["seconds"],
            "peak_bytes": taken.peak,
            "driver_bytes": taken.driver,
            "most_bytes": MOST_BYTES,
            "leaves": found["leaves"],
            "phases": spark_log.phases(log),
            **_bytes(folder),
            "same_root": found["root"] == _local_root(folder),
        }
    assert result["same_root"]
    return result | {"estimate": estimate(result)}


def task_rows(n_rows: int) -> int:
    """How many records a task may finish by itself."""
    return min(TASK_ROWS, n_rows // 8)


def run(folder: Path, n_rows: int, out: str) -> tuple[Result, float, "Sampler"]:
    """Anonymize a folder's submission: what the command says, how long it takes, and of what."""
    words = ["anonymize", "submission", "--out", out, "--json", "--quiet"]
    words += ["--engine", "spark", "--task-rows", str(task_rows(n_rows))]
    for setting in ({**SETTINGS, "spark.eventLog.dir": f"file:{folder}"}).items():
        words += ["--spark", "=".join(setting)]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # What Spark spills and sends lies with the rest.
        "SPARK_LOCAL_DIRS": str(folder),
    }
    began = time.perf_counter()
    process = subprocess.Popen(
        [PYTHON, "-m", "verix_anon", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    sampler = Sampler(process.pid)
    sampler.start()
    said, _ = process.communicate()
    assert process.returncode == 0, said
    sampler.join()
    return json.loads(said), time.perf_counter() - began, sampler


class Sampler(threading.Thread):
    """What a process and all its descendants take: the most memory at a time, and seconds."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak = pid, 0
        self.driver = 0
        """Of the process itself: the driver's part in Python"""
        self.seconds: dict[int, float] = {}
        """Of a processor, by process; nobody waits for all of them, so the system has no sum"""

    def run(self) -> None:
        """Look ten times a second, until the process is gone."""
        while (found := sum(map(_resident, family := _family(self.pid)))) > 0:
            self.peak = max(self.peak, found)
            self.driver = max(self.driver, _resident(self.pid))
            self.seconds |= {pid: spent for pid in family if (spent := _spent(pid))}
            time.sleep(0.1)


def _family(pid: int) -> list[int]:
    """A process and its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (status := _status(int(entry.name))):
            parents[int(entry.name)] = int(status[1])
    found = [pid]
    for member in found:
        found += [child for child, parent in parents.items() if parent == member]
    return found


def _status(pid: int) -> list[str]:
    """What the system says of a process, from its state on; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _spent(pid: int) -> float:
    ticks = _status(pid)[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _bytes(folder: Path) -> dict[str, int]:
    """What a pass over all columns reads, and one over those that decide splits."""
    everything = deciding = 0
    for path in (folder / "submission" / "records.parquet").iterdir():
        metadata = pq.read_metadata(path)
        everything += path.stat().st_size
        for group in range(metadata.num_row_groups):
            chunks = [metadata.row_group(group).column(j) for j in range(2, 2 + COLUMNS)]
            deciding += sum(chunk.total_compressed_size for chunk in chunks)
    delivered = sum(path.stat().st_size for path in (folder / "delivery").rglob("*.parquet"))
    return {"read_bytes": everything, "split_bytes": deciding, "delivered_bytes": delivered}


def _local_root(folder: Path) -> str:
    """What the local engine gives."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "verix_anon",
            "anonymize",
            "submission",
            "--out",
            "local",
            "--json",
            "--quiet",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return str(json.loads(done.stdout)["root"])


if __name__ == "__main__":
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    record("spark", machine.facts(), lambda: measure(n_rows), render)

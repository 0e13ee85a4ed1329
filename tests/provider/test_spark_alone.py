"""What can be said of the engine on Spark where Spark is not installed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import support
from provider.spark_cluster import ROOT
from verix_anon.errors import ProviderError
from verix_anon.machine import available_cores
from verix_anon.provider.spark.session import limits_of
from verix_anon.provider.spark.submission_reader import key_of, keys_of, reach, value_of
from verix_anon.provider.spark.top import (
    BUCKET_BYTES,
    MIN_BUCKETS,
    ClusterLimits,
    Pass,
    Top,
    grow_top,
    n_buckets,
)

HAS_SPARK = importlib.util.find_spec("pyspark") is not None
ON_EXECUTORS = ("numpy", "numba", "pyarrow", "rfc8785")
"""And pandas, for Spark itself; and fsspec, where URLs are used"""
BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and not top.startswith("_") and top not in sys.argv:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Blocked())
import verix_anon.provider.spark.executors
"""


@pytest.mark.long
def test_executors_need_few_packages() -> None:
    """That they do with these is seen on the cluster, whose environment has few others."""
    # Of all others only what numba is made of.
    allowed = [*ON_EXECUTORS, "llvmlite", "verix_anon"]
    subprocess.run([sys.executable, "-c", BLOCKED, *allowed], check=True)
    page = (ROOT / "docs/how-to/spark.md").read_text()
    (said,) = re.findall(r"\*\*Executors\*\* need ([^;]+);", page)
    assert all(name in said for name in (*ON_EXECUTORS, "pandas", "fsspec"))
    listed = (Path(__file__).parent / "spark-requirements.txt").read_text()
    assert {*ON_EXECUTORS, "pandas", "fsspec"} <= set(re.findall(r"^([\w-]+)==", listed, re.M))
    assert not re.search("xgboost|scikit-learn", listed)


def test_keys_are_in_the_order_of_values() -> None:
    column = support.numeric("x")
    most = float(np.finfo(np.float64).max)
    values = [-most, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.nextafter(1.0, 2.0), 1e300, most]
    keys = keys_of(column, np.array(values)).tolist()
    assert keys == sorted(set(keys))
    assert [value_of(column, key) for key in keys] == values
    assert reach(column) == (keys[0], keys[-1])
    assert key_of(column, 0.0) == 0
    positions = support.categorical("c", 7)
    assert keys_of(positions, np.array([0.0, 6.0])).tolist() == list(reach(positions)) == [0, 6]


@pytest.mark.parametrize("n_cells", [1, 16, 1000, 16 * 1024, 10**6])
def test_histograms_keep_to_their_budget(n_cells: int) -> None:
    budget = 64 << 20
    found = n_buckets(n_cells, budget)
    assert found & (found - 1) == 0
    assert found == MIN_BUCKETS or n_cells * found * BUCKET_BYTES <= budget


def test_a_leaf_that_no_task_holds_is_an_error() -> None:
    sent = support.submission([[7.0] * 100], [1] * 100)
    top = Top(
        sent.contract, 100, ClusterLimits(task_rows=10, leaf_rows=50, histogram_bytes=1 << 20)
    )
    top.is_leaf[0] = True

    def never(wanted: Pass) -> Any:
        raise AssertionError("a leaf is not counted")

    with pytest.raises(ProviderError, match=r"100 records lie in one leaf .* a task holds 50"):
        list(grow_top(top, never))


def cluster(master: str, running: tuple[int, ...] = (), **settings: str) -> Any:
    """A session; of executors that run, the first is the driver, which has no core for tasks."""
    conf = {name.replace("_", "."): value for name, value in settings.items()}
    cores = (0, *running)
    executors = SimpleNamespace(
        size=lambda: len(cores), apply=lambda i: SimpleNamespace(totalCores=lambda: cores[i])
    )
    store = SimpleNamespace(executorList=lambda active_only: executors)
    java = SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: store))
    context = SimpleNamespace(master=master, defaultParallelism=40, getConf=lambda: conf, _jsc=java)
    return SimpleNamespace(sparkContext=context)


@pytest.mark.parametrize(
    ("session", "at_a_time"),
    [
        (cluster("yarn"), 1),
        (cluster("k8s://https://host:6443"), 1),
        (cluster("yarn", spark_executor_cores="4"), 4),
        (cluster("yarn", spark_executor_cores="5", spark_task_cpus="2"), 2),
        # All cores of a worker, unless it is said: only those that run tell.
        (cluster("spark://head:7077", (2,)), 2),
        (cluster("spark://head:7077", (2, 8, 4)), 8),
        (cluster("spark://head:7077", (8,), spark_executor_cores="2"), 2),
        (cluster("spark://head:7077", (8,), spark_task_cpus="4"), 2),
        (cluster("spark://head:7077", (2,), spark_task_cpus="4"), 1),
        (cluster("spark://head:7077"), 40),
        (cluster("local-cluster[2,3,1024]"), 3),
        (cluster("local-cluster[2, 3, 1024]", spark_executor_cores="1"), 1),
        (cluster("local"), 1),
        (cluster("local[4]", spark_default_parallelism="64"), 4),
        (cluster("local[4,2]", spark_executor_cores="9"), 4),
        (cluster("local[*]"), available_cores()),
    ],
)
def test_memory_is_shared_by_tasks_that_run_at_a_time(session: Any, at_a_time: int) -> None:
    alone = limits_of(cluster("local"), 16, None)
    assert limits_of(session, 16, None).task_rows == alone.task_rows // at_a_time


def test_a_task_holds_what_its_executors_memory_says() -> None:
    small = limits_of(cluster("spark://head:7077", (1,)), 16, None)
    large = limits_of(cluster("yarn", spark_executor_memory="8g"), 16, None)
    shared = limits_of(
        cluster("yarn", spark_executor_memory="8192m", spark_executor_cores="4"), 16, None
    )
    local = limits_of(cluster("local[4]", spark_driver_memory="8G"), 16, None)
    assert large.task_rows == pytest.approx(8 * small.task_rows, rel=1e-4)
    assert shared.task_rows == local.task_rows == pytest.approx(large.task_rows / 4, rel=1e-4)
    assert small.task_rows * (32 * 16 + 256) <= (1 << 30) / 2
    assert small.leaf_rows > small.task_rows
    assert limits_of(cluster("yarn"), 16, 77).task_rows == 77
    with pytest.raises(ProviderError, match="'much' is not an amount of memory"):
        limits_of(cluster("yarn", spark_executor_memory="much"), 16, None)

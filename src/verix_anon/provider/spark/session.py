"""A Spark session: the caller's, or one of the given configuration; and what its tasks can hold."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from verix_anon.errors import ProviderError
from verix_anon.files.optional_packages import need
from verix_anon.machine import available_cores
from verix_anon.provider.spark.top import ClusterLimits

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


HISTOGRAM_BYTES = 64 << 20
"""What the histograms of one pass may take in a task."""
SHARE_OF_MEMORY = 0.5
"""Python's part of what an executor has: Spark's own part stands beside it."""
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
DEFAULT_MEMORY = "1g"
LOCAL = r"local(?:$|\[\s*(\d+|\*))"
OF_JOBS = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
"""What setJobGroup sets for all jobs that follow."""
ONE_CORE = ("yarn", "k8s:")
"""Masters whose executors have one core unless another number is given."""
MAX_ROWS = 1 << 25
"""No task gets more records than that: what it returns is one cell of a table."""


@contextmanager
def session(configuration: Mapping[str, str]) -> Iterator["SparkSession"]:
    """A session with its own settings of SQL, on the cluster that is configured or in use.

    What was started here is stopped in the end; what was in use is left as it was.
    """
    need("pyspark", "spark", "the engine on Spark", ProviderError)
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    is_ours = SparkContext._active_spark_context is None
    own = _started(configuration)
    context = own.sparkContext
    before = {name: context.getLocalProperty(name) for name in OF_JOBS}
    try:
        yield own
    finally:
        # One that has ended by itself cannot be told anything.
        with suppress(Py4JError, OSError):
            if is_ours:
                own.stop()
            else:
                for name, value in before.items():
                    context.setLocalProperty(name, value)


def _started(configuration: Mapping[str, str]) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("verix-anon")
    for name, value in configuration.items():
        builder = builder.config(name, value)
    # Workers that are started here run on this very interpreter, unless somebody says otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        own = builder.getOrCreate().newSession()
    except (PySparkException, OSError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ProviderError(f"Spark cannot be started ({reason}); it needs Java") from None
    for name, value in configuration.items():
        if name.startswith("spark.sql.") and own.conf.isModifiable(name):
            own.conf.set(name, value)
    return own


def limits_of(spark: "SparkSession", n_quasi: int, task_rows: int | None) -> ClusterLimits:
    """What a task can hold, by the executors' memory and cores, unless given."""
    context = spark.sparkContext
    conf = context.getConf()
    # On one machine the driver is the executor.
    whose = "driver" if re.match(LOCAL, context.master) else "executor"
    memory = _bytes(conf.get(f"spark.{whose}.memory") or DEFAULT_MEMORY)
    at_a_time = max(1, _cores_of_executor(context) // int(conf.get("spark.task.cpus") or 1))
    for_task = SHARE_OF_MEMORY * memory / at_a_time
    # As Arrow's, as a matrix, and sorted, once each; of a leaf, hashed in one go, twice its bytes.
    grown = min(MAX_ROWS, int(for_task / (32 * n_quasi + 256)))
    hashed = min(MAX_ROWS, int(for_task / (16 * n_quasi + 256)))
    return ClusterLimits(task_rows or max(1, grown), hashed, HISTOGRAM_BYTES)


def _cores_of_executor(context: "SparkContext") -> int:
    """How many cores the largest executor has."""
    master = context.master
    if local := re.match(LOCAL, master):
        return available_cores() if local[1] == "*" else int(local[1] or 1)
    if given := context.getConf().get("spark.executor.cores"):
        return int(given)
    if master.startswith(ONE_CORE):
        return 1
    if made := re.match(r"local-cluster\[\s*\d+\s*,\s*(\d+)", master):
        return int(made[1])
    # Else an executor takes all cores of its worker, and only those that run know how many.
    return running_cores(context) or context.defaultParallelism


def running_cores(context: "SparkContext") -> int:
    """The same of the executors that run; 0 if none does."""
    found = context._jsc.sc().statusStore().executorList(True)
    return max((int(found.apply(i).totalCores()) for i in range(found.size())), default=0)


def _bytes(text: str) -> int:
    """So many bytes as Spark writes them: 1024m, 8g."""
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", text.strip().lower())
    if found is None:
        raise ProviderError(f"{text!r} is not an amount of memory such as 8g")
    return int(found[1]) * UNITS[found[2]]

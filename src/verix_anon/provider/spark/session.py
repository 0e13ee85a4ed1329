"""A Spark session: the caller's, or one of the given configuration; and what its tasks can hold."""

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from verix_anon.errors import ProviderError
from verix_anon.provider.spark.top import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["HISTOGRAM_BYTES", "limits_of", "session"]

HISTOGRAM_BYTES = 64 << 20
"""What the histograms of one pass may take in a task."""
SHARE_OF_MEMORY = 0.5
"""Python's part of what an executor has: Spark's own part stands beside it."""
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
DEFAULT_MEMORY = "1g"
MAX_ROWS = 1 << 25
"""No task gets more records than that: what it returns is one cell of a table."""


def session(configuration: Mapping[str, str]) -> "SparkSession":
    """A session with its own settings of SQL, on the cluster that is configured or in use."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ProviderError(
            f"the engine on Spark needs the extra 'spark' ({error}); in your clone of verix-anon:"
            " pip install -e '.[spark]'"
        ) from None
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


def limits_of(spark: "SparkSession", n_quasi: int, task_rows: int | None) -> Limits:
    """What a task can hold, by the executors' memory and cores, unless given."""
    context = spark.sparkContext
    conf, is_local = context.getConf(), re.match(r"local($|\[)", context.master) is not None
    # On one machine the driver is the executor, with a core for each task at a time.
    memory = conf.get(
        "spark.driver.memory" if is_local else "spark.executor.memory", DEFAULT_MEMORY
    )
    cores = context.defaultParallelism if is_local else int(conf.get("spark.executor.cores", "1"))
    for_task = SHARE_OF_MEMORY * _bytes(memory) / cores
    # As Arrow's, as a matrix, and sorted, once each; of a leaf, hashed in one go, twice its bytes.
    grown = min(MAX_ROWS, int(for_task / (32 * n_quasi + 256)))
    hashed = min(MAX_ROWS, int(for_task / (16 * n_quasi + 256)))
    return Limits(task_rows or max(1, grown), hashed, HISTOGRAM_BYTES)


def _bytes(text: str) -> int:
    """So many bytes as Spark writes them: 1024m, 8g."""
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", text.strip().lower())
    if found is None:
        raise ProviderError(f"{text!r} is not an amount of memory such as 8g")
    return int(found[1]) * UNITS[found[2]]

"""The provider: anonymizes as the contract says, on this machine or on Spark; sees no manifest."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from verix_anon.machine import available_cores
from verix_anon.progress import Progress, ignore

if TYPE_CHECKING:
    from verix_anon.provider.local import LocalProvider
    from verix_anon.provider.spark import SparkProvider

__all__ = ["folder_provider"]


def folder_provider(
    *,
    spark: Mapping[str, str] | None,
    threads: int | None = None,
    task_rows: int | None = None,
    progress: Progress = ignore,
) -> "LocalProvider | SparkProvider":
    """The engine on Spark with these settings of Spark's, or the one on this machine if None.

    Args:
        spark: Spark's own settings, such as spark.master.
        threads: Of this machine's engine; all cores by default.
        task_rows: How many records a task of Spark's finishes at most.
        progress: Told how far the work is.
    """
    if spark is None:
        from verix_anon.provider.local import LocalProvider

        return LocalProvider(threads=threads or available_cores(), progress=progress)
    from verix_anon.provider.spark import SparkProvider

    return SparkProvider(configuration=spark, task_rows=task_rows, progress=progress)

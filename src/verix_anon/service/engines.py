"""Which engine takes a job: this machine's if the job fits a worker's memory, or Spark.

A job that fits nowhere is refused before anything is uploaded, with what it needs and what there
is.
"""

import resource
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from verix_anon.errors import ProviderError
from verix_anon.files.optional_packages import install_line
from verix_anon.machine import available_cores, total_memory
from verix_anon.progress import Progress
from verix_anon.protocol.messages import Header
from verix_anon.provider import folder_provider, local
from verix_anon.service.database import JobRow
from verix_anon.service.jobs import NewJob, RequestRefusedError
from verix_anon.service.settings import ServiceSettings

LOCAL, SPARK = "verix-local", "verix-spark"
ROW_BYTES = 34
"""Of a record beside its quasi-identifiers: tracker, target, whether it is there"""
LEAST_BYTES = 100_000_000
"""Of stacks and buffers, however small the job is"""


def names(settings: ServiceSettings) -> tuple[str, ...]:
    """The engines that may be chosen."""
    return (LOCAL,) if settings.spark_above is None else (LOCAL, SPARK)


def check(settings: ServiceSettings) -> None:
    """Raise ProviderError unless all engines that are configured are there."""
    if settings.spark_above is not None and find_spec("pyspark") is None:
        raise ProviderError(
            f"jobs of more than {settings.spark_above:,} rows are for Spark, which is not"
            f" installed; install it: {install_line('spark')}"
        )


def threads(settings: ServiceSettings) -> int:
    """How many threads a worker has."""
    return max(1, available_cores() // max(1, settings.workers))


def needed_bytes(settings: ServiceSettings, job: NewJob | JobRow) -> int:
    """About how much memory a worker takes for a job, reading and writing included."""
    records = (8 * job.columns + ROW_BYTES) * job.rows
    # The files are held while they are read; what the engine takes comes after.
    work = local.needed_bytes(job.rows, job.columns, job.min_leaf, threads=threads(settings))
    return LEAST_BYTES + records + max(job.bytes, work)


def choose(settings: ServiceSettings, job: NewJob | JobRow) -> str:
    """The name of the engine for a job; RequestRefusedError if it fits none."""
    if settings.spark_above is not None and job.rows > settings.spark_above:
        return SPARK
    needed = needed_bytes(settings, job)
    # A worker may be allowed more than there is: then the job would wait for ever.
    most = min(settings.worker_bytes, total_memory() or settings.worker_bytes)
    if needed > most:
        raise RequestRefusedError(
            "job-too-large",
            f"a job of {job.rows:,} records with {job.columns:,} quasi-identifiers needs about"
            f" {needed / 1e9:,.2f} GB of memory, and a worker here has"
            f" {most / 1e9:,.2f} GB",
        )
    return LOCAL


def run(
    name: str,
    settings: ServiceSettings,
    submission: Path,
    delivery: Path,
    *,
    progress: Progress,
    finish: Callable[[Path], object],
) -> Header:
    """Let the engine of this name make the delivery's folder from the submission's folder.

    `finish` is called with the delivery's folder before that takes its name.
    """
    spark = settings.spark if name == SPARK else None
    provider = folder_provider(spark=spark, threads=threads(settings), progress=progress)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    if name == SPARK:
        # Java sets aside far more than it takes, and Spark keeps to limits of its own.
        resource.setrlimit(resource.RLIMIT_AS, (limits[1], limits[1]))
    try:
        return provider.anonymize_folder(submission, delivery, finish=finish)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)

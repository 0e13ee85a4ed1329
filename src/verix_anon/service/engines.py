"""Which engine takes a job: this machine's if the job fits a worker's memory, or Spark.

A job that fits nowhere is refused before anything is uploaded, with what it needs and what there
is.
"""

from dataclasses import dataclass

from verix_anon.errors import ProviderError
from verix_anon.machine import available_cores
from verix_anon.progress import Progress
from verix_anon.protocol.messages import Provider
from verix_anon.provider import local
from verix_anon.service.settings import Settings

__all__ = [
    "LOCAL",
    "SPARK",
    "Shape",
    "TooLargeError",
    "check",
    "choose",
    "names",
    "needed_bytes",
    "provider",
]

LOCAL, SPARK = "verix-local", "verix-spark"
ROW_BYTES = 34
"""Of a record beside its quasi-identifiers: tracker, target, whether it is there"""
LEAST_BYTES = 100_000_000
"""Of stacks and buffers, however small the job is"""


class TooLargeError(ProviderError):
    """The job fits no engine that is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the memory that a job takes depends on."""

    rows: int
    columns: int
    """Quasi-identifiers"""
    min_leaf: int
    file_bytes: int
    """Of all files that are uploaded"""


def names(settings: Settings) -> tuple[str, ...]:
    """The engines that may be chosen."""
    return (LOCAL,) if settings.spark_above is None else (LOCAL, SPARK)


def check(settings: Settings) -> None:
    """Raise ProviderError unless all engines that are configured are there."""
    if settings.spark_above is not None:
        raise ProviderError("jobs cannot be given to Spark: this version has no such engine")


def threads(settings: Settings) -> int:
    """How many threads a worker has."""
    return max(1, available_cores() // max(1, settings.workers))


def needed_bytes(shape: Shape, *, threads: int) -> int:
    """About how much memory a worker takes for a job, reading and writing included."""
    records = (8 * shape.columns + ROW_BYTES) * shape.rows
    # The files are held while they are read; what the engine takes comes after.
    work = local.needed_bytes(shape.rows, shape.columns, shape.min_leaf, threads=threads)
    return LEAST_BYTES + records + max(shape.file_bytes, work)


def choose(settings: Settings, shape: Shape) -> str:
    """The name of the engine for a job; TooLargeError if it fits none."""
    if settings.spark_above is not None and shape.rows > settings.spark_above:
        return SPARK
    needed = needed_bytes(shape, threads=threads(settings))
    if needed > settings.worker_bytes:
        raise TooLargeError(
            f"a job of {shape.rows:,} records with {shape.columns:,} quasi-identifiers needs about"
            f" {needed / 1e9:,.2f} GB of memory, and a worker here has"
            f" {settings.worker_bytes / 1e9:,.2f} GB"
        )
    return LOCAL


def provider(name: str, settings: Settings, progress: Progress) -> Provider:
    """The engine of a name."""
    if name != LOCAL:
        raise ProviderError(f"there is no engine {name} here")
    return local.LocalProvider(threads=threads(settings), progress=progress)

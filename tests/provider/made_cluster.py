"""As much of Spark's interface as the engine uses, without Spark: every task is a call.

What Spark leaves open is drawn: how groups are shared out and in which order all comes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LOST = 0.2
Task = Callable[[Any], Any]


class TaskError(Exception):
    """A task has failed; nobody is told with which error but in words, as by Spark."""


class MadeCluster:
    """A session with so many cores."""

    def __init__(self, n_cores: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.sparkContext = SimpleNamespace(
            master="local-made",
            defaultParallelism=n_cores,
            setJobGroup=lambda *words: None,
            getConf=lambda: {"spark.executor.cores": "1"},
        )

    def range(self, first: int, end: int, step: int, n_tasks: int) -> "Frame":
        shares = np.array_split(np.arange(first, end, step), n_tasks)
        return Frame(self.rng, [[pa.record_batch({"id": pa.array(some)})] for some in shares])


class Frame:
    """Batches by partition."""

    def __init__(self, rng: np.random.Generator, parts: list[list[pa.RecordBatch]]) -> None:
        self.rng, self.parts = rng, parts

    def mapInArrow(self, task: Task, schema: str) -> "Frame":  # noqa: N802, Spark's name
        order = self.rng.permutation(len(self.parts))
        return Frame(self.rng, [self.run(partial(_listed, task, self.parts[i])) for i in order])

    def run(self, task: Callable[[], list[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """What a task gives; its executor may be lost when it is through, and it is run again."""
        try:
            if self.rng.random() < LOST:
                task()
            return task()
        except Exception as error:
            raise TaskError(f"{type(error).__name__}: {error}") from error

    def selectExpr(self, chunk: str, rest: str) -> "Frame":  # noqa: N802, Spark's name
        assert (chunk, rest) == ("shiftright(row, 16) AS chunk", "*")
        return Frame(self.rng, [[_with_chunk(batch) for batch in part] for part in self.parts])

    def repartition(self, n_tasks: int, name: str) -> "Frame":
        groups = [table.to_batches() for _, table in self._groups(name)]
        at = self.rng.integers(0, n_tasks, len(groups))
        gathered = [[b for i in np.flatnonzero(at == t) for b in groups[i]] for t in range(n_tasks)]
        return Frame(self.rng, gathered)

    def groupBy(self, name: str) -> "Grouped":  # noqa: N802, Spark's name
        return Grouped(self, name)

    def collect(self) -> list[dict[str, Any]]:
        return [row for part in self.parts for batch in part for row in batch.to_pylist()]

    def _groups(self, name: str) -> Iterator[tuple[Any, pa.Table]]:
        batches = [batch for part in self.parts for batch in part]
        if not batches:
            return
        table = pa.Table.from_batches([batches[i] for i in self.rng.permutation(len(batches))])
        table = table.take(self.rng.permutation(table.num_rows))
        for value in pc.unique(table.column(name)).to_pylist():
            yield value, table.filter(pc.equal(table.column(name), value))


class Grouped:
    """Batches by the value of a column."""

    def __init__(self, frame: Frame, name: str) -> None:
        self.frame, self.name = frame, name

    def applyInArrow(self, task: Task, schema: str) -> Frame:  # noqa: N802, Spark's name
        groups = [table for _, table in self.frame._groups(self.name)]
        run = self.frame.run
        return Frame(self.frame.rng, [run(partial(_grouped, task, table)) for table in groups])


def _listed(task: Task, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return list(task(iter(batches)))


def _grouped(task: Task, table: pa.Table) -> list[pa.RecordBatch]:
    return list(task(table).to_batches())


def _with_chunk(batch: pa.RecordBatch) -> pa.RecordBatch:
    chunk = pc.shift_right(batch.column("row"), 16)
    return pa.record_batch([chunk, *batch.columns], ["chunk", *batch.schema.names])

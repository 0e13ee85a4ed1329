"""Cells are run once, in any process, and kept: a run that was stopped goes on where it was."""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from experiments.core.cells import Cell, Result
from experiments.core.sources import ROOT
from experiments.studies import part

__all__ = ["KEPT", "Runner"]

KEPT = ROOT / ".cache" / "experiments"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs cells in so many processes and keeps what they give."""

    jobs: int = 1
    kept: Path = KEPT
    progress: Callable[[str, int, int], None] = lambda study, done, total: None

    def run(self, cells: Sequence[Cell]) -> list[Result]:
        """The results of the cells, in their order."""
        found = {cell.key: result for cell in cells if (result := self._recall(cell)) is not None}
        missing = {cell.key: cell for cell in cells if cell.key not in found}
        total = len({cell.key for cell in cells})
        study = cells[0].study if cells else ""
        self.progress(study, total - len(missing), total)
        for cell, result in self._computed(list(missing.values())):
            self._keep(cell, result)
            found[cell.key] = result
            self.progress(study, len(found), total)
        return [found[cell.key] for cell in cells]

    def _computed(self, cells: Sequence[Cell]) -> Iterable[tuple[Cell, Result]]:
        if self.jobs == 1 or len(cells) < 2:
            for cell in cells:
                yield cell, run_cell(cell)
            return
        context = get_context("spawn")
        with ProcessPoolExecutor(self.jobs, mp_context=context, initializer=_one_thread) as pool:
            waiting: dict[Future[Result], Cell] = {pool.submit(run_cell, c): c for c in cells}
            try:
                while waiting:
                    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                        yield waiting.pop(future), future.result()
            finally:
                # What is done is kept; what was not begun need not be, if one failed.
                pool.shutdown(wait=True, cancel_futures=True)

    def _recall(self, cell: Cell) -> Result | None:
        try:
            kept: Result = json.loads(self._path(cell).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return kept

    def _keep(self, cell: Cell, result: Result) -> None:
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            json.dump(result, file)
        Path(file.name).replace(path)

    def _path(self, cell: Cell) -> Path:
        return self.kept / cell.study / f"{cell.key}.json"


def run_cell(cell: Cell) -> Result:
    """Run one cell here and now; the result is plain JSON, as it would come from the cache."""
    result: Result = json.loads(json.dumps(part(cell.study, "study").run(cell.params)))
    return result


def _one_thread() -> None:
    """Every process has a core of its own; libraries that start threads would only queue."""
    for name in ONE_THREAD:
        os.environ[name] = "1"

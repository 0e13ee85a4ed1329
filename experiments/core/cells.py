"""A study is many independent cells: each is run once, in any process, and kept by its content.

The key of a cell is the SHA-256 of its parameters, of the code that computes it and of the
versions of the packages it rests on. So a run that was stopped goes on where it was, and a
change of code or of a parameter runs exactly what it concerns again.
"""

import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.core.provenance import PACKAGES

__all__ = ["KEPT", "ROOT", "Cell", "Params", "Result", "Runner"]

Params = Mapping[str, str | int | float]
# JSON, as it comes back from a file: what is in it is the study's own business.
Result = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".cache" / "experiments"
# What a study's outcome can depend on, besides its own file.
CODE = ("protocol", "files", "client", "kernels", "provider", "adversaries")
SHARED = ("core/owner.py", "core/stats.py", "core/inference.py")
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a study: `experiments.studies.<study>.study.run(params)`."""

    study: str
    params: Params

    @property
    def key(self) -> str:
        """What the cell's result is kept under."""
        text = json.dumps([self.study, self.params, code_digest(self.study)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@cache
def code_digest(study: str) -> str:
    """A digest of everything that can change the result of a study's cells."""
    digest = hashlib.sha256()
    package = ROOT / "src" / "verix_anon"
    files = [path for room in CODE for path in sorted((package / room).rglob("*.py"))]
    files += [ROOT / "experiments" / name for name in SHARED]
    for room in ("data", f"studies/{study}"):
        files += sorted((ROOT / "experiments" / room).rglob("*.py"))
    for path in files:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update(json.dumps({name: version(name) for name in PACKAGES}).encode())
    return digest.hexdigest()


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
    module = importlib.import_module(f"experiments.studies.{cell.study}.study")
    result: Result = json.loads(json.dumps(module.run(cell.params)))
    return result


def _one_thread() -> None:
    """Every process has a core of its own; libraries that start threads would only queue."""
    for name in ONE_THREAD:
        os.environ[name] = "1"

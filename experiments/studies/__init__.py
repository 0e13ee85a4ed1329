"""Every folder here with a study.py is a study; there is no other list of them.

study.py      cells(quick), run(params) and summarize(found), PLACE among the studies, and ALONE
              where time is measured
job.py        what a cell runs in a process of its own
published.py  the paper's own tables, cell by cell
render.py     page(found) and summary(found): what was found, in words; claims(found) where the
              paper claims something about it; beside(other) where the study named by BESIDE
              answers the same question for more contracts; computes nothing
figures.py    draw(found, out): the same, drawn; FIGURES has the captions
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

__all__ = ["HERE", "names", "part"]

HERE = Path(__file__).parent


def names() -> list[str]:
    """All studies, in the order in which they are run and reported."""
    found = sorted(path.parent.name for path in HERE.glob("*/study.py"))
    return sorted(found, key=lambda name: int(part(name, "study").PLACE))


def part(study: str, name: str) -> ModuleType:
    """One of a study's modules."""
    return import_module(f"experiments.studies.{study}.{name}")

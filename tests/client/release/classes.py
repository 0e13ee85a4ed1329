"""Classes of a single column, and what is published of them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import support
from verix_anon.client.release.cells import covered, write_cells
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import Range, range_of
from verix_anon.client.release.representation import ColumnForm, Presentation, Representation
from verix_anon.protocol.contract import Column, Contract, Kind, Unit

NAN = math.nan
NUMBER = Column(name="x", kind=Kind.NUMERIC)


def one_range(
    values: Sequence[float], column: Column = NUMBER, source: pa.DataType = None, **chosen: Any
) -> Range:
    """The range of one class."""
    ordered, hierarchies = chosen.pop("ordered", ()), chosen.pop("hierarchies", {})
    contract = Contract(
        submission_id=support.SUBMISSION_ID, k=2, min_leaf=4, columns=(column, support.TARGET)
    )
    presentation = Presentation(**chosen)
    forms = presentation.chosen(contract.quasi, ordered, hierarchies)
    grouped = Grouped(np.arange(len(values)), np.array([0, len(values)]))
    of_row, form = np.array(values, np.float64), forms[column.name]
    return range_of(column, of_row, source or pa.float64(), grouped, presentation, form)


def interval(values: Sequence[float], **chosen: Any) -> str:
    found = one_range(values, **chosen)
    text: str = write_cells(found).columns[found.column.name][0].as_py()
    return text


def written(values: Sequence[float], form: str, **chosen: Any) -> dict[str, list[object]]:
    found = write_cells(one_range(values, representation=form, **chosen))
    return {name: array.to_pylist() for name, array in found.columns.items()}


def of_classes(
    classes: list[list[float]], column: Column, **given: Any
) -> tuple[list[str], list[int]]:
    """The cells of several classes, and how many categories each leaves possible."""
    start = np.append(0, np.cumsum([len(c) for c in classes]))
    form = ColumnForm(representation=Representation.INTERVAL, **given)
    found = range_of(
        column,
        np.array([value for c in classes for value in c], np.float64),
        pa.string(),
        Grouped(np.arange(start[-1]), start),
        Presentation(),
        form,
    )
    made = write_cells(found)
    possible = covered(found)
    assert possible is not None
    return made.columns["x"].to_pylist(), possible.count.tolist()


DAY = Column(name="x", kind=Kind.DATETIME, unit=Unit.DAY)


def days(*texts: str) -> list[float]:
    found: list[float] = np.array(texts, "M8[D]").astype(np.int64).astype(float).tolist()
    return found

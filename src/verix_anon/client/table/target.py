"""The target's labels: classes, or a quantity (spec §2.4)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.arrays import Floats
from verix_anon.client.table.categories import as_label, is_text, positions
from verix_anon.client.table.numbers import is_number, moments, numbers
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.task import MAX_CLASSES, Labels, Task
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Kind

__all__ = ["encode_target"]


def encode_target(name: str, array: pa.Array, declared: Declared) -> Labels:
    """The labels of the task that was declared, or that the column looks like."""
    task = declared.task or _likely_task(name, array, declared)
    if task is Task.NONE:
        raise TableError(
            f"target {name!r} is named, but the task is none; leave out one of the two"
        )
    if task is Task.QUANTITY:
        return Labels(task=task, values=_present(name, _quantity(name, array)))
    return _classes(name, array, declared)


def _likely_task(name: str, array: pa.Array, declared: Declared) -> Task:
    """Text, booleans and columns of two values are classes; other numbers and dates a quantity."""
    kind = array.type
    if pa.types.is_nested(kind):
        raise TableError(
            f"target {name!r} has type {kind}, which is neither a number, a date nor text"
        )
    is_class = (
        is_text(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_dictionary(kind)
        or declared.kind(name) is Kind.CATEGORICAL
        or declared.positive is not None
    )
    if is_class or len(pc.unique(array.drop_null())) <= 2:
        return Task.CLASSES
    return Task.QUANTITY


def _quantity(name: str, array: pa.Array) -> Floats:
    kind = array.type
    if is_number(kind) or is_text(kind) or pa.types.is_boolean(kind):
        return numbers(name, array)
    return moments(name, array)[1]


def _present(name: str, values: Floats) -> Floats:
    n_missing = int(np.isnan(values).sum())
    if n_missing:
        raise TableError(f"target {name!r} is missing in {n_missing} rows; drop those first")
    return values + 0.0


def _classes(name: str, array: pa.Array, declared: Declared) -> Labels:
    labels, values = positions(name, array, declared.orders.get(name), is_target=True)
    values = _present(name, values)
    if not 2 <= len(labels) <= MAX_CLASSES:
        shown = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
        classes = "1 class" if len(labels) == 1 else f"{len(labels):,} classes"
        raise TableError(f"target {name!r} has {classes} ({shown}), not 2 to {MAX_CLASSES}")
    if declared.positive is not None or len(labels) == 2:
        labels, values = _positive_last(name, labels, values, declared.positive)
    return Labels(task=Task.CLASSES, values=values, classes=labels)


def _positive_last(
    name: str, labels: tuple[str, ...], values: Floats, positive: object
) -> tuple[tuple[str, ...], Floats]:
    chosen = labels[-1] if positive is None else as_label(positive)
    if chosen not in labels:
        raise TableError(
            f"positive class {chosen!r} is not a class of target {name!r}: {', '.join(labels)}"
        )
    if len(labels) != 2:
        raise TableError(f"a positive class goes with two classes; target {name!r} has more")
    return (labels, values) if chosen == labels[1] else (labels[::-1], 1 - values)

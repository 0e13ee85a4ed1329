"""The first rows of a table as it is read, for people to see whether that is right."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from verix_anon.client.table.look import kind_of
from verix_anon.files.tables import Question, Reading
from verix_anon.files.tables.beginning import read_beginning

__all__ = ["FirstRows", "first_rows"]

MOST_ROWS = 20
MOST_COLUMNS = 100
LONGEST_CELL = 200


@dataclass(frozen=True, slots=True)
class FirstRows:
    """Names, kinds and cells; a cell that is missing is None."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    n_columns: int
    """More than are shown, maybe."""
    said: str
    """How it was read, in a line."""
    notes: tuple[str, ...]
    questions: tuple[Question, ...]


def first_rows(path: Path, reading: Reading) -> FirstRows | None:
    """What a table begins with; None if it cannot be seen without reading a large file.

    Raises:
        TableError: There is no such file, or it cannot be read in this way.
    """
    read = read_beginning(path, reading, MOST_ROWS)
    if read is None:
        return None
    table = read.table.select(range(min(MOST_COLUMNS, read.table.num_columns)))
    columns = [[_cell(value) for value in column] for column in table.columns]
    return FirstRows(
        names=tuple(table.column_names),
        kinds=tuple(_kind(one.type) for one in table.schema),
        rows=tuple(zip(*columns, strict=True)),
        n_columns=read.table.num_columns,
        said=read.reading.said(),
        notes=read.notes,
        questions=read.questions,
    )


def _kind(given: pa.DataType) -> str:
    kind = kind_of(given)
    return "" if kind is None else kind.value


def _cell(value: pa.Scalar) -> str | None:
    if not value.is_valid:
        return None
    text = _text(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}\N{HORIZONTAL ELLIPSIS}"


def _text(value: pa.Scalar) -> str:
    """As Python writes it; as Arrow does where Python has no such value; else a mark."""
    for read in (value.as_py, lambda: value.cast(pa.string()).as_py()):
        try:
            return str(read())
        except (pa.ArrowException, OverflowError, ValueError):
            # Bytes that are no UTF-8, or a day that no calendar of Python's has.
            continue
    return "\N{REPLACEMENT CHARACTER}"

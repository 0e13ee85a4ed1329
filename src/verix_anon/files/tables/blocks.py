"""The rows of a text table as Arrow reads them: in blocks, side by side where that is safe."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

from verix_anon.files.tables.rows import LARGEST_ROW

__all__ = ["STRADDLING", "read_blocks"]

BLOCK = 1 << 22
STRADDLING = "straddling object"
"""How Arrow begins to say that a row is larger than a block."""


def read_blocks(
    rows: memoryview, parse: ParseOptions, convert: ConvertOptions, has_quotes: bool
) -> pa.Table:
    """The columns that `convert` names.

    Raises:
        pyarrow.ArrowInvalid: A row has too many or too few fields, or is too long.
    """
    names = list(convert.column_types)

    def read(block: int, may_span_lines: bool) -> pa.Table:
        options = ReadOptions(column_names=names, block_size=block)
        parse.newlines_in_values = may_span_lines
        return pyarrow.csv.read_csv(pa.BufferReader(pa.py_buffer(rows)), options, parse, convert)

    if has_quotes and (text := _if_none_spans_lines(rows, partial(read, BLOCK, False))) is not None:
        return text
    try:
        # A row must fit into a block; smaller ones are shared out better.
        return read(BLOCK, has_quotes)
    except pa.ArrowInvalid as error:
        if STRADDLING not in str(error):
            raise
    return read(LARGEST_ROW, has_quotes)


def _if_none_spans_lines(rows: memoryview, read: Callable[[], pa.Table]) -> pa.Table | None:
    """The rows, if no field holds the end of a line.

    Told so, Arrow cuts blocks at any end of a line, in half the time, and may not notice that a
    field comes apart. As many rows as lines show that none did: of each block, every line is a row.
    """
    try:
        text = read()
    except pa.ArrowInvalid:
        return None
    return text if text.num_rows == _count_lines(rows) else None


def _count_lines(rows: memoryview) -> int | None:
    """How many lines end in a line feed, or at the end; None if one ends in another way."""
    array = np.frombuffer(rows, np.uint8)
    found = int(array[-1] != ord("\n"))
    for start in range(0, array.size, BLOCK):
        # With one byte of the next piece, for what follows a carriage return.
        piece = array[start : start + BLOCK + 1]
        returns = piece[:-1] == ord("\r")
        if returns.any() and (piece[1:][returns] != ord("\n")).any():
            return None
        found += int(np.count_nonzero(piece[:BLOCK] == ord("\n")))
    return found

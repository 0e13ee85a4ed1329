"""Read text tables: every column as text, then with the type of all its values (spec §2.5)."""

import re
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

from verix_anon.errors import TableError
from verix_anon.files.table_form import Read, Reading
from verix_anon.files.tables.column_kinds import recognise
from verix_anon.files.tables.csv_dialect import (
    Dialect,
    Text,
    TextFooter,
    footer_of,
    form_of,
    lines_of,
)
from verix_anon.files.tables.table_sources import shown_url
from verix_anon.files.tables.text_loading import LARGEST_ROW, load, to_utf8

BLOCK = 1 << 22
STRADDLING = "straddling object"
"""How Arrow begins to say that a row is larger than a block."""
LARGEST_FIELD = 1 << 20
"""Bytes: a table that holds a longer field is refused."""


def read_text_table(name: str, reading: Reading) -> Read:
    """Read a text table, with columns as numbers or dates where every value is one."""
    loaded, quotes = load(name, reading)
    # What is said of it names it without the secrets of a URL.
    name = shown_url(name)
    data, encoding, note = to_utf8(name, loaded, reading.encoding)
    # They were counted in the bytes as loaded.
    form = form_of(name, data, reading, quotes if data is loaded else None)
    footer = footer_of(data, form, reading.footer)
    text = _parsed(name, data, form, footer, reading)
    del loaded, data
    text, padded = _trimmed(text, form)
    names, used, named = _names(name, form, text)
    text = text.select(used).rename_columns(names)
    found = recognise(text, reading)
    notes = [*([note] if note else []), *_outside(form, footer), *padded, *named, *found.notes]
    recognised = replace(
        reading,
        # A column alone has nothing beside it; a later column would be another table.
        delimiter=form.delimiter if len(form.header) > 1 else reading.delimiter,
        quote=form.quote if form.quote != '"' else reading.quote,
        escape=form.escape or reading.escape,
        encoding=encoding,
        decimal=found.decimal,
        thousands=found.thousands,
        dates=found.dates,
        missing=found.missing,
        skip=form.skip or reading.skip,
        footer=footer.lines or reading.footer,
    )
    return Read(found.table, recognised, tuple(notes), found.questions)


def _outside(form: Dialect, footer: TextFooter) -> list[str]:
    """What is said of lines that are no part of the table."""
    notes = []
    if form.above:
        notes.append(f"what stands above the header is left out: {form.above[0][:60]!r}")
    if footer.lines and not footer.text:
        notes.append(f"lines that say nothing, below the rows, are left out: {footer.lines:,}")
    if footer.text:
        notes.append(f"what stands below the rows is left out: {footer.text[:60]!r}")
    if footer.doubt:
        notes.append(
            f"the last row has {footer.doubt[:60]!r} and nothing else: if it is a remark, leave it"
            " out with --footer 1"
        )
    return notes


def _parsed(name: str, data: Text, form: Dialect, footer: TextFooter, reading: Reading) -> pa.Table:
    """Every column as text, under the number of its place."""
    places = [str(i) for i in range(len(form.header))]
    rows = memoryview(data)[form.start : footer.end]
    has_quotes = bool(form.quote) and form.quote.encode() in data
    if not bytes(rows[:LARGEST_ROW]).strip(b"\r\n"):
        return pa.table({place: pa.array([], pa.string()) for place in places})
    parse = ParseOptions(
        delimiter=form.delimiter,
        quote_char=form.quote or False,
        escape_char=form.escape or False,
        double_quote=not form.escape,
    )
    convert = ConvertOptions(
        column_types=dict.fromkeys(places, pa.string()),
        null_values=list(reading.null_tokens),
        strings_can_be_null=True,
        check_utf8=False,
    )
    try:
        text = read_blocks(rows, parse, convert, has_quotes)
    except pa.ArrowInvalid as error:
        raise _broken(name, data, form, footer, error) from None
    for column, place in zip(text.columns, form.header, strict=True):
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest > LARGEST_FIELD:
            raise TableError(
                f"{name}: column {place[:60]!r} holds a field of {longest:,} bytes; at most"
                f" {LARGEST_FIELD >> 20} MiB are read, for a quote may be missing"
            )
    return text


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

    if has_quotes:
        # Told that no field holds the end of a line, Arrow cuts blocks at any end of a line, in
        # half the time, and may not notice that a field comes apart. As many rows as lines show
        # that none did: of each block, every line is a row.
        with suppress(pa.ArrowInvalid):
            text = read(BLOCK, False)
            if text.num_rows == _count_lines(rows):
                return text
    try:
        # A row must fit into a block; smaller ones are shared out better.
        return read(BLOCK, has_quotes)
    except pa.ArrowInvalid as error:
        if STRADDLING not in str(error):
            raise
    return read(LARGEST_ROW, has_quotes)


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


def _broken(
    name: str, data: Text, form: Dialect, footer: TextFooter, error: Exception
) -> TableError:
    """The first row that has too many or too few fields, by its line."""
    width, before = len(form.header), form.first_line
    rows = (text for at, text in lines_of(data, form.start) if at < footer.end)
    reader = form.rows(rows)
    wrong, shown = 0, ""
    for row in reader:
        if row and (n := len(row)) != width:
            wrong += 1
            shown = shown or f"line {before:,} has {n} field{'s' * (n > 1)}, the header {width}"
        before = form.first_line + reader.line_num
    if not wrong:
        if STRADDLING in str(error):
            return TableError(f"{name} holds a row of more than {LARGEST_ROW >> 20} MiB")
        return TableError(f"{name} cannot be read ({' '.join(str(error).split())[:200]})")
    more = f" ({wrong:,} lines are so)" if wrong > 1 else ""
    return TableError(
        f"{name}: {shown}{more}; correct it, or say with --skip and --footer which lines at the top"
        " and at the end are no rows"
    )


def _trimmed(text: pa.Table, form: Dialect) -> tuple[pa.Table, list[str]]:
    """Without the blanks that make the fields of a printed list equally wide."""
    if form.delimiter != "|":
        return text, []
    columns, n_padded = [], 0
    for column in text.columns:
        ends = pc.min_max(pc.utf8_length(column))
        bare = pc.utf8_trim_whitespace(column)
        is_padded = ends["min"] == ends["max"] and not bare.equals(column)
        bare = pc.if_else(pc.equal(bare, ""), pa.scalar(None, pa.string()), bare)
        columns.append(bare if is_padded else column)
        n_padded += is_padded
    note = [f"blanks that pad the values of {n_padded} columns are left out"] if n_padded else []
    return pa.table(columns, text.column_names), note


def _names(name: str, form: Dialect, text: pa.Table) -> tuple[list[str], list[int], list[str]]:
    """The columns' names, which columns have one or have values, and what is said of that."""
    names, used, notes = [], [], []
    is_printed = form.delimiter == "|"  # Bars at both ends and blanks are then no surprise.
    for i, given in enumerate(form.header):
        column = text.column(i)
        if not given.strip() and column.null_count == len(column) and len(form.header) > 1:
            if not is_printed:
                notes.append(f"column {i + 1} has neither a name nor values; it is left out")
            continue
        if not given.strip():
            notes.append(f"column {i + 1} has no name; it is called 'column {i + 1}'")
        elif given != given.strip() and not is_printed:
            notes.append(f"blanks around the name {given.strip()[:60]!r} are left out")
        names.append(given.strip() or f"column {i + 1}")
        used.append(i)
    for i, one in enumerate(names):
        if one in names[:i]:
            first, second = used[names.index(one)] + 1, used[i] + 1
            raise TableError(
                f"{name}: column name {one[:60]!r} occurs twice, in columns {first} and {second} of"
                f" line {form.skip + 1}; rename one of them"
            )
    if names and all(re.fullmatch(r"[+-]?[0-9][0-9.,]*", one) for one in names):
        notes.append("all columns have numbers for names: does the table lack a header?")
    return names, used, notes

"""A table in any dialect is read as it was written, or a question is asked: never other values."""

import csv
import io
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verix_anon.errors import TableError
from verix_anon.files.tables import NULL_TOKENS, read_table_as
from verix_anon.files.tables.column_kinds import MARKERS

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1")
DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%y", "%m-%d-%y")
WORDS = st.text("abcxyzäöéß ,;|\t\"'", min_size=1, max_size=12).filter(
    lambda word: word.strip() == word and word not in (*NULL_TOKENS, *MARKERS)
)
DAYS = st.dates(date(1930, 1, 1), date(2025, 12, 31))
WHOLE = st.integers(-(10**7), 10**7)
NUMBERS = st.integers(-(10**9), 10**9).map(lambda n: n / 1000)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "text": WORDS.map(lambda word: "w" + word),
    "day": DAYS,
    "whole": WHOLE,
    "number": NUMBERS,
}


def written(value: object, dialect: dict[str, Any]) -> str:
    """A value as a program with these settings writes it."""
    if value is None:
        return ""
    if isinstance(value, date):
        return value.strftime(dialect["dates"])
    if isinstance(value, int | float):
        digits = f"{value:,}" if isinstance(value, int) else f"{value:,.{dialect['places']}f}"
        marks = {",": dialect["thousands"], ".": dialect["decimal"]}
        return "".join(marks.get(c, c) for c in digits)
    return str(value)


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=5))
    n_rows = draw(st.integers(1, 12))
    columns = {
        f"name{i}": draw(st.lists(st.none() | KINDS[kind], min_size=n_rows, max_size=n_rows))
        for i, kind in enumerate(kinds)
    }
    decimal = draw(st.sampled_from(".,"))
    dialect = {
        "delimiter": draw(st.sampled_from(",;\t|")),
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        "end": draw(st.sampled_from(["\n", "\r\n"])),
        "encoding": draw(st.sampled_from(ENCODINGS)),
        "decimal": decimal,
        "thousands": draw(
            st.sampled_from(["", "'", " ", "\u00a0", "," if decimal == "." else "."])
        ),
        "places": draw(st.sampled_from([1, 2, 3])),
        "dates": draw(st.sampled_from(DATES)),
    }
    return columns, dialect


def text_of(columns: dict[str, list[Any]], dialect: dict[str, Any]) -> bytes:
    made = io.StringIO()
    writer = csv.writer(
        made,
        delimiter=dialect["delimiter"],
        quoting=dialect["quoting"],
        lineterminator=dialect["end"],
    )
    writer.writerow(columns)
    writer.writerows(
        zip(*([written(v, dialect) for v in c] for c in columns.values()), strict=True)
    )
    return made.getvalue().encode(dialect["encoding"])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tables())
def test_what_is_read_is_what_was_written(
    tmp_path: Path, made: tuple[dict[str, list[Any]], dict[str, Any]]
) -> None:
    columns, dialect = made
    path = tmp_path / "table.csv"
    path.write_bytes(text_of(columns, dialect))
    read, told = None, ""
    try:
        read = read_table_as(path).settled()
    except TableError as error:
        told = str(error)
    if read is None:
        assert "--" in told  # The option that answers it.
        return
    assert read.table.column_names == list(columns)
    n_rows = len(next(iter(columns.values())))
    # Rows of nothing at the end are left out, and that is said.
    while n_rows and all(values[n_rows - 1] is None for values in columns.values()):
        n_rows -= 1
    assert read.table.num_rows == n_rows
    for name, values in columns.items():
        for got, value in zip(read.table.column(name).to_pylist(), values[:n_rows], strict=True):
            if isinstance(got, str):
                assert got == written(value, dialect)
            elif isinstance(value, float):
                assert got == pytest.approx(round(value, dialect["places"]), abs=1e-9)
            else:
                assert got == value
    assert read_table_as(path, read.reading).table.equals(read.table)


@pytest.mark.parametrize("form", DATES)
def test_dates_of_every_day_are_recognised(tmp_path: Path, form: str) -> None:
    days = [date(2019, 1, 1) + timedelta(days=i) for i in range(400)]
    path = tmp_path / "table.csv"
    path.write_text("d;n\n" + "".join(f"{day.strftime(form)};{i}\n" for i, day in enumerate(days)))
    read = read_table_as(path)
    assert bool(read.questions) == form.endswith("%y")
    if not read.questions:
        assert read.table.column("d").type == pa.date32()
        assert read.table.column("d").to_pylist() == days

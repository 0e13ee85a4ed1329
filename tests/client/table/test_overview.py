"""What is seen of a table's columns: counts, examples, charts, and values as they get coarser."""

from datetime import date

import pyarrow as pa
import pytest

from verix_anon.client.table.overview import Overview, coarser, overview
from verix_anon.errors import TableError

TABLE = pa.table(
    {
        "id": [f"p{i}" for i in range(40)],
        "sex": pa.array([1, 2] * 19 + [None, None]),
        "height": [150 + i / 2 for i in range(40)],
        "born": [date(1950 + i, 1, 2) for i in range(40)],
        "note": ["Spoke with Dr. Meier about the pain in the knee", None] * 20,
        "gone": pa.nulls(40),
        "cells": [[1, 2]] * 40,
    }
)


def test_each_column_is_counted() -> None:
    found = overview(TABLE)
    assert Overview.from_json(found.to_json()) == found
    assert found.n_rows == 40
    columns = found.columns
    assert {n: c.n_distinct for n, c in columns.items() if c.kind} == {
        "id": 40,
        "sex": 2,
        "height": 40,
        "born": 40,
        "note": 1,
    }
    assert (columns["id"].once, columns["sex"].once) == (1.0, 0.0)
    assert (columns["sex"].missing, columns["gone"].missing) == (0.05, 1.0)
    assert columns["sex"].bars == ("1", "2")
    assert columns["sex"].shares == (0.5, 0.5)
    assert columns["note"].prose
    assert not columns["cells"].examples


def test_ranges_hold_every_value() -> None:
    for name in ("height", "born"):
        column = overview(TABLE).columns[name]
        assert len(column.bars) == 10
        assert sum(column.shares) == pytest.approx(1)
    assert overview(TABLE).columns["born"].bars[0] == "1950-01-02.."


@pytest.mark.parametrize(
    ("value", "hierarchy", "bins", "steps"),
    [
        ("12345", "prefix", "", ["12345", "1234*", "123**"]),
        ("12345", "prefix", "2", ["12345", "12***"]),
        ("2024-05-17", "date", "", ["2024-05-17", "2024-05", "2024-Q2", "2024"]),
        ("1987-05-17", "", "5y", ["1987-05-17", "1985..1989"]),
        ("37", "", "10", ["37", "30..39"]),
        ("37.5", "", "10", ["37.5", "30..40"]),
        ("x", "date", "", []),
        ("x", "", "auto", []),
    ],
)
def test_a_value_gets_coarser(value: str, hierarchy: str, bins: str, steps: list[str]) -> None:
    assert coarser(value, hierarchy, bins) == steps


def test_what_is_no_overview_is_refused() -> None:
    text = overview(TABLE).to_json().replace("verix/overview/1", "x")
    with pytest.raises(TableError, match="overview"):
        Overview.from_json(text)

"""How much of a large table is looked at side by side, and where its rows are found."""

from dataclasses import replace

import numpy as np
import pytest

from tools import cases
from verix_anon.client.verify.case import columns_at_once


@pytest.mark.parametrize(
    ("n_rows", "threads", "expected"),
    [
        (1_000_000, 64, 64),
        (5_000_000, 64, 8),
        (20_000_000, 64, 2),
        (20_000_000, 1, 1),
        (2_000_000_000, 64, 1),
    ],
)
def test_columns_side_by_side_follow_from_the_rows(
    n_rows: int, threads: int, expected: int
) -> None:
    assert columns_at_once(n_rows, 16, threads) == expected


def test_rows_are_found_where_they_are() -> None:
    """Some are missing, some are there twice: then it is the last."""
    made = cases.prepared()
    honest = cases.honest(made.submission)
    complete = cases.case_of(honest, made.manifest)
    wanted = np.array([[3, 0], [7, 2]])
    assert complete.positions_of(wanted).tolist() == wanted.tolist()
    assert complete.leaves_of(wanted).tolist() == honest.records.leaf[wanted].tolist()
    at = np.array([2, 5, 5, 3])
    some = replace(
        honest.records,
        row=honest.records.row[at],
        tracker=honest.records.tracker[at],
        leaf=np.array([10, 11, 12, 13], np.int32),
        target=honest.records.target[at],
    )
    case = cases.case_of(replace(honest, records=some), made.manifest)
    assert not case.is_complete
    assert case.records.row.tolist() == [2, 3, 5, 5]
    rows = np.array([0, 2, 3, 4, 5, 6])
    assert case.positions_of(rows).tolist() == [-1, 0, 1, -1, 3, -1]
    assert case.leaves_of(rows).tolist() == [-1, 10, 13, -1, 12, -1]

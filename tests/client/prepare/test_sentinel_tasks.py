"""Sentinels for every task: on the grid of their columns, and where a model is in doubt."""

import math
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.prepare.moves import perturb
from support import categorical, numeric
from tools import cases
from verix_anon.client.evidence import evasion_probability
from verix_anon.client.prepare import traps as sentinels
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.prepare.traps import (
    Plan,
    Traps,
    boundary_probabilities,
    cap,
    needed,
    plant,
)
from verix_anon.client.table.task import Labels, Task
from verix_anon.protocol.contract import Column, Kind, Unit

SECRET = Secret(bytes(32))
Floats = npt.NDArray[np.float64]


@given(
    st.lists(st.integers(-40, 40), min_size=1, max_size=12),
    st.lists(st.integers(-100, 100), min_size=1, max_size=12),
)
def test_snapped_to_the_nearest_the_lower_of_two(occur: list[int], asked: list[int]) -> None:
    found = sentinels.snapped(np.array(asked) / 2, np.sort(occur) / 1)
    expected = [min(sorted(occur), key=lambda value: abs(value - each / 2)) for each in asked]
    assert found.tolist() == expected


def on_grids(n_rows: int) -> tuple[Floats, tuple[Column, ...]]:
    """Cents, tenths, binary32, firsts of months, positions, categories, and one that is free."""
    rng = np.random.default_rng(0)
    months = np.arange("1990-01", "2020-01", dtype="M8[M]").astype("M8[D]").astype(np.int64)
    values = np.vstack(
        [
            rng.integers(0, 90_000, n_rows) / 100,
            rng.integers(-400, 400, n_rows) / 10,
            rng.normal(size=n_rows).astype(np.float32).astype(np.float64),
            rng.choice(months, n_rows),
            rng.integers(0, 5, n_rows) ** 3,
            rng.integers(0, 4, n_rows),
            rng.normal(size=n_rows),
        ]
    )
    dates = Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY)
    positions = Column(name="r", kind=Kind.RANK, size=65)
    names = [numeric(name) for name in "abc"]
    return values, (*names, dates, positions, categorical("t", 4), numeric("f"))


def tasks(n_rows: int) -> dict[str, Labels]:
    rng = np.random.default_rng(1)
    many = tuple("abcde")
    return {
        "two": cases.two_classes(rng.integers(0, 2, n_rows).astype(np.uint8)),
        "many": Labels(
            task=Task.CLASSES, values=rng.integers(0, 5, n_rows).astype(float), classes=many
        ),
        "quantity": Labels(task=Task.QUANTITY, values=rng.normal(size=n_rows)),
        "none": Labels.none(n_rows),
    }


@pytest.mark.parametrize("task", ["two", "many", "quantity", "none"])
@pytest.mark.parametrize("traps", [Traps.ADAPTIVE, Traps.PAPER])
def test_no_sentinel_is_off_the_grid(task: str, traps: Traps) -> None:
    values, columns = on_grids(2000)
    planted = plant(values, tasks(2000)[task], Plan(traps=traps), SECRET)
    assert planted.origin.size > 0
    found = perturb(values, columns, planted.origin, np.random.default_rng(5))
    for moved, before, source in zip(found, values[:, planted.origin], values, strict=True):
        assert np.isin(moved, source).all()
        # A twentieth of a deviation, and half of the gap to the next value at most.
        gap = np.diff(np.unique(source)).max()
        assert np.abs(moved - before).max() <= 5 * 0.05 * source.std() + gap
    assert (found[6] != values[6, planted.origin]).mean() > 0.7


def test_more_classes_where_the_two_likeliest_are_close() -> None:
    labels = tasks(500)["many"]
    likely = np.zeros((500, 5))
    likely[:, 0] = 1.0
    likely[0] = [0.3, 0.4, 0.1, 0.1, 0.1]
    likely[1] = [0.25, 0.0, 0.3, 0.25, 0.2]
    likely[2] = [0.0, 0.0, 0.0, 0.5, 0.5]
    # Far apart, though the greatest is near a half.
    likely[3] = [0.5, 0.125, 0.125, 0.125, 0.125]
    likely[4] = [0.445, 0.555, 0.0, 0.0, 0.0]
    with (
        mock.patch.object(sentinels, "_papers_forest") as papers,
        mock.patch.object(sentinels, "_forest") as forest,
    ):
        papers.return_value = forest.return_value = lambda rows: likely[: len(rows)]
        values = np.random.default_rng(0).normal(size=(2, 500))
        planted = plant(values, labels, Plan(traps=Traps.PAPER), SECRET)
        wider = plant(values, labels, Plan(), SECRET)
    for asked in (papers, forest):
        _, classes, _ = asked.call_args.args
        assert set(classes.tolist()) == {0, 1, 2, 3, 4}
    assert planted.origin.tolist() == [0, 1, 2]
    assert (planted.n_boundary, planted.band) == (3, (0.45, 0.55))
    assert wider.origin.tolist() == sorted([2, 1, 0, 4, 3, 5, 6, 7, 8, 9][: cap(500)])


def test_probabilities_in_blocks_are_the_same() -> None:
    values, _ = on_grids(700)
    labels = tasks(700)["many"]
    at_once = boundary_probabilities(values, labels, SECRET)
    with mock.patch.object(sentinels, "BLOCK", 500):
        assert (boundary_probabilities(values, labels, SECRET) == at_once).all()
    assert (at_once >= 0.5).all()


@pytest.mark.parametrize("n_rows", [999, 1000])
def test_a_quantity_is_above_its_lower_median_or_not(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    amounts = np.round(rng.normal(size=n_rows), 1)
    above = (amounts > sorted(amounts)[math.ceil(n_rows / 2) - 1]).astype(np.uint8)
    values = np.vstack([amounts + rng.normal(size=n_rows), rng.normal(size=n_rows)])
    labels = Labels(task=Task.QUANTITY, values=amounts)
    assert (sentinels._classes(labels) == above).all()
    found = boundary_probabilities(values, labels, SECRET)
    expected = boundary_probabilities(values, cases.two_classes(above), SECRET)
    assert found == pytest.approx(expected)
    assert np.corrcoef(found, amounts)[0, 1] > 0.3


def test_a_class_or_a_quantity_all_alike() -> None:
    values, _ = on_grids(300)
    for labels in (
        Labels(task=Task.QUANTITY, values=np.full(300, 7.0)),
        Labels(task=Task.CLASSES, values=np.full(300, 2.0), classes=tuple("abc")),
    ):
        planted = plant(values, labels, Plan(), SECRET)
        assert (planted.origin.size, planted.n_boundary) == (cap(300), 0)


def test_without_a_target_any_record_will_do() -> None:
    values, _ = on_grids(8000)
    labels = Labels.none(8000)
    with (
        mock.patch.object(sentinels, "_papers_forest") as papers,
        mock.patch.object(sentinels, "_forest") as forest,
    ):
        adaptive = plant(values, labels, Plan(), SECRET)
        paper = plant(values, labels, Plan(traps=Traps.PAPER), SECRET)
        other = plant(values, labels, Plan(), Secret(bytes(31) + b"x"))
    assert not forest.called
    assert not papers.called
    assert adaptive.origin.size == needed(Plan(), 8000, 400)
    assert paper.origin.size == cap(8000)
    for planted in (adaptive, paper):
        n = planted.origin.size
        assert np.unique(planted.origin).size == n
        assert (planted.n_boundary, planted.band) == (0, None)
        assert planted.evasion_before == planted.evasion_after
        assert planted.evasion_after == evasion_probability(n, 8400 + n, 0.05) <= 0.01
    assert adaptive.origin.tolist() != other.origin.tolist()
    # Drawn from the whole table: a mean of the rows within five standard errors.
    error = 8000 / math.sqrt(12 * paper.origin.size)
    assert abs(paper.origin.mean() - 4000) < 5 * error

"""Common bins: cells end at boundaries that all classes share, and people can count with them."""

import math
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import support
from client.release.classes import DAY, days, interval, of_classes
from client.release.releases import Job, job, parse
from verix_anon.client.release.ranges import auto_widths
from verix_anon.client.release.representation import ColumnForm, Representation
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.roles import Declared
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind

N_HOSPITAL = 600


@pytest.fixture(scope="module")
def hospital() -> Job:
    """Admissions with ages, birth dates, postcodes and costs, at k = 3."""
    rng = np.random.default_rng(3)
    age = np.clip(rng.normal(55, 20, N_HOSPITAL), 0, 103).astype(int)
    born = [date(2024, 6, 1) - timedelta(days=int(a * 365 + rng.integers(365))) for a in age]
    table = pa.table(
        {
            "age": age,
            "born": born,
            "zip": [f"0{rng.integers(1, 4)}{rng.integers(100, 130)}" for _ in age],
            "weight": rng.normal(70, 10, N_HOSPITAL).round(1),
            "cost": rng.gamma(2, 900, N_HOSPITAL).round(2),
            "ill": rng.choice(["I21.0", "I21.4", "J18.9"], N_HOSPITAL),
            "back": rng.random(N_HOSPITAL) < 0.3,
        }
    )
    declared = Declared(
        target="back",
        quasi=["age", "born", "zip", "weight"],
        kept=["cost"],
        sensitive=["ill"],
        hierarchies={"zip": "prefix", "born": "date"},
    )
    return job(table, declared)


@pytest.mark.parametrize(
    ("values", "bins", "text"),
    [
        ([31, 38], 10, "30..39"),
        ([31, 40], 10, "30..49"),
        ([30, 30], 10, "30..39"),
        ([-3, 2], 5, "(-5)..4"),
        ([30.5, 38], 10, "30..40"),
        ([30.5, 40], 10, "30..50"),
        ([0.31, 0.39], 0.1, "0.3..0.4"),
        ([3, 4], 1, "3..4"),
        ([3, 3], 1, "3"),
    ],
)
def test_numbers_are_widened_to_bins(values: list[float], bins: float, text: str) -> None:
    assert interval(values, bins={"x": bins}) == text


@pytest.mark.parametrize(
    ("values", "bins", "text"),
    [
        (("1961-05-01", "1964-12-31"), "5y", "1960..1964"),
        (("1961-05-01", "1965-01-01"), "5y", "1960..1969"),
        (("1961-05-01", "1961-05-02"), "1m", "1961-M05"),
        (("1961-05-01", "1961-06-02"), "1q", "1961-Q2"),
        (("1961-05-01", "1961-05-02"), "6m", "1961-Q1..1961-Q2"),
        (("1970-01-01", "1970-01-04"), "1w", "1969-12-29..1970-01-04"),
        (("1970-01-01", "1970-01-05"), "7d", "1969-12-29..1970-01-11"),
        (("1969-01-01", "1969-12-31"), "4y", "1968..1971"),
    ],
)
def test_dates_are_widened_to_bins(values: tuple[str, ...], bins: str, text: str) -> None:
    assert interval(days(*values), column=DAY, bins={"x": bins}) == text


CODES = ("01067", "01069", "01099", "02100", "02111", "13000")
ZIPS = Column(name="x", kind=Kind.CATEGORICAL, categories=CODES)


def test_codes_are_widened_to_leading_characters() -> None:
    prefix = Hierarchy(kind="prefix")
    cells, covered = of_classes(
        [[0.0], [1.0, 2.0], [3.0, 4.0], [0, 3], [5], [0, 5]], ZIPS, hierarchy=prefix, bins=2
    )
    # No code is printed whole, even if it is the only one of its bin.
    assert cells == ["01***", "01***", "02***", "0****", "13***", "*"]
    assert covered == [3, 3, 2, 5, 1, 6]


def test_names_are_widened_to_a_level() -> None:
    levels = {"a": ("ab", "all"), "b": ("ab", "all"), "c": ("cd", "all"), "d": ("cd", "all")}
    column = Column(name="x", kind=Kind.CATEGORICAL, categories=tuple(levels))
    hierarchy = Hierarchy(kind="levels", levels=levels)
    classes = [[0.0], [1.0], [2.0, 3.0], [1.0, 2.0]]
    cells, covered = of_classes(classes, column, hierarchy=hierarchy, bins=1)
    assert (cells, covered) == (["ab", "ab", "cd", "all"], [2, 2, 2, 4])


@pytest.mark.parametrize(
    ("column", "bins", "message"),
    [
        (DAY, 5, "such as 5y"),
        (DAY, "0y", "such as 5y"),
        (Column(name="x", kind=Kind.NUMERIC), "5y", "number above 0"),
        (Column(name="x", kind=Kind.NUMERIC), 0, "number above 0"),
        (support.categorical("x", 3), 1.5, "whole number"),
        (Column(name="x", kind=Kind.CATEGORICAL, categories=("b", "a")), 1, "needs a hierarchy"),
    ],
)
def test_bins_that_do_not_fit(column: Column, bins: object, message: str) -> None:
    with pytest.raises(TableError, match=message):
        interval([0.0], column=column, bins={"x": bins})


def test_bins_are_not_for_means_or_rounded_columns() -> None:
    with pytest.raises(TableError, match="cannot have bins"):
        interval([0.0], bins={"x": 1}, representation="mean")
    with pytest.raises(TableError, match="it is rounded"):
        interval([0.0], bins={"x": 1}, round_to={"x": 1})


def test_auto_tries_usual_widths() -> None:
    form = ColumnForm(representation=Representation.INTERVAL, hierarchy=Hierarchy(kind="prefix"))
    number = Column(name="x", kind=Kind.NUMERIC)
    assert auto_widths(number, np.array([17.0, 90.0]), form) == [2, 5, 10, 20]
    assert auto_widths(number, np.array([0.0, 1.0]), form) == []
    assert auto_widths(DAY, np.array([0.0, 36525.0]), form) == ["5y", "10y", "20y"]
    assert auto_widths(ZIPS, np.array([0.0]), form) == [4, 3, 2, 1]


@pytest.mark.parametrize("bins", [{"age": 10, "born": "10y", "zip": 2, "weight": 10}, "auto"])
def test_counts_by_bin_are_within_the_stated_error(hospital: Job, bins: object) -> None:
    """Raw counts lie between those of the bin's own cells and those of all cells that touch it."""
    released = hospital.release(bins=bins)
    assert released.sheet.k >= 3
    chosen = released.sheet.bins
    assert set(chosen) == {"age", "born", "zip", "weight"}
    width = float(chosen["age"].width)
    cells = [parse(cell) for cell in released.table["age"].to_pylist()]
    raw = np.array(hospital.table["age"].to_pylist())
    bounds = sorted({low for low, _ in cells if not math.isinf(low)})
    assert all(low % width == 0 for low in bounds)
    for begin in bounds:
        end = begin + width - 1
        single = sum(low == begin and high == end for low, high in cells)
        touching = sum(low <= end and high >= begin for low, high in cells)
        count = int(((raw >= begin) & (raw <= end)).sum())
        assert single <= count <= touching
    is_single = [high - low < width or math.isinf(high - low) for low, high in cells]
    assert chosen["age"].spanning == pytest.approx(1 - np.mean(is_single))


def test_capped_ends_stay_capped_and_no_cell_lies_within_an_open_one(hospital: Job) -> None:
    cells = set(hospital.release(bins={"weight": 10}).table["weight"].to_pylist())
    open_ones = {cell for cell in cells if ">=" in cell}
    assert open_ones
    (least,) = {float(cell.partition(">=")[2]) for cell in open_ones}
    assert all(parse(cell)[1] <= least for cell in cells - open_ones)


def test_what_is_asked_holds_of_what_is_published(hospital: Job) -> None:
    released = hospital.release(bins={"age": 20, "zip": 1}, l=2)
    table = released.table.to_pandas()
    groups = table.groupby(["age", "born", "zip", "weight"])["back"]
    assert groups.nunique().min() >= 2
    assert groups.size().min() >= 3
    assert groups.ngroups == released.sheet.n_classes


def test_few_cells_are_left(hospital: Job) -> None:
    before, after = hospital.release(), hospital.release(bins={"age": 20})
    assert len(set(after.table["age"].to_pylist())) < len(set(before.table["age"].to_pylist())) / 3
    assert after.sheet.ncp > before.sheet.ncp
    assert "age 20 (" in after.sheet.facts()["common bins"]

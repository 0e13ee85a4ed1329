"""What is left of each column: exact values, widths, bars before and after, and its NCP."""

import math
from dataclasses import asdict, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from client.release.releases import Job, columns, job
from verix_anon.client.privacy_sheet import ColumnLoss
from verix_anon.client.release import privacy
from verix_anon.client.release.cells import covered
from verix_anon.client.release.classes import capped_ends
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import OPEN, range_of
from verix_anon.client.release.representation import ColumnForm, Presentation, Representation
from verix_anon.client.table.hierarchies import PREFIX, Hierarchy
from verix_anon.protocol.contract import Column, Kind, Unit

NUMBER = Column(name="x", kind=Kind.NUMERIC)
DAY = Column(name="x", kind=Kind.DATETIME, unit=Unit.DAY)
Values = list[float]


def labels(*names: str) -> Column:
    return Column(name="x", kind=Kind.CATEGORICAL, categories=names)


def loss_of(
    classes: list[Values],
    column: Column,
    k: int = 2,
    people: list[int] | None = None,
    ends: tuple[float, float] = OPEN,
    **form: Any,
) -> ColumnLoss:
    """Measure a column of these classes; NCP of categories is left out."""
    values = np.array([value for each in classes for value in each], np.float64)
    grouped = Grouped(np.arange(values.size), np.append(0, np.cumsum([len(c) for c in classes])))
    chosen = ColumnForm(representation=form.pop("representation", Representation.INTERVAL), **form)
    found = range_of(column, values, pa.float64(), grouped, Presentation(), chosen, ends)
    domain = np.fmin.reduce(values, keepdims=True), np.fmax.reduce(values, keepdims=True)
    width = privacy.widths(found.low, found.high, domain)
    told = None if people is None else np.array(people)
    return privacy.column_loss(found, width, domain, covered(found), values, told, k)


def bars(loss: ColumnLoss) -> dict[str, tuple[float, float]]:
    return dict(zip(loss.bars, zip(loss.before, loss.after, strict=True), strict=True))


def test_numbers_by_hand() -> None:
    loss = loss_of([[20, 20, 20], [25, 29], [28, 31, 39]], NUMBER)
    # Classes 20, 25..29 and 28..39; half of the records are in classes of at most 4.
    assert loss.exact == 3 / 8
    assert (loss.median_width, loss.unit) == (4.0, "")
    assert loss.cells[:3] == ("x", "37.5%", "4")
    # Bars of 2 numbers: those of fewer than two people are joined to their neighbours.
    assert loss.bars == ("<22", "22..", "30..")
    assert loss.before == (round(3 / 8, 2), round(3 / 8, 2), round(2 / 8, 2))
    # 28..39 is spread over 12 numbers, two of which are below 30.
    assert loss.after == (0.38, round((2 + 3 * 2 / 12) / 8, 2), round(3 * 10 / 12 / 8, 2))


def test_numbers_that_are_not_whole() -> None:
    loss = loss_of([[0.0, 0.5, 1.0], [0.25, 0.25, 0.25]], NUMBER, k=2)
    # 0..1 is spread evenly, and 0.25 lies in one point.
    assert loss.exact == 0.5
    assert bars(loss)["<0.3"] == (0.67, round((0.3 * 3 + 3) / 6, 2))
    assert sum(loss.after) == pytest.approx(1.0, abs=0.02)


def test_capped_and_open_cells_are_not_exact() -> None:
    values = [[1.0, 2.0, 3.0], [4.0, 4.0, 4.0], [5.0, 5.0, 900.0]]
    ends = capped_ends(np.array(values).ravel(), None, 3)
    loss = loss_of(values, NUMBER, k=3, ends=ends)
    # The classes read <=3, 4 and >=5: only the second is exact.
    assert loss.exact == pytest.approx(1 / 3)
    # 900 is one person's value: no bar comes near it.
    assert loss.bars
    assert all(float(bar.strip("<.")) <= 5 for bar in loss.bars)


def test_dates_by_hand() -> None:
    epoch = date(1970, 1, 1)
    days = [float((date(year, 1, 1) - epoch).days) for year in (1950, 1958, 1959, 1971, 1988, 1999)]
    loss = loss_of([days[:3], days[3:]], DAY, k=1)
    assert (loss.median_width, loss.unit) == (9.0, "years")
    assert loss.cells[2] == "9 years"
    assert loss.bars[0] == "<1955"
    assert set(loss.bars) <= {"<1955", *(f"{year}.." for year in range(1955, 2000, 5))}
    within = loss_of([[0.0, 0.0], [40.0, 45.0], [80.0, 88.0]], DAY, k=1)
    assert within.cells[2] == "5 days"
    assert within.bars == ("<1970-02", "1970-02..", "1970-03..")


def test_sets_by_hand() -> None:
    loss = loss_of([[0, 0], [0, 1], [2, 1]], labels("a", "b", "c"), k=1)
    assert loss.exact == pytest.approx(1 / 3)
    assert (loss.cells[2], loss.n_categories) == ("2 values", 3)
    assert bars(loss) == {"a": (0.5, 0.5), "b": (0.33, 0.33), "c": (0.17, 0.17)}


def test_names_are_spread_over_all_that_they_cover() -> None:
    codes = labels("01067", "01069", "01127", "04109")
    by_prefix = Hierarchy(kind=PREFIX)
    # 0106*, 01***, and a code by itself.
    loss = loss_of([[0, 1], [0, 2], [3, 3]], codes, k=1, hierarchy=by_prefix)
    assert loss.exact == pytest.approx(1 / 3)
    assert bars(loss) == {
        "01067": (0.33, round((1 + 2 / 3) / 6, 2)),
        "04109": (0.33, 0.33),
        "01069": (0.17, round((1 + 2 / 3) / 6, 2)),
        "01127": (0.17, round(2 / 3 / 6, 2)),
    }
    towns = {"01067": "east", "01069": "east", "01127": "west", "04109": "west"}
    levels = Hierarchy(kind="levels", levels={code: (name,) for code, name in towns.items()})
    # The one of the east that occurs, all three, and the west.
    loss = loss_of([[0, 0], [0, 2], [2, 3]], codes, k=1, hierarchy=levels)
    assert bars(loss) == {"01067": (0.5, 0.44), "01127": (0.33, 0.28), "04109": (0.17, 0.28)}
    ordered = loss_of([[0, 2], [3, 3]], labels("a", "b", "c", "d"), k=1, is_ordered=True)
    # a..c leaves b possible only if it occurs in the table, which it does not.
    assert bars(ordered) == {"d": (0.5, 0.5), "a": (0.25, 0.25), "c": (0.25, 0.25)}


def test_what_is_only_counted_may_be_anything() -> None:
    many = labels(*(f"v{i:02}" for i in range(15)))
    loss = loss_of([[*range(8)], [14] * 8, [8, 9, 10, 11, 12, 13, 8, 8]], many, k=1)
    # The first class names six and counts two; the third names all of its six.
    after = 8 / 24 / 15
    assert bars(loss)["v14"] == (0.33, round(8 / 24 + after, 2))
    assert bars(loss)["v08"] == (0.12, round(8 / 24 / 6 + after, 2))
    assert loss.bars[-1] == "… (4)"
    assert len(loss.bars) == 12


def test_no_bar_is_of_fewer_than_k_people() -> None:
    rare = [0.0] * 10 + [1.0] * 6 + [2.0] * 2
    loss = loss_of([rare], labels("a", "b", "c"), k=5)
    # Alone, c would be two people, and the whole less a and b would tell them.
    assert loss.bars == ("a", "… (2)")
    # Six records of b are one person's.
    people = [*range(10), *[10] * 6, 11, 12]
    assert loss_of([rare], labels("a", "b", "c"), k=3, people=people).bars == ("a", "… (2)")
    assert loss_of([rare], labels("a", "b", "c"), k=5, people=people).bars == ("… (3)",)
    numbers = loss_of([[0.0] * 9 + [50.0], [100.0] * 9 + [70.0]], NUMBER, k=5)
    assert bars(numbers) == {"<10": (0.45, round(10 / 51 * 0.5, 2)), "10..": (0.55, 0.9)}
    first = loss_of([[0.0] + [50.0] * 9, [100.0] * 10], NUMBER, k=5)
    assert first.bars == ("<60", "60..")
    visits = loss_of([[0.0] * 10, [100.0] * 10], NUMBER, k=2, people=[*range(10), *[1] * 10])
    assert visits.bars == ("…",)


def test_rare_values_are_one_bar() -> None:
    # 1,000 people, of whom 0.9 % have c: more than k, and less than one percent.
    loss = loss_of([[0.0] * 900 + [1.0] * 91 + [2.0] * 9], labels("a", "b", "c"), k=5)
    assert loss.bars == ("a", "… (2)")


def test_missing_values() -> None:
    loss = loss_of([[math.nan, 1, 1], [math.nan] * 2, [2, 2, 2]], NUMBER, k=1)
    # `1 or missing` is not exact; `missing` and 2 are.
    assert loss.exact == 5 / 8
    assert sum(loss.before) == pytest.approx(1)
    nothing = loss_of([[math.nan] * 2, [0, 1]], labels("a", "b"), k=9)
    assert nothing.bars == ("… (2)",)


def test_numbers_too_large_or_too_close_for_bars() -> None:
    for values in ([-1.7e308, 1.7e308], [1e300, math.nextafter(1e300, 2e300)], [5e-324, 1e-323]):
        loss = loss_of([values * 3, [values[0]] * 3], NUMBER, k=1)
        assert math.isfinite(loss.median_width)
        assert all(map(math.isfinite, (*loss.before, *loss.after)))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"ncp": 0.7}, True),
        ({"ncp": 0.6}, False),
        # A number that is hardly ever exact, in narrow ranges.
        ({"ncp": 0.02, "exact": 0.0}, False),
        # Sex with two of three values together.
        ({"ncp": 0.45, "exact": 0.08, "n_categories": 3, "unit": "values"}, True),
        ({"ncp": 0.45, "exact": 0.4, "n_categories": 3, "unit": "values"}, False),
        # Sex is known of everybody who has one, in classes where some have none.
        ({"ncp": 0.0, "exact": 0.0, "n_categories": 3, "median_width": 1.0}, False),
        # A postcode within a town.
        ({"ncp": 0.01, "exact": 0.02, "n_categories": 1000, "unit": "values"}, False),
    ],
)
def test_less_than_a_third_is_left(changed: dict[str, Any], expected: bool) -> None:
    plain = ColumnLoss(column="x", exact=0.5, median_width=2.0, unit="", n_categories=0, ncp=0.1)
    loss = replace(plain, **changed)
    assert loss.is_little is expected
    assert ("less than a third" in loss.cells[-1]) is expected


@pytest.fixture(scope="module")
def case() -> Job:
    """Leaves of k records to begin with, so that traps leave many short."""
    return job(pa.table(columns(400)), k=3, min_leaf=3, traps=80)


@pytest.mark.parametrize(("exact", "told"), [(0.0, "0.0%"), (0.0004, "under 0.1%"), (0.5, "50.0%")])
def test_a_little_is_not_told_as_nothing(exact: float, told: str) -> None:
    loss = ColumnLoss(column="x", exact=exact, median_width=2.0, unit="", n_categories=0, ncp=0.1)
    assert loss.cells[1] == told


def test_a_sheet_tells_it_of_every_column(case: Job) -> None:
    released = case.release(l=2)
    sheet = released.sheet
    assert [loss.column for loss in sheet.losses] == [c.name for c in case.manifest.quasi]
    assert sheet.ncp == pytest.approx(np.mean([loss.ncp for loss in sheet.losses]))
    for loss in sheet.losses:
        cells = pa.array(released.table[loss.column]).to_pylist()
        ends = [str(cell).split("..") for cell in cells]
        is_exact = [e[0] == e[-1] and e[0][0] not in "<>*{" for e in ends]
        assert loss.exact == pytest.approx(np.mean(is_exact)), loss.column
        assert len(loss.bars) == len(loss.before) == len(loss.after)
    little = [loss.column for loss in sheet.losses if loss.is_little]
    assert little
    warned = [w.partition(":")[0] for w in sheet.warnings if "less than a third is left" in w]
    assert sorted(warned) == sorted(f"Column {column!r}" for column in little)
    assert "column" in sheet._repr_html_()
    assert asdict(sheet)["losses"][0]["column"] == sheet.losses[0].column


@pytest.mark.parametrize(
    "wanted", [{}, {"round_to": {"age": 10, "born": "year"}}, {"drop": ["age"]}]
)
def test_joining_costs_the_difference_of_one_measure(case: Job, wanted: dict[str, Any]) -> None:
    plain, diverse = case.release(**wanted).sheet, case.release(l=2, **wanted).sheet
    assert plain.joined.ncp_before == pytest.approx(diverse.joined.ncp_before, abs=1e-12)
    assert diverse.joined.records > 0
    assert diverse.joined.ncp_before is not None
    assert diverse.joined.ncp_before < diverse.ncp
    if not plain.joined.records:
        assert plain.joined.ncp_before == plain.ncp


def test_what_tells_of_people_is_warned_of_before_what_is_lost(case: Job) -> None:
    warnings = case.release(l=2, keep_order=True).warnings
    tells, lost = (
        [i for i, warning in enumerate(warnings) if words in warning]
        for words in ("--keep-order", "less than a third is left")
    )
    assert tells
    assert max(tells) < min(lost)


def test_a_warning_names_the_option_that_helps(case: Job) -> None:
    sheet = case.release(l=2).sheet
    loss = replace(sheet.losses[0], column="the age", ncp=0.9)
    warned = replace(sheet, losses=(loss,)).measured_warnings
    assert any("prepare with --priority 'the age=fine', a smaller k" in each for each in warned)

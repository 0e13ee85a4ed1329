"""The ends of columns: nothing is printed that fewer than k persons reach, unless asked for."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from client.release.classes import DAY, NAN, NUMBER, days
from client.release.releases import DECLARED, Job, N, columns, job, parse
from verix_anon import read_released
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.release import ReleaseOptions
from verix_anon.client.release.cells import write_cells
from verix_anon.client.release.classes import NOTHING, bound_owners, capped_ends
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.preview import Preview
from verix_anon.client.release.ranges import OPEN, Ends, Range, range_of
from verix_anon.client.release.representation import Presentation, Representation
from verix_anon.client.report import render
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify import LAYERS
from verix_anon.errors import GateError
from verix_anon.files.tables import Reading, read_table
from verix_anon.protocol.contract import Column

OUTLIER = 987654321.25
TRACES = ("987654321", "1801-02-03", "2203-04-05")
FORMS = [form.value for form in Representation]
WITH_BOUNDS = ("interval", "bounds", "set", "shares")
OTHER_FILES = [("interval", ending) for ending in ("tsv", "feather", "xlsx", "sav", "dta")]
OTHER_FILES += [("bounds", "parquet")]


@pytest.fixture(scope="module")
def outliers() -> Job:
    """A table with the last person at three ends; one of them has as many records as k."""
    data: dict[str, Any] = columns()
    data["patient"] = [f"p{max(i, 2)}" for i in range(N)]
    for i in range(3):
        data["weight"][i] = OUTLIER
        data["born"][i] = date(1801, 2, 3)
    data["weight"][3] = -OUTLIER
    data["born"][3] = date(2203, 4, 5)
    data["age"][9] = None
    return job(pa.table(data), replace(DECLARED, identifier=["name", "patient"], person="patient"))


def traces(text: str) -> list[str]:
    return [trace for trace in TRACES if trace in text]


def report(case: Job, sheet: Sheet) -> str:
    findings = [Finding(layer=name, status=Status.PASS, summary="All is well.") for name in LAYERS]
    return render(replace(case.verdict, findings=tuple(findings)), sheet)


def number(value: object) -> float | None:
    """A number, or the days of a date; None of text and of what is missing."""
    if isinstance(value, date):
        day = value.date() if isinstance(value, datetime) else value
        return float((day - date(1970, 1, 1)).days)
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else None


@pytest.mark.parametrize(("form", "ending"), [*((f, "csv") for f in FORMS), *OTHER_FILES])
def test_an_outlier_is_in_no_file(outliers: Job, tmp_path: Path, form: str, ending: str) -> None:
    chosen: dict[str, Any] = {"representation": form, "person": "patient"}
    path, schema = tmp_path / f"released.{ending}", tmp_path / "released.schema.json"
    released = outliers.release(out=path, **chosen)
    reading = Reading(sheet="Table") if ending == "xlsx" else None
    cells = read_table(path, reading).to_pydict()
    assert not traces(str(cells))
    assert not traces(schema.read_text())
    assert not traces(released.to_json())
    # A mean or a midpoint that an outlier takes part in would be far off, too.
    for name, values in cells.items():
        low, high = days("1950-01-01", "1950-02-01") if "born" in name else (0, 120)
        numbers = [n for v in values if (n := number(v)) is not None]
        assert all(low <= n <= high for n in numbers), name
    look = Preview.of(released, ReleaseOptions(**chosen), outliers.manifest, outliers.table)
    assert not traces(str([column.after for column in look.columns]))


@pytest.mark.parametrize("form", FORMS)
def test_with_exact_ends_it_is(outliers: Job, tmp_path: Path, form: str) -> None:
    chosen: dict[str, Any] = {"representation": form, "person": "patient"}
    capped = outliers.release(**chosen)
    exact = outliers.release(out=tmp_path / "exact.csv", **chosen, exact_ends=True)
    found = traces((tmp_path / "exact.csv").read_text())
    described = traces((tmp_path / "exact.schema.json").read_text())
    assert found == described == ([*TRACES] if form in WITH_BOUNDS else [])
    # What is enforced is not touched.
    assert exact.sheet.k == capped.sheet.k
    assert exact.n_classes == capped.n_classes
    assert exact.sheet.diversity == capped.sheet.diversity
    assert exact.sheet.ncp <= capped.sheet.ncp


def test_the_dictionary_marks_what_is_capped(outliers: Job, tmp_path: Path) -> None:
    outliers.release(out=tmp_path / "released.csv", person="patient", representation="bounds")
    fields = json.loads((tmp_path / "released.schema.json").read_text())["fields"]
    low, high = next(field["verix"]["bounds"] for field in fields if field["name"] == "weight_max")
    weights = sorted(outliers.table["weight"].to_pylist())
    # The third person from below, and from above behind the one who has three records.
    assert (low, high) == (f"<={weights[2]}", f">={weights[-5]}")


def test_what_is_capped_is_read_back(outliers: Job, tmp_path: Path) -> None:
    for ending in ("csv", "parquet", "xlsx"):
        path = tmp_path / f"{ending}.{ending}"
        outliers.release(out=path, person="patient")
        found = read_released(path).to_pydict()
        for name in ("age", "weight", "born"):
            ends = found[f"{name}_min"], found[f"{name}_max"]
            values = outliers.table[name].to_pylist()
            for low, value, high in zip(ends[0], values, ends[1], strict=True):
                assert value is None or low is None or low <= value
                assert value is None or high is None or value <= high
        assert math.inf in found["weight_max"]
        assert -math.inf in found["weight_min"]
        assert None in found["born_min"]
        assert None in found["born_max"]
    intervals = read_released(tmp_path / "csv.csv", intervals="pandas")
    for name in ("weight", "born"):
        kind = "float64" if name == "weight" else "datetime64[us]"
        values = outliers.table[name].to_pandas().astype(kind)
        assert all(v in cell for v, cell in zip(values, intervals[name], strict=True))


# One column by itself


def ranges(
    classes: Sequence[Sequence[float]], ends: Ends, column: Column = NUMBER, **chosen: Any
) -> Range:
    start = np.append(0, np.cumsum([len(c) for c in classes]))
    values = np.array([v for c in classes for v in c], np.float64)
    hierarchies = chosen.pop("hierarchies", {})
    wanted = Presentation(**chosen)
    form = wanted.chosen([column], (), hierarchies)[column.name]
    grouped = Grouped(np.arange(start[-1]), start)
    return range_of(column, values, pa.float64(), grouped, wanted, form, ends)


def cells(classes: Sequence[Sequence[float]], k: int, **chosen: Any) -> list[str]:
    """The cells of classes of which each record is a person."""
    ends = capped_ends(np.array([v for c in classes for v in c]), None, k)
    texts: list[str] = write_cells(ranges(classes, ends, **chosen)).columns["x"].to_pylist()
    return texts


def test_ends_are_values_that_k_persons_reach() -> None:
    def ends(values: Sequence[float], k: int, people: Sequence[int] | None = None) -> Ends:
        return capped_ends(np.array(values), None if people is None else np.array(people), k)

    assert ends([1, 2, 3, 4, 5, 6], 2) == (2, 5)
    # An end that k persons hold is exact.
    assert ends([1, 1, 3, 6, 6, 6], 2) == (1, 6)
    assert ends([5, NAN, 3, 4, NAN], 2) == (4, 4)
    # One person is not two, however many records there are.
    assert ends([1, 2, 3, 9, 9], 2, [0, 1, 2, 3, 3]) == (2, 3)
    assert ends([1, 2, 3, 9, 9], 2) == (2, 9)
    # Too few persons have a value, or too few to tell the ends apart.
    assert ends([1, NAN, NAN], 2) == ends([1, 2, 3, 4], 3) == NOTHING
    assert ends([1, 1, 1], 2, [0, 0, 0]) == ends([NAN, NAN], 2, [0, 1]) == NOTHING


def test_cells_at_the_ends() -> None:
    assert cells([[1, 2, 3], [4, 5, 6]], 2) == ["<=2..3", "4..>=5"]
    assert cells([[1, 1, 3], [4, 6, 6]], 2) == ["1..3", "4..6"]
    assert cells([[1, 3], [3, 4]], 2) == ["<=3", ">=3"]
    assert cells([[1, 2, 3, 4, 5]], 3) == ["<=3..>=3"]
    assert cells([[1, 2], [3, 4], [5, 6], [NAN, 7]], 3) == ["<=3", "3..4", ">=5", ">=5 or missing"]


def test_nothing_is_said_that_too_few_persons_stand_for() -> None:
    classes = [[OUTLIER, NAN], [NAN, NAN]]
    assert cells(classes, 2) == ["* or missing", "missing"]
    forms: dict[str, dict[str, Any]] = {
        "bounds": {"x_min": [None, None], "x_max": [None, None]},
        "midpoint": {"x": [None, None]},
        "mean": {"x": [None, None]},
        "model": {"x": [0.0, 0.0]},
    }
    for form, found in forms.items():
        for caps in ({}, {"x": (None, 5.0)}, {"x": (1.0, 5.0)}):
            made = write_cells(ranges(classes, NOTHING, representation=form, top_code=caps))
            columns = {name: array.to_pylist() for name, array in made.columns.items()}
            assert columns == {**found, "x_missing": [0.5, 1.0]}
            assert "bounds" not in made.described
    assert "bounds" not in write_cells(ranges(classes, NOTHING)).described
    assert write_cells(ranges([days("1801-02-03")], NOTHING, DAY)).columns["x"][0].as_py() == "*"


def test_the_owner_s_caps_are_taken_as_they_are() -> None:
    classes = [[1, 20, 30], [40, 50, 90]]
    assert cells(classes, 2, top_code={"x": (None, 45.0)}) == ["<=20..30", "40..>=45"]
    assert cells(classes, 2, top_code={"x": (None, 60.0)}) == ["<=20..30", "40..>=50"]
    assert cells(classes, 2, top_code={"x": (None, 0.5)}) == [">=0.5", ">=0.5"]
    assert cells(classes, 2, top_code={"x": (95.0, None)}) == ["<=95", "<=95"]


def test_rounding_goes_with_the_ends() -> None:
    # 81 is the end: rounding hides nobody at 97, and everybody up to 85.
    classes = [[16, 18, 18, 30], [60, 81, 84], [70, 75, 97]]
    assert cells(classes, 3, round_to={"x": 5}) == ["15..30", "60..85", "70..>=80"]
    assert cells([[1, 18, 19, 30], [60, 81]], 2, round_to={"x": 5}) == ["<=20..30", ">=60"]
    # Nothing is left between an end rounded up and one rounded down.
    assert cells([[1, 82, 83, 83, 99], [82, 83]], 3, round_to={"x": 10}) == ["*", "80..90"]


def test_dates_at_the_ends() -> None:
    classes = [
        days("1801-02-03", "1920-05-06", "1931-01-01"),
        days("1950-01-01", "1990-03-10", "1990-12-01"),
        days("1989-01-01", "1989-02-02", "2203-04-05"),
    ]
    assert cells(classes, 2, column=DAY) == [
        "<=1920-05-06..1931-01-01",
        "1950-01-01..1990-12-01",
        "1989-01-01..>=1990-12-01",
    ]
    by_year = ["<=1920..1931", "1950..1990", "1989..>=1990"]
    assert cells(classes, 3, column=DAY, round_to={"x": "year"})[1:] == by_year[1:]
    assert cells(classes, 2, column=DAY, round_to={"x": "year"}) == by_year
    hierarchy = {"x": Hierarchy(kind="date")}
    assert cells(classes, 2, column=DAY, hierarchies=hierarchy) == by_year
    # A cap within the only year that a class names is still said.
    capped = {"x": (None, days("1959-03-10")[0])}
    assert cells([days("1959-01-01", "1960-01-01")], 1, column=DAY, top_code=capped) == [
        "1959-01-01..>=1959-03-10"
    ]
    year = {"round_to": {"x": "year"}, "top_code": capped}
    assert cells([days("1959-01-01", "1960-01-01")], 1, column=DAY, **year) == [">=1959"]


Drawn = tuple[list[list[float]], list[list[int]], int, float | None]


def random_columns() -> Iterator[Drawn]:
    """Classes of values, whose they are, k, and a step."""
    rng = np.random.default_rng(29)
    steps = (None, 1.0, 5.0, 0.5)
    numbers = [NAN, -OUTLIER, OUTLIER, *np.arange(-6, 6.5, 0.5)]
    for _ in range(200):
        sizes = rng.integers(1, 8, rng.integers(1, 7))
        spread = rng.integers(1, len(numbers) + 1)
        values = [rng.choice(numbers[:spread], n).tolist() for n in sizes]
        people = [rng.integers(0, 12, n).tolist() for n in sizes]
        if not all(math.isnan(v) for c in values for v in c):
            yield values, people, int(rng.integers(1, 5)), steps[rng.integers(len(steps))]


def test_every_printed_end_is_reached_by_k_persons() -> None:
    for drawn in random_columns():
        check_ends(*drawn)


def check_ends(
    classes: list[list[float]], people: list[list[int]], k: int, step: float | None
) -> None:
    of_row = [
        (v, p)
        for values, owners in zip(classes, people, strict=True)
        for v, p in zip(values, owners, strict=True)
        if not math.isnan(v)
    ]
    values = np.array([v for c in classes for v in c])
    ends = capped_ends(values, np.concatenate(people), k)
    rounding: dict[str, Any] = {} if step is None else {"round_to": {"x": step}}

    def down(value: float) -> float:
        return value if step is None else math.floor(value / step) * step

    def n_up_to(end: float, marked: bool) -> int:
        return len({p for v, p in of_row if (v if marked else down(v)) <= end})

    def n_from(end: float, marked: bool) -> int:
        return len({p for v, p in of_row if (v if marked else -down(-v)) >= end})

    texts = write_cells(ranges(classes, ends, **rounding)).columns["x"].to_pylist()
    exact = write_cells(ranges(classes, OPEN, **rounding)).columns["x"].to_pylist()
    for text, values_of_class in zip(texts, classes, strict=True):
        cell = text.removesuffix(" or missing")
        if cell in ("missing", "*"):
            continue
        low, high = parse(cell)
        assert all(math.isnan(v) or low <= v <= high for v in values_of_class)
        for end in cell.split(".."):
            printed, marked = float(end.strip("<>=()")), "=" in end
            assert n_from(printed, marked) >= k or end.startswith("<=")
            assert n_up_to(printed, marked) >= k or end.startswith(">=")
    least, most = min(v for v, _ in of_row), max(v for v, _ in of_row)
    if n_up_to(least, True) >= k and n_from(most, True) >= k:
        assert texts == exact
    if step is None:
        means = write_cells(ranges(classes, ends, representation="mean")).columns["x"]
        found = [mean for mean in means.to_pylist() if mean is not None]
        assert all(ends[0] <= mean <= ends[1] for mean in found)


# Who alone owns a bound


def owners_by_counting(classes: list[list[float]], people: list[list[int]]) -> set[int]:
    """The rows that alone own a bound of their class, one by one."""
    values = [v for c in classes for v in c]
    whose = [p for c in people for p in c]
    found, row = set(), 0
    for c in classes:
        there = [v for v in c if not math.isnan(v)]
        for value in c:
            is_bound = bool(there) and value in (min(there), max(there))
            if is_bound and len({p for v, p in zip(values, whose, strict=True) if v == value}) == 1:
                found.add(row)
            row += 1
    return found


def test_owners_of_bounds_are_those_who_alone_have_one() -> None:
    for classes, people, k, _ in random_columns():
        check_owners(classes, people, k)


def check_owners(classes: list[list[float]], people: list[list[int]], k: int) -> None:
    values, whose = np.array([v for c in classes for v in c]), np.concatenate(people)
    start = np.append(0, np.cumsum([len(c) for c in classes]))
    grouped = Grouped(np.arange(values.size), start)
    expected = owners_by_counting(classes, people)
    exact, printed = bound_owners(values, whose, grouped, ranges(classes, OPEN))
    assert {*exact} == {*printed} == expected
    ends = capped_ends(values, whose, k)
    before, after = bound_owners(values, whose, grouped, ranges(classes, ends))
    assert {*before} == expected
    assert {*after} == {row for row in expected if ends[0] <= values[row] <= ends[1]}
    alone = bound_owners(values, None, grouped, ranges(classes, OPEN))[0]
    rows = np.split(np.arange(values.size), start[1:-1])
    assert {*alone} == owners_by_counting(classes, [list(r) for r in rows])


def test_only_bounds_that_are_printed_have_owners() -> None:
    classes = [[1.0, 2.0, 3.0], [4.0, NAN], [5.0, 6.5]]
    values = np.array([v for c in classes for v in c])
    grouped = Grouped(np.arange(7), np.array([0, 3, 5, 7]))

    def printed(**chosen: Any) -> list[int]:
        found = bound_owners(values, None, grouped, ranges(classes, OPEN, **chosen))
        assert found[0].tolist() == [0, 2, 3, 5, 6]
        return found[1].tolist()  # type: ignore[no-any-return]

    assert printed() == printed(representation="bounds") == [0, 2, 3, 5, 6]
    # The mean of one value is that value.
    assert printed(representation="mean") == printed(representation="midpoint") == [3]
    assert printed(round_to={"x": 2}) == [3]
    assert printed(top_code={"x": (None, 4.5)}) == [0, 2, 3]


def test_the_sheet_says_who_owns_bounds(outliers: Job) -> None:
    sheet = outliers.release(person="patient").sheet
    exact = outliers.release(person="patient", exact_ends=True).sheet
    assert exact.bound_owners == exact.bound_owners_exact == sheet.bound_owners_exact
    assert sheet.bound_owners is not None
    assert exact.bound_owners is not None
    assert 0 < sheet.bound_owners < exact.bound_owners
    assert Sheet.from_json(sheet.to_json()) == sheet
    said = f"{sheet.bound_owners:.1%} of the records alone have a value"
    assert said in sheet.facts()["owners of bounds"]
    page = report(outliers, sheet)
    assert f"{sheet.bound_owners:.1%}" in page
    assert not traces(page)
    older = json.loads(sheet.to_json())
    del older["bound_owners"], older["bound_owners_exact"]
    assert "owners of bounds" not in Sheet.from_json(json.dumps(older)).facts()
    means = outliers.release(person="patient", representation="mean").sheet
    assert means.bound_owners == 0
    with pytest.raises(GateError, match=r"bound-owners is .*, not at most 0"):
        outliers.release(person="patient", require={"bound-owners": 0})

"""Cells that people and programs can use: short, true, and left alone by spreadsheets."""

import pytest

from client.release.classes import DAY, NAN, days, interval, of_classes, one_range, written
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.protocol.contract import Column, Kind, Unit

LETTERS = Column(name="x", kind=Kind.CATEGORICAL, categories=tuple("abcdefghijkl"))
ALL: list[float] = [*range(12)]


def test_sets_are_short() -> None:
    classes: list[list[float]] = [
        [0],
        [1, 0],
        ALL[:6],
        ALL[:-5],
        ALL,
        ALL[2:],
    ]
    texts, covered = of_classes(classes, LETTERS)
    assert texts == [
        "a",
        "{a, b}",
        "{a, b, c, d, e, f}",
        "not {h, i, j, k, l}",
        "*",
        "not {a, b}",
    ]
    assert covered == [1, 2, 6, 7, 12, 10]
    more = Column(name="x", kind=Kind.CATEGORICAL, categories=tuple("abcdefghijklmno"))
    texts, covered = of_classes([[*range(8)], [*range(15)]], more)
    assert texts == ["{a, b, c, d, e, f} and 2 more", "*"]
    # Of what is only counted every category may be meant.
    assert covered == [15, 15]


def test_ordered_categories_are_ranges() -> None:
    ages = Column(name="x", kind=Kind.CATEGORICAL, categories=("0-19", "20-39", "40-59", "60+"))
    texts, covered = of_classes([[1, 3], [0], [3, 0]], ages, is_ordered=True)
    # A label by itself that spreadsheets would take for a date stands in braces.
    assert texts == ["20-39..60+", "{0-19}", "0-19..60+"]
    # 40-59 does not occur, and no range says that it does.
    assert covered == [2, 1, 3]


def test_codes_by_prefix() -> None:
    codes = Column(name="x", kind=Kind.CATEGORICAL, categories=("01067", "01069", "01307", "10115"))
    prefix = Hierarchy(kind="prefix")
    texts, covered = of_classes([[0, 1], [2, 0], [2, 3], [3]], codes, hierarchy=prefix)
    assert texts == ["0106*", "01***", "*", "{10115}"]
    assert covered == [2, 3, 4, 1]
    icd = Column(name="x", kind=Kind.CATEGORICAL, categories=("C50", "C50.1", "C51"))
    texts, covered = of_classes([[0, 1], [1, 2]], icd, hierarchy=prefix)
    assert texts == ["C50*", "C5*"]
    assert covered == [2, 3]


def test_names_of_a_hierarchy() -> None:
    codes = Column(name="x", kind=Kind.CATEGORICAL, categories=("C50", "C51", "C43", "J10"))
    levels = {
        "C50": ("C50-C59", "neoplasms"),
        "C51": ("C50-C59", "neoplasms"),
        "C43": ("C43-C44", "neoplasms"),
        "J10": ("10-12", "respiratory"),
    }
    hierarchy = Hierarchy(kind="levels", levels=levels)
    classes: list[list[float]] = [[0, 1], [1, 2], [0, 3], [3], [NAN], [2, NAN]]
    texts, covered = of_classes(classes, codes, hierarchy=hierarchy)
    assert texts == ["C50-C59", "neoplasms", "*", "J10", "missing", "C43 or missing"]
    assert covered[:4] == [2, 3, 4, 1]


def test_dates_by_their_periods() -> None:
    dates = {"hierarchies": {"x": Hierarchy(kind="date")}, "column": DAY}
    assert interval(days("1958-09-21", "1958-09-02"), **dates) == "1958-M09"
    assert interval(days("1958-09-21", "1958-07-02"), **dates) == "1958-Q3"
    assert interval(days("1958-10-01", "1958-09-30"), **dates) == "1958"
    assert interval(days("1962-01-01", "1958-12-31"), **dates) == "1958..1962"
    assert interval(days("1958-09-21", "1958-09-21"), **dates) == "1958-09-21..1958-09-21"


def test_dates_are_rounded_outwards_to_periods() -> None:
    values = days("1959-08-23", "1958-09-21")
    assert interval(values, column=DAY, round_to={"x": "month"}) == "1958-M09..1959-M08"
    assert interval(values, column=DAY, round_to={"x": "quarter"}) == "1958-Q3..1959-Q3"
    assert interval(values, column=DAY, round_to={"x": "year"}) == "1958..1959"
    capped = {"x": (None, days("1959-01-01")[0])}
    texts = interval(values, column=DAY, round_to={"x": "year"}, top_code=capped)
    assert texts == "1958..>=1959"
    found = one_range(values, column=DAY, round_to={"x": "month"})
    assert [*found.low, *found.high] == days("1958-09-01", "1959-08-31")
    seconds = Column(name="x", kind=Kind.DATETIME, unit=Unit.SECOND)
    found = one_range([86_400.0], column=seconds, round_to={"x": "month"})
    assert [*found.low, *found.high] == [0, 31 * 86_400 - 1]


SPREADSHEET_DATES = ("10-12", "Mar-12", "sept2", "1/2", "Dez 99", "2-Mar")


WORDS = ("NA", "None", "nan", "N/A", "NULL", "Inf", "TRUE")


@pytest.mark.parametrize(
    "label", [*SPREADSHEET_DATES, *WORDS, "-3", "=1", "+49", "@x", "01067", "1E5", ""]
)
def test_a_label_that_spreadsheets_change_stands_in_braces(label: str) -> None:
    column = Column(name="x", kind=Kind.CATEGORICAL, categories=(label, "other"))
    text = label or '""'
    assert interval([0], column=column) == f"{{{text}}}"


def test_models_take_numbers() -> None:
    assert written([1, NAN, 4], "model") == {"x": [2.5], "x_missing": [pytest.approx(1 / 3)]}
    assert written(days("1970-01-02", "1970-01-04"), "model", column=DAY) == {"x": [2.0]}

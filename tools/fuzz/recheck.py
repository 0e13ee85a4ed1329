"""Read published files again, and count k, l, cap and t by code that shares nothing with release().

Only the standard library, pyarrow and openpyxl read the files. A class is all rows that are equal
in every column that is not known to be another one: the target, a kept or sensitive column, or a
pseudonym. A kept column with the row's number finds the person in the owner's table.
"""

import csv
import json
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from openpyxl import load_workbook

from tools.fuzz.random_release import CHAPTERS, PATIENT, SERIAL, Asked

Cells = dict[str, list[Any]]
PARTS = 738_017_280
"""Of each person, spread over the person's values (spec §12)."""
SLACK = 1e-9
PSEUDONYM = "who"


@dataclass(slots=True)
class Judged:
    """What was found in one published file."""

    violations: list[str] = field(default_factory=list)
    """What was asked for and does not hold."""
    differences: list[str] = field(default_factory=list)
    """What the sheet says otherwise."""
    n_classes: int = 0
    for_pycanon: dict[str, Any] | None = None
    """The table as pycanon counts it, and what was found; None if persons are not records, or every
    quasi-identifier is dropped."""


def read_published(path: Path, form: str) -> Cells:
    """Return the columns of a published file; missing values are None."""
    if path.suffix == ".csv":
        delimiter = ";" if form == "excel-de" else ","
        with path.open(encoding="utf-8-sig", newline="") as file:
            names, *rows = csv.reader(file, delimiter=delimiter)
        return {name: [row[i] or None for row in rows] for i, name in enumerate(names)}
    if path.suffix == ".parquet":
        found: Cells = pq.read_table(path).to_pydict()
        # NaN is not equal to itself.
        return {name: ["NaN" if v != v else v for v in values] for name, values in found.items()}
    book = load_workbook(path)
    names, *rows = book.worksheets[0].iter_rows(values_only=True)
    book.close()
    return {str(name): [row[i] for row in rows] for i, name in enumerate(names)}


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of which something is asked or stated."""

    values: Sequence[int]
    """Numbers of the values, in order if they have one."""
    is_ordered: bool

    @property
    def n_values(self) -> int:
        return len(set(self.values))


def judge(asked: Asked, path: Path, sheet: Path) -> Judged:
    """Count on the published file what was asked for, and compare it with the sheet."""
    found, stated = Judged(), json.loads(sheet.read_bytes())
    cells = read_published(path, asked.options.form)
    dropped = {*asked.options.drop, *asked.said["drop"]}
    others = _others(asked)
    quasi = [n for n in cells if n not in others and n.removesuffix("_missing") not in others]
    roles = {name for _, name in asked.declared.named() if name not in asked.declared.identifier}
    left_out = {*asked.table.column_names} - roles | dropped
    wrong = [name for name in cells if name in left_out]
    if wrong:
        found.violations.append(f"published though it is left out: {wrong}")
    rows = [int(float(text)) for text in cells[SERIAL]]
    if len({*rows}) < len(rows) or not {*rows} <= {*range(asked.table.num_rows)}:
        found.violations.append("a row is published twice, or was not in the table")
    people = _people(asked)
    person = [people[row] for row in rows]
    classes = defaultdict[Hashable, list[int]](list)
    for i in range(len(rows)):
        classes[tuple(cells[name][i] for name in quasi)].append(i)
    members = [*classes.values()]
    found.n_classes = len(members)
    is_counted = asked.declared.person == PATIENT
    k = min(len({person[i] for i in group}) for group in members)
    if k < asked.k:
        found.violations.append(f"k is {k}, not {asked.k}")
    _check_suppressed(asked, people, rows, stated["suppressed"], found)
    _compare(found, "k", k, stated["k"])
    _compare(found, "n_records", len(rows), stated["n_records"])
    _compare(found, "n_classes", len(members), stated["n_classes"])
    _compare(found, "enforced", asked.diversity, stated["enforced"])
    risk = max(max(Counter(person[i] for i in group).values()) / len(group) for group in members)
    _compare(found, "prosecutor_max", risk, stated["prosecutor_max"])
    _check_linked(asked, cells, members, person, stated["linked"], found)
    told = {each["column"]: each for each in stated["diversity"]}
    _compare(found, "diversity", sorted(_measured(asked) - dropped), sorted(told))
    measured = {}
    for name in sorted(_measured(asked) - dropped):
        column = _column(asked, name, cells, rows, found)
        figures = {
            "n_values": column.n_values,
            "distance": "ordered" if column.is_ordered else "equal",
            **_figures(column, members, person if is_counted else None),
        }
        measured[name] = (column, figures)
        for figure, value in figures.items():
            _compare(found, f"{figure} of {name}", value, told[name][figure])
        for measure, wanted in asked.diversity.get(name, {}).items():
            if problem := _unmet(measure, wanted, figures):
                found.violations.append(f"{measure} of {name} is {problem}, not {wanted}")
    _check_remedies(asked, cells, found)
    if quasi and not is_counted:
        found.for_pycanon = {
            "k": k,
            "quasi": {name: [str(v) for v in cells[name]] for name in quasi},
            "sensitive": {
                name: {"values": [*column.values], "ordered": column.is_ordered, **figures}
                for name, (column, figures) in measured.items()
                if column.n_values > 1
            },
        }
    return found


def _others(asked: Asked) -> set[str]:
    """The columns that are not quasi-identifiers."""
    declared = asked.declared
    target = [] if declared.target is None else [declared.target]
    return {*declared.kept, *declared.sensitive, *declared.identifier, *target, PSEUDONYM}


def _measured(asked: Asked) -> set[str]:
    target = [] if asked.declared.target is None else [asked.declared.target]
    return {*asked.declared.sensitive, *target}


def _people(asked: Asked) -> list[Hashable]:
    """Who each row of the owner's table is."""
    if asked.declared.person != PATIENT:
        return [*range(asked.table.num_rows)]
    names = asked.table[PATIENT].to_pylist()
    return [i if name is None else name for i, name in enumerate(names)]


def _compare(found: Judged, what: str, own: Any, stated: Any) -> None:
    is_number = isinstance(own, float) and isinstance(stated, float | int)
    if not (math.isclose(own, stated, rel_tol=1e-9, abs_tol=1e-9) if is_number else own == stated):
        found.differences.append(f"{what} is {own}, and the sheet says {stated}")


def _check_suppressed(
    asked: Asked, people: list[Hashable], rows: list[int], stated: Any, found: Judged
) -> None:
    lost = {*range(len(people))} - {*rows}
    n_lost = len({people[row] for row in lost})
    share = Fraction(str(asked.options.suppress or asked.said["suppress"]))
    if n_lost > share * len({*people}):
        found.violations.append(f"{n_lost} persons lost records at a share of {share}")
    told = (0, 0) if stated is None else (stated["records"], stated["people"])
    _compare(found, "suppressed", (len(lost), n_lost), told)


def _check_linked(
    asked: Asked, cells: Cells, members: list[list[int]], person: list[Any], stated: Any, found: Any
) -> None:
    """Count who shares all classes with whom, where rows can be linked."""
    pseudonym = asked.options.pseudonym or asked.declared.pseudonym
    if pseudonym:
        pairs = {*zip(cells[PSEUDONYM], person, strict=True)}
        if not len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}):
            found.violations.append("a pseudonym is not one person's")
    is_published = asked.declared.person == PATIENT and PATIENT in asked.declared.kept
    if not pseudonym and not is_published:
        _compare(found, "linked", None, stated)
        return
    classes = defaultdict[Any, list[int]](list)
    for number, group in enumerate(members):
        for i in group:
            classes[person[i]].append(number)
    shared = Counter(tuple(sorted(each)) for each in classes.values())
    counts = [shared[tuple(sorted(each))] for each in classes.values()]
    _compare(found, "linked k", min(counts), stated["k"])
    _compare(found, "below_k", sum(c < asked.k for c in counts) / len(counts), stated["below_k"])
    _compare(found, "unique", sum(c == 1 for c in counts) / len(counts), stated["unique"])


def _originals(asked: Asked, name: str) -> list[Any]:
    """The owner's values of a column; of a derived one made as the spec says."""
    made = asked.declared.derived.get(name)
    if made is None:
        return list(asked.table[name].to_pylist())
    values = asked.table[str(made["from"])].to_pylist()
    if made["as"] == "month":
        return [None if v is None else v.isoformat()[:7] for v in values]
    return [None if v is None else CHAPTERS[v] for v in values]


def _column(asked: Asked, name: str, cells: Cells, rows: list[int], found: Judged) -> _Column:
    """Number the published values of a column by what they were; missing ones last."""
    marks = cells.get(f"{name}_missing", [None] * len(rows))
    published: list[Hashable] = [*zip(cells[name], marks, strict=True)]
    originals = _originals(asked, name)
    was = defaultdict[Hashable, set[Any]](set)
    for each, row in zip(published, rows, strict=True):
        was[each].add(originals[row])
    for each, values in was.items():
        if None in values and len(values) > 1:
            found.violations.append(f"{each} of {name} is both missing and not")
    # Of missing values alone nothing is in order.
    is_ordered = not isinstance(next((v for v in originals if v is not None), ""), str | bool)
    if not is_ordered:
        number = {each: i for i, each in enumerate(was)}
    else:
        there = sorted((min(v), max(v), each) for each, v in was.items() if None not in v)
        for (_, high, one), (low, _, other) in zip(there, there[1:], strict=False):
            if high >= low:
                found.violations.append(f"{one} and {other} of {name} overlap")
        ends = [each for each, values in was.items() if None in values]
        number = {each: i for i, each in enumerate([*(each for _, _, each in there), *ends])}
    return _Column([number[each] for each in published], is_ordered)


def _figures(
    column: _Column, members: list[list[int]], person: list[Hashable] | None
) -> dict[str, Any]:
    """What the classes hide of a column, by records and by persons."""
    everyone = [i for group in members for i in group]
    counts = [Counter(column.values[i] for i in group) for group in members]
    whole = Counter(column.values)
    entropy = min(_entropy(each) for each in counts)
    found: dict[str, Any] = {
        "distinct_l": min(len(each) for each in counts),
        "greatest_share": max(max(each.values()) / each.total() for each in counts),
        "given_away": sum(c.total() for c in counts if len(c) == 1) / len(everyone),
        "closeness_t": max(_distance(each, whole, column) for each in counts),
        "greatest_share_of_persons": None,
        "closeness_t_of_persons": None,
    }
    if person is not None:
        weights = [_weights(column, group, person) for group in members]
        all_weights = _weights(column, everyone, person)
        found["greatest_share_of_persons"] = max(
            _share_of_persons(column, group, person) for group in members
        )
        found["closeness_t_of_persons"] = max(_distance(w, all_weights, column) for w in weights)
        entropy = min(entropy, *(_entropy(each) for each in weights))
    return found | {"entropy_l": entropy}


def _values_of(
    column: _Column, group: list[int], person: list[Hashable]
) -> Iterator[tuple[Hashable, set[int]]]:
    found = defaultdict[Hashable, set[int]](set)
    for i in group:
        found[person[i]].add(column.values[i])
    yield from found.items()


def _share_of_persons(column: _Column, group: list[int], person: list[Hashable]) -> float:
    values = [values for _, values in _values_of(column, group, person)]
    return max(Counter(v for each in values for v in each).values()) / len(values)


def _weights(column: _Column, group: list[int], person: list[Hashable]) -> Counter[int]:
    found = Counter[int]()
    for _, values in _values_of(column, group, person):
        for value in values:
            found[value] += PARTS // len(values)
    return found


def _entropy(counts: Counter[int]) -> float:
    shares = [n / counts.total() for n in counts.values()]
    return math.exp(-sum(share * math.log(share) for share in shares))


def _distance(one: Counter[int], whole: Counter[int], column: _Column) -> float:
    """The earth mover's distance: over ranks, or with all values equally far."""
    n, size, total = len(whole), one.total(), whole.total()
    gaps = so_far = 0
    for value in sorted(whole):
        # Whole numbers: the gap between the two shares, times both sizes.
        gap = one[value] * total - whole[value] * size
        so_far += gap
        gaps += abs(so_far) if column.is_ordered else abs(gap)
    steps = n - 1 if column.is_ordered else 2
    return gaps / (steps * size * total) if n > 1 else 0.0


def _unmet(measure: str, wanted: float, figures: Mapping[str, Any]) -> float | None:
    """What was reached, if it is not what was asked for."""
    if measure == "l":
        reached = figures["distinct_l"]
        return float(reached) if reached < wanted else None
    name = "greatest_share" if measure == "cap" else "closeness_t"
    reached = max(figures[name], figures[f"{name}_of_persons"] or 0)
    slack = 0 if measure == "cap" else SLACK
    return float(reached) if reached > wanted + slack else None


def _check_remedies(asked: Asked, cells: Cells, found: Judged) -> None:
    """No value of a rounded or capped column is finer or farther out than was asked for."""
    options, decimal = asked.options, "," if asked.options.form == "excel-de" else "."
    for name in {*asked.declared.kept, *asked.declared.sensitive} & {*cells}:
        low, high = options.top_code.get(name, (None, None))
        step = options.round_to.get(name)
        if f"{name}_missing" in cells or (low is None and not isinstance(step, int | float)):
            continue
        if name in options.bins or name in asked.said["bins"]:
            continue
        if not pa.types.is_floating(asked.table[name].type):
            continue
        for given in cells[name]:
            if given is None:
                continue
            value = float(str(given).replace(decimal, "."))
            is_cap = value in (low, high)
            if low is not None and high is not None and not low <= value <= high:
                found.violations.append(f"{name} has {value}, beyond {low}:{high}")
            if isinstance(step, int | float) and not is_cap and abs(value / step % 1) > SLACK:
                found.violations.append(f"{name} has {value}, not a multiple of {step}")

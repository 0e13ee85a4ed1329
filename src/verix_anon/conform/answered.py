"""The submissions that a provider must answer, each made to show one thing."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from verix_anon.conform.folders import (
    as_prepared,
    one_file,
    packed_otherwise,
    parts,
    with_minus_zeros,
)
from verix_anon.conform.tables import (
    Sent,
    Spec,
    canonical,
    coded,
    labels,
    numeric,
    ranked,
    sent,
    uniform,
    whole,
)

__all__ = ["ANSWERED", "LARGE", "Answered"]


@dataclass(frozen=True, slots=True)
class Answered:
    """A submission, and what it shows."""

    title: str
    section: str
    """Of the specification"""
    make: Callable[[], Sent]
    write: Callable[[pa.Table, Path], None] = one_file
    """How its records are written"""


def _continuous(**terms: object) -> Sent:
    columns = [numeric(f"x{j}", uniform(10 + j, 64)) for j in range(3)]
    return sent(columns, labels(20, 64, columns[0][1]), **terms)


def _mixed(**terms: object) -> Sent:
    n = 90
    age = whole(1, n, 70)
    cities = [f"c{i}" for i in range(300)]
    columns: list[Spec] = [
        numeric("age", [float(a) for a in age]),
        ({"name": "città 🏙", "kind": "categorical", "categories": cities}, whole(2, n, 300)),
        ({"name": "born", "kind": "datetime", "unit": "day"}, [float(-a) for a in whole(3, n, 40)]),
        numeric("constant", [4.25] * n),
        numeric("income", [u * 1e5 for u in uniform(4, n)]),
    ]
    return sent(columns, labels(5, n, age), k=3, **terms)


def _extremes(commitment: str) -> Sent:
    values = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 1e-7]
    n = 48
    picked = [values[i] for i in whole(30, n, len(values))]
    near = [1.0 + i * 2.0**-52 for i in whole(31, n, 12)]
    columns = [numeric("far", picked), numeric("near", near)]
    return sent(columns, whole(33, n, 2), commitment=commitment)


def _ties() -> Sent:
    columns = [
        numeric("most", [0.0] * 29 + [1.0] * 11),
        numeric("same", [0.0] * 20 + [1.0] * 20),
        numeric("again", [0.0] * 20 + [1.0] * 20),
    ]
    return sent(columns, [0, 1] * 20, k=6)


def _spread(weights: list[int], **terms: object) -> Sent:
    return coded(weights, rule="importance-spread", **terms)


def _rounding() -> Sent:
    """Two scores of 132/35, which binary64 tells apart: 4/7 + 16/5 < 25/7 + 1/5."""
    first = [0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1]
    second = [0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1]
    return sent([numeric("first", first), numeric("second", second)], [1] * 6 + [0] * 6)


def _names() -> Sent:
    names = ("target", "Row", "a|b:c,d", "\ufb01 \u212b", "{delivery}")
    columns = [numeric(name, uniform(70 + j, 50)) for j, name in enumerate(names)]
    return sent(columns, labels(76, 50, columns[2][1]))


def _sorted_names() -> Sent:
    """Names that UTF-16 and dictionaries sort otherwise than code points; `|` in the target's."""
    names = ("\U0001f3d9", "alpha", "\uff21", "Zeta")
    columns = [numeric(name, uniform(120 + j, 40)) for j, name in enumerate(names)]
    made = sent(columns, labels(125, 40, columns[0][1]), commitment="paper")
    fields = json.loads(made.contract)
    fields["columns"][1]["name"] = "a|b:c,d"
    return replace(made, contract=canonical(fields))


def _halves() -> Sent:
    """Values whose seventh decimal is a 5 and the last one."""
    columns = [numeric(name, [v / 128 for v in whole(seed, 40, 99)]) for name, seed in HALVES]
    return sent(columns, labels(132, 40, columns[0][1]), commitment="paper")


HALVES = (("a", 130), ("b", 131))


def _units() -> Sent:
    columns: list[Spec] = [
        ({"name": unit, "kind": "datetime", "unit": unit}, [float(v) for v in whole(j, 40, 10**9)])
        for j, unit in enumerate(("s", "ms", "us"), 140)
    ]
    return sent(columns, labels(143, 40, columns[0][1]))


def _largest() -> Sent:
    """Weights with which a score is 2^52, and the largest column of positions."""
    n, most = 60, 2**31 - 1
    few, far = [v % 5 for v in range(n)], [0, most - 1, *whole(151, n - 2, most)]
    columns: list[Spec] = [
        ranked("few", few, 2**50),
        ({"name": "far", "kind": "rank", "size": most, "weight": 2**21}, far),
    ]
    return sent(columns, [0] * n, rule="importance-spread")


def _constant() -> Sent:
    return sent([numeric("a", [3.5] * 30), numeric("b", [0.0] * 30)], [0, 1] * 15)


def _duplicates(weight: int | None, **terms: object) -> Sent:
    """Nine persons, each of them ten times."""
    columns = [
        ranked(f"q{j}", [v for v in whole(80 + j, 9, 6) for _ in range(10)], weight)
        for j in range(3)
    ]
    return sent(columns, [v for v in whole(84, 9, 2) for _ in range(10)], k=3, **terms)


def _minority() -> Sent:
    n = 240
    columns = [numeric(f"x{j}", whole(90 + j, n, 40)) for j in range(3)]
    return sent(columns, [int(u < 0.03) for u in uniform(94, n)], min_leaf=3)


def _many(**terms: object) -> Sent:
    """Enough records for a tree of many levels, in columns of all shapes."""
    n = 1500
    shapes = [
        whole(100, n, 900),
        [int(1000 * u * u * u) for u in uniform(101, n)],
        [int(u < 0.93) for u in uniform(102, n)],
        whole(103, n, 7),
        [v // 40 for v in whole(100, n, 900)],
    ]
    is_spread = terms.get("rule") == "importance-spread"
    weights = [1, 2, 700, 150, 40]
    columns = [
        ranked(f"q{j}", values, weights[j] if is_spread else None)
        for j, values in enumerate(shapes)
    ]
    return sent(columns, labels(106, n, shapes[1]), **terms)


def _million(**terms: object) -> Sent:
    n = 1_000_000
    sizes = (50_000, 3_000, 300, 60, 12, 2)
    shapes = [whole(200 + j, n, size) for j, size in enumerate(sizes)]
    shapes.append([int(10_000 * u * u * u) for u in uniform(210, n)])
    shapes.append([int(u < 0.93) for u in uniform(211, n)])
    is_spread = terms.get("rule") == "importance-spread"
    weights = [1, 20, 200, 900, 5_000, 40_000, 6, 30_000]
    columns = [
        ranked(f"q{j}", values, weights[j] if is_spread else None)
        for j, values in enumerate(shapes)
    ]
    return sent(columns, labels(220, n, shapes[6]), k=25, **terms)


def _two_chunks() -> Sent:
    n = 65_537
    return sent([ranked("q", whole(110, n, 5000))], whole(111, n, 2), k=5000, max_depth=2)


ANSWERED: dict[str, Answered] = {
    "continuous": Answered("Three columns of numbers without ties.", "4.1", _continuous),
    "continuous-paper": Answered(
        "The same under the paper's commitment.", "6.3", lambda: _continuous(commitment="paper")
    ),
    "mixed": Answered(
        "Numbers, dates, categories and a constant column, with names beyond ASCII.", "6.1", _mixed
    ),
    "mixed-paper": Answered(
        "The same under the paper's commitment: names are sorted, values have six decimals.",
        "6.3",
        lambda: _mixed(commitment="paper"),
    ),
    "extremes": Answered(
        "The greatest and the least binary64 numbers, neighbours of 1, and zeros.",
        "6.2",
        lambda: _extremes("binding"),
    ),
    "extremes-paper": Answered(
        "The same under the paper's commitment: rounded half to even, and no -0.000000.",
        "6.3",
        lambda: _extremes("paper"),
    ),
    "depth-one": Answered(
        "A tree that ends at max_depth.", "4.1", lambda: _continuous(max_depth=1)
    ),
    "min-leaf": Answered("min_leaf decides, not k.", "4.1", lambda: _continuous(k=3, min_leaf=4)),
    "coded": Answered("Coded columns and a coded target.", "2.1", lambda: coded(None)),
    "coded-min-leaf": Answered(
        "The same with leaves of k.", "4.1", lambda: coded(None, k=3, min_leaf=3)
    ),
    "spread": Answered(
        "The other rule: weights, a skewed column split below its median, a constant one.",
        "4.2",
        lambda: _spread([1, 9, 4, 2**52], min_leaf=2),
    ),
    "spread-2k": Answered("The same with leaves of 2k.", "4.2", lambda: _spread([1, 9, 4, 1], k=4)),
    "spread-ties": Answered(
        "Equal scores under weights: the first in contract order.",
        "4.2",
        lambda: _spread([3, 44, 25, 7], k=3, min_leaf=3),
    ),
    "spread-depth": Answered(
        "Scores near 2^52, and a tree that ends at max_depth.",
        "4.2",
        lambda: _spread([2**52 // 59, 2**52 // 4, 2**52 // 7, 1], max_depth=2),
    ),
    "single-leaf": Answered(
        "Exactly min_leaf records: one leaf.",
        "4.3",
        lambda: sent([numeric("x", uniform(40, 10))], whole(41, 10, 2), k=5),
    ),
    "pure": Answered(
        "All records of one class: one leaf.",
        "4.1",
        lambda: sent([numeric("x", uniform(42, 40))], [1] * 40),
    ),
    "ties": Answered(
        "Ties make a candidate invalid, and equal scores go to the first in contract order.",
        "4.1",
        _ties,
    ),
    "rounding": Answered(
        "Two scores that are equal as fractions and are not as binary64.", "4.1", _rounding
    ),
    "constant": Answered("No column can be split: one leaf.", "4.1", _constant),
    "minority": Answered("Few records of the positive class.", "4.1", _minority),
    "many-leaves": Answered(
        "A tree of many levels, from columns of all shapes.", "4.1", lambda: _many(min_leaf=2)
    ),
    "duplicates": Answered("Every record ten times.", "4.1", lambda: _duplicates(None, min_leaf=3)),
    "spread-duplicates": Answered(
        "The same under the other rule.",
        "4.2",
        lambda: _duplicates(5, rule="importance-spread", min_leaf=3),
    ),
    "spread-many-leaves": Answered(
        "A tree of many levels under the other rule, where one value has most of a column.",
        "4.2",
        lambda: _many(rule="importance-spread", k=3, min_leaf=3),
    ),
    "names": Answered("Names that only look reserved, or like something else.", "3", _names),
    "names-paper": Answered(
        "Names are sorted by code point; the target's may hold what theirs may not.",
        "6.3",
        _sorted_names,
    ),
    "halves-paper": Answered("Values between two of six decimals go to the even.", "6.3", _halves),
    "units": Answered("Datetime columns of each unit below a day.", "3", _units),
    "spread-largest": Answered(
        "Scores of 2^52, and a column of 2^31 - 1 positions.", "4.2", _largest
    ),
    "two-chunks": Answered("One record more than a chunk holds.", "6.1", _two_chunks),
    "packed-otherwise": Answered(
        "Rows in any order, in many row groups, by another codec.",
        "8.1",
        lambda: coded([1, 9, 4, 1], rule="importance-spread", k=4),
        packed_otherwise,
    ),
    "as-prepared": Answered(
        "The encodings in which an owner writes numbers.", "8.1", _continuous, as_prepared
    ),
    "minus-zero": Answered(
        "A file that holds -0.0, which is read as 0.0.",
        "2.1",
        lambda: _extremes("binding"),
        with_minus_zeros,
    ),
    "parts": Answered(
        "Records as a folder of parts in a cluster's types, one of them empty.",
        "8.3",
        lambda: coded(None, k=4),
        parts,
    ),
}

LARGE: dict[str, Answered] = {
    "large": Answered("A million records.", "4.1", _million),
    "large-spread": Answered(
        "A million records under the other rule.",
        "4.2",
        lambda: _million(rule="importance-spread", min_leaf=25),
    ),
}
"""What takes minutes to make, and is made only when it is asked for."""

"""The tables of the submissions that a provider must answer, each made to show one thing."""

import json
from dataclasses import replace

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

__all__ = [
    "below_zero",
    "binary32",
    "constant",
    "continuous",
    "duplicates",
    "equal_trackers",
    "extremes",
    "half_a_day",
    "halves",
    "largest",
    "many",
    "million",
    "minority",
    "mixed",
    "names",
    "one_chunk",
    "rounding",
    "rounding_order",
    "sorted_names",
    "spread",
    "ties",
    "two_chunks",
    "units",
]


def continuous(**terms: object) -> Sent:
    """Three columns of numbers, and a target that follows the first."""
    columns = [numeric(f"x{j}", uniform(10 + j, 64)) for j in range(3)]
    return sent(columns, labels(20, 64, columns[0][1]), **terms)


def mixed(**terms: object) -> Sent:
    """Columns of every kind in clear."""
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


def extremes(commitment: str) -> Sent:
    """Numbers as far apart, and as near to each other, as binary64 has them."""
    values = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 1e-7]
    n = 48
    picked = [values[i] for i in whole(30, n, len(values))]
    near = [1.0 + i * 2.0**-52 for i in whole(31, n, 12)]
    columns = [numeric("far", picked), numeric("near", near)]
    return sent(columns, whole(33, n, 2), commitment=commitment)


def ties() -> Sent:
    """Two columns with equal scores, and one that ties leave no valid split."""
    columns = [
        numeric("most", [0.0] * 29 + [1.0] * 11),
        numeric("same", [0.0] * 20 + [1.0] * 20),
        numeric("again", [0.0] * 20 + [1.0] * 20),
    ]
    return sent(columns, [0, 1] * 20, k=6)


def spread(weights: list[int], **terms: object) -> Sent:
    """Coded columns under weights."""
    return coded(weights, rule="importance-spread", **terms)


def rounding() -> Sent:
    """Two scores of 132/35, which binary64 tells apart: 4/7 + 16/5 < 25/7 + 1/5."""
    first = [0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1]
    second = [0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1]
    return sent([numeric("first", first), numeric("second", second)], [1] * 6 + [0] * 6)


def rounding_order() -> Sent:
    """16/7 + 4/5 and 9/7 + 9/5: by l/nl*l + r/nr*r the first is not the smaller."""
    first = [0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1]
    second = [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1]
    return sent([numeric("first", first), numeric("second", second)], [1] * 6 + [0] * 6)


def binary32() -> Sent:
    """Scores of 2^24 and of 2^24 + 1."""
    columns = [ranked("first", [0, 0, 1, 1] * 3, 2**24), ranked("second", [0, 1] * 6, 2**24 + 1)]
    return sent(columns, [0] * 12, rule="importance-spread")


def below_zero() -> Sent:
    """A threshold, a least and a greatest value that are all -1e-7."""
    columns = [numeric("a", [-1e-7] * 6 + [1.0] * 6), numeric("b", [0.0] * 12)]
    return sent(columns, [0] * 6 + [1] * 6, commitment="paper")


def half_a_day() -> Sent:
    """Dates that are no whole number of days."""
    day: dict[str, object] = {"name": "day", "kind": "datetime", "unit": "day"}
    return sent([(day, [v / 2 for v in whole(160, 24, 40)])], whole(161, 24, 2))


def equal_trackers() -> Sent:
    """Two records of one tracker."""
    made = continuous()
    return replace(made, trackers=[made.trackers[1], *made.trackers[1:]])


def names() -> Sent:
    """Names that only look reserved, or like something else."""
    names = ("target", "Row", "a|b:c,d", "\ufb01 \u212b", "{delivery}")
    columns = [numeric(name, uniform(70 + j, 50)) for j, name in enumerate(names)]
    return sent(columns, labels(76, 50, columns[2][1]))


def sorted_names() -> Sent:
    """Names that UTF-16 and dictionaries sort otherwise than code points; `|` in the target's."""
    names = ("\U0001f3d9", "alpha", "\uff21", "Zeta")
    columns = [numeric(name, uniform(120 + j, 40)) for j, name in enumerate(names)]
    made = sent(columns, labels(125, 40, columns[0][1]), commitment="paper")
    fields = json.loads(made.contract)
    fields["columns"][1]["name"] = "a|b:c,d"
    return replace(made, contract=canonical(fields))


def halves() -> Sent:
    """Values whose seventh decimal is a 5 and the last one."""
    columns = [numeric(name, [v / 128 for v in whole(seed, 40, 99)]) for name, seed in HALVES]
    return sent(columns, labels(132, 40, columns[0][1]), commitment="paper")


HALVES = (("a", 130), ("b", 131))


def units() -> Sent:
    """Dates in each unit below a day."""
    columns: list[Spec] = [
        ({"name": unit, "kind": "datetime", "unit": unit}, [float(v) for v in whole(j, 40, 10**9)])
        for j, unit in enumerate(("s", "ms", "us"), 140)
    ]
    return sent(columns, labels(143, 40, columns[0][1]))


def largest() -> Sent:
    """Weights with which a score is 2^52, and the largest column of positions."""
    n, most = 60, 2**31 - 1
    few, far = [v % 5 for v in range(n)], [0, most - 1, *whole(151, n - 2, most)]
    columns: list[Spec] = [
        ranked("few", few, 2**50),
        ({"name": "far", "kind": "rank", "size": most, "weight": 2**21}, far),
    ]
    return sent(columns, [0] * n, rule="importance-spread")


def constant() -> Sent:
    """Columns that cannot be split."""
    return sent([numeric("a", [3.5] * 30), numeric("b", [0.0] * 30)], [0, 1] * 15)


def duplicates(weight: int | None, **terms: object) -> Sent:
    """Nine persons, each of them ten times."""
    columns = [
        ranked(f"q{j}", [v for v in whole(80 + j, 9, 6) for _ in range(10)], weight)
        for j in range(3)
    ]
    return sent(columns, [v for v in whole(84, 9, 2) for _ in range(10)], k=3, **terms)


def minority() -> Sent:
    """Few records of the positive class."""
    n = 240
    columns = [numeric(f"x{j}", whole(90 + j, n, 40)) for j in range(3)]
    return sent(columns, [int(u < 0.03) for u in uniform(94, n)], min_leaf=3)


def many(**terms: object) -> Sent:
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


def million(**terms: object) -> Sent:
    """A million records, in columns of all shapes."""
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


def one_chunk() -> Sent:
    """As many records as a chunk holds, in one leaf."""
    n = 65_536
    return sent([ranked("q", whole(112, n, 5000))], whole(113, n, 2), k=2**15)


def two_chunks() -> Sent:
    """One record more, and splits."""
    n = 65_537
    return sent([ranked("q", whole(110, n, 5000))], whole(111, n, 2), k=5000, max_depth=2)

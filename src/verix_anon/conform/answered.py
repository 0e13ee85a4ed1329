"""The submissions that a provider must answer, each made to show one thing."""

from collections.abc import Callable
from dataclasses import dataclass

from verix_anon.conform.tables import Sent, Spec, coded, labels, numeric, sent, uniform, whole

__all__ = ["ANSWERED", "Answered"]


@dataclass(frozen=True, slots=True)
class Answered:
    """A submission, and what it shows."""

    title: str
    section: str
    """Of the specification"""
    make: Callable[[], Sent]


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
}

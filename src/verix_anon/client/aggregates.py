"""Aggregates for a verdict's evidence: small, and of nobody in particular.

The report draws its pictures from them and computes nothing. Each is bounded in size whatever
the table's, is made of JSON values, and holds counts, shares and rounded ranges, never a
record's value or a threshold, which is one (spec §10).
"""

from collections.abc import Callable

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.protocol.tree import Tree

__all__ = [
    "DEVIATES",
    "NOT_SEEN",
    "RIGHT",
    "UNITS",
    "evasion_curve",
    "paired_histogram",
    "quantiles",
    "size_histogram",
    "tree_map",
]

Json = dict[str, object]

MOST_BINS = 24
MOST_POINTS = 200
DROPS = (
    *(0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04),
    *(0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5),
)
OPERATING_DROP = 0.05
"""The drop that traps are planned for (spec §7)."""

UNITS = 400
"""The width of the tree map; all records together."""
SMALLEST_DRAWN = 3
"""Units below which nodes are drawn together with their neighbours."""
NOT_SEEN, RIGHT, DEVIATES = 0, 1, 2
LETTERS = "urw"
"""Of one node: unseen, right, wrong. Capitals are many small ones; M, that some were seen."""


def size_histogram(sizes: Ints, at_least: int) -> Json:
    """How many classes have which size, in bins of whole numbers; `at_least` is an edge."""
    smallest, largest = int(sizes.min()), int(sizes.max())
    if largest - smallest < MOST_BINS:
        edges = np.arange(smallest, largest + 2)
    else:
        edges = np.geomspace(max(smallest, 1), largest + 1, MOST_BINS + 1).round().astype(np.int64)
        edges[0], edges[-1] = smallest, largest + 1
    inside = [at_least] if smallest < at_least <= largest else []
    edges = np.unique(np.concatenate([edges, np.array(inside, np.int64)]))
    bin_of = np.searchsorted(edges, sizes, side="right") - 1
    return {
        "at_least": at_least,
        "smallest": smallest,
        "largest": largest,
        "mean": round(float(sizes.mean()), 1),
        "edges": edges.tolist(),
        "counts": np.bincount(bin_of, minlength=edges.size - 1).tolist(),
    }


def paired_histogram(before: Floats, after: Floats) -> Json:
    """Two samples in the same bins; what lies beyond 1 and 99 % of both counts in the end bins.

    So neither end is anybody's value: it is a percentile, rounded outwards.
    """
    low, high = np.percentile(np.concatenate([before, after]), [1, 99]).tolist()
    # All but one value: then some width is better than none.
    width = max(high - low, 1e-6 * max(1.0, abs(low), abs(high)))
    step = 10.0 ** np.floor(np.log10(width)) / 10
    low, high = float((np.floor(low / step) - 1) * step), float((np.ceil(high / step) + 1) * step)
    counts = [
        np.histogram(np.clip(sample, low, high), MOST_BINS, (low, high))[0].tolist()
        for sample in (before, after)
    ]
    return {"from": round(low, 9), "to": round(high, 9), "before": counts[0], "after": counts[1]}


def quantiles(values: Floats) -> list[float]:
    """The values in order, or evenly spaced quantiles where there are very many."""
    if values.size > MOST_POINTS:
        values = np.quantile(values, np.linspace(0, 1, MOST_POINTS))
    return [round(value, 6) for value in sorted(values.tolist())]


def evasion_curve(probability: Callable[[float], float]) -> Json:
    """The chance to pass unseen at each share of dropped records, and where traps are planned."""
    return {
        "drop": list(DROPS),
        "probability": [probability(drop) for drop in DROPS],
        "operating_drop": OPERATING_DROP,
        "operating_probability": probability(OPERATING_DROP),
    }


def tree_map(tree: Tree, spans: Ints, state: Bytes) -> Json:
    """The tree level by level, as runs of letters and widths such as `r180 w217 U3`.

    A node is as wide as its share of the records, in units of 1/400. Nodes too narrow to be
    drawn are taken together; one that deviates shows through all the others. `-` is where a
    branch has ended.
    """
    n_rows = int(spans[0, 1])
    first, last = spans[:, 0] * UNITS // n_rows, (spans[:, 1] - 1) * UNITS // n_rows
    end = spans[:, 1] * UNITS // n_rows
    is_drawn = end - first >= SMALLEST_DRAWN
    depth = tree.depths()
    n_levels = int(depth.max()) + 1
    cells = np.zeros((3, n_levels * UNITS), np.bool_)
    for each in (NOT_SEEN, RIGHT, DEVIATES):
        small = np.flatnonzero(~is_drawn & (state == each))
        # A small node touches three cells at most.
        for cell in (first[small], (first[small] + last[small]) // 2, last[small]):
            cells[each, depth[small] * UNITS + cell] = True
    letters = np.select(
        [cells[DEVIATES], cells[RIGHT] & cells[NOT_SEEN], cells[RIGHT], cells[NOT_SEEN]],
        [ord(letter) for letter in "WMRU"],
        ord("-"),
    ).reshape(n_levels, UNITS)
    drawn = np.flatnonzero(is_drawn)
    levels = []
    for level in range(n_levels):
        nodes = drawn[depth[drawn] == level]
        boxes = zip(first[nodes].tolist(), end[nodes].tolist(), state[nodes].tolist(), strict=True)
        levels.append(_level(letters[level], list(boxes)))
    return {"units": UNITS, "levels": levels}


def _level(letters: Ints, boxes: list[tuple[int, int, int]]) -> str:
    """One level from left to right: boxes of single nodes, and runs of cells between them."""
    tokens, at = [], 0
    for first, end, state in [*boxes, (UNITS, UNITS, NOT_SEEN)]:
        while at < first:
            same = np.flatnonzero(letters[at:first] != letters[at])
            width = int(same[0]) if same.size else first - at
            tokens.append(f"{chr(letters[at])}{width}")
            at += width
        if end > first:
            tokens.append(f"{LETTERS[state]}{end - first}")
        at = max(at, end)
    return " ".join(tokens)

"""Hold the counts and shares behind a verdict, without values of records, one type for each.

The layers put them into a verdict. The report draws its pictures from them and computes nothing.
Each has a bounded size whatever the table's, and consists of JSON values: counts, shares and
rounded ranges, but never a record's value, nor a threshold, which is a record's value (spec §10).
Reading is strict, because a verdict file may hold anything.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.fields import COUNTS, Fields
from verix_anon.protocol.tree import Tree

Json = dict[str, object]

MOST_NUMBERS = 500
"""Numbers of one list that is read."""
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
MOST_LEVELS = 51
SMALLEST_DRAWN = 3
"""Units below which nodes are drawn together with their neighbours."""
NOT_SEEN, RIGHT, DEVIATES = 0, 1, 2
LETTERS = "urw"
"""Of one node: unseen, right, wrong. Capitals are many small ones; M, that some were seen."""
TOKEN = re.compile(r"([-urwURWM])([1-9][0-9]{0,2})")


def quantiles(values: Floats) -> list[float]:
    """The values in order, or evenly spaced quantiles where there are very many."""
    if values.size > MOST_POINTS:
        values = np.quantile(values, np.linspace(0, 1, MOST_POINTS))
    return [round(value, 6) for value in sorted(values.tolist())]


def evasion_probability(n_sentinels: int, n_sent: int, dropped: float) -> float:
    """The chance that blind dropping of a share of the records hits no sentinel."""
    return float((1 - n_sentinels / n_sent) ** (dropped * n_sent))


def _plain(fields: Json) -> Json:
    """Lists for tuples, as they come back from a file."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items()}


@dataclass(frozen=True, slots=True)
class SizeHistogram:
    """How many classes have which size, in bins of whole numbers; `at_least` is an edge."""

    at_least: int
    smallest: int
    largest: int
    mean: float
    edges: tuple[float, ...]
    counts: tuple[float, ...]

    @classmethod
    def of(cls, sizes: Ints, at_least: int) -> "SizeHistogram":
        """Count the sizes."""
        smallest, largest = int(sizes.min()), int(sizes.max())
        if largest - smallest < MOST_BINS:
            edges = np.arange(smallest, largest + 2)
        else:
            steps = np.geomspace(max(smallest, 1), largest + 1, MOST_BINS + 1)
            edges = steps.round().astype(np.int64)
            edges[0], edges[-1] = smallest, largest + 1
        inside = [at_least] if smallest < at_least <= largest else []
        edges = np.unique(np.concatenate([edges, np.array(inside, np.int64)]))
        bin_of = np.searchsorted(edges, sizes, side="right") - 1
        counts = np.bincount(bin_of, minlength=edges.size - 1)
        mean = round(float(sizes.mean()), 1)
        return cls(at_least, smallest, largest, mean, (*edges.tolist(),), (*counts.tolist(),))

    def to_json(self) -> Json:
        """Return it as JSON values."""
        return _plain(asdict(self))

    @classmethod
    def from_json(cls, fields: Fields) -> "SizeHistogram":
        """Read it back."""
        edges, counts = short_numbers(fields, "edges"), short_numbers(fields, "counts")
        is_histogram = len(edges) == len(counts) + 1 > 1 and list(edges) == sorted(set(edges))
        if not is_histogram or min(counts) < 0:
            raise fields.fail(f"{fields.where} must be a histogram")
        return fields.record(cls, edges=edges, counts=counts)


@dataclass(frozen=True, slots=True)
class ShapShift:
    """The SHAP values of one column before and after, in the same bins.

    What lies beyond 1 and 99 % of both counts in the end bins. So neither end is anybody's value:
    it is a percentile, rounded outwards.
    """

    feature: str
    low: float
    high: float
    before: tuple[float, ...]
    after: tuple[float, ...]

    @classmethod
    def of(cls, feature: str, before: Floats, after: Floats) -> "ShapShift":
        """Count both samples."""
        low, high = np.percentile(np.concatenate([before, after]), [1, 99]).tolist()
        # All but one value: then some width is better than none.
        width = max(high - low, 1e-6 * max(1.0, abs(low), abs(high)))
        step = 10.0 ** np.floor(np.log10(width)) / 10
        low = float((np.floor(low / step) - 1) * step)
        high = float((np.ceil(high / step) + 1) * step)
        counts = (
            tuple(np.histogram(np.clip(sample, low, high), MOST_BINS, (low, high))[0].tolist())
            for sample in (before, after)
        )
        return cls(feature, round(low, 9), round(high, 9), *counts)

    def to_json(self) -> Json:
        """Return it as JSON values."""
        return {
            "feature": self.feature,
            "from": self.low,
            "to": self.high,
            "before": list(self.before),
            "after": list(self.after),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> "ShapShift":
        """Read it back."""
        low, high = fields.number("from"), fields.number("to")
        before, after = short_numbers(fields, "before"), short_numbers(fields, "after")
        if not len(before) == len(after) > 0 or not low < high:
            raise fields.wrong("after", "a distribution over the same bins as before")
        return cls(str(fields.value("feature")), low, high, before, after)


@dataclass(frozen=True, slots=True)
class EvasionCurve:
    """The chance to pass unseen at each share of dropped records, and where traps are planned."""

    drop: tuple[float, ...]
    probability: tuple[float, ...]
    operating_drop: float
    operating_probability: float

    @classmethod
    def of(cls, probability: Callable[[float], float]) -> "EvasionCurve":
        """The curve of a chance that depends on the share."""
        at_operation = probability(OPERATING_DROP)
        return cls(DROPS, tuple(map(probability, DROPS)), OPERATING_DROP, at_operation)

    def to_json(self) -> Json:
        """Return it as JSON values."""
        return _plain(asdict(self))

    @classmethod
    def from_json(cls, fields: Fields) -> "EvasionCurve":
        """Read it back."""
        drop, probability = short_numbers(fields, "drop"), short_numbers(fields, "probability")
        is_curve = len(drop) == len(probability) > 0 and min(drop) > 0
        if not is_curve or min(probability) < 0 or max(probability) > 1:
            raise fields.fail(f"{fields.where} must be a curve of probabilities")
        return fields.record(cls, drop=drop, probability=probability)


@dataclass(frozen=True, slots=True)
class TreeMap:
    """The tree level by level, as runs of a letter and a width such as `r180 w217 U3`.

    A node is as wide as its share of the records, in units of 1/400. Nodes too narrow to be
    drawn are taken together; one that deviates shows through all the others. `-` is where a
    branch has ended.
    """

    units: int
    levels: tuple[tuple[tuple[str, int], ...], ...]

    @classmethod
    def of(cls, tree: Tree, spans: Ints, state: Bytes) -> "TreeMap":
        """Map a tree whose nodes hold these spans of records, and are in these states."""
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
            boxes = zip(
                first[nodes].tolist(), end[nodes].tolist(), state[nodes].tolist(), strict=True
            )
            levels.append(_level(letters[level], list(boxes)))
        return cls(UNITS, tuple(levels))

    def to_json(self) -> Json:
        """Return it as JSON values."""
        levels = [" ".join(f"{letter}{width}" for letter, width in level) for level in self.levels]
        return {"units": self.units, "levels": levels}

    @classmethod
    def from_json(cls, fields: Fields) -> "TreeMap":
        """Read it back."""
        units, texts = fields.whole("units", COUNTS), fields.texts("levels")
        levels = tuple(_runs(text, units) for text in texts[:MOST_LEVELS])
        is_map = 1 <= units <= MOST_NUMBERS and 1 <= len(texts) <= MOST_LEVELS
        if not is_map or not all(sum(width for _, width in level) == units for level in levels):
            raise fields.fail(f"{fields.where} must be a map of a tree")
        return cls(units, levels)


def _level(letters: Ints, boxes: list[tuple[int, int, int]]) -> tuple[tuple[str, int], ...]:
    """One level from left to right: boxes of single nodes, and runs of cells between them."""
    runs, at = [], 0
    for first, end, state in [*boxes, (UNITS, UNITS, NOT_SEEN)]:
        while at < first:
            same = np.flatnonzero(letters[at:first] != letters[at])
            width = int(same[0]) if same.size else first - at
            runs.append((chr(letters[at]), width))
            at += width
        if end > first:
            runs.append((LETTERS[state], end - first))
        at = max(at, end)
    return tuple(runs)


def _runs(level: str, units: int) -> tuple[tuple[str, int], ...]:
    """The runs of one level, or nothing if the text is anything else."""
    tokens = level.split(" ", min(units, MOST_NUMBERS))
    matches = [TOKEN.fullmatch(token) for token in tokens]
    runs = tuple((match[1], int(match[2])) for match in matches if match is not None)
    return runs if len(runs) == len(tokens) else ()


def short_numbers(fields: Fields, name: str) -> tuple[float, ...]:
    """Return a list of numbers that is not too long."""
    found = fields.numbers(name)
    if len(found) > MOST_NUMBERS:
        raise fields.wrong(name, f"at most {MOST_NUMBERS} numbers")
    return found

"""The submissions that a provider must answer, each made to show one thing."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from verix_anon.conform import shapes
from verix_anon.conform.folders import (
    as_prepared,
    one_file,
    packed_otherwise,
    parts,
    parts_by_name,
    with_minus_zeros,
)
from verix_anon.conform.tables import Sent, canonical, coded, numeric, sent, uniform, whole

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
    header_bytes: Callable[[dict[str, Any]], bytes] = canonical
    """How submission.json is written"""


def _pretty(header: dict[str, Any]) -> bytes:
    return json.dumps(dict(reversed(header.items())), indent=2).encode()


ANSWERED: dict[str, Answered] = {
    "continuous": Answered("Three columns of numbers without ties.", "4.1", shapes.continuous),
    "continuous-paper": Answered(
        "The same under the paper's commitment.",
        "6.3",
        lambda: shapes.continuous(commitment="paper"),
    ),
    "mixed": Answered(
        "Numbers, dates, categories and a constant column, with names beyond ASCII.",
        "6.1",
        shapes.mixed,
    ),
    "mixed-paper": Answered(
        "The same under the paper's commitment: names are sorted, values have six decimals.",
        "6.3",
        lambda: shapes.mixed(commitment="paper"),
    ),
    "extremes": Answered(
        "The greatest and the least binary64 numbers, neighbours of 1, and zeros.",
        "6.2",
        lambda: shapes.extremes("binding"),
    ),
    "extremes-paper": Answered(
        "The same under the paper's commitment: rounded half to even, and no -0.000000.",
        "6.3",
        lambda: shapes.extremes("paper"),
    ),
    "depth-one": Answered(
        "A tree that ends at max_depth.", "4.1", lambda: shapes.continuous(max_depth=1)
    ),
    "min-leaf": Answered(
        "min_leaf decides, not k.", "4.1", lambda: shapes.continuous(k=3, min_leaf=4)
    ),
    "coded": Answered("Coded columns and a coded target.", "2.1", lambda: coded(None)),
    "coded-min-leaf": Answered(
        "The same with leaves of k.", "4.1", lambda: coded(None, k=3, min_leaf=3)
    ),
    "spread": Answered(
        "The other rule: weights, a skewed column split below its median, a constant one.",
        "4.2",
        lambda: shapes.spread([1, 9, 4, 2**52], min_leaf=2),
    ),
    "spread-2k": Answered(
        "The same with leaves of 2k.", "4.2", lambda: shapes.spread([1, 9, 4, 1], k=4)
    ),
    "spread-ties": Answered(
        "Equal scores under weights: the first in contract order.",
        "4.2",
        lambda: shapes.spread([3, 44, 25, 7], k=3, min_leaf=3),
    ),
    "spread-depth": Answered(
        "Scores near 2^52, and a tree that ends at max_depth.",
        "4.2",
        lambda: shapes.spread([2**52 // 59, 2**52 // 4, 2**52 // 7, 1], max_depth=2),
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
        shapes.ties,
    ),
    "rounding": Answered(
        "Two scores that are equal as fractions and are not as binary64.", "4.1", shapes.rounding
    ),
    "rounding-order": Answered(
        "Two scores that another order of the operations would not tell apart.",
        "4.1",
        shapes.rounding_order,
    ),
    "constant": Answered("No column can be split: one leaf.", "4.1", shapes.constant),
    "minority": Answered("Few records of the positive class.", "4.1", shapes.minority),
    "many-leaves": Answered(
        "A tree of many levels, from columns of all shapes.", "4.1", lambda: shapes.many(min_leaf=2)
    ),
    "duplicates": Answered(
        "Every record ten times.", "4.1", lambda: shapes.duplicates(None, min_leaf=3)
    ),
    "spread-duplicates": Answered(
        "The same under the other rule.",
        "4.2",
        lambda: shapes.duplicates(5, rule="importance-spread", min_leaf=3),
    ),
    "spread-many-leaves": Answered(
        "A tree of many levels under the other rule, where one value has most of a column.",
        "4.2",
        lambda: shapes.many(rule="importance-spread", k=3, min_leaf=3),
    ),
    "spread-binary32": Answered(
        "Scores that binary32 would not tell apart.", "4.2", shapes.binary32
    ),
    "names": Answered("Names that only look reserved, or like something else.", "3", shapes.names),
    "names-paper": Answered(
        "Names are sorted by code point; the target's may hold what theirs may not.",
        "6.3",
        shapes.sorted_names,
    ),
    "halves-paper": Answered(
        "Values between two of six decimals go to the even.", "6.3", shapes.halves
    ),
    "below-zero-paper": Answered(
        "A threshold and bounds just below zero: 0.000000, without a sign.",
        "6.3",
        shapes.below_zero,
    ),
    "units": Answered("Datetime columns of each unit below a day.", "3", shapes.units),
    "spread-largest": Answered(
        "Scores of 2^52, and a column of 2^31 - 1 positions.", "4.2", shapes.largest
    ),
    "one-chunk": Answered(
        "As many records as a chunk holds, and no more.", "6.1", shapes.one_chunk
    ),
    "two-chunks": Answered("One record more than a chunk holds.", "6.1", shapes.two_chunks),
    "packed-otherwise": Answered(
        "Rows in any order, in many row groups, by another codec.",
        "8.1",
        lambda: coded([1, 9, 4, 1], rule="importance-spread", k=4),
        packed_otherwise,
    ),
    "as-prepared": Answered(
        "The encodings in which an owner writes numbers.", "8.1", shapes.continuous, as_prepared
    ),
    "minus-zero": Answered(
        "A file that holds -0.0, which is read as 0.0.",
        "2.1",
        lambda: shapes.extremes("binding"),
        with_minus_zeros,
    ),
    "parts": Answered(
        "Records as a folder of parts in a cluster's types, one of them empty.",
        "8.3",
        lambda: coded(None, k=4),
        parts,
    ),
    "parts-names": Answered(
        "Parts in ordinary types, whose names are sorted by code point.",
        "8.3",
        lambda: coded(None, k=4),
        parts_by_name,
    ),
    "header-pretty": Answered(
        "submission.json in another form than that of RFC 8785, which no reader asks for.",
        "8.2",
        shapes.continuous,
        header_bytes=_pretty,
    ),
    "tracker-twice": Answered(
        "Two equal trackers: whether they differ is the owner's affair.",
        "8.1",
        shapes.equal_trackers,
    ),
    "value-half-a-day": Answered(
        "Dates that are not whole, which is the owner's affair too.", "8.1", shapes.half_a_day
    ),
}

LARGE: dict[str, Answered] = {
    "large": Answered("A million records.", "4.1", shapes.million),
    "large-spread": Answered(
        "A million records under the other rule.",
        "4.2",
        lambda: shapes.million(rule="importance-spread", min_leaf=25),
    ),
}
"""What takes minutes to make, and is made only when it is asked for."""

"""Providers that each misbehave in one named way; they know what a provider knows, no more.

growing.py    a tree by any choice of splits, delivered as if nothing were wrong
lazy.py       leave out records, and hide it or not
altering.py   grow another tree than the agreed one
forging.py    do the work and alter what is delivered, or deliver other work
informed.py   find the traps first; the paper only discusses this one
"""

from collections.abc import Callable

from verix_anon.adversaries.altering import (
    Deviates,
    LowersK,
    SamplesRecords,
    SkipsColumns,
    SplitsAtMean,
    SplitsBlindly,
    SplitsBlindlyAbove,
    SplitsBlindlyBelow,
    StopsEarly,
)
from verix_anon.adversaries.forging import (
    FlipsLabels,
    ForgesRoot,
    ReplaysOld,
    SwapsTrackers,
    WidensBounds,
)
from verix_anon.adversaries.informed import DropsFoundTraps, DropsUntrapped
from verix_anon.adversaries.lazy import DropsRows, EchoesDropped, GrowsOnSample, RefillsWithCopies
from verix_anon.protocol.messages import Provider

__all__ = [
    "ADVERSARIES",
    "PAPER",
    "Deviates",
    "DropsFoundTraps",
    "DropsRows",
    "DropsUntrapped",
    "EchoesDropped",
    "FlipsLabels",
    "ForgesRoot",
    "GrowsOnSample",
    "LowersK",
    "RefillsWithCopies",
    "ReplaysOld",
    "SamplesRecords",
    "SkipsColumns",
    "SplitsAtMean",
    "SplitsBlindly",
    "SplitsBlindlyAbove",
    "SplitsBlindlyBelow",
    "StopsEarly",
    "SwapsTrackers",
    "WidensBounds",
]

PAPER = ("lazy", "dumb", "approximate")
"""The adversaries of the paper's Experiment 1, by their names there (§4.2)."""

ADVERSARIES: dict[str, Callable[[int], Provider]] = {
    "lazy": lambda seed: DropsRows(seed=seed),
    "dumb": lambda seed: ForgesRoot(SplitsBlindly(seed=seed)),
    "approximate": lambda seed: SplitsBlindly(seed=seed),
    "informed": lambda seed: DropsUntrapped(seed=seed),
    "informed-40": lambda seed: DropsUntrapped(0.4, seed=seed),
    "informed-echo": lambda seed: DropsUntrapped(0.4, echoes=True, seed=seed),
    "informed-traps": lambda seed: DropsFoundTraps(seed=seed),
    "shallow": lambda _: StopsEarly(),
    "half-columns": lambda seed: SkipsColumns(seed=seed),
    "sampled-splits": lambda seed: SamplesRecords(seed=seed),
    "sampled-scores": lambda seed: SamplesRecords(exact_medians=True, seed=seed),
    "blind-below": lambda seed: SplitsBlindlyBelow(seed=seed),
    "blind-above": lambda seed: SplitsBlindlyAbove(seed=seed),
    "sampled-tree": lambda seed: GrowsOnSample(seed=seed),
    "mean": lambda _: SplitsAtMean(),
    "half-k": lambda _: LowersK(0.4),
    "leaf-k": lambda _: LowersK(0.5),
    "flipped-labels": lambda seed: FlipsLabels(seed=seed),
    "swapped-trackers": lambda seed: SwapsTrackers(seed=seed),
    "wide-bounds": lambda seed: WidensBounds(seed=seed),
    "refilled": lambda seed: RefillsWithCopies(seed=seed),
    "echoed": lambda seed: EchoesDropped(seed=seed),
    "replayed": lambda seed: ReplaysOld(seed=seed),
    "deviates": lambda seed: Deviates(0.05, seed=seed),
}
"""Every adversary by name, as a function of its seed."""

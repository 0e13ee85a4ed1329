"""Providers that each misbehave in one named way; they know what a provider knows, no more.

deviating_growth.py   a tree by any choice of splits, delivered as if nothing were wrong
wrong_trees.py        grow another tree than the agreed one
missing_rows.py       leave out records, and hide it or not
forged_deliveries.py  do the work and alter what is delivered, or deliver other work
trap_hunters.py       find the traps first; the paper only discusses this one

Examples:
    >>> provider = verix_anon.adversaries.DropsRows()
    >>> delivery = provider.anonymize(verix_anon.read_submission("job/submission"))
    >>> bool(verix_anon.verify(delivery, "job/manifest.verix", submission="job/submission"))
    False
"""

from collections.abc import Callable

from verix_anon.adversaries.forged_deliveries import (
    FlipsLabels,
    ForgesRoot,
    ReplaysOld,
    SwapsTrackers,
    SwapsValues,
    WidensBounds,
)
from verix_anon.adversaries.missing_rows import (
    DropsRows,
    EchoesDropped,
    GrowsOnSample,
    RefillsWithCopies,
)
from verix_anon.adversaries.trap_hunters import DropsFoundTraps, DropsUntrapped, MovesSuspects
from verix_anon.adversaries.wrong_trees import (
    CutsOneNode,
    Deviates,
    IgnoresWeights,
    LowersK,
    MixesWeights,
    NeverSplitsBelow,
    SamplesRecords,
    ScoresOtherwise,
    SkipsColumns,
    SplitsAtMean,
    SplitsBlindly,
    SplitsBlindlyAbove,
    SplitsBlindlyBelow,
    StopsEarly,
)
from verix_anon.protocol.contract import Rule
from verix_anon.protocol.providers import Provider

__all__ = [
    "ADVERSARIES",
    "PAPER",
    "CutsOneNode",
    "Deviates",
    "DropsFoundTraps",
    "DropsRows",
    "DropsUntrapped",
    "EchoesDropped",
    "FlipsLabels",
    "ForgesRoot",
    "GrowsOnSample",
    "IgnoresWeights",
    "LowersK",
    "MixesWeights",
    "MovesSuspects",
    "NeverSplitsBelow",
    "RefillsWithCopies",
    "ReplaysOld",
    "SamplesRecords",
    "ScoresOtherwise",
    "SkipsColumns",
    "SplitsAtMean",
    "SplitsBlindly",
    "SplitsBlindlyAbove",
    "SplitsBlindlyBelow",
    "StopsEarly",
    "SwapsTrackers",
    "SwapsValues",
    "WidensBounds",
    "only",
    "under",
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
    "swapped-values": lambda seed: SwapsValues(seed=seed),
    "moved-sentinels": lambda seed: MovesSuspects(seed=seed),
    "other-score": lambda _: ScoresOtherwise(),
    "cut-node": lambda seed: CutsOneNode(seed=seed),
    "no-weights": lambda _: IgnoresWeights(),
    "mixed-weights": lambda seed: MixesWeights(seed=seed),
    "no-value-below": lambda _: NeverSplitsBelow(),
}
"""Every adversary by name, as a function of its seed."""


def only(name: str) -> Rule | None:
    """The one rule under which an adversary can misbehave, or None: it can under any."""
    return getattr(ADVERSARIES[name](0), "only", None)


def under(rule: Rule) -> dict[str, Callable[[int], Provider]]:
    """The adversaries that can misbehave under a rule; the others refuse its submissions."""
    return {name: make for name, make in ADVERSARIES.items() if only(name) in (None, rule)}

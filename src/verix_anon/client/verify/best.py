"""What the contract's rule makes of the records under some nodes (spec §4).

Of a delivery whose records are those that were sent, each in the leaf that the tree sends it to.
"""

import numpy as np

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.verify.case import Case
from verix_anon.kernels import offers, splits
from verix_anon.kernels.splits import Best
from verix_anon.protocol.contract import Rule

__all__ = ["best_splits"]


def best_splits(case: Case, nodes: Ints) -> Best:
    """The rule's split of each of these nodes, in ascending order; column -1 where it stops."""
    tree, contract = case.delivery.tree, case.contract
    n = np.diff(case.node_spans[nodes], axis=1)[:, 0]
    stops = (n < 2 * contract.min_leaf) | (tree.depths()[nodes] >= contract.max_depth)
    if contract.rule is Rule.IMPORTANCE_SPREAD:
        return _by_spread(case, nodes, stops)
    return _by_variance(case, nodes, stops)


def _by_variance(case: Case, nodes: Ints, stops: Flags) -> Best:
    """All columns compete at every node, with little more than a sort where all are asked for."""
    tree, span = case.delivery.tree, case.node_spans
    lo, hi = span[nodes, 0], span[nodes, 1]
    positive = _positive(case, lo, hi)
    stops = stops | (positive == 0) | (positive == hi - lo)
    right = tree.right[nodes]
    middle = np.where(right >= 0, span[right, 0], -1)
    spans = splits.Spans(lo, middle, hi, positive, stops, case.contract.min_leaf)
    parts = [_none(nodes.size) for _ in case.shares]
    target = case.target_by_leaf
    buffers = np.empty((len(parts), target.size + 1))
    examine = splits.examine_all if nodes.size == tree.n_nodes else splits.examine_some

    def compete(share: int, column: int, values: Floats) -> None:
        examine(column, values, target, spans, parts[share], buffers[share])

    case.each_column(compete)
    return _merged(parts)


def _positive(case: Case, lo: Ints, hi: Ints) -> Ints:
    """How many positives there are in each span."""
    before = np.zeros(case.manifest.n_rows + 1, np.int32)
    np.cumsum(case.target_by_leaf, dtype=np.int32, out=before[1:])
    return (before[hi] - before[lo]).astype(np.int64)


def _by_spread(case: Case, nodes: Ints, stops: Flags) -> Best:
    """The delivered column first, then those that would have been preferred to it."""
    tree, span = case.delivery.tree, case.node_spans
    open_ = np.flatnonzero(~stops)
    chosen = nodes[open_]
    right = tree.right[chosen].astype(np.int64)
    examined = offers.Open(
        chosen,
        right,
        span[chosen, 0],
        span[right, 0],
        span[chosen, 1],
        tree.column[chosen],
        tree.threshold[chosen],
        case.contract.min_leaf,
    )
    weights = [column.weight or 0 for column in case.contract.quasi]

    def spread(column: int) -> Floats:
        # Replay has found the delivered bounds to be those of the records.
        return offers.spread(tree.right, tree.leaf, *case.bounds_of(column))

    best = _none(open_.size)

    def delivered(share: int, column: int) -> Ints:
        return _spans(examined, examined.column == column)

    def confirm(share: int, column: int, values: Floats) -> None:
        offers.confirm(column, weights[column], values, spread(column), examined, best)

    case.each_column(confirm, delivered)

    def copied() -> Best:
        return Best(best.column.copy(), best.threshold.copy(), best.score.copy())

    parts = [copied() for _ in case.shares]

    def rivals(share: int, column: int) -> Ints:
        low, high = spread(column)[:, chosen]
        return _spans(examined, offers.rivals(column, weights[column] * (high - low), parts[share]))

    def outdo(share: int, column: int, values: Floats) -> None:
        offers.outdo(column, weights[column], values, spread(column), examined, parts[share])

    case.each_column(outdo, rivals)
    return _at(_merged(parts), open_, nodes.size)


def _spans(nodes: offers.Open, wanted: Flags) -> Ints:
    """Where the records of some nodes lie, each once; in preorder a node comes before its own."""
    lo, hi = nodes.lo[wanted], nodes.hi[wanted]
    reached = np.maximum.accumulate(np.append(0, hi))[:-1]
    is_first = lo >= reached
    return np.column_stack([lo[is_first], hi[is_first]])


def _none(n: int) -> Best:
    return Best(np.full(n, -1, np.int32), np.zeros(n), np.full(n, -1.0))


def _merged(parts: list[Best]) -> Best:
    """The best that any share of the columns found; the first in contract order among equals."""
    best = parts[0]
    for part in parts[1:]:
        is_first = (part.score == best.score) & (part.column < best.column)
        better = (part.score > best.score) | is_first
        best = Best(
            np.where(better, part.column, best.column),
            np.where(better, part.threshold, best.threshold),
            np.where(better, part.score, best.score),
        )
    return best


def _at(best: Best, places: Ints, n: int) -> Best:
    """The same among so many nodes, of which the others are leaves."""
    found = _none(n)
    found.column[places], found.threshold[places] = best.column, best.threshold
    found.score[places] = best.score
    return found

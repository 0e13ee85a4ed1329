"""Layer `splits`: each split is the one the rule chooses, each leaf one the rule stops at.

Proves: with the submission, that every node (or every node of a random sample) is what the
contract's rule makes of the records under it (spec §4). Thin, that the paths and leaves of the
witnesses are those worked out before anything was sent.
Does not prove: anything of a delivery whose records are not those that were sent; `replay`
comes first, and this layer is not run if it fails.
Can err: never. A sample misses a provider whose deviations touch a given share of the paths or
the nodes with at most the stated probability; R witnesses miss a share delta with (1-delta)^R.

Of a delivery whose records are those that were sent, each in the leaf that the tree sends it to.
"""

import hmac
import math
import secrets
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Flags, Floats, Ints
from verix_anon.client.evidence import DEVIATES, NOT_SEEN, RIGHT, TreeMap
from verix_anon.client.manifest import Witness
from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify.case import Audit, Case
from verix_anon.fields import counted, odds
from verix_anon.kernels import offers, splits
from verix_anon.kernels.splits import Best
from verix_anon.protocol import digests
from verix_anon.protocol.contract import Column, Rule, show_value
from verix_anon.protocol.tree import Tree


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
    before = np.zeros(case.manifest.n_rows + 1, np.int32)
    np.cumsum(case.target_by_leaf, dtype=np.int32, out=before[1:])
    positive = (before[hi] - before[lo]).astype(np.int64)
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
    parts = [deepcopy(best) for _ in case.shares]

    def rivals(share: int, column: int) -> Ints:
        low, high = spread(column)[:, chosen]
        return _spans(examined, offers.rivals(column, weights[column] * (high - low), parts[share]))

    def outdo(share: int, column: int, values: Floats) -> None:
        offers.outdo(column, weights[column], values, spread(column), examined, parts[share])

    case.each_column(outdo, rivals)
    # The nodes that stop are leaves.
    found, merged = _none(nodes.size), _merged(parts)
    found.column[open_], found.threshold[open_] = merged.column, merged.threshold
    found.score[open_] = merged.score
    return found


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


LAYER = "splits"
MAX_SHOWN = 5


def check(case: Case) -> Finding:
    """Hold the nodes to the rule: all, a sample, or those on the witnesses' paths."""
    if case.submission is None:
        return _witnesses(case)
    if case.options.audit is Audit.SAMPLE:
        return _sampled(case)
    nodes = np.arange(case.delivery.tree.n_nodes)
    deviations = examine(case, nodes)
    return _finding(
        deviations,
        f"Every node follows from the records by the rule ({nodes.size:,} in all).",
        "Exact: every deviation is found, and honest work is never flagged.",
        {"nodes": nodes.size, "examined": nodes.size, **_seen(case, nodes, deviations)},
    )


def sample_size(miss: float, fraction: float) -> int:
    """How many draws hit a share of what is drawn from, except for a chance of `miss`."""
    return math.ceil(math.log(miss) / math.log1p(-fraction))


@dataclass(frozen=True, slots=True)
class Deviation:
    """A node that is not what the rule makes of its records."""

    node: int
    records: int
    delivered: str
    expected: str
    kind: str
    """The same without thresholds, which are values of the table."""

    def __str__(self) -> str:
        return (
            f"node {self.node} with {counted(self.records, 'record')}: {self.delivered} was"
            f" delivered, the rule gives {self.expected}"
        )


def _finding(
    deviations: list[Deviation], good: str, guarantee: str, evidence: dict[str, object]
) -> Finding:
    shown = [str(deviation) for deviation in deviations[:MAX_SHOWN]]
    return Finding(
        layer=LAYER,
        status=Status.FAIL if deviations else Status.PASS,
        summary=(
            f"Deviations from the rule: {len(deviations):,}. The first: {shown[0]}."
            if deviations
            else good
        ),
        guarantee=guarantee,
        evidence={**evidence, "deviations": len(deviations), "first_deviations": shown},
    )


def _seen(case: Case, examined: Ints, deviations: list[Deviation]) -> dict[str, object]:
    """Which nodes were looked at and which deviate, without thresholds and for any size of tree.

    Not for the witnesses: which nodes they pass would tell where they are.
    """
    state = np.full(case.delivery.tree.n_nodes, NOT_SEEN, np.uint8)
    state[examined] = RIGHT
    state[[deviation.node for deviation in deviations]] = DEVIATES
    return {
        "deviating": [
            {"node": d.node, "records": d.records, "kind": d.kind} for d in deviations[:MAX_SHOWN]
        ],
        "tree_map": TreeMap.of(case.delivery.tree, case.node_spans, state).to_json(),
    }


def examine(case: Case, nodes: Ints) -> list[Deviation]:
    """Those of the nodes that deviate from the rule, worked out from the submitted records."""
    tree, span, best = case.delivery.tree, case.node_spans, best_splits(case, nodes)
    column, threshold = tree.column[nodes], tree.threshold[nodes]
    is_wrong = (best.column != column) | ((column >= 0) & (best.threshold != threshold))
    found = []
    for i in np.flatnonzero(is_wrong):
        judged = _Judged(case, int(nodes[i]), int(span[nodes[i], 1] - span[nodes[i], 0]))
        found.append(judged.must_be(int(best.column[i]), float(best.threshold[i])))
    return found


@dataclass(frozen=True, slots=True)
class _Judged:
    """A node to be named in a finding."""

    case: Case
    node: int
    records: int

    def must_be_leaf(self) -> Deviation:
        return self._but("a leaf", "a leaf")

    def must_be(self, column: int, threshold: float) -> Deviation:
        if column < 0:
            return self.must_be_leaf()
        kind, at = self._split(column, threshold)
        is_same = column == self.case.delivery.tree.column[self.node]
        return self._but(kind + at, f"{kind} at another value" if is_same else kind)

    def must_hold(self, records: int) -> Deviation:
        return self._but(n := f"a node with {counted(records, 'record')}", n)

    def _but(self, expected: str, expected_kind: str) -> Deviation:
        tree, kind, at = self.case.delivery.tree, "a leaf", ""
        if (column := int(tree.column[self.node])) >= 0:
            kind, at = self._split(column, float(tree.threshold[self.node]))
        both = f"{kind} was delivered, the rule gives {expected_kind}"
        return Deviation(self.node, self.records, kind + at, expected, both)

    def _split(self, column: int, threshold: float) -> tuple[str, str]:
        """What is split, and where."""
        name, sent = self.case.manifest.quasi[column].name, self.case.contract.quasi[column]
        return f"a split of {name!r}", f" at {_shown(sent, threshold)}"


def _shown(column: Column, threshold: float) -> str:
    """A threshold as people write it; a delivered one need not be a value of the column at all."""
    if column.categories is not None and not 0 <= threshold < len(column.categories):
        return repr(threshold)
    try:
        return show_value(column, threshold)
    except (OverflowError, ValueError):
        return repr(threshold)


def _sampled(case: Case) -> Finding:
    """Nodes on the paths of rows drawn at random, and nodes drawn at random.

    Drawn from the operating system after the delivery was read, so the provider cannot have
    known them; a node seen twice is looked at once, and a small tree as a whole.
    """
    options, tree = case.options, case.delivery.tree
    miss, share = options.audit_miss, options.audit_fraction
    n_draws = sample_size(miss, share)
    chosen = np.arange(tree.n_nodes) if n_draws >= tree.n_nodes else _draw(case, n_draws)
    deviations = examine(case, chosen)
    counts = {"nodes": tree.n_nodes, "examined": int(chosen.size), "draws": n_draws}
    return _finding(
        deviations,
        "Every node of a random sample follows from its records by the rule"
        f" ({chosen.size:,} in all).",
        f"If deviations touch {share * 100:.3g}% of the records' paths or of the nodes, the chance"
        f" to miss them is at most {odds(miss)}. A VIOLATION for this submission is final.",
        {**counts, **_seen(case, chosen, deviations)},
    )


def _draw(case: Case, n_draws: int) -> Ints:
    """The nodes on the paths of so many rows, and so many nodes, all drawn at random."""
    rows = [secrets.randbelow(case.manifest.n_rows) for _ in range(n_draws)]
    nodes = {secrets.randbelow(case.delivery.tree.n_nodes) for _ in range(n_draws)}
    tree, first_leaf = case.delivery.tree, case.delivery.tree.leaf_spans()[:, 0]
    for leaf in np.unique(case.leaves_of(np.array(rows))).tolist():
        nodes |= set(_path(tree, first_leaf, leaf))
    return np.array(sorted(nodes))


def _path(tree: Tree, first_leaf: Ints, leaf: int) -> list[int]:
    """The nodes from the root to a leaf, by the first leaf under each node."""
    path = [0]
    # A node's right subtree starts with a greater leaf number than its left one holds.
    while tree.column[path[-1]] >= 0:
        right = int(tree.right[path[-1]])
        path.append(right if leaf >= first_leaf[right] else path[-1] + 1)
    return path


def _witnesses(case: Case) -> Finding:
    """The witnesses' paths and leaves, as worked out by prepare()."""
    witnesses = case.manifest.witnesses
    if not witnesses:
        return Finding(
            layer=LAYER,
            status=Status.INCONCLUSIVE,
            summary="No witnesses were kept, and the submission is not at hand.",
            guarantee="No guarantee.",
            evidence={"witnesses": 0},
        )
    deviations = [d for w in witnesses if (d := _departure(case, w)) is not None]
    return _finding(
        deviations,
        f"The paths and leaves of all {len(witnesses)} witnesses are those worked out beforehand.",
        "No false alarms. If deviations touch a share d of the genuine records' paths, the chance"
        f" to miss them is (1 - d)^{len(witnesses)}. Deviations that touch only traps are not"
        " found.",
        {"witnesses": len(witnesses)},
    )


def _departure(case: Case, witness: Witness) -> Deviation | None:
    """Where the delivered path of a witness first leaves the honest one, if it does."""
    tree, span, node = case.delivery.tree, case.node_spans, 0
    for step in witness.path:
        judged = _Judged(case, node, int(span[node, 1] - span[node, 0]))
        if (tree.column[node], tree.threshold[node]) != (step.column, step.threshold):
            return judged.must_be(step.column, step.threshold)
        if judged.records != step.count:
            return judged.must_hold(step.count)
        node = node + 1 if step.goes_left else int(tree.right[node])
    if tree.column[node] >= 0:
        return _Judged(case, node, int(span[node, 1] - span[node, 0])).must_be_leaf()
    return _leaf_departure(case, witness, node)


def _leaf_departure(case: Case, witness: Witness, node: int) -> Deviation | None:
    """Whether a witness's leaf has other records or bounds than the honest one."""
    records, leaves = case.records, case.delivery.leaves
    leaf = int(case.delivery.tree.leaf[node])
    positions, start = case.grouped
    at = positions[start[leaf] : start[leaf + 1]]
    bounds = zip(leaves.minimum[leaf].tolist(), leaves.maximum[leaf].tolist(), strict=True)
    members = ((int(records.row[i]), records.tracker[i].tobytes()) for i in at)
    digest = digests.leaf_digest(int(leaves.count[leaf]), bounds, members)
    own = int(case.leaves_of(np.array([witness.row]))[0])
    if hmac.compare_digest(digest, witness.leaf) and own == leaf:
        return None
    return Deviation(
        node,
        int(at.size),
        f"leaf {leaf} with {leaves.count[leaf]} records",
        "a leaf with another count, other members or other bounds",
        "other members or bounds",
    )

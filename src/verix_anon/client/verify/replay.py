"""Layer `replay`: every record lies in the leaf that the delivered tree sends it to.

Proves: with the submission, that rows, trackers, targets, counts and bounds are exactly those
of the submission under the delivered tree, every leaf holds min_leaf records, and nothing is
missing, doubled or invented. Thin, that all rows, trackers and targets are those that were
sent, and that each watch record lies in its leaf and within its bounds.
Does not prove: that the tree itself was built by the contract's rule; see `splits`. Thin, it
does not see bounds that were widened.
Can err: never on what it covers; thin it misses wrong leaves of a share delta of the records
with probability (1 - delta)^watch records.
"""

import hmac
import re
from hashlib import sha256

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.client.evidence import SizeHistogram
from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify.case import Case, CaseSubmission, as_words
from verix_anon.fields import counted
from verix_anon.kernels import trees
from verix_anon.protocol.tree import Tree

LAYER = "replay"
PLACE = re.compile(r"[;,] (?=the first|leaf )")
"""Where a sentence goes on to say where something is wrong."""


def check(case: Case) -> Finding:
    """Compare every record with what was sent, and its leaf with where the tree sends it."""
    problems = _rows(case)
    # The leaves of records that are not those that were sent say nothing more.
    if not problems:
        problems = _thin(case) if case.submission is None else _full(case)
    n_watch = int(case.manifest.watch_row.size)
    if case.submission is None:
        covered = f"and the leaves of {n_watch:,} watch records are right"
        guarantee = (
            "Exact for rows, trackers and labels. If a share d of the genuine records is in wrong"
            f" leaves, the chance to miss it is (1 - d)^{n_watch}. Moved traps are not found, and"
            " widened bounds only in the leaf of a witness."
        )
    else:
        covered = "and their leaves, counts and bounds are right"
        guarantee = "Exact: every record, count and bound was compared."
    good = f"All {case.manifest.n_rows:,} records are those that were sent, {covered}."
    sizes = SizeHistogram.of(np.diff(case.grouped[1]), case.contract.min_leaf)
    return Finding(
        layer=LAYER,
        status=Status.FAIL if problems else Status.PASS,
        summary=problems[0] if problems else good,
        guarantee=guarantee,
        evidence={
            "records": case.manifest.n_rows,
            "watch": n_watch,
            "problems": problems,
            # What is wrong, but not where: the place of a watch record stays with the owner.
            "found": [PLACE.split(problem)[0].removesuffix(".") + "." for problem in problems],
            "leaf_sizes": sizes.to_json(),
        },
    )


def _rows(case: Case) -> list[str]:
    """Rows, trackers and targets of all records.

    Exact with the manifest alone, by two digests. A submission at hand has proved to be the
    one that was sent, so comparing with it is the same, and cheaper.
    """
    records, n_rows = case.records, case.manifest.n_rows
    if not case.is_complete:
        times = np.bincount(records.row, minlength=n_rows)
        missing, doubled = np.flatnonzero(times == 0), np.flatnonzero(times > 1)
        where = " and ".join(f"row {rows[0]}" for rows in (missing, doubled) if rows.size)
        lost = f"Of {n_rows:,} records, {missing.size:,} did not come back"
        return [f"{lost} and {doubled.size:,} came back twice or more, the first at {where}."]
    if case.submission is None:
        manifest = case.manifest
        trackers = "" if _is_digest_of(manifest.tracker_column, records.tracker) else "."
        targets = "" if _is_digest_of(manifest.target_column, records.target) else "."
    else:
        trackers = _where(_other_trackers(case, case.submission))
        targets = _where(np.flatnonzero(case.submission.records.target != records.target))
    problems = [("Trackers", trackers), ("Labels", targets)]
    return [f"{what} are not those that were sent{where}" for what, where in problems if where]


def _is_digest_of(digest: bytes, column: Bytes) -> bool:
    return hmac.compare_digest(digest, sha256(np.ascontiguousarray(column).data).digest())


def _other_trackers(case: Case, sent: CaseSubmission) -> Ints:
    """The rows whose trackers are others than those that were sent."""
    came, found = case.records.tracker, []
    for first, end in case.blocks():
        other = as_words(sent.records.trackers(first, end)) != as_words(came[first:end])
        if other.any():
            found.append(first + np.flatnonzero(other.any(axis=1)))
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _where(wrong: Ints) -> str:
    return f" in {counted(wrong.size, 'row')}, the first row {wrong[0]}." if wrong.size else ""


def _full(case: Case) -> list[str]:
    """Counts, leaves and bounds of all records."""
    leaves, min_leaf = case.delivery.leaves, case.contract.min_leaf
    count = np.diff(case.grouped[1])
    if (wrong := np.flatnonzero(count != leaves.count)).size:
        leaf = wrong[0]
        place = f"leaf {leaf} says {leaves.count[leaf]} and holds {count[leaf]}"
        return [f"Leaves with a wrong count: {wrong.size:,}; {place}."]
    if (small := np.flatnonzero(count < min_leaf)).size:
        few = f"Leaves with fewer than {min_leaf} records (min_leaf): {small.size:,}"
        return [f"{few}; leaf {small[0]} holds {count[small[0]]}."]
    return _bounds(case)


def _bounds(case: Case) -> list[str]:
    """Hold the bounds of each leaf's records to the splits above it, and to those delivered."""
    tree, quasi = case.delivery.tree, case.manifest.quasi
    start, n_leaves = case.grouped[1], tree.n_leaves
    leaf_spans = tree.leaf_spans()
    is_wrong = np.zeros((len(case.shares), n_leaves), np.bool_)
    misrouted: list[tuple[int, int]] = []
    first_wrong: list[tuple[int, int]] = []

    def observe(share: int, column: int, values: Floats) -> None:
        minimum, maximum = trees.leaf_bounds(values, start)
        misrouted.extend(_first_misrouted(tree, leaf_spans, column, minimum, maximum))
        delivered_minimum, delivered_maximum = case.bounds_of(column)
        wrong = minimum != delivered_minimum
        wrong |= maximum != delivered_maximum
        if wrong.any():
            first_wrong.append((int(np.argmax(wrong)), column))
            is_wrong[share] |= wrong

    case.each_column(observe)
    problems = []
    if misrouted:
        node, leaf = min(misrouted)
        problems.append(
            f"Leaf {leaf} holds a record that belongs on the other side of node {node}, by column"
            f" {quasi[tree.column[node]].name!r}."
        )
    if first_wrong:
        leaf, column = min(first_wrong)
        problems.append(
            f"The bounds of {counted(int(is_wrong.any(axis=0).sum()), 'leaf', 'leaves')} do not fit"
            f" the records; the first is leaf {leaf} in column {quasi[column].name!r}."
        )
    return problems


def _first_misrouted(
    tree: Tree, leaf_spans: Ints, column: int, minimum: Floats, maximum: Floats
) -> list[tuple[int, int]]:
    """The first node, and leaf under it, that holds a record which the node sends elsewhere.

    Of the nodes that split this column, whose bounds are those observed in each leaf. A record
    reaches its leaf if and only if it takes the right side at each split above; and all
    records of a leaf do if the leaf's observed bounds do. So no record is routed at all.
    """
    nodes = np.flatnonzero(tree.column == column)
    left, right, threshold = nodes + 1, tree.right[nodes], tree.threshold[nodes]
    is_wrong = _over(np.maximum, maximum, leaf_spans[left]) > threshold
    is_wrong |= _over(np.minimum, minimum, leaf_spans[right]) <= threshold
    for i in np.flatnonzero(is_wrong)[:1]:
        first, middle = leaf_spans[left[i]]
        end = leaf_spans[right[i], 1]
        wrong = np.append(maximum[first:middle] > threshold[i], minimum[middle:end] <= threshold[i])
        return [(int(nodes[i]), int(first + np.argmax(wrong)))]
    return []


def _over(least_or_greatest: np.ufunc, values: Floats, spans: Ints) -> Floats:
    """The least or greatest value in each span."""
    # Every other result is of what lies between a span's end and the next one's beginning.
    return least_or_greatest.reduceat(np.append(values, 0.0), spans.ravel())[::2]


def _thin(case: Case) -> list[str]:
    """The watch records: routed to their leaf, and within its bounds."""
    manifest, leaves = case.manifest, case.delivery.leaves
    claimed = case.leaves_of(manifest.watch_row)
    routed = case.delivery.tree.route(manifest.watch_values)
    problems = []
    if (wrong := np.flatnonzero(claimed != routed)).size:
        # Its row is not named: which records are watched stays with the owner.
        problems.append(
            f"Watch records in a leaf that the tree does not send them to: {wrong.size:,};"
            f" leaf {claimed[wrong[0]]} instead of {routed[wrong[0]]}."
        )
    values = manifest.watch_values.T
    inside = (leaves.minimum[claimed] <= values) & (values <= leaves.maximum[claimed])
    if (outside := np.flatnonzero(~inside.all(axis=1))).size:
        problems.append(
            f"Watch records outside the bounds of their leaf: {outside.size:,},"
            f" the first in leaf {claimed[outside[0]]}."
        )
    count = np.diff(case.grouped[1])
    if (wrong := np.flatnonzero((count != leaves.count) | (count < case.contract.min_leaf))).size:
        leaf = wrong[0]
        problems.append(
            f"Leaves with a wrong count or too few records: {wrong.size:,}; leaf {leaf} says"
            f" {leaves.count[leaf]} and holds {count[leaf]}."
        )
    return problems

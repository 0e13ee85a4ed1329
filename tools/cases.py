"""Prepared tables, deliveries of them, and trees taken apart and put together consistently."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from verix_anon.adversaries.deviating_growth import growth_of
from verix_anon.client.manifest import Manifest
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.expectations import find_witnesses
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.table.task import Labels, Task
from verix_anon.client.verify.case import Case, VerifyOptions
from verix_anon.kernels import trees
from verix_anon.protocol import merkle, rules
from verix_anon.protocol.contract import Commitment, Digest
from verix_anon.protocol.messages import Delivered, Delivery, Submission
from verix_anon.protocol.tree import Leaves, Tree
from verix_anon.provider import engine
from verix_anon.provider.local import LocalProvider

Top = rules.Node | rules.Leaf
Rows = npt.NDArray[np.int64]

SETTINGS = engine.EngineSettings(threads=1)


def table(n_rows: int = 400, seed: int = 0) -> pa.Table:
    """A table with ties, decimals, categories and dates, whose target depends on two of them."""
    rng = np.random.default_rng(seed)
    age, score = rng.integers(18, 70, n_rows), rng.normal(size=n_rows)
    chance = 0.15 + 0.35 * (age > 40) + 0.35 * (score > 0.3)
    days = rng.integers(10_000, 19_000, n_rows)
    return pa.table(
        {
            "age": age,
            "score": score,
            "town": np.array(["ash", "elm", "fir", "oak"])[rng.integers(0, 4, n_rows)],
            "since": days.astype("M8[D]"),
            "rank": rng.integers(0, 12, n_rows),
            "y": np.where(rng.random(n_rows) < chance, "yes", "no"),
        }
    )


def make(
    source: pa.Table,
    *,
    seed: int | None = 1,
    k: int = 3,
    traps: Traps = Traps.ADAPTIVE,
    commitment: Commitment = Commitment.BINDING,
    witnesses: int = 20,
    clear: bool = False,
) -> Prepared:
    """Prepare a table with all columns but `y` as quasi-identifiers.

    By the usual rule; in clear, which the paper's commitment needs, by the paper's.
    """
    is_clear = clear or commitment is Commitment.PAPER
    make_options = PrepareOptions.paper if is_clear else PrepareOptions
    options = make_options(
        unsafe_seed=seed,
        traps=traps,
        commitment=commitment,
        witnesses=witnesses,
        threads=1,
    )
    return prepare(source, target="y", quasi="all", k=k, options=options)


@cache
def prepared(
    seed: int = 1,
    *,
    n_rows: int = 400,
    k: int = 3,
    traps: Traps = Traps.ADAPTIVE,
    commitment: Commitment = Commitment.BINDING,
    witnesses: int = 20,
    clear: bool = False,
) -> Prepared:
    """The table above, prepared; the same object for the same wishes."""
    return make(
        table(n_rows),
        seed=seed,
        k=k,
        traps=traps,
        commitment=commitment,
        witnesses=witnesses,
        clear=clear,
    )


def two_classes(target: npt.NDArray[np.uint8]) -> Labels:
    """Labels of 0 and 1, as models take them."""
    return Labels(task=Task.CLASSES, values=target.astype(np.float64), classes=("no", "yes"))


def honest(submission: Submission) -> Delivery:
    return LocalProvider(threads=1).anonymize(submission)


def case_of(
    delivery: Delivery,
    manifest: Manifest,
    submission: Submission | None = None,
    options: VerifyOptions | None = None,
) -> Case:
    """What verify() hands to each layer."""
    return Case(
        delivery=delivery,
        manifest=manifest,
        submission=submission,
        options=options or VerifyOptions(threads=1),
    )


def grown(
    submission: Submission,
    rows: Sequence[int] | None = None,
    depth: int = 0,
    min_leaf: int | None = None,
) -> Top:
    """What the rule makes of some rows of the submission."""
    contract, records = submission.contract, submission.records
    return rules.grow(
        records.values.tolist(),
        rules.criterion(contract, records.target.tolist()),
        min_leaf=min_leaf or contract.min_leaf,
        max_depth=contract.max_depth,
        rows=rows,
        depth=depth,
    )


def nodes_of(top: Top, depth: int = 0) -> Iterator[tuple[Top, int]]:
    """Every node in preorder, with its depth; so the position is the node's number."""
    yield top, depth
    if isinstance(top, rules.Node):
        yield from nodes_of(top.left, depth + 1)
        yield from nodes_of(top.right, depth + 1)


def rows_of(top: Top) -> list[int]:
    """The rows under a node, ascending."""
    return sorted(
        row for node, _ in nodes_of(top) if isinstance(node, rules.Leaf) for row in node.rows
    )


def replaced(top: Top, old: Top, new: Top) -> Top:
    """The tree with one node, told by its identity, exchanged for another."""
    if top is old:
        return new
    if isinstance(top, rules.Leaf):
        return top
    left, right = replaced(top.left, old, new), replaced(top.right, old, new)
    # What did not change stays the same object, so that several nodes can be exchanged.
    if left is top.left and right is top.right:
        return top
    return replace(top, left=left, right=right)


def routed(top: Top, values: npt.NDArray[np.float64], rows: Rows) -> Top:
    """The same splits, with those rows in the leaves they lead to."""
    if isinstance(top, rules.Leaf):
        return rules.Leaf(tuple(rows.tolist()))
    goes_left = values[top.column][rows] <= top.threshold
    return replace(
        top,
        left=routed(top.left, values, rows[goes_left]),
        right=routed(top.right, values, rows[~goes_left]),
    )


def split(submission: Submission, node: Top, depth: int, column: int, threshold: float) -> Top:
    """A node of these rows with this split, and the rule followed again below it."""
    rows = np.array(rows_of(node))
    goes_left = submission.records.values[column][rows] <= threshold
    return rules.Node(
        column,
        threshold,
        grown(submission, rows[goes_left].tolist(), depth + 1),
        grown(submission, rows[~goes_left].tolist(), depth + 1),
    )


def candidates(submission: Submission, node: Top) -> list[rules.Split]:
    """The rule's valid candidates at a node, best first."""
    contract, records = submission.contract, submission.records
    rule, columns = rules.criterion(contract, records.target.tolist()), records.values.tolist()
    rows = rows_of(node)
    offers = [rule.candidate(columns, j, rows, contract.min_leaf) for j in range(len(columns))]
    found = [offer for offer in offers if offer is not None]
    return sorted(found, key=lambda s: (-s.score, s.column))


def delivered(submission: Submission, top: Top) -> Delivery:
    """A delivery of this tree, with bounds, members and root that fit it."""
    rows = np.arange(submission.records.n_rows)
    return engine.pack(submission, growth_of(submission, top), rows, SETTINGS)


def resealed(
    submission: Submission,
    delivery: Delivery,
    *,
    records: Delivered | None = None,
    leaves: Leaves | None = None,
    tree: Tree | None = None,
) -> Delivery:
    """The delivery with other parts, and with the header and root that fit them."""
    records, leaves = records or delivery.records, leaves or delivery.leaves
    tree = tree or delivery.tree
    order = np.argsort(records.row, kind="stable")
    grouped = trees.group_rows(records.leaf[order], tree.n_leaves)
    members = merkle.Members(*grouped, records.row[order], records.tracker[order])
    digest = submission.digest()
    header = replace(
        delivery.header,
        contract=submission.contract.digest,
        submission=digest,
        root=merkle.root_of(submission.contract, digest, tree, leaves, members),
        rows=records.row.size,
        leaves=tree.n_leaves,
        nodes=tree.n_nodes,
    )
    return Delivery(header=header, records=records, leaves=leaves, tree=tree)


def true_leaves(submission: Submission, records: Delivered, n_leaves: int) -> Leaves:
    """Counts and bounds of whichever records are claimed for each leaf."""
    n_quasi = len(submission.records.values)
    minimum, maximum = np.zeros((2, n_leaves, n_quasi))
    for leaf in range(n_leaves):
        part = submission.records.values[:, records.row[records.leaf == leaf]]
        minimum[leaf], maximum[leaf] = part.min(axis=1), part.max(axis=1)
    return Leaves(
        count=np.bincount(records.leaf, minlength=n_leaves).astype(np.int64),
        minimum=minimum,
        maximum=maximum,
    )


def forged(delivery: Delivery, root: bytes = bytes(32)) -> Delivery:
    return replace(delivery, header=replace(delivery.header, root=Digest(root)))


def manifest_of(sent: Submission) -> Manifest:
    """What the layers `replay` and `splits` ask of a manifest, of records without traps."""
    records, n_rows = sent.records, sent.records.n_rows
    return Manifest(
        contract=sent.contract,
        submission=sent.digest(),
        table=Digest(bytes(32)),
        salt=bytes(32),
        unsafe_seed=True,
        roles={},
        quasi=sent.contract.quasi,
        missing="impute",
        imputed={},
        planted={},
        tracker_column=Digest(sha256(records.tracker.tobytes()).digest()),
        target_column=Digest(sha256(records.target.tobytes()).digest()),
        owner_row=np.arange(n_rows),
        sentinel_row=np.empty(0, np.int64),
        sentinel_tracker=np.empty((0, 32), np.uint8),
        twin_row=np.empty((0, 2), np.int64),
        twin_tracker=np.empty((0, 2, 32), np.uint8),
        watch_row=np.arange(n_rows),
        watch_values=records.values,
        task=Task.CLASSES,
        classes=("no", "yes"),
        watch_target=records.target.astype(np.float64),
        witnesses=find_witnesses(sent, np.arange(n_rows), threads=1),
        top_features=[],
        baseline=np.empty((n_rows, 1, 0)),
        calibration=np.empty((0, 0)),
        paper_calibration=np.empty((0, 0)),
    )

"""Small submissions for tests, and the same result from the slow implementations."""

import hashlib
from collections.abc import Sequence

import numpy as np

from tools.kit import independent
from verix_anon.protocol.contract import Column, Commitment, Contract, Kind, Role, Rule
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.records import Records, wire_columns

TARGET = Column(name="y", role=Role.TARGET, kind=Kind.CATEGORICAL, categories=("no", "yes"))
SUBMISSION_ID = "00112233445566778899aabbccddeeff"


class CountedName(str):
    """A name that counts how often one of its kind is compared with another."""

    n_compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.n_compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def numeric(name: str) -> Column:
    return Column(name=name, kind=Kind.NUMERIC)


def categorical(name: str, n_categories: int) -> Column:
    labels = tuple(f"c{i}" for i in range(n_categories))
    return Column(name=name, kind=Kind.CATEGORICAL, categories=labels)


def trackers(n_rows: int, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    stream = b"".join(hashlib.sha256(f"{seed}/{row}".encode()).digest() for row in range(n_rows))
    return np.frombuffer(stream, np.uint8).reshape(n_rows, 32).copy()


def submission(
    columns: Sequence[Sequence[float]],
    target: Sequence[int],
    *,
    k: int = 2,
    min_leaf: int | None = None,
    commitment: Commitment = Commitment.BINDING,
    described: Sequence[Column] | None = None,
    max_depth: int = 50,
) -> Submission:
    """A submission of these columns, numeric unless described otherwise."""
    described = described or [numeric(f"x{i}") for i in range(len(columns))]
    contract = Contract(
        submission_id=SUBMISSION_ID,
        k=k,
        min_leaf=2 * k if min_leaf is None else min_leaf,
        columns=(*described, TARGET),
        commitment=commitment,
        max_depth=max_depth,
    )
    # Adding 0.0 normalises -0.0, as encoding and reading do.
    values = np.array(columns, np.float64).reshape(len(columns), len(target)) + 0.0
    records = Records(
        tracker=trackers(len(target)), values=values, target=np.array(target, np.uint8)
    )
    return Submission(contract=contract, records=records)


def coded(
    columns: Sequence[Sequence[int]],
    target: Sequence[int] | None = None,
    *,
    weights: Sequence[int] | None = None,
    k: int = 2,
    min_leaf: int | None = None,
    max_depth: int = 50,
) -> Submission:
    """A submission of these positions; without a target, under the rule `importance-spread`."""
    sizes = [max(positions) + 1 for positions in columns]
    weights = weights or [1] * len(sizes)
    described = [
        Column(name=f"q{j}", kind=Kind.RANK, size=size, weight=None if target else weight)
        for j, (size, weight) in enumerate(zip(sizes, weights, strict=True))
    ]
    label = [Column(name="y", role=Role.TARGET, kind=Kind.RANK, size=2)] if target else []
    contract = Contract(
        submission_id=SUBMISSION_ID,
        k=k,
        min_leaf=k if min_leaf is None else min_leaf,
        rule=Rule.VARIANCE_REDUCTION if target else Rule.IMPORTANCE_SPREAD,
        columns=(*described, *label),
        max_depth=max_depth,
    )
    n_rows = len(columns[0])
    records = Records(
        tracker=trackers(n_rows),
        values=np.array(columns, np.float64),
        target=np.array(target or [0] * n_rows, np.uint8),
    )
    return Submission(contract=contract, records=records)


def from_text(submission: Submission) -> independent.Anonymized:
    """What the second implementation, written from the text alone, makes of a submission."""
    everything = slice(0, submission.records.n_rows)
    return independent.anonymize(
        submission.contract.to_bytes(),
        [bytes(tracker) for tracker in submission.records.tracker],
        [
            column.tolist()
            for column in wire_columns(submission.contract, submission.records, everything)
        ],
    )


def assert_same(delivery: Delivery, expected: independent.Anonymized) -> None:
    """The delivery is the expected one: tree, leaves, leaf map, digests and root."""
    tree, leaves = delivery.tree, delivery.leaves
    nodes = zip(
        tree.column.tolist(),
        tree.threshold.tolist(),
        tree.left.tolist(),
        tree.right.tolist(),
        tree.leaf.tolist(),
        strict=True,
    )
    assert list(nodes) == expected.nodes
    bounds = np.stack([leaves.minimum, leaves.maximum], axis=2).tolist()
    assert leaves.count.tolist() == [count for count, _ in expected.leaves]
    assert bounds == [[list(pair) for pair in pairs] for _, pairs in expected.leaves]
    assert delivery.records.leaf.tolist() == expected.leaf_of_row
    assert delivery.header.contract.hex() == expected.contract_digest
    assert delivery.header.submission.hex() == expected.submission_digest
    assert delivery.header.root.hex() == expected.root

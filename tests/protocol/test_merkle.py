"""Both commitments against hashlib by hand, and what each of them does and does not bind."""

import hashlib
import struct
from dataclasses import replace
from unittest import mock

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import TARGET, categorical, numeric, submission, trackers
from verix_anon.kernels.trees import group_rows
from verix_anon.protocol import digests, merkle
from verix_anon.protocol.contract import Column, Commitment, Contract, Digest, Kind, Unit
from verix_anon.protocol.records import Records
from verix_anon.protocol.tree import Leaves, Tree

steady = settings(deadline=None, derandomize=True)

ONE, TWO, THREE = (Digest(bytes([i]) * 32) for i in (1, 2, 3))


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def f64(value: float) -> bytes:
    return struct.pack("<d", value)


# The formulas.


def test_formulas_by_hand() -> None:
    rows = [(3, bytes(ONE)), (2**40, bytes(TWO))]
    members = b"\x03" + b"\0" * 7 + ONE + b"\0\0\0\0\0\x01\0\0" + TWO
    leaf = b"\x00" + b"\x07" + b"\0" * 7 + f64(-1.5) + f64(2.0) + f64(0.0) + f64(1e300) + members
    assert digests.leaf_digest(7, [(-1.5, 2.0), (0.0, 1e300)], rows) == sha(leaf)
    node = b"\x01" + b"\x02\x01\0\0" + f64(0.1) + ONE + TWO
    assert digests.node_digest(258, 0.1, ONE, TWO) == sha(node)
    assert digests.binding_root(ONE, TWO, THREE) == sha(b"\x03", ONE, TWO, THREE)


def test_minus_zero_is_written_as_zero() -> None:
    assert digests.leaf_digest(1, [(-0.0, -0.0)], []) == digests.leaf_digest(1, [(0.0, 0.0)], [])
    assert digests.node_digest(0, -0.0, ONE, TWO) == digests.node_digest(0, 0.0, ONE, TWO)


def test_submission_by_hand() -> None:
    day = Column(name="d", kind=Kind.DATETIME, unit=Unit.DAY)
    columns = (numeric("x"), TARGET, categorical("c", 300), day)
    contract = Contract(submission_id="0" * 32, k=2, min_leaf=4, columns=columns)
    records = Records(
        tracker=trackers(4),
        values=np.array([[0.5, -1.0, 1e-9, 7.0], [0.0, 299.0, 1.0, 2.0], [-1.0, 0.0, 1.0, 2.0]]),
        target=np.array([1, 0, 0, 1], np.uint8),
    )
    chunk = sha(
        b"\x05",
        struct.pack("<Q", 0),
        trackers(4).tobytes(),
        struct.pack("<4d", 0.5, -1.0, 1e-9, 7.0),
        b"\x01\x00\x00\x01",
        struct.pack("<4i", 0, 299, 1, 2),
        struct.pack("<4d", -1.0, 0.0, 1.0, 2.0),
    )
    expected = sha(b"\x04", contract.digest, struct.pack("<Q", 4), chunk)
    assert merkle.submission_digest(contract, records) == expected
    assert merkle.submission_digest(contract, records, threads=3) == expected


def test_chunks_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    table = submission([[1.0, 2.0, 3.0, 4.0, 5.0]], [0, 1, 0, 1, 1])
    monkeypatch.setattr(merkle, "CHUNK_ROWS", 2)
    chunks = [
        sha(
            b"\x05",
            struct.pack("<Q", number),
            trackers(5)[rows].tobytes(),
            table.records.values[0, rows].tobytes(),
            table.records.target[rows].tobytes(),
        )
        for number, rows in enumerate([slice(0, 2), slice(2, 4), slice(4, 5)])
    ]
    expected = sha(b"\x04", table.contract.digest, struct.pack("<Q", 5), *chunks)
    assert table.digest() == table.digest(threads=2) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000000"),
        (-0.0, "0.000000"),
        (-1e-9, "0.000000"),
        (-4.9e-7, "0.000000"),
        (-5.1e-7, "-0.000001"),
        (1.0, "1.000000"),
        (-1.25, "-1.250000"),
        # What binary64 holds exactly half-way goes to the even digit, as in C.
        (2.0**-7, "0.007812"),
        (3 * 2.0**-7, "0.023438"),
        # What only looks half-way goes where its exact value lies.
        (0.0000005, "0.000000"),
        (0.1234565, "0.123456"),
        (0.0000015, "0.000002"),
        (123456789.0, "123456789.000000"),
        (2.0**53, "9007199254740992.000000"),
        (1e22, "10000000000000000000000.000000"),
    ],
)
def test_paper_numbers(value: float, text: str) -> None:
    assert digests.paper_number(value) == text


def test_paper_numbers_are_never_cut() -> None:
    assert digests.paper_number(1e308) == f"{int(1e308)}.000000"
    assert digests.paper_number(-1e308) == f"-{int(1e308)}.000000"
    assert digests.paper_number(5e-324) == "0.000000"


@steady
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_paper_numbers_are_printf(value: float) -> None:
    text = "%.6f" % value  # noqa: UP031
    assert digests.paper_number(value) == (text if float(text) else "0.000000")


def test_paper_texts() -> None:
    # Sorted by code point: upper case first, umlauts last.
    bounds = [("b", 1.0, 2.0), ("\u00e4", 0.0, 0.5), ("B", -0.0, 3.0)]
    assert digests.leaf_text(12, bounds) == (
        "LEAF|12|B:0.000000,3.000000|b:1.000000,2.000000|\u00e4:0.000000,0.500000"
    )
    assert digests.node_text("b", 1.5, "aa", "bb") == "INTERNAL|b|1.500000|aa|bb"


# A small delivery: two splits, three leaves, five rows.

LEAF_OF_ROW = np.array([2, 0, 1, 0, 2], np.int32)


def contract_of(commitment: Commitment = Commitment.BINDING) -> Contract:
    columns = (numeric("b"), TARGET, numeric("a"))
    return Contract(submission_id="0" * 32, k=2, min_leaf=4, columns=columns, commitment=commitment)


def tree_of(column: tuple[int, int] = (1, 0), threshold: tuple[float, float] = (2.5, -1.0)) -> Tree:
    return Tree(
        column=np.array([column[0], column[1], -1, -1, -1], np.int32),
        threshold=np.array([threshold[0], threshold[1], 0, 0, 0], np.float64),
        left=np.array([1, 2, -1, -1, -1], np.int32),
        right=np.array([4, 3, -1, -1, -1], np.int32),
        leaf=np.array([-1, -1, 0, 1, 2], np.int32),
    )


MINIMUM = np.array([[-3.0, 0.0], [0.0, 1.0], [-2.0, 3.0]])
MAXIMUM = np.array([[-1.0, 1.0], [0.0, 2.5], [5.0, 4.0]])


def leaves_of(count: tuple[int, int, int] = (2, 1, 2)) -> Leaves:
    return Leaves(count=np.array(count), minimum=MINIMUM.copy(), maximum=MAXIMUM.copy())


def members_of(
    tracker: npt.NDArray[np.uint8], leaf_of_row: npt.NDArray[np.int32] = LEAF_OF_ROW
) -> merkle.Members:
    return merkle.Members(*group_rows(leaf_of_row, 3), np.arange(5), tracker)


def by_formula(leaves: Leaves, members: merkle.Members) -> list[Digest]:
    """Each leaf's digest on its own."""
    return [
        digests.leaf_digest(
            int(leaves.count[leaf]),
            list(zip(leaves.minimum[leaf].tolist(), leaves.maximum[leaf].tolist(), strict=True)),
            [
                (int(members.row[at]), bytes(members.tracker[at]))
                for at in members.positions[members.start[leaf] : members.start[leaf + 1]]
            ],
        )
        for leaf in range(leaves.n_leaves)
    ]


def test_bulk_leaves_equal_the_formula() -> None:
    tracker = trackers(5)
    expected = [
        digests.leaf_digest(
            count,
            list(zip(MINIMUM[leaf], MAXIMUM[leaf], strict=True)),
            [(row, bytes(tracker[row])) for row in rows],
        )
        for leaf, (count, rows) in enumerate([(2, [1, 3]), (1, [2]), (2, [0, 4])])
    ]
    assert merkle.leaf_digests(leaves_of(), members_of(tracker)) == expected
    # Whatever the memory layout.
    assert merkle.leaf_digests(leaves_of(), members_of(np.asfortranarray(tracker))) == expected


def test_bulk_leaves_hash_row_numbers_not_positions() -> None:
    rows = np.array([0, 3, 4, 2**31, 2**40])
    members = merkle.Members(*group_rows(LEAF_OF_ROW, 3), rows, trackers(5))
    assert merkle.leaf_digests(leaves_of(), members) == by_formula(leaves_of(), members)
    assert merkle.leaf_digests(leaves_of(), members) != merkle.leaf_digests(
        leaves_of(), members_of(trackers(5))
    )


@steady
@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(1, 20), st.integers(1, 9))
def test_bulk_leaves_of_any_number_and_size(sizes: list[int], n_quasi: int, most: int) -> None:
    # Few or many leaves at a time, each empty, small or large; the count is the provider's word.
    n, rng = sum(sizes), np.random.default_rng(len(sizes))
    leaf = rng.permutation(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes))
    members = merkle.Members(*group_rows(leaf, len(sizes)), np.arange(n) * 3, trackers(n))
    bounds = rng.choice([-0.0, 0.0, 1.5, -1e300], (2, len(sizes), n_quasi))
    count = rng.integers(0, 2**40, len(sizes))
    leaves = Leaves(count=count, minimum=bounds[0], maximum=bounds[1])
    with mock.patch.object(merkle, "BATCH_LEAVES", most):
        assert merkle.leaf_digests(leaves, members) == by_formula(leaves, members)


def test_bulk_root_of_a_deep_tree() -> None:
    # A chain to the left of 30 splits: node i has its right side, a leaf, at the end.
    n = 30
    tree = Tree(
        column=np.array([i % 2 for i in range(n)] + [-1] * (n + 1), np.int32),
        threshold=np.array([i - 0.5 for i in range(n)] + [0.0] * (n + 1)),
        left=np.array([*range(1, n + 1)] + [-1] * (n + 1), np.int32),
        right=np.array([2 * n - i for i in range(n)] + [-1] * (n + 1), np.int32),
        leaf=np.array([-1] * n + [*range(n + 1)], np.int32),
    )
    tree.check(n_quasi=2, max_depth=50)
    bounds = np.zeros((n + 1, 2))
    leaves = Leaves(count=np.arange(n + 1), minimum=bounds, maximum=bounds)
    members = merkle.Members(np.arange(n + 1), np.arange(n + 2), np.arange(n + 1), trackers(n + 1))
    of_leaf = merkle.leaf_digests(leaves, members)
    top = of_leaf[0]
    for i in range(n - 1, -1, -1):
        top = digests.node_digest(i % 2, i - 0.5, top, of_leaf[n - i])
    expected = digests.binding_root(contract_of().digest, ONE, top)
    assert merkle.root_of(contract_of(), ONE, tree, leaves, members) == expected
    # However many nodes are hashed at a time, with leaves among them or none.
    for most in (1, 2, 7, 40):
        with mock.patch.object(merkle, "BATCH_NODES", most):
            assert merkle.root_of(contract_of(), ONE, tree, leaves, members) == expected


def test_bulk_root_equals_the_formulas() -> None:
    members = members_of(trackers(5))
    first, second, third = merkle.leaf_digests(leaves_of(), members)
    inner = digests.node_digest(0, -1.0, first, second)
    top = digests.node_digest(1, 2.5, inner, third)
    expected = digests.binding_root(contract_of().digest, ONE, top)
    assert merkle.root_of(contract_of(), ONE, tree_of(), leaves_of(), members) == expected


def test_paper_root_by_hand() -> None:
    def digest(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    leaves = [
        digest("LEAF|2|a:0.000000,1.000000|b:-3.000000,-1.000000"),
        digest("LEAF|1|a:1.000000,2.500000|b:0.000000,0.000000"),
        digest("LEAF|2|a:3.000000,4.000000|b:-2.000000,5.000000"),
    ]
    inner = digest(f"INTERNAL|b|-1.000000|{leaves[0]}|{leaves[1]}")
    top = digest(f"INTERNAL|a|2.500000|{inner}|{leaves[2]}")
    assert root(commitment=Commitment.PAPER).hex() == top


def test_a_tree_of_one_leaf() -> None:
    alone = Tree(
        column=np.array([-1], np.int32),
        threshold=np.zeros(1),
        left=np.array([-1], np.int32),
        right=np.array([-1], np.int32),
        leaf=np.array([0], np.int32),
    )
    leaves = Leaves(count=np.array([4]), minimum=MINIMUM[:1].copy(), maximum=MAXIMUM[:1].copy())
    members = merkle.Members(np.arange(2), np.array([0, 2]), np.arange(2), trackers(2))
    (top,) = by_formula(leaves, members)
    expected = digests.binding_root(contract_of().digest, TWO, top)
    assert merkle.root_of(contract_of(), TWO, alone, leaves, members) == expected


# What the roots bind.


def root(
    contract: Contract | None = None,
    submitted: Digest = ONE,
    tree: Tree | None = None,
    leaves: Leaves | None = None,
    members: merkle.Members | None = None,
    commitment: Commitment = Commitment.BINDING,
) -> Digest:
    return merkle.root_of(
        contract or contract_of(commitment),
        submitted,
        tree or tree_of(),
        leaves or leaves_of(),
        members_of(trackers(5)) if members is None else members,
    )


def moved(array: str, leaf: int, column: int) -> Leaves:
    """The leaves with one bound moved by one ulp."""
    bounds = {"minimum": MINIMUM.copy(), "maximum": MAXIMUM.copy()}
    bounds[array][leaf, column] = np.nextafter(bounds[array][leaf, column], np.inf)
    return Leaves(count=np.array([2, 1, 2]), **bounds)


def test_the_binding_root_changes_with_anything() -> None:
    contract = contract_of()
    roots = [
        root(),
        root(submitted=TWO),
        root(contract=replace(contract, k=3)),
        root(contract=replace(contract, submission_id="1" * 32)),
        root(tree=tree_of(column=(0, 0))),
        root(tree=tree_of(column=(1, 1))),
        root(tree=tree_of(threshold=(float(np.nextafter(2.5, 3)), -1.0))),
        root(tree=tree_of(threshold=(2.5, float(np.nextafter(-1.0, 0))))),
        *(root(leaves=leaves_of(count)) for count in [(3, 1, 2), (2, 2, 2), (2, 1, 1)]),
        *(
            root(leaves=moved(array, leaf, column))
            for array in ("minimum", "maximum")
            for leaf in range(3)
            for column in range(2)
        ),
    ]
    assert len(set(roots)) == len(roots)


@steady
@given(st.integers(0, 4), st.integers(0, 31), st.integers(1, 255))
def test_the_binding_root_changes_with_any_byte_of_a_tracker(row: int, at: int, flip: int) -> None:
    tracker = trackers(5)
    tracker[row, at] ^= flip
    assert root(members=members_of(tracker)) != root()


def test_the_binding_root_changes_with_the_members() -> None:
    # Two rows change places: every count stays as it was.
    swapped = np.array([0, 2, 1, 0, 2], np.int32)
    assert np.bincount(swapped).tolist() == np.bincount(LEAF_OF_ROW).tolist()
    assert root(members=members_of(trackers(5), swapped)) != root()


@steady
@given(st.integers(0, 4), st.integers(1, 255), st.sampled_from(["tracker", "values", "target"]))
def test_the_submission_digest_changes_with_any_record(row: int, flip: int, part: str) -> None:
    def digest(changed: str) -> Digest:
        tracker, values = trackers(5), np.arange(10.0).reshape(2, 5)
        target = np.array([0, 1, 0, 1, 1], np.uint8)
        if changed == "tracker":
            tracker[row, 31] ^= flip
        elif changed == "values":
            values[1, row] += flip
        elif changed == "target":
            target[row] ^= 1
        records = Records(tracker=tracker, values=values, target=target)
        return merkle.submission_digest(contract_of(), records)

    assert digest(part) != digest("nothing")


def test_the_paper_root_is_blind_to_members_contract_and_submission() -> None:
    paper = root(commitment=Commitment.PAPER)
    other_contract = replace(contract_of(Commitment.PAPER), k=9, min_leaf=9, submission_id="1" * 32)
    assert root(commitment=Commitment.PAPER, members=members_of(trackers(5, seed=1))) == paper
    assert root(commitment=Commitment.PAPER, submitted=TWO) == paper
    assert root(contract=other_contract) == paper


def test_the_paper_root_is_blind_below_the_sixth_decimal() -> None:
    paper = root(commitment=Commitment.PAPER)
    assert root(commitment=Commitment.PAPER, leaves=moved("maximum", 2, 0)) == paper
    assert root(commitment=Commitment.PAPER, tree=tree_of(threshold=(2.5 + 4e-7, -1.0))) == paper
    assert root(commitment=Commitment.PAPER, tree=tree_of(threshold=(2.5 + 1e-6, -1.0))) != paper
    assert root(commitment=Commitment.PAPER, leaves=leaves_of((3, 1, 2))) != paper

"""Each value of a delivery has one form: what equals it, and is not it, makes it malformed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tools import cases
from verix_anon.arrays import Floats, Ids
from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Outcome, Verdict
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.files.folder_writer import write_delivery
from verix_anon.protocol.messages import Delivery

pytestmark = pytest.mark.usefixtures("quick_models")
NAN = np.array([0x7FF8_0000_DEAD_BEEF], np.uint64).view(np.float64)[0]


def made(*, clear: bool) -> tuple[Prepared, Delivery]:
    """A small job with zeros of all kinds, and its honest delivery."""
    rng = np.random.default_rng(4)
    change, flag = rng.integers(-2, 3, 80), rng.integers(0, 2, 80)
    is_yes = rng.random(80) < 0.2 + 0.3 * (change > 0) + 0.3 * flag
    table = pa.table({"change": change, "flag": flag, "y": np.where(is_yes, "yes", "no")})
    prepared = cases.make(table, clear=clear)
    return prepared, cases.honest(prepared.submission)


def judged(prepared: Prepared, delivery: Delivery | Path) -> list[Verdict]:
    """Full and thin."""
    options = VerifyOptions(threads=1)
    return [
        verify(delivery, prepared.manifest, submission=submission, options=options)
        for submission in (prepared.submission, None)
    ]


def with_sign(values: Floats | Ids, at: int) -> Floats:
    """The same, with another sign at one place, in the same order in memory."""
    changed = values.astype(np.float64, order="K")
    changed.T.flat[at] = -changed.T.flat[at]
    return changed


def signed(honest: Delivery) -> Iterator[Delivery]:
    """The delivery, once for each zero in it, with the sign of that one."""
    tree, leaves = honest.tree, honest.leaves
    for at in np.flatnonzero(tree.threshold == 0):
        changed = replace(tree, threshold=with_sign(tree.threshold, int(at)))
        yield replace(honest, tree=changed)
    for at in np.flatnonzero(leaves.minimum.T == 0):
        low = with_sign(leaves.minimum, int(at))
        yield replace(honest, leaves=replace(leaves, minimum=low))
    for at in np.flatnonzero(leaves.maximum.T == 0):
        high = with_sign(leaves.maximum, int(at))
        yield replace(honest, leaves=replace(leaves, maximum=high))


@pytest.mark.parametrize("clear", [False, True])
def test_no_zero_of_a_delivery_has_a_sign(tmp_path: Path, clear: bool) -> None:
    prepared, honest = made(clear=clear)
    assert all(judged(prepared, honest))
    n_inner = int(((honest.tree.column >= 0) & (honest.tree.threshold == 0)).sum())
    n_bounds = int((honest.leaves.minimum == 0).sum() + (honest.leaves.maximum == 0).sum())
    assert n_bounds > 10
    assert n_inner > 0
    n = 0
    for n, delivery in enumerate(signed(honest), start=1):
        write_delivery(delivery, tmp_path / str(n))
        for verdict in judged(prepared, delivery) + judged(prepared, tmp_path / str(n)):
            assert verdict.outcome is Outcome.VIOLATION
            assert "-0.0, not 0.0" in verdict.finding("commitment").summary
    assert n == n_inner + honest.leaves.n_leaves + n_bounds


def masked(honest: Delivery) -> Delivery:
    leaf = np.ma.masked_array(honest.records.leaf, mask=honest.records.row == 3)
    return replace(honest, records=replace(honest.records, leaf=leaf))


def labelled(honest: Delivery) -> Delivery:
    target = honest.records.target.copy()
    target[5] = 1
    return replace(honest, records=replace(honest.records, target=target))


def with_threshold(value: float) -> Callable[[Delivery], Delivery]:
    def change(honest: Delivery) -> Delivery:
        threshold = honest.tree.threshold.copy()
        threshold[-1] = value
        return replace(honest, tree=replace(honest.tree, threshold=threshold))

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (masked, "leaf of the records is not an array of int32"),
        (labelled, "a target is neither 0 nor 1, or none was sent"),
        (with_threshold(NAN), "its threshold is not finite"),
        (with_threshold(5e-324), "its threshold is not finite, or not 0 at a leaf"),
    ],
    ids=["masked", "labelled", "nan", "tiny"],
)
def test_nothing_else_is_carried_along_in_memory(
    change: Callable[[Delivery], Delivery], said: str
) -> None:
    prepared, honest = made(clear=False)
    for verdict in judged(prepared, change(honest)):
        assert verdict.outcome is Outcome.VIOLATION
        assert said in verdict.finding("commitment").summary


def payloads(honest: Delivery) -> Iterator[Delivery]:
    """A NaN with a payload in each column of floats: of thresholds and of both bounds."""
    tree, leaves = honest.tree, honest.leaves
    for at in (0, -1):
        threshold = tree.threshold.copy()
        threshold[at] = NAN
        yield replace(honest, tree=replace(tree, threshold=threshold))
    for name in ("minimum", "maximum"):
        for column in range(leaves.minimum.shape[1]):
            bounds = getattr(leaves, name).astype(np.float64, order="K")
            bounds[-1, column] = NAN
            yield replace(honest, leaves=replace(leaves, **{name: bounds}))


@pytest.mark.parametrize("clear", [False, True])
def test_no_payload_of_a_nan_is_carried_along(tmp_path: Path, clear: bool) -> None:
    prepared, honest = made(clear=clear)
    for n, delivery in enumerate(payloads(honest)):
        write_delivery(delivery, tmp_path / str(n))
        for verdict in judged(prepared, delivery) + judged(prepared, tmp_path / str(n)):
            assert verdict.outcome is Outcome.VIOLATION
            assert "finite" in verdict.finding("commitment").summary
    assert n == 1 + 2 * 2

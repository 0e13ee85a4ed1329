"""release(): what it refuses, with a verdict and without."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from client.release.releases import Job, N, accepted, changed
from verix_anon.client.ledger import Ledger
from verix_anon.client.release import release
from verix_anon.client.verdict import Finding, Status
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.files.deliveries import Snapshot
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.tree import Tree


def test_another_table_is_refused(case: Job) -> None:
    other = case.table.set_column(1, "age", pa.array([1] * N))
    with pytest.raises(TableError, match="not the one that was prepared"):
        replace(case, table=other).release()
    with pytest.raises(TableError, match="not the one that was prepared"):
        replace(case, table=other).release(force=True)


def test_a_verdict_that_does_not_accept_is_refused(case: Job) -> None:
    for status, word in ((Status.FAIL, "VIOLATION"), (Status.INCONCLUSIVE, "INCONCLUSIVE")):
        finding = Finding(layer="splits", status=status, summary="No.")
        bad = replace(case, verdict=accepted(case.delivery, findings=(finding,)))
        with pytest.raises(NotAcceptedError, match=rf"{word} \(splits\)"):
            bad.release()
        assert bad.release(force=True).overridden == (
            f"the verdict is {word} (splits), not VERIFIED",
        )


def test_no_findings_are_no_acceptance(case: Job) -> None:
    with pytest.raises(NotAcceptedError, match="INCONCLUSIVE"):
        replace(case, verdict=accepted(case.delivery, findings=())).release()


def test_no_verdict_needs_force(case: Job) -> None:
    with pytest.raises(NotAcceptedError, match="no verdict"):
        release(case.delivery, case.manifest, None, table=case.table)


@pytest.mark.parametrize("part", ["root", "contract", "submission"])
def test_a_verdict_about_something_else_is_refused(case: Job, part: str) -> None:
    other = accepted(case.delivery, **{part: Digest(b"x" * 32)})
    with pytest.raises(NotAcceptedError, match=part):
        replace(case, verdict=other).release()
    released = replace(case, verdict=other).release(force=True)
    assert len(released.overridden) == 1
    assert part in released.overridden[0]


def test_the_verdict_is_bound_to_the_files(case: Job) -> None:
    files = {"delivery.json": "aa", "records.parquet": "bb"}
    snapshot = Snapshot(delivery=case.delivery, files=files)
    verdict = accepted(case.delivery, files=dict(reversed(files.items())))
    released = release(snapshot, case.manifest, verdict, table=case.table)
    assert released.overridden == ()
    for judged in ({}, files | {"records.parquet": "cc"}):
        other = accepted(case.delivery, files=judged)
        with pytest.raises(NotAcceptedError, match="other files"):
            release(snapshot, case.manifest, other, table=case.table)


def test_without_files_the_root_must_follow_from_the_delivery(case: Job) -> None:
    leaf = case.delivery.records.leaf.copy()
    leaf[0] = (leaf[0] + 1) % case.delivery.tree.n_leaves
    moved = replace(case, delivery=changed(case.delivery, leaf=leaf))
    with pytest.raises(NotAcceptedError, match="root does not follow"):
        moved.release()


def test_a_delivery_in_another_order_is_the_same(case: Job) -> None:
    order = np.random.default_rng(3).permutation(case.manifest.n_rows)
    names = ("row", "tracker", "leaf", "target")
    mixed = {name: getattr(case.delivery.records, name)[order] for name in names}
    again = replace(case, delivery=changed(case.delivery, **mixed)).release()
    assert again.table.equals(case.release().table)


def test_forced_deliveries_are_refused_if_rows_cannot_be_aligned(case: Job) -> None:
    records = case.delivery.records
    genuine = int(np.flatnonzero(case.manifest.owner_row >= 0)[0])
    less = {
        name: np.delete(getattr(records, name), genuine, axis=0)
        for name in ("row", "tracker", "leaf", "target")
    }
    with pytest.raises(NotAcceptedError, match="1 are missing and 0"):
        case.forced(changed(case.delivery, **less))
    doubled = records.row.copy()
    doubled[genuine] = np.flatnonzero(case.manifest.owner_row >= 0)[1]
    with pytest.raises(NotAcceptedError, match="1 are missing and 1"):
        case.forced(changed(case.delivery, row=doubled))
    nothing = {name: array[:0] for name, array in less.items()}
    with pytest.raises(NotAcceptedError, match="cannot be aligned"):
        case.forced(changed(case.delivery, **nothing))


def test_forced_deliveries_with_wrong_trackers_and_lost_traps_are_released(case: Job) -> None:
    records = case.delivery.records
    row = records.row.copy()
    row[case.manifest.owner_row[row] < 0] = 10**12
    wrong = changed(case.delivery, row=row, tracker=np.zeros_like(records.tracker))
    released = case.forced(wrong)
    assert released.table.equals(case.release().table)
    assert released.overridden == ("the root does not follow from the delivery",)


def test_what_cannot_be_followed_is_refused_even_if_forced(case: Job) -> None:
    tree = case.delivery.tree
    with pytest.raises(NotAcceptedError, match="a leaf that the tree does not have"):
        case.forced(changed(case.delivery, leaf=np.full_like(case.delivery.records.leaf, 10**6)))
    looped = replace(tree, right=np.zeros_like(tree.right))
    with pytest.raises(NotAcceptedError, match="cannot be followed"):
        case.forced(replace(case.delivery, tree=looped))
    stump = Tree(
        column=np.array([-1], np.int32),
        threshold=np.zeros(1),
        left=np.array([-1], np.int32),
        right=np.array([-1], np.int32),
        leaf=np.array([0], np.int32),
    )
    with pytest.raises(NotAcceptedError, match="not those of the delivered tree"):
        case.forced(replace(case.delivery, tree=stump))


def test_a_manifest_that_lost_rows_is_refused(case: Job) -> None:
    owner_row = case.manifest.owner_row.copy()
    owner_row[owner_row == 0] = 1
    with pytest.raises(TableError, match="every row of the table once"):
        replace(case, manifest=replace(case.manifest, owner_row=owner_row)).release()


def test_the_second_release_needs_force(case: Job, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    first = case.release(ledger)
    assert first.sheet.released_before == 0
    with pytest.raises(NotAcceptedError, match="single people out"):
        case.release(ledger, exact_ends=True)
    second = case.release(ledger, exact_ends=True, force=True)
    assert second.sheet.released_before == 1
    assert "released before" in second.overridden[0]
    assert any("released 1 time before" in warning for warning in second.warnings)
    assert len(ledger.seen(case.manifest.table)) == 2


def test_a_refused_release_is_not_recorded(case: Job, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    with pytest.raises(TableError):
        case.release(ledger, person="nobody")
    with pytest.raises(NotAcceptedError):
        release(case.delivery, case.manifest, None, table=case.table, ledger=ledger)
    assert ledger.seen(case.manifest.table) == ()


@pytest.mark.parametrize("option", [{"round_to": {"aeg": 5}}, {"top_code": {"aeg": (None, 80.0)}}])
def test_a_column_that_is_not_there_is_looked_for(case: Job, option: dict[str, Any]) -> None:
    with pytest.raises(TableError, match=r"no column 'aeg'; did you mean 'age'\?"):
        case.release(**option)
    with pytest.raises(
        TableError, match="'note' is categorical; only numbers and dates can be rounded"
    ):
        case.release(round_to={"note": 5})

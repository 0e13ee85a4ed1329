"""Layers `sentinels` and `twins` (paper layers 2a and 2b): what was planted came back.

`sentinels` proves: each sentinel is there under its own row and tracker.
Does not prove: that it was processed; a provider that echoes rows it left out of the tree
passes, and so does one that finds the sentinels (they lie where records are rare).

`twins` proves: of every planted pair both records are there, under their own trackers, in one leaf.
Does not prove: that they were processed, or the rest was; exact duplicates are easy to find.

Both can err: they miss a provider that drops records blindly with the stated probability.
"""

import numpy as np

from verix_anon.client.evidence import EvasionCurve, evasion_probability
from verix_anon.client.verdict import Evidence, Finding, Status
from verix_anon.client.verify.case import Case, as_words
from verix_anon.fields import odds

DROPS = (0.01, 0.05, 0.2)


def check_sentinels(case: Case) -> Finding:
    """Look every sentinel up by its row and compare its tracker."""
    manifest = case.manifest
    rows = manifest.sentinel_row
    if rows.size == 0:
        return _none_planted("sentinels", {"sentinels": 0})
    position = case.positions_of(rows)
    is_back = position >= 0
    came = np.take(as_words(case.records.tracker), position, axis=0)
    is_same = (came == as_words(manifest.sentinel_tracker)).all(axis=1)
    n_missing, n_other = int((~is_back).sum()), int((is_back & ~is_same).sum())
    failed = n_missing + n_other > 0
    guarantee, evasion = _against_drops(int(rows.size), manifest.n_rows)
    return Finding(
        layer="sentinels",
        status=Status.FAIL if failed else Status.PASS,
        summary=(
            f"Of {rows.size:,} sentinels, {n_missing:,} did not come back, and {n_other:,} changed."
            if failed
            else f"All {rows.size:,} sentinels are back."
        ),
        guarantee=guarantee,
        evidence={"sentinels": int(rows.size), "missing": n_missing, "changed": n_other, **evasion},
    )


def check_twins(case: Case) -> Finding:
    """Look both records of every pair up, and compare their trackers and leaves."""
    manifest = case.manifest
    pairs = manifest.twin_row
    if len(pairs) == 0:
        return _none_planted("twins", {"pairs": 0})
    position, leaf = case.positions_of(pairs), case.leaves_of(pairs)
    is_back = (position >= 0).all(axis=1)
    came = np.take(as_words(case.records.tracker), position, axis=0)
    is_same = (came == as_words(manifest.twin_tracker)).all(axis=(1, 2))
    is_together = leaf[:, 0] == leaf[:, 1]
    n_missing = int((~is_back).sum())
    n_changed = int((is_back & ~is_same).sum())
    n_apart = int((is_back & ~is_together).sum())
    failed = n_missing + n_changed + n_apart > 0
    counts = {"pairs": len(pairs), "missing": n_missing, "changed": n_changed, "apart": n_apart}
    # A pair is hit if either of its two records is dropped.
    guarantee, evasion = _against_drops(2 * len(pairs), manifest.n_rows)
    return Finding(
        layer="twins",
        status=Status.FAIL if failed else Status.PASS,
        summary=(
            f"Of {len(pairs):,} pairs, {n_missing:,} came back incomplete, {n_changed:,} changed"
            f" and {n_apart:,} in two leaves."
            if failed
            else f"All {len(pairs):,} pairs are back, each in one leaf."
        ),
        guarantee=guarantee,
        evidence={**counts, **evasion},
    )


def _none_planted(layer: str, evidence: Evidence) -> Finding:
    return Finding(
        layer=layer,
        status=Status.PASS,
        summary=f"No {layer} were planted.",
        guarantee="No guarantee. Only replay can find missing records.",
        evidence=evidence,
    )


def _against_drops(n_planted: int, n_rows: int) -> tuple[str, dict[str, object]]:
    """The guarantee, and the evidence for it, that so many planted records give."""

    def chance(drop: float) -> float:
        return evasion_probability(n_planted, n_rows, drop)

    guarantee = (
        "A provider that drops 5% of the records without looking passes with a chance of"
        f" {odds(chance(0.05))}. One that returns the dropped records unprocessed always passes."
    )
    return guarantee, {
        "evasion_at_drop": {str(drop): chance(drop) for drop in DROPS},
        "evasion_curve": EvasionCurve.of(chance).to_json(),
    }

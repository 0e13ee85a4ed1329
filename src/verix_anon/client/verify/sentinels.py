"""Layer `sentinels` (paper layer 2a): every sentinel came back.

Proves: each sentinel is there under its own row and tracker.
Does not prove: that it was processed; a provider that echoes rows it left out of the tree
passes, and so does one that finds the sentinels (they lie where records are rare).
Can err: misses a provider that drops records blindly with the stated probability.
"""

import numpy as np

from verix_anon.client.evidence import EvasionCurve, evasion_probability
from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify.case import Case, as_words
from verix_anon.fields import odds

LAYER = "sentinels"
DROPS = (0.01, 0.05, 0.2)


def check(case: Case) -> Finding:
    """Look every sentinel up by its row and compare its tracker."""
    manifest = case.manifest
    rows = manifest.sentinel_row
    if rows.size == 0:
        return Finding(
            layer=LAYER,
            status=Status.PASS,
            summary="No sentinels were planted.",
            guarantee="No guarantee. Only replay can find missing records.",
            evidence={"sentinels": 0},
        )
    position = case.positions_of(rows)
    is_back = position >= 0
    came = np.take(as_words(case.records.tracker), position, axis=0)
    is_same = (came == as_words(manifest.sentinel_tracker)).all(axis=1)
    n_missing, n_other = int((~is_back).sum()), int((is_back & ~is_same).sum())
    guarantee, evasion = against_drops(int(rows.size), manifest.n_rows)
    failed = n_missing + n_other > 0
    return Finding(
        layer=LAYER,
        status=Status.FAIL if failed else Status.PASS,
        summary=(
            f"Of {rows.size:,} sentinels, {n_missing:,} did not come back, and {n_other:,} changed."
            if failed
            else f"All {rows.size:,} sentinels are back."
        ),
        guarantee=guarantee,
        evidence={"sentinels": int(rows.size), "missing": n_missing, "changed": n_other, **evasion},
    )


def against_drops(n_planted: int, n_rows: int) -> tuple[str, dict[str, object]]:
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

"""Layer `sentinels` (paper layer 2a): every sentinel came back.

Proves: each sentinel is there under its own row and tracker.
Does not prove: that it was processed; a provider that echoes rows it left out of the tree
passes, and so does one that finds the sentinels (they lie where records are rare).
Can err: misses a provider that drops records blindly with the stated probability.
"""

import numpy as np

from verix_anon.client import aggregates
from verix_anon.client.prepare.sentinels import evasion_probability
from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify.case import Case, as_words

__all__ = ["check"]

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
            summary="No sentinels were planted, so none is missing.",
            guarantee="None: replay has to see what is missing.",
            evidence={"sentinels": 0},
        )
    position = case.position_of_row[rows]
    is_back = position >= 0
    came = np.take(as_words(case.records.tracker), position, axis=0)
    is_same = (came == as_words(manifest.sentinel_tracker)).all(axis=1)
    n_missing, n_other = int((~is_back).sum()), int((is_back & ~is_same).sum())
    evasion = {str(d): evasion_probability(rows.size, manifest.n_rows, d) for d in DROPS}
    failed = n_missing + n_other > 0
    return Finding(
        layer=LAYER,
        status=Status.FAIL if failed else Status.PASS,
        summary=(
            f"Of {rows.size} sentinels {n_missing} are missing and {n_other} changed."
            if failed
            else f"All {rows.size} sentinels are back."
        ),
        guarantee=(
            f"A provider that drops 5 % of the records blindly, and returns nothing for them,"
            f" passes with probability {evasion['0.05']:.2g}; one that echoes what it left out"
            " always passes."
        ),
        evidence={
            "sentinels": int(rows.size),
            "missing": n_missing,
            "changed": n_other,
            "evasion_at_drop": evasion,
            "evasion_curve": aggregates.evasion_curve(
                lambda drop: evasion_probability(rows.size, manifest.n_rows, drop)
            ),
        },
    )

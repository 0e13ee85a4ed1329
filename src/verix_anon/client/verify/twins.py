"""Layer `twins` (paper layer 2b): duplicates came back, and stayed together.

Proves: of every planted pair both records are there, under their own trackers, in one leaf.
Does not prove: that they were processed, or the rest was; exact duplicates are easy to find.
Can err: misses a provider that drops records blindly with the stated probability.
"""

import numpy as np

from verix_anon.client.verdict import Finding, Status
from verix_anon.client.verify.case import Case, as_words
from verix_anon.client.verify.sentinels import against_drops

LAYER = "twins"


def check(case: Case) -> Finding:
    """Look both records of every pair up, and compare their trackers and leaves."""
    manifest = case.manifest
    pairs = manifest.twin_row
    if len(pairs) == 0:
        return Finding(
            layer=LAYER,
            status=Status.PASS,
            summary="No twins were planted.",
            guarantee="No guarantee. Only replay can find missing records.",
            evidence={"pairs": 0},
        )
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
    guarantee, evasion = against_drops(2 * len(pairs), manifest.n_rows)
    return Finding(
        layer=LAYER,
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

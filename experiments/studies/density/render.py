"""How often blind dropping misses every sentinel."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, section, table
from experiments.data import TITLES

__all__ = ["page", "summary"]


def page(found: Result) -> list[str]:
    """The table and what it shows."""
    rows = [
        [
            TITLES[r["data"]],
            r["band"],
            f"{r['sentinels_least']} to {r['sentinels_most']}",
            percent(r["dropped"], 0),
            f"{r['measured']:.4f} ({r['low']:.4f} to {r['high']:.4f})",
            f"{r['formula']:.4f}",
            f"{r['exact']:.4f}",
        ]
        for r in found["rows"]
    ]
    text = """The chance that blind dropping hits no sentinel: measured over many drops with its 95
        % interval, by the paper's formula (1 - |S|/|D'|)^(delta |D'|), and exactly, without
        replacement (hypergeometric). Means over the seeds."""
    head = ["data set", "band", "sentinels", "dropped", "measured", "formula", "exact"]
    return section("Sentinel density (paper §7.2)", found, text, table(head, rows, left=2))


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    outside = [r for r in found["rows"] if not r["low"] <= r["exact"] <= r["high"]]
    gap = max(abs(r["formula"] - r["exact"]) for r in found["rows"])
    fixed, adaptive = (
        max(r["measured"] for r in found["rows"] if (r["band"], r["dropped"]) == (band, 0.05))
        for band in ("fixed", "adaptive")
    )
    return [
        f"""**Sentinel density:** measured evasion agrees with the exact probability in
        {len(found["rows"]) - len(outside)} of {len(found["rows"])} cells at 95 %; the paper's
        formula, which draws with replacement, is off by at most {gap:.3f}. At a 5 % drop the worst
        data set evades with {fixed:.2f} under the fixed band and with {adaptive:.3f} under the
        adaptive one."""
    ]

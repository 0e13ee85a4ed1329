"""What cheaters that know the target risk."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, rate, section, table

__all__ = ["sections", "summary"]


def sections(found: Result) -> list[str]:
    """The table and what it shows."""
    rows = [
        [
            r["provider"],
            f"{r['deviated']}/{r['runs']}",
            r["full"],
            rate({**r, "n": r["deviated"] or r["runs"]}, "thin", "n"),
            percent(r["touched"]),
            percent(r["stated"]),
        ]
        for r in found["rows"]
    ]
    text = f"""Samples of {found["rows_each"]:,} rows, {found["witnesses"]} witnesses, exact layers
        only. A provider counts as deviating where some node is not the rule's; of those deliveries,
        how many `full` and `thin` caught, and what `thin` states in advance: 1 - (1 - d)^R for the
        share d of the records' paths that deviate. An honest provider must never be caught."""
    head = ["provider", "deviated", "caught, full", "caught, thin", "paths touched", "stated"]
    return section(
        "Cheaters that know the target, against a thin verification", found, text, table(head, rows)
    )


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    tried = [r for r in found["rows"] if r["deviated"]]
    # Where the stated probability is next to 1 there is nothing to come near to.
    unsure = [r for r in tried if r["stated"] < 0.999] or tried
    worst = min(unsure, key=lambda r: r["thin"] / r["deviated"] - r["stated"])
    honest = next(r for r in found["rows"] if r["provider"] == "honest")
    below = [r["provider"] for r in found["rows"] if r["deviated"] and r["high"] < r["stated"]]
    return [
        f"""**Thin, target-aware cheaters:** in {honest["runs"]} more honest runs {honest["thin"]}
        false alarms; every cheater is caught at no less than the stated probability within the
        interval {"without exception" if not below else "but for " + ", ".join(below)} (nearest to
        it: {worst["provider"]}, {percent(worst["thin"] / worst["deviated"])} against
        {percent(worst["stated"])})."""
    ]

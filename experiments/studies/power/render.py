"""How small a deviation the split audit still sees."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, rate, section, seeds, table

__all__ = ["SURE", "page", "summary"]

SURE = 0.999
"""Where at least this is stated, a measured share can hardly fall below it."""


def page(found: Result) -> list[str]:
    """The table and what it shows."""
    rows = [
        [
            percent(r["fraction"]),
            r["audit"],
            r["deliveries"],
            percent(r["touched"]),
            rate(r, "caught", "tries"),
            percent(r["stated"], 2),
        ]
        for r in found["rows"]
        if r["tries"]
    ]
    text = f"""A provider takes the second-best split at a share of the nodes. Each share was tried
        on samples of the same data sets under {seeds(found)}. Shown: the deliveries that deviate
        somewhere; the share of the records' paths that this touches; caught of tries with the 95 %
        interval; what was stated in advance. {found["without_deviation"]} deliveries deviated
        nowhere and were left out. For the witnesses, stated is 1 - (1 - d)^R for the share d of the
        watch records whose path shows the deviation; the witnesses are drawn from the same
        records."""
    head = ["deviates", "audit", "deliveries", "paths touched", "caught", "stated"]
    return section("Power of the split audit", found, text, table(head, rows, left=2))


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    rows = [r for r in found["rows"] if r["tries"]]
    unsure = [r for r in rows if r["stated"] < SURE]
    below = [f"{r['audit']} at {percent(r['fraction'])}" for r in unsure if r["high"] < r["stated"]]
    whole = [r for r in rows if r["audit"] == "all nodes"]
    return [
        f"""**Power of the audit:** looking at all nodes caught {sum(r["caught"] for r in whole)} of
        {sum(r["tries"] for r in whole)} deviating deliveries. For the sampled audit and the
        witnesses, we count the comparisons in which less than {percent(SURE)} was stated. In
        {len(below)} of {len(unsure)}, the whole 95 % interval lies below what was
        stated{f" ({', '.join(below)})" if below else ""}. By chance it would in about one of
        forty."""
    ]

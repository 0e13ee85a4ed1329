"""How small a deviation the split audit still sees."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, rate, section, table

__all__ = ["page", "summary"]


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
    text = f"""A provider takes the second-best split at a share of the nodes. Deliveries that
        deviate somewhere; the share of the records' paths that this touches; caught of tries with
        the 95 % interval; what was stated in advance. {found["without_deviation"]} deliveries
        deviated nowhere and were left out."""
    head = ["deviates", "audit", "deliveries", "paths touched", "caught", "stated"]
    return section("Power of the split audit", found, text, table(head, rows, left=2))


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    rows = [r for r in found["rows"] if r["tries"]]
    below = [f"{r['audit']} at {percent(r['fraction'])}" for r in rows if r["high"] < r["stated"]]
    whole = [r for r in rows if r["audit"] == "all nodes"]
    return [
        f"""**Power of the audit:** looking at all nodes caught {sum(r["caught"] for r in whole)} of
        {sum(r["tries"] for r in whole)} deviating deliveries; the sampled audit and the witnesses
        caught as many as stated or more, within the interval,
        {"without exception" if not below else "except " + ", ".join(below)} ({len(rows)}
        comparisons; at 95 % about one in forty falls below by chance)."""
    ]

"""What cheaters that know what matters risk."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, prose, rate, section, seeds, table
from experiments.core.owner import CODED
from experiments.studies.power.render import SURE

__all__ = ["page", "summary"]

HEAD = ["provider", "deviated", "caught, full", "caught, thin", "paths touched", "stated"]


def page(found: Result) -> list[str]:
    """A table for the paper's rule, and one for each weighting of the rule without a target."""
    text = f"""Samples of {found["rows_each"]:,} rows of each data set under {seeds(found)},
        {found["witnesses"]} witnesses, exact layers only. A provider counts as deviating where some
        node is not the rule's; of those deliveries, how many `full` and `thin` caught, and what
        `thin` states in advance: 1 - (1 - d)^R for the share d of the records' paths that deviate.
        An honest provider must never be caught."""
    paper, *coded = CODED
    lines = table(HEAD, _body(found, paper))
    for rule in coded:
        spread = f"""The same samples of {found["rows_each"]:,} rows under {rule}: coded, leaves of
            k records, no target sent."""
        lines += [f"## Under {rule}", "", prose(spread), "", *table(HEAD, _body(found, rule))]
    return section("Cheaters that know the target, against a thin verification", found, text, lines)


def _body(found: Result, rule: str) -> list[list[object]]:
    return [
        [
            r["provider"],
            f"{r['deviated']}/{r['runs']}",
            r["full"],
            rate({**r, "n": r["deviated"] or r["runs"]}, "thin", "n"),
            percent(r["touched"]),
            percent(r["stated"]),
        ]
        for r in found["rows"]
        if r["rule"] == rule
    ]


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    tried = [r for r in found["rows"] if r["deviated"]]
    # Where the stated probability is next to 1, hardly anything can fall below it.
    unsure = [r for r in tried if r["stated"] < SURE]
    worst = min(unsure or tried, key=lambda r: r["thin"] / r["deviated"] - r["stated"])
    honest = [r for r in found["rows"] if r["provider"] == "honest"]
    below = [f"{r['provider']} under {r['rule']}" for r in unsure if r["high"] < r["stated"]]
    who = f"only {', '.join(below)}" if below else "no cheater"
    return [
        f"""**Thin, cheaters that know what matters:** {sum(r["thin"] for r in honest)} of
        {sum(r["runs"] for r in honest)} more honest runs gave a false alarm. In {len(unsure)}
        comparisons in which less than {percent(SURE)} was stated, {who} was caught significantly
        less often than stated. Furthest below, or least above, what was stated is
        {worst["provider"]} under {worst["rule"]}: caught in
        {percent(worst["thin"] / worst["deviated"])} of the deliveries, where
        {percent(worst["stated"])} was stated."""
    ]

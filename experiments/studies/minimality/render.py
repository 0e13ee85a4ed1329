"""What the joining of leaves tells somebody who knows how it is done."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, section, seeds, table
from experiments.data import TITLES

__all__ = ["page", "summary"]


def page(found: Result) -> list[str]:
    """The tables, the attack in words, and what it shows."""
    text = f"""Releases with k = 5 and l = 2. The intruder knows all quasi-identifiers, the tree,
        which records are genuine, how leaves are joined, and how many records of each class have
        which label. The labels of a class are dealt out again until 200 worlds give the same
        class; if fewer than 150 do after {found["tries"]:,} tries, the class is undecided. Certain
        are the records on whose label all these worlds agree, in classes where no label has more
        than 95, 90 or 80 % of the records. Believed are those whose label has at least 99 % of the
        worlds, at 95 %. The bound is what the privacy sheet states. Before: each residue joined the
        class where it adds least NCP. Now: nodes of at most {found["small"]} leaves become one
        class if a part falls short, and otherwise with a chance of {percent(found["chance"], 0)}.
        Means over {seeds(found)}, ± the standard error."""
    main = [r for r in found["rows"] if _name(r, found) in ("before", "now")]
    others = [r for r in found["rows"] if _name(r, found) not in ("before", "now")]
    head = ["data set", "traps", "joining", "certain at 95 %", "at 90 %", "at 80 %"]
    head += ["believed", "undecided", "bound", "classes", "NCP", "more NCP"]
    lines = table(head, [_row(r, found) for r in main], left=3)
    if others:
        lines += ["Other sizes and chances, of one sample and without traps:", ""]
        lines += table(head, [_row(r, found) for r in others], left=3)
    return section("What joining tells", found, text, lines)


def _name(r: Result, found: Result) -> str:
    if not r["small"]:
        return "before"
    if (r["small"], r["chance"]) == (found["small"], found["chance"]):
        return "now"
    return f"{r['small']:.0f} leaves, {percent(r['chance'], 0)}"


def _row(r: Result, found: Result) -> list[str]:
    return [
        TITLES[r["data"]],
        r["traps"],
        _name(r, found),
        _spread(r["certain_0.95"], r["certain_error"], 2),
        *(percent(r[f"certain_{cut}"], 2) for cut in ("0.9", "0.8")),
        *(percent(r.get(name), 2) for name in ("believed", "undecided", "bound")),
        f"{r['classes']:,.0f}",
        f"{r['ncp']:.3f}",
        _spread(r["more_ncp"], r["more_ncp_error"], 1),
    ]


def _spread(mean: float, error: float | None, digits: int) -> str:
    if error is None:
        return percent(mean, digits)
    return f"{100 * mean:.{digits}f} ± {100 * error:.{digits}f} %"


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""

    def span(name: str, rule: str, digits: int) -> str:
        values = [r[name] for r in found["rows"] if _name(r, found) == rule]
        least, most = percent(min(values), digits), percent(max(values), digits)
        return least if least == most else f"{least} to {most}"

    return [
        f"""**What joining tells:** with l = 2, somebody who knows how leaves are joined was certain
        of the label of {span("certain_0.95", "before", 1)} of the records, by table, although
        their class shows at most 95 %; now of {span("certain_0.95", "now", 2)}, with
        {span("undecided", "now", 2)} undecided, for {span("more_ncp", "now", 1)} more NCP."""
    ]

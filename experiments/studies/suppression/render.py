"""What suppression buys."""

from experiments.core.cells import Result
from experiments.core.markdown import n_seeds, section, table
from experiments.data import TITLES

__all__ = ["page", "summary"]


def page(found: Result) -> list[str]:
    """One table: NCP and AUC of every data set at every share, for k alone and with l = 2."""
    text = f"""Samples of {found["n_rows"]:,} records, k = {found["k"]}, the journey with traps,
        equal weights, {n_seeds(found["seeds"])} each. `release --suppress` leaves out the records
        that cost most to keep, of at most the share named. Each cell is NCP / AUC; NCP counts only
        the rows that stay, over the whole range of each column. The model is
        tested on raw rows of other people. The last line is the change of the means, with its
        standard error over tables and seeds."""
    settings = list(dict.fromkeys((r["l"], r["share"]) for r in found["rows"]))
    rows = []
    for name, raw in found["raw"].items():
        of = {(r["l"], r["share"]): r for r in found["rows"] if r["dataset"] == name}
        cells = [f"{of[s]['ncp']:.3f} / {of[s]['auc']:.3f}" for s in settings]
        rows.append([TITLES[name], f"{raw:.3f}", *cells])
    changes = []
    for setting in settings:
        of_both = {g["measure"]: g for g in found["gains"] if (g["l"], g["share"]) == setting}
        changes.append(" / ".join(_change(of_both[m]) for m in ("ncp", "auc")))
    rows.append(["change", "", *changes])
    head = ["data set", "raw AUC", *(_named(*setting) for setting in settings)]
    return section("What suppression buys", found, text, table(head, rows))


def _named(least: int, share: float) -> str:
    return f"{'k' if least == 1 else f'l = {least}'}, {share:.0%}"


def _change(gain: Result) -> str:
    return f"{gain['mean']:+.3f} ± {gain['error']:.3f}" if gain["share"] else "0"


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence."""
    of = {(g["l"], g["share"], g["measure"]): g["mean"] for g in found["gains"]}
    most = max(g["share"] for g in found["gains"])
    return [
        f"""**Suppression:** leaving out {most:.0%} of the people moves NCP by
        {of[1, most, "ncp"]:+.3f} and AUC by {of[1, most, "auc"]:+.3f} for k alone, and by
        {of[2, most, "ncp"]:+.3f} and {of[2, most, "auc"]:+.3f} with l = 2. This NCP counts only the
        rows that stay, so a part of the change is that costly rows are not counted."""
    ]

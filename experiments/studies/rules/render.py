"""What a release is worth under each rule."""

from collections.abc import Iterator
from typing import NamedTuple

from experiments.core.cells import Result
from experiments.core.markdown import n_seeds, percent, prose, section, table
from experiments.data import TITLES

__all__ = ["Count", "count", "page", "row", "summary"]

RULES = {
    ("variance-reduction", ""): "the paper's",
    ("importance-spread", "uniform"): "importance-spread",
    ("importance-spread", "auto"): "importance-spread, auto",
}
ADULT = {
    8: {"ncp": 0.07, "auc": 0.005, "ncp_l": 0.20},
    14: {"ncp": 0.10, "auc": 0.02, "ncp_l": 0.25},
}
"""What was asked of `importance-spread` with k on Adult before it was measured."""
LEAST = {1: "-", 2: "2"}
OTHERS = {"r2": "R2", "macro_f1": "macro F1"}


def page(found: Result) -> list[str]:
    """Adult in full, every data set beside the paper's rule, targets of other kinds, verdicts."""
    text = f"""The whole journey with traps, k = {found["k"]}: seven tenths of the rows are
        released, a model fitted to what is published of them is tested on the others, raw. The
        paper's rule with a least leaf of 2k is the baseline; traps, coding and joining are the
        same for all. 'One label' is the share of the records in classes where all share the
        target. A model takes the middle of an interval and the mean position of a set; missing
        values are imputed. `importance-spread` weighs all columns the same; `auto` weighs them by a
        model of the target. Means over the seeds; AUC and F1 by what is published. A quick run has
        fewer rows."""
    lines = section("Which rule", found, text, [])
    for columns in sorted({r["quasi"] for r in found["rows"] if r["quasi"]}):
        lines += _adult(found, columns)
    return [*lines, *_every(found), *_weights(found), *_others(found), *_verdicts(found)]


def _arm(r: Result) -> str:
    return RULES[r["rule"], r["importance"]]


def row(found: Result, **wanted: object) -> Result | None:
    """The row of the results with these values, if there is one."""
    return next((r for r in found["rows"] if wanted.items() <= r.items()), None)


def _adult(found: Result, columns: int) -> list[str]:
    rows = [r for r in found["rows"] if r["quasi"] == columns]
    raw = next(r for r in found["raw"] if r["quasi"] == columns)
    body: list[list[object]] = [
        ["raw", "-", "-", "0", "-", *(f"{raw[m]:.3f}" for m in ("auc", "f1"))]
    ]
    for r in rows:
        if r["view"] == "interval":
            body.append(
                [
                    _arm(r),
                    r["min_leaf"],
                    LEAST[r["l"]],
                    f"{r['ncp']:.3f}",
                    percent(r["same_target"]),
                    *(f"{r[m]:.3f}" for m in ("auc", "f1")),
                ]
            )
    head = ["rule", "least leaf", "l", "NCP", "one label", "AUC", "F1"]
    title = f"## Adult, whole table, {columns} quasi-identifiers, {n_seeds(raw['seeds'])}"
    return [title, "", *table(head, body, left=3)]


def _key(r: Result) -> tuple[object, ...]:
    names = ("data", "target", "quasi", "rule", "importance", "min_leaf", "l")
    return tuple(r[name] for name in names)


def _samples(found: Result) -> Iterator[Result]:
    """The tables of two classes of which every data set has one, raw."""
    return (r for r in found["raw"] if not r["quasi"] and r["target"] == "target")


def _pair(found: Result, raw: Result, **wanted: object) -> Result:
    table_of = {name: raw[name] for name in ("data", "target", "quasi")}
    return next(p for p in found["pairs"] if (table_of | wanted).items() <= p.items())


def _every(found: Result) -> list[str]:
    """Every data set: the paper's rule, ours, and the difference with its interval."""
    samples = list(_samples(found))
    if not samples:
        return []
    body = []
    for raw in samples:
        named = {"data": raw["data"], "quasi": 0, "target": "target", "view": "interval"}
        arms = [
            row(found, **named, rule="variance-reduction", min_leaf="2k", l=1),
            *(
                row(found, **named, rule="importance-spread", importance=i, min_leaf="k", l=n)
                for i, n in (("uniform", 1), ("uniform", 2), ("auto", 1), ("auto", 2))
            ),
        ]
        for r in arms:
            assert r is not None
            is_ours = r["importance"] != ""
            body.append(
                [
                    TITLES[raw["data"]],
                    _arm(r),
                    LEAST[r["l"]],
                    f"{r['ncp']:.3f}",
                    percent(r["same_target"]),
                    f"{r['auc']:.3f}",
                    _difference(_pair(found, raw, **_wanted(r, "auc"))) if is_ours else "-",
                    f"{r['f1']:.3f}",
                    _difference(_pair(found, raw, **_wanted(r, "f1"))) if is_ours else "-",
                ]
            )
    head = ["data set", "rule", "l", "NCP", "one label", "AUC", "against the paper's"]
    head += ["F1", "against the paper's"]
    text = f"""The paper's rule with 2k, the others with k; models see intervals. Differences to the
        paper's rule without l, with the 95 % interval over {samples[0]["seeds"]} seeds, of each of
        which the sample, the split and the traps are the same for all."""
    title = "## 8,000 rows of every data set"
    return [title, "", prose(text), "", *table(head, body, left=3)]


def _wanted(r: Result, measure: str) -> dict[str, object]:
    named = {name: r[name] for name in ("importance", "l", "view")}
    return {"against": "paper", "measure": measure, **named}


def _difference(pair: Result) -> str:
    if pair["low"] is None:
        return f"{pair['mean']:+.3f}"
    return f"{pair['mean']:+.3f} ({pair['low']:+.3f} to {pair['high']:+.3f})"


def _weights(found: Result) -> list[str]:
    """Equal weights against a model's: every table, without and with two labels in every class."""
    body = []
    for raw in found["raw"]:
        name = TITLES[raw["data"]]
        if raw["quasi"]:
            name += f", whole, {raw['quasi']} columns"
        elif raw["target"] != "target":
            name += f", {raw['target']}"
        for least in LEAST:
            pairs = {p["measure"]: p for p in _against_auto(found, raw, least)}
            shown = [_difference(pairs[m]) if m in pairs else "-" for m in ("ncp", "auc", "f1")]
            other = [f"{OTHERS[m]} {_difference(pairs[m])}" for m in OTHERS if m in pairs]
            body.append([name, LEAST[least], *shown, *(other or ["-"])])
    if not body:
        return []
    text = """Equal weights less those of `auto`, seed by seed, with the 95 % interval over the
        seeds. A lower NCP is better, and a higher value of the others."""
    head = ["data set", "l", "NCP", "AUC", "F1", "other targets"]
    return ["## Equal weights or a model's", "", prose(text), "", *table(head, body, left=2)]


def _against_auto(found: Result, raw: Result, least: int) -> Iterator[Result]:
    wanted = {name: raw[name] for name in ("data", "target", "quasi")}
    wanted |= {"against": "auto", "l": least}
    return (p for p in found["pairs"] if wanted.items() <= p.items())


def _others(found: Result) -> list[str]:
    """Targets that the paper's rule cannot have."""
    body = []
    for raw in found["raw"]:
        measure = "r2" if "r2" in raw else "macro_f1"
        if raw["target"] == "target":
            continue
        for r in found["rows"]:
            if (r["data"], r["target"]) == (raw["data"], raw["target"]) and r["l"] == 1:
                if r["view"] != "interval":
                    continue
                body.append(
                    [
                        f"{TITLES[raw['data']]}, {raw['target']}",
                        _arm(r),
                        r["min_leaf"],
                        f"{r['ncp']:.3f}",
                        "R2" if measure == "r2" else "macro F1",
                        f"{raw[measure]:.3f}",
                        f"{r[measure]:.3f}",
                    ]
                )
    if not body:
        return []
    text = """The paper's rule needs two classes. Of a quantity R2 is measured, of several classes
        the mean F1; models see intervals."""
    head = ["data set, target", "rule", "least leaf", "NCP", "measure", "raw", "released"]
    return ["## Targets of other kinds", "", prose(text), "", *table(head, body, left=3)]


class Count(NamedTuple):
    """On how many data sets ours is better or worse than the paper's rule."""

    better: int
    """By the mean over the seeds"""
    sure: int
    """Better beyond the 95 % interval"""
    worse: int
    """Worse beyond the 95 % interval"""
    n: int

    def __str__(self) -> str:
        return (
            f"on {self.better} of {self.n} data sets (better beyond the interval on {self.sure},"
            f" worse on {self.worse})"
        )


def count(found: Result, measure: str, *, least: int = 1) -> Count:
    """On how many data sets equal weights are better than the paper's rule."""
    sign = -1 if measure == "ncp" else 1
    pairs = [
        _pair(found, raw, against="paper", importance="uniform", measure=measure, l=least)
        for raw in _samples(found)
    ]
    # One seed has no interval.
    ends = [sorted((sign * p["low"], sign * p["high"])) for p in pairs if p["low"] is not None]
    return Count(
        better=sum(sign * p["mean"] > 0 for p in pairs),
        sure=sum(low > 0 for low, _ in ends),
        worse=sum(high < 0 for _, high in ends),
        n=len(pairs),
    )


def _verdicts(found: Result) -> list[str]:
    """What was asked of it, and whether it held."""
    lines = [line for columns, asked in ADULT.items() for line in _on_adult(found, columns, asked)]
    for measure, name in (("auc", "AUC"), ("ncp", "NCP"), ("f1", "F1")):
        plain, hidden = (count(found, measure, least=n) for n in (1, 2))
        if plain.n:
            verdict = "Held" if plain.better == plain.n else "Did not hold"
            lines.append(
                f"{'Not asked' if measure == 'f1' else verdict}: {name} better than under the"
                f" paper's rule on all data sets. By the mean it is better {plain}; with l = 2"
                f" {hidden}."
            )
    if not lines:
        return []
    intro = (
        "What was asked of `importance-spread` with k before it was measured; models see intervals."
    )
    return ["## Asked and found", "", intro, "", *(f"- {line}" for line in lines), ""]


def _on_adult(found: Result, columns: int, asked: dict[str, float]) -> Iterator[str]:
    named = {"quasi": columns, "importance": "uniform", "min_leaf": "k"}
    plain = row(found, **named, view="interval", l=1)
    hidden = row(found, **named, view="interval", l=2)
    if plain is None or hidden is None:
        return
    raw = next(r for r in found["raw"] if r["quasi"] == columns)
    lost = raw["auc"] - plain["auc"]
    adult = f"Adult with {columns} quasi-identifiers"
    yield _said(plain["ncp"] <= asked["ncp"], f"NCP of {adult}", plain["ncp"], asked["ncp"])
    yield _said(
        lost <= asked["auc"],
        f"AUC of {adult} below raw",
        lost,
        asked["auc"],
    )
    is_held = "Held" if hidden["same_target"] == 0 else "Did not hold"
    yield f"{is_held}: with l = 2 no class of {adult} has one label."
    yield _said(
        hidden["ncp"] <= asked["ncp_l"],
        f"NCP of {adult} with l = 2",
        hidden["ncp"],
        asked["ncp_l"],
    )


def _said(held: bool, what: str, value: float, asked: float, more: str = "") -> str:
    return f"{'Held' if held else 'Did not hold'}: {what} {value:.4f}, at most {asked} asked{more}."


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    samples = list(_samples(found))
    if not samples:
        return []
    auc, ncp, f1 = (count(found, m) for m in ("auc", "ncp", "f1"))
    hidden = count(found, "auc", least=2)
    losses = [
        f"{r['ncp']:.3f} with {r['quasi']} quasi-identifiers"
        f" ({'' if base is None else format(base['ncp'], '.3f')})"
        for r in found["rows"]
        if r["quasi"] and r["view"] == "interval" and r["l"] == 1
        if (r["importance"], r["min_leaf"]) == ("uniform", "k")
        for base in [row(found, quasi=r["quasi"], min_leaf="2k", importance="", l=1)]
    ]
    return [
        f"""**The rule `importance-spread`** beside the paper's, by the mean over
        {samples[0]["seeds"]} seeds and its 95 % interval: AUC is better {auc}, NCP {ncp}, F1
        {f1}; with two labels in every class, AUC {hidden}. NCP of
        Adult is {" and ".join(losses)} (in brackets, the paper's rule)."""
    ]

"""What models learn from the release: ours beside the paper's (§6.6 and §6.7)."""

from collections.abc import Sequence
from typing import NamedTuple

from experiments.core.cells import Result
from experiments.core.markdown import Claim, prose, section, table, verdict
from experiments.data import TITLES
from experiments.studies.utility import published

__all__ = ["claims", "page", "summary"]

SHOWN = {
    "f1": "F1",
    "auc": "AUC",
    "logloss": "log-loss",
    "generalized_f1": "F1, test generalized",
    "generalized_auc": "AUC, test generalized",
    "distance": "SHAP distance",
}
LEVEL = 0.05
STRICT, LARGE = 0.001, 0.8
"""The level that the paper names for F1, and what it takes for a large effect."""
READINGS = {
    ("blind", "f1"): ("the columns that can be split", "raw"),
    ("blind", "generalized_f1"): ("the columns that can be split", "generalized"),
    ("strict", "f1"): ("all columns", "raw"),
    ("strict", "generalized_f1"): ("all columns", "generalized"),
}
"""What the paper leaves open: what blind draws among, and how the test records are seen."""


def page(found: Result) -> list[str]:
    """The sections on utility."""
    first, n_seeds = found["datasets"][0], len(found["seeds"])
    text = """Four fifths of a sample are anonymized with the paper's traps, which are then taken
        out; a model fitted to the midpoints of the classes is tested on the last fifth. The paper
        does not say whether its test records were generalized too: `test generalized` asks the same
        model about the midpoints of the leaves that the tree sends them to. Blind draws a column
        among those that can be split; `strict` among all, and stops where the drawn one cannot. A
        gap is positive where target-driven is better, whatever the measure."""
    body = [
        *_sweep(found, first),
        "## Utility on all data sets, one split (tab:utility_summary, tab:stats_summary)",
        "",
        prose(
            f"""As the paper does it: the {len(found["ks"])} values of k of one split, taken for
            independent. p is Wilcoxon's, adjusted by Benjamini and Hochberg over the data sets;
            intervals of the gap are from 10,000 bootstrap samples, those of d from its large-sample
            standard error."""
        ),
        "",
        *_summary(found),
        *_stats(found, first),
        *_pooled(found),
        f"## Utility over {n_seeds} seeds",
        "",
        *_seeds(found),
        "## What the model sees, and what the traps cost",
        "",
        *_views(found),
        "## Both rules and both weightings",
        "",
        *_ours(found),
    ]
    return section("Utility against k (tab:k_sweep)", found, text, body)


def _sweep(found: Result, name: str) -> list[str]:
    sweep = found["sweep"][name]
    driven, blind, strict = (
        sweep[f"{method}, paper, midpoint"]
        for method in ("target-driven", "blind", "blind, strict")
    )

    def three(measure: str, i: int) -> str:
        return " / ".join(f"{arm[measure]['first'][i]:.3f}" for arm in (driven, blind, strict))

    head = ["k", "paper F1 (driven / blind)", "F1 (driven / blind / strict)",
            "F1, test generalized", "AUC", "paper distance", "distance"]  # fmt: skip
    body = []
    for i, k in enumerate(found["ks"]):
        paper = published.K_SWEEP[k]
        body.append(
            [
                k,
                f"{paper.f1:.3f} / {paper.blind_f1:.3f}",
                three("f1", i),
                three("generalized_f1", i),
                three("auc", i),
                f"{paper.distance:.3f} / {paper.blind_distance:.3f}",
                three("distance", i),
            ]
        )
    title = f"{TITLES[name]}, first split (a model on the raw records, all seeds: F1"
    raw = found["raw"][name]
    return [
        f"{title} {raw['f1']:.3f}, AUC {raw['auc']:.3f}):",
        "",
        *table(head, body),
        prose(
            """The distance here is between the same records before and after; the paper's is
            between independent samples, which lie further apart."""
        ),
        "",
    ]


def _summary(found: Result) -> list[str]:
    lines = []
    for contrast in ("blind", "strict"):
        of = found["single"][contrast]
        head = ["data set", "paper gap in F1", "F1", "gap [95 %]", "p", "d [95 %]", "gap in AUC",
                "p", "gap in log-loss", "p"]  # fmt: skip
        body = []
        for name in found["datasets"]:
            paper, f1 = published.UTILITY[name], of["f1"][name]
            auc, loss = of["auc"][name], of["logloss"][name]
            body.append(
                [
                    TITLES[name],
                    f"{paper.gap:+.3f} [{paper.gap_low:.3f}, {paper.gap_high:.3f}]",
                    f"{f1['first']:.3f} / {f1['second']:.3f}",
                    f"{f1['gap']:+.3f} [{f1['low']:.3f}, {f1['high']:.3f}]",
                    _p(f1["p_adjusted"]),
                    f"{f1['d']:.2f} [{f1['d_low']:.2f}, {f1['d_high']:.2f}]",
                    f"{auc['gap']:+.3f}",
                    _p(auc["p_adjusted"]),
                    f"{loss['gap']:+.3f}",
                    _p(loss["p_adjusted"]),
                ]
            )
        lines += [f"Target-driven against {_name(contrast)}:", "", *table(head, body)]
    return lines


def _name(contrast: str) -> str:
    return "strict blind" if contrast == "strict" else contrast


def _p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "< 0.0001"


def _stats(found: Result, name: str) -> list[str]:
    head = [f"{TITLES[name]}, driven against blind", "W", "p", "d", "mean gap [95 %]"]
    body = []
    for measure, paper in published.STATS.items():
        one = found["single"]["blind"][measure][name]
        body += [
            [
                f"{SHOWN[measure]}, paper",
                paper.w,
                paper.p,
                f"{abs(paper.d):.2f}",
                f"{paper.gap:+.3f} [{paper.gap_low:.3f}, {paper.gap_high:.3f}]",
            ],
            [
                f"{SHOWN[measure]}, ours",
                one["w"],
                _p(one["p"]),
                f"{one['d']:.2f}",
                f"{one['gap']:+.3f} [{one['low']:.3f}, {one['high']:.3f}]",
            ],
        ]
    return table(head, body)


def _pooled(found: Result) -> list[str]:
    lines = []
    for contrast in ("blind", "strict"):
        of = found["pooled"][contrast]
        shown = [
            f"{SHOWN[m]} {one['positive']} of {one['n']} ({one['ties']} ties, p {_p(one['p'])})"
            for m, one in of.items()
            if m in SHOWN
        ]
        lines.append(f"- Better than {_name(contrast)} in {'; '.join(shown)}.")
    return [*_open(found), *lines, ""]


class Reading(NamedTuple):
    """What one reading of the paper gives on the first split."""

    better: int
    ties: int
    n: int
    significant: int
    large: int


def _readings(found: Result) -> list[Reading]:
    """The four readings, in the order of READINGS."""
    readings = []
    for contrast, measure in READINGS:
        pooled = found["pooled"][contrast][measure]
        ones = found["single"][contrast][measure].values()
        significant = sum(one["p"] <= STRICT and one["gap"] > 0 for one in ones)
        large = sum(one["d"] >= LARGE for one in ones)
        counted = pooled["positive"], pooled["ties"], pooled["n"]
        readings.append(Reading(*counted, significant, large))
    return readings


def _open(found: Result) -> list[str]:
    """F1 by what the paper leaves open, the paper's own counts first."""
    text = f"""The paper does not say what blind does if the drawn column cannot be split, nor
        whether its test records are generalized. So there are four readings of its experiment. All
        are on the first split. p is Wilcoxon's for each data set, not adjusted here, like the
        p in the paper's tab:utility_summary; a data set counts if p is at most {STRICT} and
        target-driven is better."""
    names, paper = found["datasets"], published.UTILITY.values()
    significant, large = sum(u.p <= STRICT for u in paper), sum(u.d >= LARGE for u in paper)
    pairs = published.PAIRS
    rows: list[list[object]] = [
        ["the paper", "-", *pairs[:2], pairs.n, f"{significant} of 7", f"{large} of 7"]
    ]
    for (drawn, tested), one in zip(READINGS.values(), _readings(found), strict=True):
        counts = (f"{n} of {len(names)}" for n in (one.significant, one.large))
        rows.append([drawn, tested, one.better, one.ties, one.n, *counts])
    head = ["blind draws among", "test records", "F1 higher", "equal", "pairs"]
    head += [f"data sets with p <= {STRICT}", f"with d >= {LARGE}"]
    return [prose(text), "", *table(head, rows, left=2)]


def _seeds(found: Result) -> list[str]:
    if "f1" not in found["clustered"]["blind"]:
        return ["Fewer than two seeds were run.", ""]
    n_ks = len(found["ks"])
    of = found["clustered"]
    worth = [one["worth"] for one in of["blind"]["f1"].values()]
    lines = [
        prose(
            f"""Each seed draws another sample, split, traps and blind tree. The {n_ks} values of k
            of a seed share all of that: counted by their intraclass correlation, {n_ks} of them are
            worth {min(worth):.1f} to {max(worth):.1f} independent ones. So a seed is the unit here:
            mean gap over k, its 95 % t interval over seeds, in how many seeds it is above 0, and
            the p of the t-test, adjusted over the data sets. Samples of one table overlap, so the
            intervals speak of drawing again from these tables, not of other tables."""
        ),
        "",
    ]
    for contrast in ("blind", "strict"):
        shown = [m for m in SHOWN if m in of[contrast]]
        head = [f"driven against {_name(contrast)}", *(SHOWN[m] for m in shown)]
        body = [
            [TITLES[name], *(_clustered(of[contrast][m][name]) for m in shown)]
            for name in found["datasets"]
        ]
        lines += table(head, body)
    return [*lines, *(f"- {line}" for line in _verdicts(found)), ""]


def _clustered(one: Result) -> str:
    return (
        f"{one['mean']:+.3f} [{one['low']:+.3f}, {one['high']:+.3f}],"
        f" {one['positive']}/{one['seeds']}, {_p(one['p_adjusted'])}"
    )


def _verdicts(found: Result) -> list[str]:
    """In how many data sets the difference is certain, either way."""
    lines = []
    for contrast in ("blind", "strict"):
        parts, all_better, any_better, any_worse = [], True, False, False
        for measure, shown in SHOWN.items():
            ones = found["clustered"][contrast].get(measure)
            if ones is None:
                continue
            sure = {n: one for n, one in ones.items() if one["p_adjusted"] < LEVEL}
            better = [n for n, one in sure.items() if one["mean"] > 0]
            worse = [n for n, one in sure.items() if one["mean"] < 0]
            all_better &= len(better) == len(ones)
            any_better |= bool(better)
            any_worse |= bool(worse)
            parts.append(
                f"{shown}: better on {len(better)} of {len(ones)}, worse on {_named(worse)}"
            )
        held = "Did not hold" if any_worse else "Not decided by so few seeds"
        if any_better:
            held = "Held" if all_better else "Mixed" if any_worse else "Held in part"
        lines.append(
            f"{held}: target-driven preserves more than {_name(contrast)} splitting. Significant at"
            f" {LEVEL} over seeds, {'; '.join(parts)}."
        )
    return lines


def _named(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(TITLES[n] for n in names)})" if names else "none"


def _views(found: Result) -> list[str]:
    of = found["clustered"]
    if "f1" not in of["means"]:
        return ["Fewer than two seeds were run.", ""]
    titles = {
        "means": "class means instead of midpoints, target-driven",
        "means of blind": "class means instead of midpoints, blind",
        "blind, means": "target-driven against blind, both as class means",
        "without traps": "no traps instead of the paper's, target-driven",
        "blind, no traps": "target-driven against blind, both without traps",
    }
    lines = []
    for contrast, title in titles.items():
        shown = [m for m in ("f1", "auc", "logloss") if m in of[contrast]]
        shown += ["ncp"] if contrast == "without traps" else []
        names = {**SHOWN, "ncp": "NCP"}
        head = [f"gain by {title}" if "against" not in title else title,
                *(names[m] for m in shown)]  # fmt: skip
        body = [
            [TITLES[n], *(_clustered(of[contrast][m][n]) for m in shown)] for n in found["datasets"]
        ]
        lines += table(head, body)
    for contrast, what in (("means", "Class means"), ("without traps", "Leaving the traps out")):
        parts = []
        for measure in ("f1", "auc", "logloss"):
            ones = of[contrast][measure].values()
            sure = [one["mean"] for one in ones if one["p_adjusted"] < LEVEL]
            mean = found["across"][contrast][measure]["mean"]
            parts.append(
                f"{SHOWN[measure]} {mean:+.4f} on average (better on {sum(m > 0 for m in sure)},"
                f" worse on {sum(m < 0 for m in sure)} of {len(ones)})"
            )
        lines.append(f"- {what}: {'; '.join(parts)}; significant at {LEVEL} over seeds.")
    return [*lines, ""]


def _ours(found: Result) -> list[str]:
    """Our rule with both weightings beside the paper's system, over all seeds."""
    of = found["clustered"]
    if "f1" not in of["ours"]:
        return ["Fewer than two seeds were run.", ""]
    lines = [
        prose(
            """The same samples, splits and values of k. The paper's system is the target-driven one
            above. Ours is what `prepare` does by default: `importance-spread` on positions, with
            leaves of k records and today's traps, and no target is sent. `auto` weighs the columns
            by a model of the target. Means over k and seeds. Each gap is ours against the paper's:
            its 95 % interval, the seeds in which ours is better, and the adjusted p. A positive gap
            means that ours is better, for NCP too. Our leaves hold k records and the paper's 2k,
            which is a part of the gap."""
        ),
        "",
    ]
    for measure, name in {"f1": "F1", "auc": "AUC", "ncp": "NCP"}.items():
        head = [f"{name} by data set", "the paper's", "ours", "gap", "ours, auto", "gap"]
        equal, weighed = of["ours"][measure], of["ours, weighed"][measure]
        body = [
            [
                TITLES[n],
                f"{equal[n]['second']:.3f}",
                f"{equal[n]['first']:.3f}",
                _clustered(equal[n]),
                f"{weighed[n]['first']:.3f}",
                _clustered(weighed[n]),
            ]
            for n in found["datasets"]
        ]
        lines += table(head, body)
    return lines


def claims(found: Result) -> list[Claim]:
    """What it claims on utility, under each reading of what it leaves open."""
    readings, n = _readings(found), len(found["datasets"])
    held = [one.better + one.ties for one in readings]
    significant, large = ([getattr(r, name) for r in readings] for name in ("significant", "large"))
    single = found["single"]
    distances = [
        sum(one["p_adjusted"] < LEVEL and one["gap"] > 0 for one in of["distance"].values())
        for of in (single["blind"], single["strict"])
    ]

    def on_six(counts: Sequence[int]) -> str:
        return verdict([7 * count >= 6 * n for count in counts])

    return [
        Claim(
            "F1 is never lower with target-driven trees than with blind ones (higher in 71 of 77"
            " pairs, equal in 6)",
            verdict([count == one.n for count, one in zip(held, readings, strict=True)]),
            f"""higher or equal in {_listed(held)} of {readings[0].n} pairs, by how blind draws a
            column and what is tested""",
        ),
        Claim(
            "The gap in F1 is significant on 6 of 7 data sets (Wilcoxon, p <= 0.001)",
            on_six(significant),
            f"on {_listed(significant)} of {n}, by the same four readings",
        ),
        Claim(
            "The gap in F1 is large on 6 of 7 data sets (Cohen's d >= 0.8)",
            on_six(large),
            f"on {_listed(large)} of {n}, by the same four readings",
        ),
        Claim(
            "The SHAP distance is smaller with target-driven trees, significantly on 5 of 7 data"
            " sets",
            verdict([7 * count >= published.DISTANCES * n for count in distances]),
            f"significantly on {_listed(distances)} of {n}, by how blind draws a column",
        ),
    ]


def _listed(counts: Sequence[int]) -> str:
    return f"{', '.join(map(str, counts[:-1]))} and {counts[-1]}"


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    readings = _readings(found)
    held, pairs = _listed([one.better + one.ties for one in readings]), published.PAIRS

    def by_data_set(contrast: str, measure: str) -> str:
        known = [found["clustered"][contrast][measure][name] for name in found["datasets"]]
        better, worse = sum(o["low"] > 0 for o in known), sum(o["high"] < 0 for o in known)
        return f"better on {better} and worse on {worse} of {len(known)} data sets"

    lines = [
        f"""**Target-driven against blind:** on the paper's single split F1 is higher or equal in
        {held} of {readings[0].n} pairs, by how blind draws a column and what is tested (paper:
        {pairs.better + pairs.ties} of {pairs.n})."""
    ]
    if "f1" not in found["clustered"]["blind"]:
        return lines
    lines[0] += f""" Over {len(found["seeds"])} seeds, if blind draws among the columns that can be
        split and the test records are raw, target-driven F1 is {by_data_set("blind", "f1")} and its
        AUC is {by_data_set("blind", "auc")}, by the 95 % interval."""
    return [
        *lines,
        f"""**Our default beside the paper's system**, over the same k and seeds, by the 95 %
        interval: NCP is {by_data_set("ours", "ncp")}, AUC {by_data_set("ours", "auc")}, F1
        {by_data_set("ours", "f1")}. With a model's weights AUC is
        {by_data_set("ours, weighed", "auc")}, F1 {by_data_set("ours, weighed", "f1")}. Our leaves
        hold k records and the paper's 2k.""",
    ]

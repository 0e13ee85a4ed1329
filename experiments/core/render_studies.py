"""What the further studies found: cheaters, traps, density, thresholds, audit power, leakage."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.markdown import load, percent, prose, provenance_line, rate, table
from experiments.studies.detection.published import TITLES

__all__ = ["sections"]


def sections(results: Path) -> list[str]:
    """One section per study that was run."""
    lines = []
    for study, render in RENDER.items():
        found = load(results, study)
        if found is not None:
            title, text, body = render(found)
            lines += [f"## {title}", "", provenance_line(found), "", text, "", *body]
    return lines


Section = tuple[str, str, list[str]]


def _cheaters(found: Result) -> Section:
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
    text = prose(
        f"""Samples of {found["rows_each"]:,} rows, {found["witnesses"]} witnesses, exact
        layers only. A
        provider counts as deviating where some node is not the rule's; of those deliveries, how
        many `full` and `thin` caught, and what `thin` states in advance: 1 - (1 - d)^R for the
        share d of the records' paths that deviate. An honest provider must never be caught."""
    )
    head = ["provider", "deviated", "caught, full", "caught, thin", "paths touched", "stated"]
    return "Cheaters that know the target, against a thin verification", text, table(head, rows)


def _traps(found: Result) -> Section:
    rows = [
        [
            TITLES[r["data"]],
            r["traps"],
            percent(r["twins_found"], 0),
            "-" if r["sentinel_auc"] is None else f"{r['sentinel_auc']:.2f}",
            f"{percent(r['free_of_traps'])} ({percent(r['free_of_traps_least'])})",
            percent(r["free_of_watch"], 2),
            *(
                ", ".join(percent(r[f"caught_by_{by}_at_{share}"], 0) for share in (0.05, 0.4))
                for by in ("traps", "thin")
            ),
        ]
        for r in found["rows"]
    ]
    text = prose(
        """The provider looks for duplicates, for records with a close neighbour, and for
        records that
        a forest of its own finds uncertain. Shown: twins found; how well the distance to the
        nearest neighbour tells sentinels from other records that are no duplicates (AUC); the share
        of the records it can name, from the least suspicious on, before the first trap is among
        them (mean, least), and before the first watch record is; how often it is caught when it
        drops 5 % and 40 % of the records that way: by the traps alone, and by `thin`."""
    )
    head = ["data set", "traps", "twins found", "sentinel AUC", "free of traps", "of watch records"]
    head += ["traps catch", "thin catches"]
    return "Traps against an informed provider", text, table(head, rows, left=2)


def _density(found: Result) -> Section:
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
    text = prose(
        """The chance that blind dropping hits no sentinel: measured over many drops with its 95 %
        interval, by the paper's formula (1 - |S|/|D'|)^(delta |D'|), and exactly, without
        replacement (hypergeometric). Means over the seeds."""
    )
    head = ["data set", "band", "sentinels", "dropped", "measured", "formula", "exact"]
    return "Sentinel density (paper §7.2)", text, table(head, rows, left=2)


def _thresholds(found: Result) -> Section:
    areas = {(r["data"], r["of"]): r["value"] for r in found["rows"] if r["what"] == "auc"}
    rules = {(r["data"], r["of"], r["who"]): r for r in found["rows"] if r["what"] == "rule"}
    names = list(dict.fromkeys(r["data"] for r in found["rows"]))
    statistics = ("distance", "f1_gap", "auc_gap", "regret")
    first = [[TITLES[n], *(f"{areas[n, s]:.3f}" for s in statistics)] for n in names]
    of = list(dict.fromkeys(r["of"] for r in found["rows"] if r["what"] == "rule"))
    second = [
        [
            TITLES[n],
            *(
                " / ".join(percent(rules[n, o, who]["value"], 0) for who in ("honest", "blind"))
                for o in of
            ),
        ]
        for n in names
    ]
    text = prose(
        f"""{found["seeds"]} seeds per data set. How well each statistic tells a blind tree from an
        honest one (AUC; 0.5 is a coin): the greatest SHAP distance, the loss in held-out F1 and in
        AUC, and the regret of the splits on 2,000 kept records (spec §13.6)."""
    )
    return (
        "Thresholds of the fingerprint (paper §6.3, §7.4)",
        text,
        [
            *table(["data set", "SHAP distance", "F1 gap", "AUC gap", "regret"], first),
            prose(
                """False alarms on honest deliveries / blind deliveries caught, by rule for the
                threshold. 'youden' is set on the seeds of the other half."""
            ),
            "",
            *table(["data set", *of], second),
        ],
    )


def _power(found: Result) -> Section:
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
    text = prose(
        f"""A provider takes the second-best split at a share of the nodes. Deliveries that deviate
        somewhere; the share of the records' paths that this touches; caught of tries with the 95 %
        interval; what was stated in advance. {found["without_deviation"]} deliveries deviated
        nowhere and were left out."""
    )
    head = ["deviates", "audit", "deliveries", "paths touched", "caught", "stated"]
    return "Power of the split audit", text, table(head, rows, left=2)


def _leakage(found: Result) -> Section:
    rows = [
        [
            TITLES[r["data"]],
            "whole" if r["whole"] else f"{r['records']:,.0f} rows",
            f"{r['classes']:,.0f}",
            percent(r["homogeneous"]),
            percent(r["homogeneous_positive"]),
            percent(r["large_homogeneous"]),
            f"{r['largest_homogeneous']:,.0f}",
            percent(r["singled_out_by_two"]),
            percent(r["below_k_by_two"]),
        ]
        for r in found["rows"]
    ]
    text = prose(
        """Share of the records in classes where all share the target; of the positive ones in
        classes
        that give them away; in such classes of ten times k records and more; the largest. Then two
        releases of one table under two salts: the share of the records that are alone in the
        meeting of their two classes, and in a meeting of fewer than k."""
    )
    head = ["data set", "table", "classes", "same target", "positives", "large", "largest"]
    head += ["alone by two", "below k by two"]
    return "What a release leaks (spec §12)", text, table(head, rows, left=2)


RENDER = {
    "cheaters": _cheaters,
    "traps": _traps,
    "density": _density,
    "thresholds": _thresholds,
    "power": _power,
    "leakage": _leakage,
}

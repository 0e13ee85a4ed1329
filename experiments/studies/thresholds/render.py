"""What the fingerprint's threshold is worth."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, prose, section, table
from experiments.data import TITLES

__all__ = ["page", "summary"]


def page(found: Result) -> list[str]:
    """The table and what it shows."""
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
    text = f"""{found["seeds"]} seeds per data set. How well each statistic tells a blind tree from
        an honest one (AUC; 0.5 is a coin): the greatest SHAP distance, the loss in held-out F1 and
        in AUC, and the regret of the splits on 2,000 kept records (spec §13.6)."""
    return section(
        "Thresholds of the fingerprint (paper §6.3, §7.4)",
        found,
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


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""

    def areas(name: str) -> list[float]:
        return [r["value"] for r in found["rows"] if r["what"] == "auc" and r["of"] == name]

    def span(name: str) -> str:
        return f"{min(areas(name)):.2f} to {max(areas(name)):.2f}"

    alarms = {
        rule: [
            r["value"]
            for r in found["rows"]
            if r["what"] == "rule" and r["of"] == rule and r["who"] == "honest"
        ]
        for rule in ("fixed", "calibrated", "per feature", "youden")
    }
    worst = "; ".join(
        f"{rule} {percent(min(v), 0)} to {percent(max(v), 0)}" for rule, v in alarms.items()
    )
    return [
        f"""**Telling blind from honest** (AUC by data set, {found["seeds"]} seeds): SHAP distance
        {span("distance")}, F1 gap {span("f1_gap")}, regret of the splits {span("regret")}. False
        alarms of the paper's SHAP test by rule for its threshold: {worst}."""
    ]

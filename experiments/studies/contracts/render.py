"""Who is caught under which contract."""

from collections.abc import Iterator

from experiments.core.cells import Result
from experiments.core.markdown import percent, prose, section, table
from experiments.core.owner import CODED
from experiments.studies.contracts.study import KINDS, LAYERS

__all__ = ["by_contract", "page", "summary"]


def page(found: Result) -> list[str]:
    """By rule and target, by provider, by layer."""
    text = f"""Samples of {found["rows_each"]:,} rows, {found["seeds"]} seeds, k = 5, coded, leaves
        of k records, adaptive traps, 20 witnesses, exact layers only. Two classes are those of all
        data sets; the other targets are of Adult: its education, the hours per week, and none. A
        delivery counts where it is not the honest one, root for root."""
    return section(
        "Who is caught under which contract",
        found,
        text,
        [*by_contract(found), *_providers(found), *_layers(found)],
    )


def _rows(found: Result, rule: str, kind: str) -> list[Result]:
    return [r for r in found["rows"] if (r["rule"], r["target"]) == (rule, kind)]


def by_contract(found: Result) -> list[str]:
    """False alarms, and what was caught, by rule, weighting and target."""
    body = []
    for rule in CODED:
        for kind in KINDS.values():
            rows = _rows(found, rule, kind)
            if not rows:
                continue
            honest, others = rows[0], rows[1:]
            deviated = sum(r["deviated"] for r in others)
            body.append(
                [
                    rule,
                    kind,
                    f"{honest['full']}, {honest['thin']} of {honest['runs']}",
                    len(others),
                    f"{deviated:,}",
                    *(f"{sum(r[profile] for r in others):,}" for profile in ("full", "thin")),
                ]
            )
    head = ["rule", "target", "false alarms, full and thin", "adversaries", "deliveries"]
    return table([*head, "caught, full", "caught, thin"], body, left=2)


def _names(found: Result) -> Iterator[str]:
    return iter(dict.fromkeys(r["provider"] for r in found["rows"]))


def _providers(found: Result) -> list[str]:
    body = []
    for name in _names(found):
        cells: list[object] = [name]
        for rule in CODED:
            row = next((r for r in _rows(found, rule, "all") if r["provider"] == name), None)
            cells += ["-", "-", "-"] if row is None else _caught(row)
        body.append(cells)
    head = ["provider"]
    head += [f"{word}, {rule}" for rule in CODED for word in ("full", "thin", "paths touched")]
    text = """Caught of the deliveries that were not the honest one, all targets together; for
        `honest`, false alarms of runs. A dash: it cannot misbehave under that rule. 'Paths touched'
        is the mean share of the records with a split on their path that is not the rule's, where
        replay passes; `thin` promises 1 - (1 - d)^20 for a share d."""
    return [prose(text), "", *table(head, body)]


def _caught(row: Result) -> list[str]:
    n = row["runs"] if row["provider"] == "honest" else row["deviated"]
    touched = row["touched"]
    counts = [f"{row[profile]}/{n}" for profile in ("full", "thin")]
    return [*counts, "-" if touched is None else percent(touched)]


def _layers(found: Result) -> list[str]:
    lines = []
    for rule in CODED:
        body = []
        for row in _rows(found, rule, "all"):
            n = row["runs"] if row["provider"] == "honest" else row["deviated"]
            shares = [
                percent(row[f"{profile}_{layer}"] / n, 0) if n else "-"
                for profile in ("full", "thin")
                for layer in LAYERS
            ]
            body.append([row["provider"], *shares])
        head = [f"{profile}: {layer}" for profile in ("full", "thin") for layer in LAYERS]
        lines += [f"Under {rule}, the share of these in which each layer failed:", ""]
        lines += table(["provider", *head], body)
    return lines


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    rows = [r for r in found["rows"] if r["target"] == "all"]
    honest = [r for r in rows if r["provider"] == "honest"]
    others = [r for r in rows if r["provider"] != "honest"]
    runs, alarms = sum(r["runs"] for r in honest), sum(r["full"] + r["thin"] for r in honest)
    deviated, full = (sum(r[name] for r in others) for name in ("deviated", "full"))
    missed = [r for r in others if r["thin"] < r["deviated"]]
    through = "; ".join(
        f"{r['provider']} under {r['rule']} ({r['deviated'] - r['thin']} of {r['deviated']})"
        for r in missed
    )
    return [
        f"""**Both rules and both weights, coded, and targets of every kind:** {alarms} false
        alarms in {runs} honest runs, judged in full and thin; of {deviated:,} deliveries by
        adversaries that were not the honest one, `full` caught {full:,}; `thin` missed
        {through or "none"}."""
    ]

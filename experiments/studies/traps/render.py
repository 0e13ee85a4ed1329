"""What the traps are worth against an informed provider."""

from experiments.core.cells import Result
from experiments.core.markdown import (
    HOLDS,
    NOT,
    Claim,
    percent,
    prose,
    section,
    seeds,
    table,
)
from experiments.data import TITLES
from experiments.studies.traps.study import SHARES
from experiments.studies.traps.uncertainty import GROUPS

__all__ = ["claims", "page", "summary"]


def page(found: Result) -> list[str]:
    """The table and what it shows."""
    rows = [
        [
            TITLES[r["data"]],
            r["traps"],
            percent(r["twins_found"], 0),
            "-" if r["sentinel_auc"] is None else f"{r['sentinel_auc']:.2f}",
            f"{percent(r['free_of_traps'])} ({percent(r['free_of_traps_least'])})",
            percent(r["free_of_watch"], 2),
            *(
                ", ".join(percent(r[f"caught_by_{by}_at_{share}"], 0) for share in SHARES)
                for by in ("traps", "thin")
            ),
        ]
        for r in found["rows"]
    ]
    text = f"""The provider looks for duplicates, for records with a close neighbour, and for
        records that a forest of its own finds uncertain. It then orders the records, the least
        suspicious first. Twins found: the share of the twins that it recognizes as duplicates.
        Sentinel AUC: how well the distance to the nearest neighbour tells sentinels from other
        records that are not duplicates. Free of traps: the share of the records, in that order,
        that come before the first trap; the least over the seeds is in brackets. Of watch records:
        the same share before the first watch record. Traps catch, thin catches: how often the traps
        alone and `thin` catch it, if it drops the first 5 % and the first 40 % of the records.
        Means over {seeds(found)}."""
    head = ["data set", "traps", "twins found", "sentinel AUC", "free of traps", "of watch records"]
    head += ["traps catch", "thin catches"]
    body = [*table(head, rows, left=2), *_unsent(found)]
    return section("Traps against an informed provider", found, text, body)


def _unsent(found: Result) -> list[str]:
    """What sentinels tell about a target that is not sent."""
    text = """Sentinels are made where the owner's forest is uncertain of the target. So a
        provider that finds them learns something about a target that it was not sent. Shown is
        the mean of |P(class 1) - 1/2|, by a model that was fitted to other people: 0 is a toss
        of a coin, 0.5 is certain. The provider has a coded submission under
        `importance-spread`. It suspects as many records as may be sentinels: those that are much
        closer to their nearest neighbour than to the next one. Controls separate sentinels from
        density: beside sentinels, as many ordinary people who are equally close to somebody;
        beside suspects, the suspects that the same search finds in the same table with nothing
        planted. 'Less' is control minus suspects, with its 95 % interval over the seeds."""
    rows = []
    for r in found["unsent"]:
        less, low, high = (f"{r[f'suspects_less{end}']:.3f}" for end in ("", "_low", "_high"))
        means = [f"{r[name]:.3f}" for name in GROUPS]
        rows.append(
            [TITLES[r["data"]], *means, percent(r["found"], 0), f"{less} ({low} to {high})"]
        )
    head = ["data set", "everybody", "beside sentinels", "equally close", "suspects"]
    head += ["nothing planted", "suspects beside a sentinel", "less"]
    title = "## What sentinels tell about a target that is not sent"
    return [title, "", prose(text), "", *table(head, rows)]


def claims(found: Result) -> list[Claim]:
    """What it assumes of an attacker that knows of the traps and not the salt."""
    paper = [r for r in found["rows"] if r["traps"] == "paper"]
    free = [r["free_of_traps"] for r in paper]
    twins = min(r["twins_found"] for r in paper)
    dropped = " or ".join(percent(share, 0) for share in SHARES)
    caught = [r[f"caught_by_traps_at_{share}"] for r in paper for share in SHARES]
    ends = dict.fromkeys(percent(end, 0) for end in (min(caught), max(caught)))
    return [
        Claim(
            "Without the salt, traps cannot be told from genuine records (an assumption; the paper"
            " grants that both kinds may be found)",
            HOLDS if max(free) == 0 else NOT,
            f"""the attacker finds {percent(twins, 0)} of the twins and orders the records so that
            {percent(min(free), 0)} to {percent(max(free), 0)} of them, by data set, come before the
            first trap; if it drops {dropped} of the records, the traps catch it in
            {" to ".join(ends)} of the runs""",
        )
    ]


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    paper = [r for r in found["rows"] if r["traps"] == "paper"]
    free = [r["free_of_traps"] for r in paper]
    areas = [r["sentinel_auc"] for r in paper if r["sentinel_auc"] is not None]
    passed = [r for r in paper if r["caught_by_traps_at_0.4"] == 0]
    watch = max(r["free_of_watch"] for r in found["rows"])
    caught = (
        "`thin` and `full` caught it in every run"
        if _always(found)
        else "`thin` or `full` missed it in some run (see the table)"
    )
    return [
        f"""**An informed provider** finds {percent(min(r["twins_found"] for r in paper), 0)} of the
        twins, and orders the records so that {percent(min(free), 0)} to {percent(max(free), 0)} of
        them (mean by data set) come before the first trap. Nearest neighbours give sentinels away
        with an AUC of {min(areas):.2f} to {max(areas):.2f}. Dropping 40 % of the records it passes
        the paper's traps on {len(passed)} of {len(paper)} data sets in every run. In that order, at
        most {percent(watch, 2)} of the records come before the first watch record (mean by data
        set), and {caught}.""",
        _summary_unsent(found),
    ]


def _summary_unsent(found: Result) -> str:
    rows = found["unsent"]

    def span(name: str) -> str:
        values = [r[name] for r in rows]
        return f"{min(values):.2f} to {max(values):.2f}"

    lower = sum(r["suspects_less"] > 0 for r in rows)
    clear = sum(r["suspects_less_low"] > 0 for r in rows)
    beside = [r["found"] for r in rows]
    return f"""**What sentinels tell about a target that is not sent:** by data set,
        {percent(min(beside), 0)} to {percent(max(beside), 0)} of a provider's suspects lie beside a
        sentinel. The mean of |P(class 1) - 1/2| is {span("everybody")} for everybody,
        {span("suspects")} for suspects, and {span("unplanted")} for the suspects of the same search
        with nothing planted. Suspects lie below the suspects of the table without
        sentinels on {lower} of {len(rows)} data sets by the mean, and on {clear} beyond the 95 %
        interval."""


def _always(found: Result) -> bool:
    return all(
        r[f"caught_by_{by}_at_{share}"] == 1
        for r in found["rows"]
        for by in ("thin", "full")
        for share in SHARES
    )

"""What the traps are worth against an informed provider."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, section, table
from experiments.data import TITLES

__all__ = ["sections", "summary"]


def sections(found: Result) -> list[str]:
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
                ", ".join(percent(r[f"caught_by_{by}_at_{share}"], 0) for share in (0.05, 0.4))
                for by in ("traps", "thin")
            ),
        ]
        for r in found["rows"]
    ]
    text = """The provider looks for duplicates, for records with a close neighbour, and for records
        that a forest of its own finds uncertain. Shown: twins found; how well the distance to the
        nearest neighbour tells sentinels from other records that are no duplicates (AUC); the share
        of the records it can name, from the least suspicious on, before the first trap is among
        them (mean, least), and before the first watch record is; how often it is caught when it
        drops 5 % and 40 % of the records that way: by the traps alone, and by `thin`."""
    head = ["data set", "traps", "twins found", "sentinel AUC", "free of traps", "of watch records"]
    head += ["traps catch", "thin catches"]
    return section("Traps against an informed provider", found, text, table(head, rows, left=2))


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    paper = [r for r in found["rows"] if r["traps"] == "paper"]
    free = [r["free_of_traps"] for r in paper]
    areas = [r["sentinel_auc"] for r in paper if r["sentinel_auc"] is not None]
    passed = [r for r in paper if r["caught_by_traps_at_0.4"] == 0]
    watch = max(r["free_of_watch"] for r in found["rows"])
    return [
        f"""**An informed provider** finds {percent(min(r["twins_found"] for r in paper), 0)} of the
        twins and can name {percent(min(free), 0)} to {percent(max(free), 0)} of the records (mean
        by data set) that hold no trap at all; nearest neighbours give sentinels away with an AUC of
        {min(areas):.2f} to {max(areas):.2f}. Dropping 40 % of the records it passes the paper's
        traps on {len(passed)} of {len(paper)} data sets in every run. Of records free of watch
        records it can name {percent(watch, 2)} on average at most, and `thin` and `full` always
        caught it."""
        if _always(found)
        else f"""**An informed provider** was missed by `thin` or `full` in some run; see the table.
        It can name {percent(min(free), 0)} to {percent(max(free), 0)} of the records that hold no
        trap."""
    ]


def _always(found: Result) -> bool:
    return all(
        r[f"caught_by_{by}_at_{share}"] == 1
        for r in found["rows"]
        for by in ("thin", "full")
        for share in (0.05, 0.4)
    )

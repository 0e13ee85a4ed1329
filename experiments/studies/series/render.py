"""What batches reveal together, and what each remedy costs."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, section, seeds, table

__all__ = ["page", "summary"]

NAMES = {
    "independent": "each by itself",
    "new": "only new people",
    "search 1": "some wait",
    "search 2": "some wait, classes for 2 l",
    "search 3": "some wait, classes for 3 l",
    "joined": "classes joined until no one is below l",
    "m-inv": "m-invariant classes",
}


def page(found: Result) -> list[str]:
    """One table: what every remedy publishes and loses, and who is below l without one."""
    text = f"""{found["batches"]} batches of {found["people"]:,} people, k = {found["k"]},
        {seeds(found)}. Below l: of all published people, the share with fewer than l possible
        values. Certain: of the people published at least twice, the share with one possible value.
        Published: of all rows, the share that is published. Published again: of the rows whose
        person was in an earlier batch, the share that is published. NCP is that of the published
        rows, and times is this NCP divided by that of each release by itself. Delay: the batches
        until a person is first published. Never: of all people, the share that is in no release.
        {_judged()} By the rule of the decision the default is: {NAMES[found["default"]]}."""
    head = ["data set", "returning", "l", "remedy", "below l", "certain", "published"]
    head += ["published again", "NCP", "times", "delay", "never", "seconds a batch"]
    rows = [
        [
            r["dataset"],
            percent(r["returning"], 0),
            str(r["l"]),
            NAMES[r["remedy"]],
            *(percent(r[name], 1) for name in ("below", "certain", "published", "again")),
            f"{r['ncp']:.3f}",
            f"{r['times']:.2f}",
            f"{r['delay']:.2f}",
            percent(r["never"], 1),
            f"{r['seconds']:.2f}",
        ]
        for r in found["rows"]
    ]
    return section(
        "What releases of a growing table reveal", found, text, table(head, rows, left=4)
    )


BY_DEDUCTION = ("search 1", "search 2", "search 3", "joined")
"""Remedies in which the deduction that finds possible values decides who is published."""


def _judged() -> str:
    names = ", ".join(f"'{NAMES[name]}'" for name in BY_DEDUCTION)
    return f"""The deduction that counts possible values also decides who waits in {names}. So
        nobody is below l there by construction."""


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence."""
    alone = [r["certain"] for r in found["rows"] if r["remedy"] == "independent"]
    chosen = found["remedies"][found["default"]]
    below = max(r["below"] for r in found["rows"] if r["remedy"] == found["default"])
    low = f"up to {percent(below, 2)} of the people are" if below else "no one is"
    why = (
        " (by the same deduction that decides who waits)"
        if found["default"] in BY_DEDUCTION
        else ""
    )
    return [
        f"""**Series** ({seeds(found)}): released each by itself, {percent(min(alone), 0)} to
        {percent(max(alone), 0)} of the people who are published again have a value that is
        certain. With the default remedy {low} below l{why}; it publishes
        {percent(chosen["again"], 0)} of the rows of those who return, at
        {chosen["times"]:.2f} times the NCP, which counts the published rows alone."""
    ]

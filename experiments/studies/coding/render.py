"""What a provider recovers of a submission, by what is sent and what else it knows."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, section, table
from experiments.data import TITLES

__all__ = ["page", "summary"]


def page(found: Result) -> list[str]:
    """The table, the attack in words, and what it shows."""
    text = f"""A submission in clear holds names and values; a coded one positions alone, and with a
        limit on places several values share one. The provider knows {found["others"]} rows of
        other people of the same population, or sees the release of the very table beside its
        own delivery. We built no attack for a provider that has only the submission. The attack is
        a plain one. The known values of a column, in order, are put to positions so that the
        known counts are most likely and each value lies near its quantile; from the release,
        the ends of intervals and the members of sets are put to those of the delivered leaves.
        Columns are named by that likelihood and by their rank correlations; numbers between
        known ones are interpolated. Shown: columns named rightly; cells of genuine records with
        exactly the right value; and cells nearly right, numbers within
        {percent(found["near"], 0)} of their column's range. Means over the seeds, in brackets
        the least and the greatest. A better attack may recover more."""
    rows = [
        [
            TITLES[r["data"]],
            r["sent"],
            r["background"],
            *(_span(r, measure) for measure in ("columns", "cells", "near")),
        ]
        for r in found["rows"]
    ]
    head = ["data set", "sent", "also known", "columns named", "cells right", "nearly right"]
    return section("What coding hides", found, text, table(head, rows, left=3))


def _span(r: Result, measure: str) -> str:
    mean, least, most = (percent(r[f"{measure}{end}"], 0) for end in ("", "_least", "_most"))
    return mean if least == most else f"{mean} ({least.removesuffix(' %')} to {most})"


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""

    def span(measure: str, sent: str, background: str) -> str:
        values = [
            r[measure] for r in found["rows"] if (r["sent"], r["background"]) == (sent, background)
        ]
        least, most = percent(min(values), 0), percent(max(values), 0)
        return least if least == most else f"{least} to {most}"

    n_tables = len({r["data"] for r in found["rows"]})
    return [
        f"""**What coding hides:** from {found["others"]} other people's rows a provider names
        {span("columns", "coded", "other people")} of the columns and
        gets {span("cells", "coded", "other people")} of the cells exactly right and
        {span("near", "coded", "other people")} nearly, on {n_tables} data sets. From the release it
        gets {span("cells", "coded", "the release")} exactly right and
        {span("near", "coded", "the release")} nearly."""
    ]

"""What a release leaks although every class holds k people."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, section, table
from experiments.data import TITLES

__all__ = ["page", "summary"]

WEIGHED = "importance-spread, weighed by a model"


def page(found: Result) -> list[str]:
    """The table and what it shows."""
    rows = [
        [
            r["rule"],
            TITLES[r["data"]],
            "whole" if r["whole"] else f"{r['records']:,.0f} rows",
            f"{r['classes']:,.0f}",
            _with_error(r, "homogeneous"),
            percent(r["homogeneous_positive"]),
            percent(r["large_homogeneous"]),
            f"{r['largest_homogeneous']:,.0f}",
            _with_error(r, "singled_out_by_two"),
            percent(r["below_k_by_two"]),
        ]
        for r in found["rows"]
    ]
    text = """`same target` is the share of the records in classes where all share the target, and
        `positives` is that share among the records with the label 1. `large` is the share in such
        classes of at least ten times k records, and `largest` is the records of the largest one.
        Then one table is released twice, under two salts. The last two columns are the shares of
        the records that are alone in the meeting of their two classes, and in a meeting of fewer
        than k. `variance-reduction` is the paper's rule, with the paper's options and today's
        traps. `importance-spread` is the default; with the weights of a model it is `auto`. ± is
        the standard error over the samples."""
    head = ["rule", "data set", "table", "classes", "same target", "positives", "large", "largest"]
    head += ["alone by two", "below k by two"]
    return section("What a release leaks (spec §12)", found, text, table(head, rows, left=3))


def _with_error(row: Result, name: str) -> str:
    error = row[f"{name}_error"]
    return percent(row[name]) if error is None else f"{100 * row[name]:.1f} ± {percent(error)}"


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""

    def span(name: str, rule: str = "variance-reduction") -> str:
        values = [r[name] for r in found["rows"] if not r["whole"] and r["rule"] == rule]
        return f"{percent(min(values), 0)} to {percent(max(values), 0)}"

    return [
        f"""**What a release leaks:** although every class holds k people, {span("homogeneous")} of
        the records lie in classes where all share the target under the paper's rule,
        {span("homogeneous", "importance-spread")} under the default, and
        {span("homogeneous", WEIGHED)} if a model weighs the columns. Two releases of one table
        leave {span("singled_out_by_two")} of the records alone in the meeting of their classes
        under the paper's rule, {span("singled_out_by_two", "importance-spread")} under the
        default, and {span("singled_out_by_two", WEIGHED)} with a model's weights."""
    ]

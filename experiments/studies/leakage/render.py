"""What a release leaks although every class holds k people."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, section, table
from experiments.data import TITLES

__all__ = ["page", "summary"]

NAMES = {
    "variance-reduction": "under the paper's rule",
    "importance-spread": "under the default",
    "importance-spread, weighed by a model": "if a model weighs the columns",
}


def page(found: Result) -> list[str]:
    """The table and what it shows."""
    rows = [
        [
            r["rule"],
            TITLES[r["data"]],
            _table(r),
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
        traps. `importance-spread` is the default; with the weights of a model it is `auto`.
        Each sample has its own seed; each figure is the mean over the samples, and ± is its
        standard error. A whole table is measured once."""
    head = ["rule", "data set", "table", "classes", "same target", "positives", "large", "largest"]
    head += ["alone by two", "below k by two"]
    return section("What a release leaks (spec §12)", found, text, table(head, rows, left=3))


def _table(row: Result) -> str:
    """The whole table, or how many samples of how many rows."""
    if row["whole"]:
        return "whole"
    samples = "1 sample" if row["runs"] == 1 else f"{row['runs']} samples"
    return f"{samples} of {row['records']:,.0f} rows"


def _with_error(row: Result, name: str) -> str:
    error = row[f"{name}_error"]
    return percent(row[name]) if error is None else f"{100 * row[name]:.1f} ± {percent(error)}"


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    rules = [rule for rule in NAMES if any(r["rule"] == rule for r in found["rows"])]

    def spans(name: str, *, whole: bool = False) -> str:
        """The range over the data sets under each rule."""
        parts = []
        for rule in rules:
            rows = (r for r in found["rows"] if (r["rule"], r["whole"]) == (rule, whole))
            values = [r[name] for r in rows]
            ends = dict.fromkeys(percent(end, 0) for end in (min(values), max(values)))
            parts.append(f"{' to '.join(ends)} {NAMES[rule]}")
        return f"{', '.join(parts[:-1])} and {parts[-1]}"

    rows = max(r["records"] for r in found["rows"] if not r["whole"])
    has_whole = any(r["whole"] for r in found["rows"])
    text = f"""**What a release leaks:** every class holds k people, but all of them may share the
        target. In samples of {rows:,.0f} rows, the share of the records in such classes is, by data
        set, {spans("homogeneous")}."""
    if has_whole:
        text += f" In whole tables it is {spans('homogeneous', whole=True)}."
    text += f""" After two releases of one sample, the share of the records that are alone in the
        meeting of their two classes is {spans("singled_out_by_two")}."""
    if has_whole:
        text += f" In whole tables it is {spans('singled_out_by_two', whole=True)}."
    return [text]

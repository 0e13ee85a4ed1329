"""What a release leaks although every class holds k people."""

from experiments.core.cells import Result
from experiments.core.markdown import percent, prose, section, table
from experiments.data import TITLES
from experiments.studies.rules.render import RULES, arms

__all__ = ["BESIDE", "beside", "page", "summary"]

BESIDE = "rules"


def page(found: Result) -> list[str]:
    """The table and what it shows."""
    rows = [
        [
            r["rule"],
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
    text = """Share of the records in classes where all share the target; of the positive ones in
        classes that give them away; in such classes of ten times k records and more; the largest.
        Then two releases of one table under two salts: the share of the records that are alone in
        the meeting of their two classes, and in a meeting of fewer than k. Under
        `variance-reduction`, the paper's rule, and under `importance-spread`, the default."""
    head = ["rule", "data set", "table", "classes", "same target", "positives", "large", "largest"]
    head += ["alone by two", "below k by two"]
    return section("What a release leaks (spec §12)", found, text, table(head, rows, left=3))


def beside(rules: Result) -> list[str]:
    """Both weightings, from the study that releases under each of them."""
    text = f"""Share of the records in classes where all share the target, from the study
        [rules](rules.md): samples of 8,000 rows, k = {rules["k"]}, the whole journey with traps,
        equal weights and those of a model (`auto`). Leaves of 2k records under the paper's rule,
        of k under the other."""
    body = [[title, *(percent(r["same_target"]) for r in rows)] for title, rows in arms(rules)]
    if not body:
        return []
    lines = table(["data set", *RULES.values()], body)
    return ["## Both rules and both weightings", "", prose(text), "", *lines]


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""

    def span(name: str, rule: str = "variance-reduction") -> str:
        values = [r[name] for r in found["rows"] if not r["whole"] and r["rule"] == rule]
        return f"{percent(min(values), 0)} to {percent(max(values), 0)}"

    return [
        f"""**What a release leaks:** although every class holds k people, {span("homogeneous")} of
        the records lie in classes where all share the target under the paper's rule, and
        {span("homogeneous", "importance-spread")} under the default. Two releases of one table
        leave {span("singled_out_by_two")} of the records alone in the meeting of their classes
        under the paper's rule, and {span("singled_out_by_two", "importance-spread")} under the
        default."""
    ]

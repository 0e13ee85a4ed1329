"""What is left of a hospital's table, and how well its rows can be counted."""

from experiments.core.cells import Result
from experiments.core.markdown import n_seeds, percent, section, table

__all__ = ["page", "summary"]

SETTING = ("roles", "weights", "bins", "column")
WEIGHTS = ("auto", "uniform")


def page(found: Result) -> list[str]:
    """Two tables: loss by column and weights; cells and errors of counts by bins."""
    text = f"""Tables of `python -m tools.hospital` with {found["n_rows"]:,} admissions,
        k = {found["k"]}, {n_seeds(found["seeds"])}, each with a table of its own. The roles are
        those that `init` drafts, or `few`: birth date, sex and postcode, the others dropped.
        `exact` is the share of rows whose cell is the value. ± is the standard error over the
        seeds."""
    of = _by_setting(found)
    columns = list(dict.fromkeys(r["column"] for r in found["rows"]))
    losses = []
    for name in columns:
        both = [of["draft", weights, "none", name] for weights in WEIGHTS]
        cells = [c for r in both for c in (percent(r["exact"]), _width(r), _with(r, "ncp", 3))]
        losses.append([name, *cells])
    head = ["column", *(f"{w}: {m}" for w in WEIGHTS for m in ("exact", "width", "NCP"))]
    kinds = list(dict.fromkeys(r["bins"] for r in found["counts"]))
    binned = [
        [roles, name, *(_binned(of[roles, "uniform", bins, name]) for bins in kinds)]
        for roles in ("draft", "few")
        for name in columns
        if (roles, "uniform", "none", name) in of
    ]
    counts = [
        [r["roles"], r["what"], r["how"], r["bins"], f"{r['group']:,.0f}"]
        + [_with(r, m, 0) for m in ("mean", "most")]
        for r in sorted(found["counts"], key=lambda r: (r["roles"], r["what"], r["how"]))
        if r["weights"] == "uniform"
    ]
    titles = ["roles", "count by", "way", "bins", "rows a group", "mean", "greatest"]
    body = [
        *table(head, losses),
        "With equal weights: different cells of each column, and the share that spans bins:",
        "",
        *table(["roles", "column", *(f"bins {bins}" for bins in kinds)], binned, left=2),
        "With equal weights: error of the counts, in rows:",
        "",
        *table(titles, counts, left=4),
    ]
    return section("What is left of a hospital's table", found, text, body)


def _by_setting(found: Result) -> dict[tuple[str, ...], Result]:
    return {tuple(r[name] for name in SETTING): r for r in found["rows"]}


def _with(row: Result, name: str, digits: int) -> str:
    return f"{row[name]:,.{digits}f} ± {row[f'{name}_error']:,.{digits}f}"


def _exact(row: Result) -> str:
    return f"{100 * row['exact']:.0f} ± {percent(row['exact_error'], 0)}"


def _width(row: Result) -> str:
    return f"{row['width']:,.3g} {row['unit']}".rstrip()


def _binned(row: Result) -> str:
    spanning = "" if row["spanning"] is None else f" ({percent(row['spanning'], 0)})"
    return f"{row['cells']:,}{spanning}"


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence."""
    of = _by_setting(found)
    sex = [_exact(of["draft", weights, "none", "Geschlecht"]) for weights in WEIGHTS]
    key = {"roles": "few", "how": "shared", "what": "ten years"}
    off = {r["bins"]: _with(r, "mean", 0) for r in found["counts"] if key.items() <= r.items()}
    return [
        f"""**The hospital:** sex is exact in {sex[0]} of the rows with `auto` and in {sex[1]} with
        equal weights. With few columns, births by {found["years"]} years are off by {off["none"]}
        rows on average without bins and by {off["10y"]} with them, if cells that span groups are
        shared evenly. ± is the standard error over {n_seeds(found["seeds"])}."""
    ]

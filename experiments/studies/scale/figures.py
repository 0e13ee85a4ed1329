"""The figures on what verification, building and sending cost."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREEN, GREY, ORANGE, saved
from experiments.studies.scale import published

__all__ = ["COLUMNS", "FIGURES", "LAYERS", "by_columns", "by_rows", "draw"]

FIGURES = {
    "scale-verify": "Seconds of verification, of re-execution and in the paper, by rows",
    "scale-layers": "Seconds of each layer with the submission at hand, by rows",
    "scale-resource": "Time, memory and depth by rows and by columns, ours and the paper's",
}
LAYERS = ("commitment", "sentinels", "twins", "replay", "splits", "fingerprint", "utility")
COLUMNS, FIXED_ROWS = 16, 8_000


def by_rows(found: Result) -> list[Result]:
    """The jobs of 16 columns, by rows."""
    rows = [row for row in found["rows"] if row["columns"] == COLUMNS]
    return sorted(rows, key=lambda row: int(row["rows"]))


def by_columns(found: Result) -> list[Result]:
    """The jobs of 8,000 rows, by columns; those of the fewest rows where there are none."""
    fixed = FIXED_ROWS if any(r["rows"] == FIXED_ROWS for r in found["rows"]) else None
    fixed = fixed or min(int(row["rows"]) for row in found["rows"])
    rows = [row for row in found["rows"] if row["rows"] == fixed]
    return sorted(rows, key=lambda row: int(row["columns"]))


def draw(found: Result, out: Path) -> None:
    """Draw what the study measured."""
    rows = by_rows(found)
    with saved(out, "scale-verify", (6, 3.8)) as figure:
        _verify_lines(figure.subplots(), rows)
    with saved(out, "scale-layers", (6, 3.8)) as figure:
        _layer_lines(figure.subplots(), rows)
    with saved(out, "scale-resource", (7.5, 6.5)) as figure:
        grid = figure.subplots(3, 2, sharey="row", squeeze=False)
        for j, (name, of, paper) in enumerate(
            (
                ("rows", rows, published.RESOURCE_ROWS),
                ("columns", by_columns(found), published.RESOURCE_COLUMNS),
            )
        ):
            _resource_lines([line[j] for line in grid], name, of, paper)


def _verify_lines(axes: Axes, rows: Sequence[Result]) -> None:
    n = [row["rows"] for row in rows]
    look = {
        "full_whole": ("full, all layers", BLUE, "-", "o"),
        "thin_whole": ("thin, all layers", GREEN, "-", "s"),
        "audit": ("full, what decides", BLUE, "--", "o"),
        "reexecute": ("re-execution", "black", ":", "D"),
    }
    for key, (label, colour, line, marker) in look.items():
        seconds = [row[key] for row in rows]
        axes.plot(n, seconds, color=colour, linestyle=line, marker=marker, ms=4, label=label)
    paper = published.VERIFY_SECONDS
    axes.plot(list(paper), list(paper.values()), color=ORANGE, marker="x", label="paper")
    _logarithmic(axes, "rows (16 columns)", "seconds")
    axes.legend(frameon=False, fontsize=7)


def _layer_lines(axes: Axes, rows: Sequence[Result]) -> None:
    n = [row["rows"] for row in rows]
    colours = (BLUE, GREY, "#56B4E9", GREEN, "black", ORANGE, "#D55E00")
    for layer, colour, marker in zip(LAYERS, colours, "o^vsDxP", strict=True):
        # A layer's seconds are kept to a tenth of a millisecond.
        seconds = [max(row[f"full_{layer}"], 1e-4) for row in rows]
        axes.plot(n, seconds, color=colour, marker=marker, ms=4, label=layer)
    _logarithmic(axes, "rows (16 columns)", "seconds, full")
    axes.legend(frameon=False, fontsize=7)


def _resource_lines(
    column: Sequence[Axes], name: str, rows: Sequence[Result], paper: dict[int, published.Resource]
) -> None:
    """Time, memory and depth of one direction, from top to bottom."""
    n = [row[name] for row in rows]

    def line(axes: Axes, key: Callable[[Result], float], *look: str) -> None:
        colour, style, marker, label = look
        axes.plot(n, [key(row) for row in rows], style, color=colour, marker=marker, ms=4,
                  label=label)  # fmt: skip

    def theirs(axes: Axes, field: str, label: str, style: str) -> None:
        values = [getattr(row, field) for row in paper.values()]
        axes.plot(list(paper), values, style, color=ORANGE, marker="x", ms=4, label=label)

    time, memory, depth = column
    line(time, lambda row: float(row["build"]), BLUE, "-", "o", "build")
    line(time, lambda row: float(row["full_whole"]), GREEN, "--", "s", "verify, full")
    theirs(time, "build", "build, paper", "-")
    theirs(time, "verify", "verify, paper", "--")
    line(memory, lambda row: row["provide_peak"] / 1e6, BLUE, "-", "o", "provider")
    line(memory, lambda row: row["full_peak"] / 1e6, GREEN, "--", "s", "verify, full")
    theirs(memory, "megabytes", "paper", "-")
    line(depth, lambda row: float(row["depth"]), BLUE, "-", "o", "ours")
    theirs(depth, "depth", "paper", "-")
    for axes, label in ((time, "seconds"), (memory, "peak MB")):
        _logarithmic(axes, "", label)
    depth.set_xscale("log")
    depth.set_xlabel(
        "rows (16 columns)" if name == "rows" else f"columns ({rows[0]['rows']:,} rows)"
    )
    if name == "rows":
        depth.set_ylabel("depth")
        for axes in column:
            axes.legend(frameon=False, fontsize=7)
    else:
        time.set_ylabel("")
        memory.set_ylabel("")


def _logarithmic(axes: Axes, x: str, y: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(visible=True, color="#dddddd", linewidth=0.5)

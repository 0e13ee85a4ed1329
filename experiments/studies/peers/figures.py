"""Seconds by tool and k, drawn."""

from pathlib import Path

from experiments.core.cells import Result
from experiments.core.drawing import BLUE, GREEN, GREY, ORANGE, saved

__all__ = ["FIGURES", "draw"]

FIGURES = {"peers": "Seconds to anonymize the Adult table, by tool and k"}


def draw(found: Result, out: Path) -> None:
    """Draw the times."""
    # The tool, which of its times, how it is drawn.
    lines = {
        "verix-anon, engine": ("verix", "engine", BLUE, "-", "o"),
        "verix-anon, without proof": ("verix", "plain", BLUE, ":", "x"),
        "verix-anon, prepare to release": ("verix", "seconds", BLUE, "--", "D"),
        "ai-privacy-toolkit": ("ai_privacy_toolkit", "seconds", ORANGE, "-", "s"),
        "anonypy": ("anonypy", "seconds", GREY, "-", "^"),
        "anjana": ("anjana", "seconds", GREEN, ":", "v"),
    }
    done = sorted(
        (row for row in found["rows"] if row["outcome"] == "done" and row["l"] == 1),
        key=lambda row: int(row["k"]),
    )
    with saved(out, "peers", (7.5, 3.6)) as figure:
        axes = figure.subplots()
        for label, (tool, which, colour, line, marker) in lines.items():
            # At a k where a tool ran with and without leaving records out, the faster one.
            points: dict[int, float] = {}
            for row in done:
                if row["tool"] == tool:
                    points[row["k"]] = min(row[which], points.get(row["k"], row[which]))
            if points:
                x, y = zip(*points.items(), strict=True)
                axes.plot(x, y, line, color=colour, marker=marker, ms=4, label=label)
        ks = sorted({int(row["k"]) for row in done})
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("k")
        axes.set_ylabel("seconds")
        axes.set_xticks(ks, [str(k) for k in ks])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))

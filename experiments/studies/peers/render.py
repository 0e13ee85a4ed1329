"""How verix-anon stands beside other anonymizers."""

from collections.abc import Sequence
from pathlib import Path

from experiments.core.cells import Result
from experiments.core.markdown import load, prose, provenance_line, table
from experiments.studies.detection.figures import BLUE, GREEN, GREY, ORANGE, saved

__all__ = ["FIGURES", "figures", "sections"]

FIGURES = {"peers": "Seconds to anonymize the Adult table, by tool and k"}
NAMES = {
    "verix": "verix-anon",
    "ai_privacy_toolkit": "ai-privacy-toolkit",
    "anonypy": "anonypy",
    "anjana": "anjana",
}
MEASURES = {
    "engine": "the engine alone",
    "plain": "from table to table without proof",
    "whole": "the whole way",
    "cold": "the whole way, first time in a process",
}
"""What of verix-anon is measured."""
WANTED = 100
"""How many times as fast as the fastest peer verix-anon is asked to be."""


def sections(results: Path) -> list[str]:
    """The section on the peers, if the study was run."""
    found = load(results, "peers")
    if found is None:
        return []
    rows, n = found["rows"], found["rows"][0]["n"]
    head = ["k", "tool", "seconds", "classes", "NCP", "F1", "AUC", "left out", "k by pycanon"]
    body = [_line(row) for row in sorted(rows, key=lambda row: int(row["k"]))]
    return [
        "## Beside other anonymizers",
        "",
        provenance_line(found),
        "",
        prose(
            f"""Adult, {n:,} rows, all 14 columns as quasi-identifiers. Seconds are those of the
            tool's own call, on a table in memory. verix-anon has three: the engine alone; from
            the table to what is published without traps and proof, which is what the others do,
            and a privacy sheet; and the whole way (prepare with traps, anonymize, verify every
            record and split, release). Each is the fastest of three in one process, on all
            cores, with what is compiled once and kept compiled before; a peer runs once.
            Classes, NCP and the model are measured alike for all, on the range of the true
            values of the records that are published alike; the model sees midpoints of four
            fifths of the records and is tested on the others, raw, though they had a part in the
            classes. The trees of verix-anon and of ai-privacy-toolkit know the target; those of
            anonypy and anjana do not. anjana had plain hierarchies (halved intervals, or
            nothing) and may leave out 5 % of the records. verix-anon keeps every class at 2k
            records while growing, traps included, so it makes fewer classes than k alone would
            allow."""
        ),
        "",
        *table(head, body, left=2),
        *_ratios(found["ratios"]),
        *(f"- {line}" for line in _verdicts(found)),
        "",
    ]


def _line(row: Result) -> list[object]:
    name = NAMES[row["tool"]]
    if row["outcome"] != "done":
        why = {
            "absent": "not installed",
            "too long": f"stopped after {row.get('limit')} s",
            "failed": f"failed: {row.get('reason')}",
        }[row["outcome"]]
        return [row["k"], name, why, *[""] * 6]
    seconds = f"{row['seconds']:.1f}"
    if "engine" in row:
        seconds = f"{row['engine']:.3f}; {row['plain']:.2f}; {row['seconds']:.2f}"
    return [
        row["k"],
        name,
        seconds,
        f"{row['classes']:,}",
        f"{row['ncp']:.3f}",
        f"{row['f1']:.3f}",
        f"{row['auc']:.3f}",
        f"{row['left_out']:,}",
        "not checked" if row["checked_k"] is None else row["checked_k"],
    ]


def _ratios(ratios: Sequence[Result]) -> list[str]:
    """How many times as long as verix-anon the fastest peer takes, by what is counted."""
    if not ratios:
        return []
    head = ["k", "fastest peer", "its seconds", *(f"times: {what}" for what in MEASURES.values())]
    body = [
        [
            ratio["k"],
            NAMES[ratio["peer"]],
            f"{ratio['peer_seconds']:.1f}",
            *(f"{ratio[measure]:,.0f}" for measure in MEASURES),
        ]
        for ratio in ratios
    ]
    return table(head, body, left=2)


def _verdicts(found: Result) -> list[str]:
    rows, ratios = found["rows"], found["ratios"]
    lines = []
    for measure, what in MEASURES.items() if ratios else ():
        times = [ratio[measure] for ratio in ratios]
        held = [str(ratio["k"]) for ratio in ratios if ratio[measure] >= WANTED]
        where = "at every k" if len(held) == len(ratios) else f"at k = {', '.join(held)}"
        lines.append(
            f"{f'Held {where}' if held else 'Did not hold'}: {what} at least {WANTED} times as fast"
            f" as the fastest peer ({min(times):,.0f} to {max(times):,.0f} times)."
        )
    absent = sorted({NAMES[r["tool"]] for r in rows if r["outcome"] == "absent"})
    if absent:
        lines.append(
            f"Not measured, for they are not installed: {', '.join(absent)}"
            " (`make peers` makes their environments)."
        )
    checked = [r for r in rows if r.get("checked_k") is not None]
    short = [f"{NAMES[r['tool']]} at k = {r['k']}" for r in checked if r["checked_k"] < r["k"]]
    if checked:
        lines.append(
            f"pycanon finds at least the wanted k in {len(checked) - len(short)} of"
            f" {len(checked)} outputs{'; not in that of ' + ', '.join(short) if short else ''}."
        )
    return lines


def figures(results: Path, out: Path) -> None:
    """Draw the times, if the study was run."""
    found = load(results, "peers")
    if found is None:
        return
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
        (row for row in found["rows"] if row["outcome"] == "done"), key=lambda row: int(row["k"])
    )
    with saved(out, "peers", (7.5, 3.6)) as figure:
        axes = figure.subplots()
        for label, (tool, which, colour, line, marker) in lines.items():
            points = [(row["k"], row[which]) for row in done if row["tool"] == tool]
            if points:
                x, y = zip(*points, strict=True)
                axes.plot(x, y, line, color=colour, marker=marker, ms=4, label=label)
        ks = sorted({int(row["k"]) for row in done})
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("k")
        axes.set_ylabel("seconds")
        axes.set_xticks(ks, [str(k) for k in ks])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))

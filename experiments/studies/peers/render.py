"""How verix-anon stands beside other anonymizers."""

import json
from collections.abc import Sequence

from experiments.core.cells import Result
from experiments.core.markdown import prose, section, table
from experiments.core.sources import ROOT
from experiments.studies.peers.study import OURS

__all__ = ["page", "summary", "utility"]

NAMES = {
    "verix": "verix-anon",
    "verix_paper": "verix-anon, the paper's rule",
    "ai_privacy_toolkit": "ai-privacy-toolkit",
    "anonypy": "anonypy",
    "anjana": "anjana",
}
MEASURES = {
    "plain": "from table to table without proof",
    "whole": "the whole way",
    "cold": "the whole way, first time in a process",
    "engine": "the engine alone (a part of the work)",
}
"""What of verix-anon is measured."""
SDCMICRO = (
    "sdcMicro is not among them: it is a package for R, and the machine that measured has no R. Of"
    " the peers, only anjana was asked for l, or to leave records out."
)
WANTED = 100
"""How many times as fast as the fastest peer verix-anon is asked to be."""


def page(found: Result) -> list[str]:
    """The section on the peers."""
    rows, n = found["rows"], found["rows"][0]["n"]
    head = ["k", "tool", "seconds", "classes", "NCP", "F1", "AUC", "left out", "k by pycanon", "l"]
    lines = [_line(row) for row in sorted(rows, key=lambda row: (int(row["k"]), int(row["l"])))]
    text = f"""Adult, {n:,} rows, all 14 columns as quasi-identifiers. Tools are asked for k, and
        some for l = 2 of the target or for leaving records out; the line says so. Seconds are those
        of the tool's own call, on a table in memory. verix-anon has three: the engine alone; from
        the table to what is published without traps and proof, which is what the others do, and a
        privacy sheet; and the whole way (prepare with traps, anonymize, verify every record and
        split, release). Each is the fastest of three in one process, on all cores, with what is
        compiled once and kept compiled before; a peer runs once. Classes, NCP and the model are
        measured alike for all, on the range of the true values of the records that are published
        alike. The NCP of a record that was left out is 1. The model sees midpoints of four fifths
        of the records and is tested on the others, raw, though they had a part in the classes. The
        trees of the paper's rule and of ai-privacy-toolkit know the target; those of our default,
        anonypy and anjana do not. anjana had plain hierarchies (halved intervals, or nothing).
        Under the paper's rule a leaf holds 2k records while the tree grows. The last column is
        the l that a class reached at least."""
    body = [
        *table(head, lines, left=2),
        *_ratios(found["ratios"]),
        *(f"- {line}" for line in _verdicts(found)),
        "",
        *_arx_beside(),
    ]
    return section("Beside other anonymizers", found, text, body)


def _named(row: Result) -> str:
    """A tool, and what it was asked for beside k."""
    asked = [f"l = {row['l']}"] if row["l"] > 1 else []
    asked += [f"up to {row['suppress']:.0%} left out"] if row["suppress"] else []
    return ", ".join([NAMES[row["tool"]], *asked])


def _line(row: Result) -> list[object]:
    name = _named(row)
    if row["outcome"] != "done":
        why = {
            "absent": "not installed",
            "too long": f"stopped after {row.get('limit')} s",
            "failed": f"failed: {row.get('reason')}",
        }[row["outcome"]]
        return [row["k"], name, why, *[""] * 7]
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
        row["least_values"],
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


def _arx_beside() -> list[str]:
    """ARX and verix-anon as they were measured once, apart from this study."""
    found = _arx_found()
    body = [
        [
            r["quasi"],
            r["tool"],
            r["how"],
            " / ".join(f"{seconds:g}" for seconds in r["seconds"]),
            *("-" if r[m] is None else f"{r[m]:.3f}" for m in ("ncp", "f1", "auc")),
        ]
        for r in found["rows"]
    ]
    text = f"""ARX {found["version"]} beside {found["beside"]}, on {found["date"]}: {found["data"]}.
        {found["provenance"]} Other columns, another version and another hold-out than above, so the
        two tables do not compare line by line."""
    head = ["quasi-identifiers", "tool", "how", "seconds", "NCP", "F1", "AUC"]
    return ["## ARX, measured apart", "", prose(text), "", *table(head, body, left=3)]


def _verdicts(found: Result) -> list[str]:
    rows, ratios = found["rows"], found["ratios"]
    lines = [f"Peers measured: {_peers(rows)}. {_arx()}", SDCMICRO]
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


def summary(found: Result) -> list[str]:
    """What it comes to, in a sentence or two."""
    ratios = found["ratios"]
    if not ratios:
        return []

    def span(measure: str) -> str:
        times = [ratio[measure] for ratio in ratios]
        return f"{min(times):,.0f} to {max(times):,.0f}"

    checked = [r for r in found["rows"] if r.get("checked_k") is not None]
    good = sum(r["checked_k"] >= r["k"] for r in checked)
    return [
        f"""**Beside other anonymizers** on Adult, by k: from table to table without proof
        verix-anon is {span("plain")} times as fast as the fastest of those measured
        ({_peers(found["rows"])}), and on the whole way with proof {span("whole")} times. Both are
        the fastest of three runs in one process. The first whole way in a process, as a peer is
        measured, is {span("cold")} times as fast. {utility(found["rows"])} pycanon confirms k in
        {good} of {len(checked)} outputs. {_arx()}"""
    ]


def utility(rows: Sequence[Result]) -> str:
    """Loss and models at the least k at which peers were measured, each tool as it comes."""
    k = min(int(r["k"]) for r in rows if r["tool"] not in OURS)
    wanted = [r for r in rows if (r["k"], r["l"], r["outcome"]) == (k, 1, "done")]
    shown = [
        f"{_named(r)} {r['ncp']:.3f}, {r['auc']:.3f}"
        for r in sorted(wanted, key=lambda r: float(r["ncp"]))
    ]
    return f"NCP and AUC at k = {k}: {'; '.join(shown)}."


def _peers(rows: Sequence[Result]) -> str:
    done = {r["tool"] for r in rows if r["outcome"] == "done"} - set(OURS)
    return ", ".join(name for tool, name in NAMES.items() if tool in done) or "none"


def _arx() -> str:
    """What is known of ARX, which no command here runs."""
    found = _arx_found()
    seconds = next(r["seconds"][0] for r in found["rows"] if r["name"] == "global8")
    return (
        f"ARX {found['version']} is not among them; measured apart on {found['date']}, its optimal"
        f" global search with 8 hierarchies takes {seconds:g} s (arx.json)."
    )


def _arx_found() -> Result:
    found: Result = json.loads((ROOT / "results" / "arx.json").read_text(encoding="utf-8"))
    return found

"""Figures in pages are those of the results, and no measured figure is typed."""

import re
from pathlib import Path

import pytest

from tools.documents.markdown import ROOT, pages, prose
from tools.figures import FIGURES, MARKER, filled

RESULTS = (ROOT / "results" / "RESULTS.md").read_text(encoding="utf-8")
BENCH = (ROOT / "results" / "bench-owner.md").read_text(encoding="utf-8")

MEASURED = re.compile(
    r"\d ?%"
    r"|\b\d[\d.,]* (?:ns|µs|ms|s|seconds|minutes|hours|[kKMG]B)\b"
    r"|\b(?:\d[\d.,]*|two|three|four|ten|several|many) times (?:as|its|the|faster|slower)\b"
    r"|\b(?:half|twice|a third|a quarter) (?:as|the time)\b"
    r"|\b(?:faster|slower)\b"
    r"|\b(?:AUC|F1) (?:of )?\d"
)
"""What a measured figure looks like."""

ALLOWED = {
    # Chosen, by the protocol or by the owner.
    "stratified sample of 10 % of the records": "a definition",
    "the wanted evasion probability (0.01 at a drop of 5 %)": "a definition",
    "at least 1 % of the records' paths, or at least 1 % of the nodes, is then missed with"
    " probability at most 1 %": "a definition",
    "none unless asked; 99 for a level of 1 %": "a definition",
    "1.1 times the greatest distance": "a definition",
    "although at most 95 % of the class have it": "a definition",
    "more than 95 % of the class's records": "a definition",
    "shows at most 95 %": "a definition",
    "has more than 95 % of the records": "a definition",
    "has more than 95 % of their class": "a definition",
    "wherever that is less than 99.9 %": "a definition",
    "more than 50 times as likely as another": "a definition",
    "1 GiB plus 64 times the file's unpacked size": "a limit",
    "more than 1 GiB plus 64 times its size": "a limit",
    "more than 256 MiB plus 64 times its size": "a limit",
    "longer than 16 MiB": "a limit",
    "that unpacks to more than 100 MiB and more than 100 times its size": "a limit",
    "takes at most 75 MB": "a requirement",
    "95 % interval": "a definition",
    "at most 12 minutes on two cores": "a requirement",
    "a coded submission at most 90 MB": "a requirement",
    "touch 2 % of the records' paths": "a definition",
    "of at most 2 % of the people": "an example",
    "5 % of the disk, and 1 GiB at most": "a setting",
    "5 % of it and at most 1074 by default": "a setting",
    "Headers must arrive within 15 seconds": "a setting",
    "15 seconds for headers": "a setting",
    "tried again every 30 seconds": "a setting",
    "no row came for 12 seconds": "a setting",
    "A share above 0 and under 0.1 %": "a definition",
    'A share above 0 and below 0.1% is "under 0.1%", and not "0.0%"': "a definition",
    "An AUC of 0.5 is guessing": "a definition",
    "A file of 100 MB is read in seconds; the limit is 1 GB": "a limit",
    "read into memory and hashed at once. The limit is 1 GB": "a limit",
    "written in the reader's form (1.000; 12,5 %; 18.11.2026)": "an example",
    "5.6 % of the detail is lost. That is a small price": "the output above it",
    "drops 5 % of the records blindly": "a definition",
    "if the deviations touch 1 % of the records' paths or of the nodes": "a definition",
    "missed with a probability of at most 1 %. The owner chooses": "a definition",
    "If the values take more than 256 MB": "a definition",
    "that unpacks to more than 256 MiB and more than 200 times its size": "a definition",
    # Follow from other numbers on the spot.
    "0.9^20, about 12 %": "arithmetic",
    "about 12 % with the default of 20": "arithmetic",
    "For d = 10 %": "arithmetic",
    # Of others, with their source.
    "The paper estimates 88 MB": "the paper",
    "from 19 to 320 seconds": "published in July 2025, linked under Sources",
    # Of decoders, by files that the tests make: tests/files/hostile.
    "A file of a few hundred KB can otherwise decode to 600 MB": "tests/files/hostile",
    "takes 240 times its size": "decision 0004",
    "say that a column takes 1 KB while one of its pages unfolds to 2 GB": "an example",
    "400 bytes of file took 900 MB to decode": "tests/files/hostile",
    "such as dictionaries twice as large": "a definition",
    "are less than 100 KB of JSON; a test holds them to that": "tests/client/test_evidence.py",
    # Words.
    "It is smaller, keeps types, and reads faster": "nothing was measured, nor need be",
}
"""Figures that may be typed, and why."""

PROTOTYPES = {"docs/spec.md": "## 13. What measurement showed"}
"""Sections that quote prototypes and say so; there is no result to take the figures from."""
HISTORY = re.compile(r"prototype|results/")
"""A decision that quotes a figure says what it was measured on, or where the figures are now."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def typed(text: str) -> list[str]:
    """The paragraphs of a text that quote a figure as if it were measured, outside of markers."""
    found = []
    for paragraph in re.split(r"\n\s*\n|\n(?= *(?:[-*|]|\d+\.) )", MARKER.sub("", prose(text))):
        left = " ".join(paragraph.split())
        for phrase in ALLOWED:
            left = left.replace(phrase, "")
        if MEASURED.search(left):
            found.append(left)
    return found


def test_figures_are_those_of_the_results() -> None:
    texts = {name_of(path): path.read_text(encoding="utf-8") for path in pages()}
    old = [name for name, text in texts.items() if filled(text) != text]
    assert not old, "run `make figures`"


def test_unknown_figure() -> None:
    with pytest.raises(ValueError, match=r"no figure 'leakage\.nothing'"):
        filled("a <!-- figure: leakage.nothing -->1 %<!-- /figure --> b")


def test_old_figure_is_written_anew() -> None:
    old = "<!-- figure: detection.seeds -->of old<!-- /figure -->"
    new = old.replace("of old", FIGURES["detection.seeds"]())
    assert filled(f"over {old} seeds, {old}") == f"over {new} seeds, {new}"


def test_every_figure_stands_in_a_page() -> None:
    used = {name for path in pages() for name, _ in MARKER.findall(path.read_text("utf-8"))}
    assert used == set(FIGURES)


def test_markers_are_whole_and_begin_no_line() -> None:
    """A comment at the beginning of a line is a block of its own on GitHub."""
    texts = {name_of(path): path.read_text(encoding="utf-8") for path in pages()}
    broken = [
        name
        for name, text in texts.items()
        if len(re.findall(r"<!-- /?figure", text)) != 2 * len(MARKER.findall(text))
    ]
    assert not broken
    begin = re.compile(r"^\s*(?:(?:[-*>]|\d+\.) )*<!-- /?figure", re.MULTILINE)
    assert not [name for name, text in texts.items() if begin.search(text)]


def test_no_measured_figure_is_typed() -> None:
    found: dict[str, list[str]] = {}
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if not (path.parent.name == "decisions" and HISTORY.search(text)):
            quoted = typed(text.partition(PROTOTYPES.get(name_of(path), "\0"))[0])
            found |= {name_of(path): quoted} if quoted else {}
    assert not found, "figures outside of markers"


def test_what_is_allowed_is_there() -> None:
    text = " ".join(" ".join(prose(path.read_text("utf-8")).split()) for path in pages())
    assert [phrase for phrase in ALLOWED if phrase not in text] == []
    for name, heading in PROTOTYPES.items():
        section = (ROOT / name).read_text(encoding="utf-8").partition(heading)[2]
        assert section.strip().startswith("These are prototype measurements")


@pytest.mark.parametrize(
    "text",
    [
        "37 % to 83 % of the records",
        "4 to 30 % of them",
        "it took 0.38 s",
        "takes 51.3 MB",
        "220 times as fast",
        "is several times\nfaster",
        "costs half as much",
        "an AUC of 0.87",
    ],
)
def test_a_typed_figure_is_seen(text: str) -> None:
    assert typed(f"Before.\n\nThe engine {text}, they say.\n")
    assert not typed(f"<!-- figure: x.y -->{text}<!-- /figure -->".replace("\n", " "))
    assert not typed(f"```text\n{text}\n```\n")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("leakage.same_target", "such classes is, by data set, ", " under the paper's rule"),
        ("leakage.singled_out", "meeting of their two classes is ", " under the paper's rule"),
        ("detection.false_alarms", "(", " by data set) and catches"),
        ("detection.blind_caught", "catches the approximate one in ", "."),
        ("detection.seeds", "**How much of it is one draw:** over ", " seeds"),
        ("detection.adversaries", "; of ", " adversaries, each run "),
        ("traps.free", "orders the records so that ", " of them (mean by data set)"),
        ("utility.f1", "target-driven F1 is ", " data sets"),
        ("utility.auc", "its AUC is ", " data sets"),
        ("utility.seeds", "Over ", " seeds, if blind draws"),
        ("rules.better.auc", "interval: AUC is better on ", " data sets (better beyond"),
        ("coding.others", "from ", " other people's rows a provider names"),
        ("arx.global_seconds", "search with 8 hierarchies takes ", " (arx.json)"),
    ],
)
def test_the_summary_of_results_says_the_same(name: str, before: str, after: str) -> None:
    assert f"{before}{FIGURES[name]()}{after}" in RESULTS


@pytest.mark.parametrize(
    ("name", "rows", "column"),
    [
        ("audit.ratio_small", "10,000", 7),
        ("audit.ratio_million", "1,000,000", 7),
        ("audit.of_again", "1,000,000", 8),
    ],
)
def test_the_table_of_benchmarks_says_the_same(name: str, rows: str, column: int) -> None:
    (line,) = re.findall(rf"^\| {rows} \| 16 \|.*$", BENCH, re.MULTILINE)
    assert line.split(" | ")[column] == FIGURES[name]()


@pytest.mark.parametrize(
    ("name", "column"), [("leakage.same_target_whole", 5), ("leakage.singled_out_whole", 9)]
)
def test_whole_tables_are_kept_apart_from_samples(name: str, column: int) -> None:
    page = (ROOT / "results" / "leakage.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if " | whole | " in line]
    shares = [
        float(row[column - 1].removesuffix(" %"))
        for row in rows
        if row[0] == "| variance-reduction"
    ]
    # The page rounds to tenths, and the figure to whole numbers.
    said = [int(end) for end in re.findall(r"\d+", FIGURES[name]())]
    assert said == pytest.approx([min(shares), max(shares)], abs=0.55)

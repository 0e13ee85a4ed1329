"""Pages of HTML: what they show goes into templates, which escape everything."""

from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from verix_anon import __version__
from verix_anon.client.privacy_sheet import Sheet, share
from verix_anon.client.report import mark_of, pictures
from verix_anon.client.report.cards import Picture, card, size_picture
from verix_anon.client.report.glossary import GLOSSARY
from verix_anon.client.report.head import LINE, about, answers, left_open
from verix_anon.client.verdict import Verdict
from verix_anon.errors import TableError
from verix_anon.fields import printable
from verix_anon.html_templates import templates_of

if TYPE_CHECKING:
    from verix_anon.client.explore.exploration import Exploration, Explored

MOST_FINDINGS = 20
MOST_FILES = 100
MOST_NOTE = 500
RISK = (
    "The chance that a record picked for somebody who is known to be in the table is that person's,"
    " at worst."
)
NCP = "How much is lost of a value, in the mean: 0 is exact, 1 is nothing left."
SAME = "Records in classes of one label: whoever knows the quasi-identifiers knows the label."
SCORE = (
    "A model trained on the release, each value the mean of its class, and tested on raw records"
    " that it has not seen; dotted, one trained on raw records."
)
TEMPLATES = templates_of("verix_anon.client.report")
TEMPLATES.filters |= {"share": share, "printable": printable}
TEMPLATES.globals["number"] = format


def page(verdict: Verdict, sheet: Sheet | None) -> str:
    """The whole file."""
    if len(verdict.findings) > MOST_FINDINGS or len(verdict.files) > MOST_FILES:
        raise TableError("the verdict holds too much to be one that verix-anon wrote")
    picture = None
    if sheet is not None and sheet.class_sizes is not None:
        title = "Sizes of the released classes, against k"
        picture = size_picture(sheet.class_sizes, "release", title, "class")
    left = left_open(verdict, sheet)
    cards = [card(finding, verdict.profile) for finding in verdict.findings]
    view = {
        "verdict": verdict,
        "mark": mark_of(verdict),
        "time": printable(verdict.time, LINE).replace("T", " ").replace("+00:00", " UTC"),
        "left_open": left,
        "answers": answers(verdict, {made.layer: made.summary for made in cards}, sheet, left),
        "about": None if verdict.account is None else about(verdict.account),
        "cards": cards,
        "sheet": sheet,
        "sheet_picture": picture,
        "glossary": GLOSSARY,
    }
    return rendered("report.html", view)


def rendered(template: str, view: Mapping[str, object]) -> str:
    """A template of this folder with what it shows."""
    return TEMPLATES.get_template(template).render(view=view) + "\n"


def exploration_page(found: "Exploration") -> str:
    """The whole file."""
    view = {
        "version": __version__,
        "records": f"{found.n_records:,}",
        "target": "" if found.target is None else printable(found.target, LINE),
        "chosen": found.chosen,
        "left": found.chosen or found.rows[0],
        "head": found.head,
        "rows": [
            (row.is_chosen, cells) for row, cells in zip(found.rows, found.cells(), strict=True)
        ],
        "notes": [printable(note, MOST_NOTE) for note in found.notes()],
        "pictures": list(_pictures(found)),
    }
    return rendered("explore.html", view)


def standalone(found: "Exploration") -> dict[str, str]:
    """Each picture by its title, as a file of its own, with its colours in it."""
    colours = (files("verix_anon.client.report") / "templates/style.css").read_text("utf-8")
    style = f"<style>{colours[: colours.index('* {')]}</style>"
    beginning = '<svg xmlns="http://www.w3.org/2000/svg" '
    return {
        made.title: str(made.svg).replace("<svg ", beginning, 1).replace(">", f">{style}", 1)
        for made in _pictures(found)
    }


def _pictures(found: "Exploration") -> Iterator[Picture]:
    # With it comes the release, which the report of a verdict does not need.
    from verix_anon.client.explore.exploration import TITLES

    def picture(
        title: str, caption: str, of: "Callable[[Explored], float]", level: float | None = None
    ) -> Picture:
        lines = tuple(_lines(found, of))
        label = f"{title} over k, of {len(lines)} kinds of release"
        named = pictures.Named("".join(title.lower().split()), label)
        svg = pictures.over_k(lines, level, title, named)
        return Picture(svg=svg, title=title, caption=caption)

    yield picture("Risk", RISK, lambda row: row.prosecutor_max)
    yield picture("NCP", NCP, lambda row: row.ncp)
    for name, raw in found.raw.items():
        yield picture(TITLES[name], SCORE, lambda row, name=name: row.scores[name], raw)  # type: ignore[misc]
    if found.target is not None:
        yield picture("One label", SAME, lambda row: row.same_target)


def _lines(found: "Exploration", of: "Callable[[Explored], float]") -> Iterator[pictures.PlotLine]:
    """One for each rule and l."""
    has_rules = len({row.rule for row in found.rows}) > 1
    for rule, l in dict.fromkeys((row.rule, row.l) for row in found.rows):  # noqa: E741
        rows = sorted((r for r in found.rows if (r.rule, r.l) == (rule, l)), key=lambda r: r.k)
        yield pictures.PlotLine(
            f"{rule}, l = {l:,}" if has_rules else f"l = {l:,}",
            tuple(row.k for row in rows),
            tuple(of(row) for row in rows),
            next((row.k for row in rows if row.is_chosen), None),
        )

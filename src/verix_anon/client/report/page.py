"""Pages of HTML: what they show goes into templates, which escape everything."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from verix_anon import __version__
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.report import mark_of, pictures
from verix_anon.client.report.cards import Picture, card, size_picture
from verix_anon.client.report.head import LINE, about, answers, left_open
from verix_anon.client.verdict import Verdict
from verix_anon.errors import TableError
from verix_anon.fields import printable
from verix_anon.html_templates import templates_of
from verix_anon.translation import PageTexts, keys

if TYPE_CHECKING:
    from verix_anon.client.explore.exploration import Exploration, Explored

MOST_FINDINGS = 20
MOST_FILES = 100
MOST_NOTE = 500
TEMPLATES = templates_of("verix_anon.client.report")
TEMPLATES.filters["printable"] = printable


def page(verdict: Verdict, sheet: Sheet | None, language: str) -> str:
    """The whole file."""
    if len(verdict.findings) > MOST_FINDINGS or len(verdict.files) > MOST_FILES:
        raise TableError("the verdict holds too much to be one that verix-anon wrote")
    t = PageTexts(language)
    picture = None
    if sheet is not None and sheet.class_sizes is not None:
        picture = size_picture(sheet.class_sizes, "class", t)
    cards = [card(finding, verdict.profile, t) for finding in verdict.findings]
    view = {
        "verdict": verdict,
        "mark": mark_of(verdict),
        "time": t.date(printable(verdict.time, LINE)),
        "left_open": left_open(verdict, sheet, t),
        "answers": answers(verdict, cards, sheet, t),
        "about": None if verdict.account is None else about(verdict.account, t),
        "cards": cards,
        "sheet": sheet,
        "sheet_picture": picture,
        "glossary": glossary(t),
    }
    return rendered("report.html", view, t)


def rendered(template: str, view: Mapping[str, object], t: PageTexts) -> str:
    """A template of this folder with what it shows."""
    shown = {"view": view, "t": t, "number": t.number, "w": _loss_words(t)}
    return TEMPLATES.get_template(template).render(shown) + "\n"


def _loss_words(t: PageTexts) -> dict[str, object]:
    """The words of the table of losses."""
    names = keys("losses")
    units = [name.partition(".")[2] for name in names if "." in name]
    words = {name: t(f"losses.{name}") for name in names if "." not in name}
    return {**words, "units": {unit: t(f"losses.units.{unit}") for unit in units}}


def glossary(t: PageTexts) -> dict[str, list[tuple[str, str]]]:
    """Terms and their meanings, by subject, for a reader who has not read the specification."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key in keys("glossary"):
        group, _, part = key.partition(".")
        if part == "title":
            found[group] = []
        elif part.endswith(".term"):
            meaning = part.removesuffix("term") + "meaning"
            found[group].append((t(f"glossary.{key}"), t(f"glossary.{group}.{meaning}")))
    return {t(f"glossary.{group}.title"): entries for group, entries in found.items()}


def exploration_page(found: "Exploration", language: str) -> str:
    """The whole file."""
    t = PageTexts(language)
    view = {
        "version": __version__,
        "records": t.number(found.n_records),
        "target": "" if found.target is None else printable(found.target, LINE),
        "chosen": found.chosen,
        "left": found.chosen or found.rows[0],
        "head": [t.say(title) for title in found.head],
        "rows": [
            (row.is_chosen, [t.say(cell) for cell in cells])
            for row, cells in zip(found.rows, found.cells(), strict=True)
        ],
        "notes": [t.say(printable(note, MOST_NOTE)) for note in found.notes()],
        "pictures": list(_pictures(found, t)),
    }
    return rendered("explore.html", view, t)


def _pictures(found: "Exploration", t: PageTexts) -> Iterator[Picture]:
    # With it comes the release, which the report of a verdict does not need.
    from verix_anon.client.explore.exploration import TITLES

    def picture(
        name: str, caption: str, of: "Callable[[Explored], float]", level: float | None = None
    ) -> Picture:
        lines, title = tuple(_lines(found, of)), t.say(name)
        label = t("explore.picture", title=title, n=len(lines))
        named = pictures.Named("".join(name.lower().split()), label)
        svg = pictures.over_k(lines, level, title, named, t)
        return Picture(svg=svg, title=title, caption=t(f"explore.captions.{caption}"))

    yield picture("Risk", "risk", lambda row: row.prosecutor_max)
    yield picture("NCP", "ncp", lambda row: row.ncp)
    for name, raw in found.raw.items():
        yield picture(TITLES[name], "score", lambda row, name=name: row.scores[name], raw)  # type: ignore[misc]
    if found.target is not None:
        yield picture("One label", "label", lambda row: row.same_target)


def _lines(found: "Exploration", of: "Callable[[Explored], float]") -> Iterator[pictures.PlotLine]:
    """One for each rule and l."""
    for rule, l in dict.fromkeys((row.rule, row.l) for row in found.rows):  # noqa: E741
        rows = sorted((r for r in found.rows if (r.rule, r.l) == (rule, l)), key=lambda r: r.k)
        yield pictures.PlotLine(
            f"{rule}, l = {l:,}" if found.has_rules else f"l = {l:,}",
            tuple(row.k for row in rows),
            tuple(of(row) for row in rows),
            next((row.k for row in rows if row.is_chosen), None),
        )

"""The page of an exploration: each measure over k, with the chosen setting marked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup

from verix_anon import __version__
from verix_anon.client.explore.exploration import TITLES, Exploration, Explored
from verix_anon.client.report import pictures
from verix_anon.client.report.cards import Picture
from verix_anon.client.report.page import rendered
from verix_anon.client.report.reading import clean

__all__ = ["page", "standalone"]

RISK = "The chance to pick the right record of somebody who is known to be in the table, at worst."
NCP = "How much is lost of a value, in the mean: 0 is exact, 1 is nothing left."
SAME = "Records in classes of one label: whoever knows the quasi-identifiers knows the label."
MOST_NOTE = 500
SCORE = (
    "A model trained on the release, each value the mean of its class, and tested on raw records"
    " that it has not seen; dotted, one trained on raw records."
)


@dataclass(frozen=True, slots=True)
class View:
    """All that the template sees."""

    version: str
    records: str
    target: str
    chosen: Explored | None
    head: tuple[str, ...]
    rows: list[tuple[bool, tuple[str, ...]]]
    notes: list[str]
    pictures: list[Picture]


def page(found: Exploration) -> str:
    """The whole file."""
    view = View(
        version=__version__,
        records=f"{found.n_records:,}",
        target="" if found.target is None else clean(found.target),
        chosen=found.chosen,
        head=found.head,
        rows=[(row.is_chosen, cells) for row, cells in zip(found.rows, found.cells(), strict=True)],
        notes=[clean(note, MOST_NOTE) for note in found.notes()],
        pictures=list(_pictures(found)),
    )
    return rendered("explore.html", view)


def standalone(found: Exploration) -> dict[str, str]:
    """Each picture by its title, as a file of its own, with its colours in it."""
    colours = (files("verix_anon.client.report") / "templates/style.css").read_text("utf-8")
    style = f"<style>{colours[: colours.index('* {')]}</style>"
    beginning = '<svg xmlns="http://www.w3.org/2000/svg" '
    return {
        made.title: str(made.svg).replace("<svg ", beginning, 1).replace(">", f">{style}", 1)
        for made in _pictures(found)
    }


def _pictures(found: Exploration) -> Iterator[Picture]:
    def picture(
        title: str, caption: str, of: Callable[[Explored], float], level: float | None = None
    ) -> Picture:
        lines = tuple(_lines(found, of))
        label = f"{title} over k, of {len(lines)} kinds of release"
        named = pictures.Named("".join(title.lower().split()), label)
        svg = pictures.over_k(lines, level, title, named)
        return Picture(svg=Markup(svg), title=title, caption=caption)  # noqa: S704, drawn by us

    yield picture("Risk", RISK, lambda row: row.prosecutor_max)
    yield picture("NCP", NCP, lambda row: row.ncp)
    for name, raw in found.raw.items():
        yield picture(TITLES[name], SCORE, lambda row, name=name: row.scores[name], raw)  # type: ignore[misc]
    if found.target is not None:
        yield picture("One label", SAME, lambda row: row.same_target)


def _lines(found: Exploration, of: Callable[[Explored], float]) -> Iterator[pictures.Line]:
    """One for each rule and l."""
    has_rules = len({row.rule for row in found.rows}) > 1
    for rule, l in dict.fromkeys((row.rule, row.l) for row in found.rows):  # noqa: E741
        rows = sorted((r for r in found.rows if (r.rule, r.l) == (rule, l)), key=lambda r: r.k)
        yield pictures.Line(
            f"{rule}, l = {l:,}" if has_rules else f"l = {l:,}",
            tuple(row.k for row in rows),
            tuple(of(row) for row in rows),
            next((row.k for row in rows if row.is_chosen), None),
        )

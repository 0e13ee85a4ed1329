"""The page: what is shown goes into one template, which escapes everything."""

from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from verix_anon.client.report.about import About, about
from verix_anon.client.report.answers import Answers, answers
from verix_anon.client.report.cards import Card, Picture, card, size_picture
from verix_anon.client.report.glossary import GLOSSARY, Entry
from verix_anon.client.report.left_open import LeftOpen, left_open, share
from verix_anon.client.report.reading import clean
from verix_anon.client.report.sheet import SheetView
from verix_anon.client.verdict import Verdict
from verix_anon.errors import TableError

__all__ = ["page", "rendered"]

MOST_FINDINGS = 20
MOST_FILES = 100


@dataclass(frozen=True, slots=True)
class View:
    """All that the template sees."""

    outcome: str
    profile: str
    time: str
    version: str
    unsafe_seed: bool
    root: str
    contract: str
    submission: str
    files: list[tuple[str, str]]
    left_open: LeftOpen
    answers: Answers
    about: About | None
    cards: list[Card]
    sheet: SheetView | None
    sheet_picture: Picture | None
    glossary: dict[str, tuple[Entry, ...]]


def page(verdict: Verdict, sheet: SheetView | None) -> str:
    """The whole file."""
    if len(verdict.findings) > MOST_FINDINGS or len(verdict.files) > MOST_FILES:
        raise TableError("the verdict holds too much to be one that verix-anon wrote")
    return rendered("report.html", _view(verdict, sheet))


def rendered(template: str, view: object) -> str:
    """A template of this folder with what it shows."""
    environment = Environment(
        loader=PackageLoader("verix_anon.client.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = share
    return environment.get_template(template).render(view=view) + "\n"


def _view(verdict: Verdict, sheet: SheetView | None) -> View:
    sizes = None if sheet is None else sheet.class_sizes
    left = left_open(verdict, sheet)
    cards = [card(finding, verdict.profile) for finding in verdict.findings]
    return View(
        outcome=verdict.outcome.value,
        profile=verdict.profile.value,
        time=clean(verdict.time).replace("T", " ").replace("+00:00", " UTC"),
        version=clean(verdict.version),
        unsafe_seed=verdict.unsafe_seed,
        root=verdict.root.hex(),
        contract=verdict.contract.hex(),
        submission=verdict.submission.hex(),
        files=[(clean(name), clean(digest)) for name, digest in sorted(verdict.files.items())],
        left_open=left,
        answers=answers(verdict, {made.layer: made.summary for made in cards}, sheet, left),
        about=None if verdict.account is None else about(verdict.account),
        cards=cards,
        sheet=sheet,
        sheet_picture=None
        if sizes is None
        else size_picture(sizes, "release", "Sizes of the released classes, against k", "class"),
        glossary=GLOSSARY,
    )

"""All words of the desk stand in the catalogues."""

import re
import sys
from collections.abc import Sequence
from importlib.resources import files

import pytest
from fastapi.routing import APIRoute
from starlette.datastructures import Headers

from desk.browsing import Browser, Given, Shown
from verix_anon.client.job import JourneyState, JourneyStep
from verix_anon.client.prepare.options import PRIORITIES
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.privacy_sheet import GATES
from verix_anon.client.release import Representation
from verix_anon.client.table.roles import Measure
from verix_anon.client.verdict import LAYERS, Outcome, Profile, Status
from verix_anon.desk.pages import columns, privacy, release, send, table
from verix_anon.desk.rendering import language_of
from verix_anon.desk.server import PAGES
from verix_anon.protocol.contract import Rule
from verix_anon.translation import texts

TEMPLATES = sorted(
    (path.name, path.read_text("utf-8"))
    for path in (files("verix_anon.desk") / "templates").iterdir()
)
TERMS = ("k", "l", "cap", "t", "rule", "traps", "leaf", "loss")
MORE_TERMS = (
    *("quasi", "target", "class", "risk", "sheet", "bound"),
    *("manifest", "receipt", "tracker", "model", "tree", "log"),
)
WAY = ("prepare", "anonymize", "verify", "release")
GROUPS: dict[str, Sequence[str]] = {
    "columns.fates.": (*columns.ROLE_NAMES, "prose", "named", "singles"),
    "columns.hierarchies.": ["none", "prefix", "date", "file"],
    "priorities.": tuple(PRIORITIES),
    "kinds.": columns.KIND_NAMES,
    "glossary.terms.": MORE_TERMS,
    "glossary.terms_said.": MORE_TERMS,
    "plain.": ("entered", "unknown", "used"),
    "privacy.measures.": [*Measure],
    "privacy.purposes.": [*privacy.PURPOSES],
    "privacy.purposes_said.": [*privacy.PURPOSES],
    "privacy.rules.": [rule.replace("-", "_") for rule in Rule],
    "privacy.terms.": TERMS,
    "privacy.terms_said.": TERMS,
    "privacy.trap_names.": [*Traps],
    "release.formats.": release.FORMATS,
    "release.forms.": [*Representation],
    "release.gate_names.": [gate.replace("-", "_") for gate in GATES],
    "release.measures.": [*Measure],
    "release.remedy_names.": release.REMEDIES,
    "roles.": columns.ROLE_NAMES,
    "roles_said.": columns.ROLE_NAMES,
    "send.party_names.": send.PARTIES,
    "send.parted.": [*send.WHAT.values()],
    "states.": [*JourneyState],
    "steps.": [*JourneyStep],
    "table.": [*table.FIELDS],
    "jobs.way_names.": WAY,
    "jobs.way_said.": WAY,
    "jobs.way_where.": WAY,
    "verdict.about.": LAYERS,
    "verdict.means.": [outcome.lower() for outcome in Outcome],
    "verdict.names.": LAYERS,
    "verdict.profiles.": ["auto", *Profile],
    "verdict.sentences.": [outcome.lower() for outcome in Outcome],
    "verdict.statuses.": [*Status],
}
"""The values that templates put behind the beginning of a key."""
SPOKEN = ("aria-label", "title", "placeholder", "alt", "summary")


def used(html: str) -> set[str]:
    return set(re.findall(r"""t\(['"]([\w.]+)['"]""", html))


def texts_of_the_desk() -> set[str]:
    """The keys that a template can name: the desk's own, and those of the report."""
    return {key.removeprefix("desk.") for key in texts("en")}


@pytest.mark.parametrize(("name", "html"), TEMPLATES)
def test_templates_hold_no_words(name: str, html: str) -> None:
    bare = re.sub(
        r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<code>verix-anon.*?</code>", "", html, flags=re.S
    )
    for attribute in SPOKEN:
        for value in re.findall(rf'{attribute}="([^"]*)"', bare):
            assert not re.search(r"\w", value), value
    assert not re.findall(r"\w+", re.sub(r"<[^>]*>", "", bare))


@pytest.mark.parametrize(("name", "html"), TEMPLATES)
def test_every_text_of_a_template_is_there(name: str, html: str) -> None:
    known = texts_of_the_desk()
    for key in used(html):
        assert key in known or key in GROUPS, key


def test_every_text_that_a_template_names_by_a_value_is_there() -> None:
    known = texts_of_the_desk()
    assert {key for _, html in TEMPLATES for key in used(html) if key.endswith(".")} == {*GROUPS}
    for group, values in GROUPS.items():
        assert values
        for value in values:
            assert f"{group}{value}" in known


@pytest.mark.parametrize(("name", "html"), TEMPLATES)
def test_what_is_translated_is_not_called_english(name: str, html: str) -> None:
    assert not re.search(r"""\slang="en"[^>]*>\{\{ t\(""", html)


@pytest.mark.parametrize(("name", "html"), TEMPLATES)
def test_templates_hold_no_script_no_style_and_nothing_from_elsewhere(name: str, html: str) -> None:
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|//\w|\|\s*safe|Markup", html)
    for script in re.findall(r"<script[^>]*>.*?</script>", html, flags=re.S):
        assert script == '<script src="/static/desk.js" defer></script>'


@pytest.mark.parametrize(
    ("accepted", "cookie", "language"),
    [
        ("", "", "en"),
        ("de", "", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "", "de"),
        ("fr, en;q=0.5, de;q=0.7", "", "de"),
        ("fr", "", "en"),
        ("de;q=x", "", "en"),
        ("de", "verix-desk-language=en", "en"),
        ("de", "verix-desk-language=xx", "de"),
    ],
)
def test_the_language_is_what_was_chosen_or_asked_for(
    accepted: str, cookie: str, language: str
) -> None:
    assert language_of(Headers({"accept-language": accepted, "cookie": cookie})) == language


def test_the_language_can_be_changed(browser: Browser) -> None:
    assert ">Jobs</h2>" in browser.get("/").text
    answer = browser.get("/language/de?back=/jobs/x%2Fy")
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs/x/y")
    assert ">Aufträge</h2>" in browser.get("/").text
    assert browser.get("/language/xx").status_code == 404


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil", "/%0d%0ax"])
def test_the_way_back_stays_here(browser: Browser, back: str) -> None:
    assert browser.get(f"/language/de?back={back}").headers["location"] == "/"


FORMS = [
    ("table", "table"),
    ("columns", "columns"),
    ("overview", "columns"),
    ("privacy", "privacy"),
    ("explore", "privacy"),
    ("purpose", "privacy"),
    ("prepare", "send"),
    ("anonymize", "send"),
    ("submit", "send"),
    ("verdict", "verdict"),
    ("report", "verdict"),
    ("preview", "release"),
    ("release", "release"),
]


@pytest.mark.parametrize(("form", "step"), FORMS)
def test_what_answers_a_form_is_shown_in_the_other_language_as_its_page(
    given: Given, browser: Browser, form: str, step: str
) -> None:
    (given.desk.folder / "job").mkdir()
    (given.desk.folder / "job" / "manifest.verix").touch()
    (given.desk.folder / "job" / "delivery").mkdir()
    given.desk.tasks.program = (sys.executable, "-c", "input()")
    given.desk.tasks.start("job", ("verify",), then="/")
    answer = browser.submit(f"/jobs/job/{form}", {})
    assert answer.status_code in (400, 404)
    links = [str(link.get("href")) for link in Shown(answer.text).all("a")]
    assert f"/language/de?back=/jobs/job/{step}" in links


def test_all_forms_are_tried() -> None:
    sent = {
        route.path.removeprefix("/jobs/{job}/")
        for module in PAGES
        for route in module.router.routes
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
    }
    others = {"/jobs", "/example", "/series/{name}"} | {
        "task/cancel",
        "columns/advice",
        "columns/groups",
        "privacy/preview",
    }
    assert sent - others == {form for form, _ in FORMS}

"""The report in a real browser: opens, asks for nothing, fits, unfolds, prints."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from client.report import pages
from client.report.test_page import HOSTILE, hostile_sheet, hostile_verdict
from tools.browser import chromium, needs_chromium
from verix_anon.client.explore import explore
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.report import render, render_conformance, render_exploration
from verix_anon.client.verdict import LAYERS, Profile
from verix_anon.datasets import census
from verix_anon.provider.local import LocalProvider

pytestmark = needs_chromium
WIDE, PHONE, NARROW = 1280, 390, 320
# A breakout from an attribute, marks that turn text around, and a name without an end.
WORST = (1, 6, 9)
CASES = [
    {"id": name, "section": "4", "title": "it", "passed": passed, "seconds": 0.1, "checks": []}
    for name, passed in (("one", True), ("two", False))
]
SECTIONS = ("open", "answers", "about", "glance", "layers", "release", "identity", "words")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, quick_models: None) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    made = {
        "good": pages.report("honest", with_sheet=True),
        "bad": pages.report("approximate"),
        "thin": pages.report("misplaced", Profile.THIN),
        "explore": render_exploration(
            explore(census(300), {"target": "income", "quasi": "all"}, provider=LocalProvider())
        ),
        "conform": render_conformance(
            {"side": "provider", "subject": "it", "passed": False, "cases": CASES}
            | {"kit": {"version": "1", "size": "small", "digest": "00"}, "time": "", "version": ""}
        ),
    }
    for i in WORST:
        text = HOSTILE[i]
        made[f"hostile{i}"] = render(hostile_verdict(text), Sheet.from_json(hostile_sheet(text)))
    for name, page in made.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


class Visit:
    """A page that was opened, and everything it did that it should not have."""

    def __init__(self, browser: Browser, path: Path, width: int, scheme: str) -> None:
        self.trouble: list[str] = []
        self.page: Page = browser.new_page(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page, uri = self.page, path.as_uri()
        page.on("console", lambda message: self.trouble.append(message.text))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("dialog", lambda dialog: self.trouble.append(dialog.message))
        page.on(
            "request",
            lambda request: None if request.url == uri else self.trouble.append(request.url),
        )
        page.goto(uri)

    def __enter__(self) -> Page:
        return self.page

    def __exit__(self, *_: object) -> None:
        self.page.close()
        assert self.trouble == []


@pytest.mark.parametrize("name", ["good", "bad", "thin"])
@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "dark"), (PHONE, "light"), (NARROW, "dark")])
def test_opens_and_fits(browser: Browser, files: Path, name: str, width: int, scheme: str) -> None:
    with Visit(browser, files / f"{name}.html", width, scheme) as page:
        for section in SECTIONS:
            assert page.locator(f"h2#{section}").is_visible()
        for i in range(len(LAYERS)):
            assert page.locator(f"#layer-{i + 1}").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        first = page.locator("h1").bounding_box()
        assert first is not None
        assert first["y"] < 200
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", ground)))
        assert brightness < 150 if scheme == "dark" else brightness > 600
        # A picture follows the theme: its axes are not the colour of the card.
        text = page.locator("figure svg text").first
        assert text.evaluate("e => getComputedStyle(e).fill") != "rgb(0, 0, 0)"


@pytest.mark.parametrize("name", ["good", "bad"])
@pytest.mark.parametrize("width", [WIDE, PHONE, NARROW])
def test_what_is_left_open_is_as_large_as_the_verdict(
    browser: Browser, files: Path, name: str, width: int
) -> None:
    with Visit(browser, files / f"{name}.html", width, "light") as page:
        size = "e => getComputedStyle(e).fontSize"
        verdict = page.locator("h1").evaluate(size)
        figures = page.locator(".open .large")
        assert figures.count() >= 1
        for i in range(figures.count()):
            assert figures.nth(i).is_visible()
            assert figures.nth(i).evaluate(size) == verdict
        one, two = (page.locator(at).bounding_box() for at in (".verdict:not(.open)", ".open"))
        assert one is not None
        assert two is not None
        assert (one["y"] == two["y"]) == (width == WIDE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(browser: Browser, files: Path, scheme: str) -> None:
    for name in ("good", "bad", "thin", "explore", "conform"):
        with Visit(browser, files / f"{name}.html", WIDE, scheme) as page:
            found = Axe().run(page).response["violations"]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == [], name


def test_text_of_pictures_can_be_read_on_a_phone(browser: Browser, files: Path) -> None:
    with Visit(browser, files / "good.html", PHONE, "light") as page:
        sizes = page.locator("figure.plot svg").evaluate_all(
            "all => all.map(e => 10 * e.getBoundingClientRect().width / e.viewBox.baseVal.width)"
        )
        assert min(sizes) >= 9.5


def test_numbers_unfold_by_mouse_and_keyboard(browser: Browser, files: Path) -> None:
    with Visit(browser, files / "good.html", WIDE, "light") as page:
        details = page.locator("details")
        assert details.count() >= 6
        for i in range(details.count()):
            table = details.nth(i).locator("table")
            assert not table.is_visible()
            details.nth(i).locator("summary").click()
            assert table.is_visible()
        first = details.first.locator("summary")
        first.focus()
        page.keyboard.press("Enter")
        assert not details.first.locator("table").is_visible()


def test_keyboard_finds_the_way(browser: Browser, files: Path) -> None:
    with Visit(browser, files / "bad.html", WIDE, "light") as page:
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        assert focused.inner_text() == "Skip to the layers"
        assert focused.is_visible()
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash") == "#layers"
        page.locator("table.glance a", has_text="splits").click()
        box = page.locator(f"#layer-{LAYERS.index('splits') + 1}").bounding_box()
        assert box is not None
        assert abs(box["y"]) < 5


@pytest.mark.parametrize("number", WORST)
def test_hostile_names_do_nothing(browser: Browser, files: Path, number: int) -> None:
    with Visit(browser, files / f"hostile{number}.html", PHONE, "light") as page:
        assert page.locator("script, img, iframe").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
        assert page.locator("h1").inner_text() == "VIOLATION"


def test_prints_on_a4_in_light_colours(browser: Browser, files: Path) -> None:
    with Visit(browser, files / "good.html", WIDE, "dark") as page:
        pdf = page.pdf(prefer_css_page_size=True)
        assert pdf.startswith(b"%PDF")
        n_pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
        assert 4 <= n_pages <= 10
        boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", pdf)
        assert boxes
        for width, height in boxes:
            assert float(width) == pytest.approx(595, abs=1.5)
            assert float(height) == pytest.approx(842, abs=1.5)
        page.emulate_media(media="print")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert sum(map(int, re.findall(r"\d+", ink))) < 200
        assert not page.locator("details.numbers").first.is_visible()
        assert page.locator("dl.meaning").first.is_visible()

"""A real browser at a desk: whether its pages keep to themselves, and whether all can use them."""

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserType, Page

from tools.browser import launch
from tools.desk import SECONDS
from tools.desk_process import Served
from verix_anon.desk.sessions import link_of

WIDE, ZOOMED, NARROW = 1280, 640, 320
TOLD = re.compile(r"Failed to load resource: the server responded with a status of 40[049]")
"""What the browser says of an answer that is a page, too."""
OUTSIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Visit:
    """A browser that the desk lets in, and all that its pages did that they should not have."""

    def __init__(self, kind: BrowserType, desk: Served, language: str = "en") -> None:
        self.trouble: list[str] = []
        self.browser = launch(kind)
        self.context = self.browser.new_context(
            viewport={"width": WIDE, "height": 800}, locale=language
        )
        self.context.set_default_timeout(1000 * SECONDS)
        self.origin = desk.origin
        self.context.on("page", self._watch)
        self.page = self.context.new_page()
        self.page.goto(str(link_of(desk.folder)))
        self.page.wait_for_selector("#name")
        self.page.wait_for_load_state()

    def _watch(self, page: Page) -> None:
        page.on("console", lambda said: self._hear(said.type, said.text))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("dialog", lambda dialog: self.trouble.append(dialog.message))
        page.on("request", lambda asked: self._check(asked.url))

    def _hear(self, kind: str, said: str) -> None:
        if kind in ("error", "warning") and not TOLD.match(said):
            self.trouble.append(said)

    def _check(self, url: str) -> None:
        if not url.startswith(f"{self.origin}/"):
            self.trouble.append(url)

    def __enter__(self) -> Page:
        return self.page

    def __exit__(self, *_: object) -> None:
        # A page that goes elsewhere in that moment may never close, but a browser is ended.
        self.browser.close()
        assert self.trouble == []


def check_everybody(page: Page) -> None:
    """Nothing that axe finds, light and dark; all of it to be seen when zoomed and on a phone."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page).response["violations"]
        assert [
            (rule["id"], [node["html"][:200] for node in rule["nodes"]]) for rule in found
        ] == [], f"{page.url}, {scheme}"
    for width in (ZOOMED, NARROW):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(OUTSIDE) <= 0, f"{page.url} at {width}"
    page.set_viewport_size({"width": WIDE, "height": 800})
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate(OUTSIDE) <= 0, f"{page.url} with large text"
    page.evaluate("document.documentElement.style.fontSize = ''")

"""The whole journey at the desk, page by page in a browser; `make pictures` keeps what is seen.

Nothing here depends on the language that the desk speaks.
"""

import io
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Download, Page

from tools.browser import chromium
from tools.desk_process import serving

WIDTH, HEIGHT, TALLEST = 1280, 700, 1300
PICTURES = ("jobs", "table", "columns", "privacy", "send", "verdict", "release")
"""The pages that are shown, each from its top."""
NARROW, NARROW_TALLEST = 390, 900
RENAME = """([was, now]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(was, now);
}"""
"""The folder of a picture is nobody's."""
MOST_BYTES = 120_000
SECONDS = 180.0
QUIET = "body:not(:has([data-events]))"
"""A page on which no work runs any more."""
FAILED = "pre.said, p.problem[role=alert], body:not(:has(main))"
"""What a page shows when something did not go well."""


class Service(NamedTuple):
    """Where a submission is sent."""

    url: str
    token: str


def german_table(path: Path, *, n_rows: int = 600, seed: int = 5) -> Path:
    """Patients as a German spreadsheet writes them: semicolons, decimal commas, dd.mm.yyyy."""
    draw = random.Random(seed)
    lines = ["Patientennummer;Geburtsdatum;PLZ;Geschlecht;Größe;Diagnose;Rückfall"]
    for i in range(n_rows):
        born = date(1940, 1, 1) + timedelta(days=draw.randrange(22_000))
        is_back = draw.random() < 0.2 + 0.5 * (born.year < 1965)
        cells = (
            f"P{10_000 + i}",
            f"{born:%d.%m.%Y}",
            draw.choice(["10115", "10117", "20095", "50667", "80331"]),
            draw.choice("mw"),
            f"{draw.gauss(172, 9):.1f}".replace(".", ","),
            draw.choice(["Asthma", "Diabetes", "Migräne", "Rheuma"]),
            "ja" if is_back else "nein",
        )
        lines.append(";".join(cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@dataclass(frozen=True)
class Walk:
    """A job at a desk that has let the browser in; `look` is called with the name of each page."""

    page: Page
    origin: str
    job: str
    look: Callable[[str], None]

    def whole(self, table: Path, service: Service | None = None) -> Download:
        """From the list of jobs to the list of jobs; what was released."""
        self.begin()
        self.table(table)
        self.columns()
        self.privacy()
        self.prepare()
        self.send(service)
        self.verdict()
        found = self.release()
        self.page.goto(self.origin)
        self.look("jobs")
        return found

    def goto(self, step: str) -> None:
        """Another page of the job."""
        self.page.goto(f"{self.origin}/jobs/{self.job}/{step}")

    def until(self, selector: str) -> None:
        """Wait for what is to be there next, or for the page to say why it is not."""
        either = f"{QUIET} {selector}, {FAILED}"
        self.page.wait_for_selector(either, state="attached", timeout=1000 * SECONDS)
        # Only then its script has run.
        self.page.wait_for_load_state()
        assert self.page.locator(selector).count(), self.page.locator(FAILED).all_inner_texts()

    def submit(self, action: str, button: str = "button") -> None:
        """Press a button of the form that goes to a page of the job."""
        self.page.locator(f"form[action$='/{action}'] {button}").click()

    def begin(self) -> None:
        """A new job."""
        self.page.goto(self.origin)
        self.look("begin")
        self.page.fill("#name", self.job)
        self.page.press("#name", "Enter")
        self.until("#file")

    def table(self, table: Path) -> None:
        """Copy a table into the folder, see its rows change, and have the columns drafted."""
        self.page.set_input_files("#file", table)
        self.until("#rows table")
        self.page.select_option("#date_format", "dd.mm.yyyy")
        self.until("#command :text('--date-format')")
        self.look("table")
        self.submit("table", "[value=draft]")
        self.until("#role-0")

    def columns(self) -> None:
        """Say that a record is a person, hear what is to be thought of, and go on."""
        self.page.select_option("#person", "record")
        with self.page.expect_response("**/advice"):
            self.page.select_option("#role-4", "quasi")
        self.look("columns")
        self.submit("columns", "[value=on]")
        self.until("#try-k")

    def privacy(self) -> None:
        """Choose a purpose, and see what it costs."""
        self.submit("purpose", "[value=internal]")
        self.until("tr.chosen")
        self.look("privacy")
        self.submit("privacy", "[value=on]")
        self.until("#becomes")

    def prepare(self) -> None:
        """Make submission and manifest."""
        self.look("prepare")
        self.submit("prepare")
        self.until("#glimpse")

    def send(self, service: Service | None) -> None:
        """To a service, or to the engine on this machine."""
        self.look("send")
        if service is None:
            self.submit("anonymize")
        else:
            self.page.fill("#url", service.url)
            self.page.fill("#token", service.token)
            self.submit("submit")
        self.until("#profile")

    def verdict(self) -> None:
        """Judge what came back."""
        self.submit("verdict")
        self.until("#layers")
        self.look("verdict")

    def release(self) -> Download:
        """Look at what would be published, publish it, and take it along."""
        self.goto("release")
        self.page.fill("#require-k", "5")
        self.submit("preview")
        self.until("#records")
        self.look("release")
        self.submit("release")
        self.until("#released")
        self.look("released")
        with self.page.expect_download() as found:
            self.page.click("a[href$='released.csv']")
        return found.value


def take_pictures(out: Path) -> None:
    """A picture of each page, on the way of one job."""
    with TemporaryDirectory() as scratch, chromium() as browser:
        os.environ["VERIX_LEDGER"] = f"{scratch}/ledger.jsonl"
        table = german_table(Path(scratch) / "patients.csv")
        folder = Path(scratch) / "desk"
        (folder / "survey 2025").mkdir(parents=True)
        with serving(folder) as desk:
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", locale="en"
            )
            page.set_default_timeout(1000 * SECONDS)
            page.goto(desk.url)
            page.wait_for_selector("#name")

            def look(name: str) -> None:
                page.evaluate(RENAME, [str(folder), "/home/owner/data"])
                if name in PICTURES:
                    _keep(page, name, out)

            Walk(page, desk.origin, "clinic", look).whole(table)


def _keep(page: Page, name: str, out: Path) -> None:
    """Pictures of a page, small: wide and light, and as on a phone in the dark."""
    for ending, width, scheme, tallest in (
        ("", WIDTH, "light", TALLEST),
        ("-narrow", NARROW, "dark", NARROW_TALLEST),
    ):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        shot = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
        path = out / f"desk-{name}{ending}.png"
        shown = shot.crop((0, 0, shot.width, min(shot.height, tallest)))
        shown.quantize(32).save(path, optimize=True)
        size = path.stat().st_size
        assert size <= MOST_BYTES, f"{path}: {size:,} bytes"
        print(f"{path}: {size:,} bytes")
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    page.emulate_media(color_scheme="light")


if __name__ == "__main__":
    take_pictures(Path(sys.argv[1]))

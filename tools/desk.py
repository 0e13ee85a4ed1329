"""The whole journey at the desk, page by page in a browser; `make pictures` keeps what is seen.

Nothing here depends on the language that the desk speaks.
"""

import io
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from PIL import Image
from playwright.sync_api import Download, Page

from tools.browser import chromium
from tools.desk_process import serving

HEIGHT = 700
PICTURES = {
    "jobs": "The first page",
    "table": "Table",
    "columns": "Columns",
    "groups": "Columns: groups of values",
    "privacy": "Privacy",
    "prepare": "Send, before the table is prepared",
    "send": "Send",
    "verdict": "Verdict",
    "release": "Release",
    "series": "Series",
}
"""The pages that are shown, each from its top, and what they are called."""


class Look(NamedTuple):
    """How a page is looked at for a picture."""

    width: int
    scheme: Literal["light", "dark"]
    tallest: int
    ending: str
    """Of the picture's name"""

    @property
    def said(self) -> str:
        """The same in words."""
        return f"{self.width} pixels, {self.scheme}"


LOOKS = (
    Look(1280, "light", 1300, ""),
    Look(1280, "dark", 1300, "-dark"),
    Look(390, "light", 900, "-narrow-light"),
    Look(390, "dark", 900, "-narrow"),
)
LANGUAGES = {"en": ("", "English"), "de": ("-de", "German")}
"""What the name of a picture has of its language, and what the language is called."""
HOME = "/home/owner/data"
SERIES = "monthly"
SERIES_ROLES = """[columns]
"Patientennummer" = "identifier"
"Geburtsdatum" = "quasi"
"PLZ" = "quasi"
"Geschlecht" = "quasi"
"Größe" = "identifier"
"Diagnose" = "sensitive"
"Rückfall" = "kept"
[contract]
task = "none"
person = "Patientennummer"
"""
RENAME = """([was, now]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replace(was, now);
}"""
"""The folder of a picture is nobody's."""
MOST_BYTES, MOST_BYTES_OF_ALL = 120_000, 4_000_000
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
        self.page.click("#look summary")
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
    """Pictures of each page in each language, on the way of one job."""
    with TemporaryDirectory() as scratch, chromium() as browser:
        for language, (end, _) in LANGUAGES.items():
            # It would not let the same table be released for the other language.
            os.environ["VERIX_LEDGER"] = f"{scratch}/{language}.jsonl"
            folder = Path(scratch) / language
            (folder / "survey 2025").mkdir(parents=True)
            begin_series(folder)
            with serving(folder) as desk:
                page = browser.new_page(viewport={"width": 1280, "height": HEIGHT}, locale=language)
                page.set_default_timeout(1000 * SECONDS)
                page.goto(desk.url)
                page.wait_for_selector("#name")

                def look(name: str, page: Page = page, end: str = end) -> None:
                    page.evaluate(RENAME, [page.locator(".where code").inner_text(), HOME])
                    if name in PICTURES:
                        _keep(page, name, end, out)
                    if name == "columns":
                        _put_together(page)
                        _keep(page, "groups", end, out, is_whole=False)
                        page.locator("dialog [data-part=close]").click()

                table = german_table(Path(scratch) / "patients.csv")
                Walk(page, desk.origin, "clinic", look).whole(table)
                page.goto(f"{desk.origin}/series/{SERIES}")
                page.click("form button")
                page.wait_for_selector("main .bars")
                look("series")
                page.close()


def begin_series(folder: Path) -> None:
    """Publish three months of one table, by commands."""
    (folder / "roles.toml").write_text(SERIES_ROLES, encoding="utf-8")
    commands = [["series", "new", SERIES, "--roles", "roles.toml", "--l", "2"]]
    for month in ("2026-01", "2026-02", "2026-03"):
        n_rows = 300 + 100 * len(commands)
        german_table(folder / f"{month}.csv", n_rows=n_rows, seed=6)
        given = ["--series", SERIES, "--out", month, "--release", f"{month}/released.csv"]
        commands.append(["run", f"{month}.csv", *given, "--quiet"])
    for words in commands:
        command = [sys.executable, "-m", "verix_anon", *words]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def _put_together(page: Page) -> None:
    """Open the groups of the postcodes, and drag two into one."""
    row = page.locator("tr[data-name=plz]")
    row.locator("summary").click()
    row.locator("[data-groups]").click()
    page.locator("dialog [data-value='10117']").drag_to(page.locator("[data-value='10115']"))


def _keep(page: Page, name: str, language: str, out: Path, *, is_whole: bool = True) -> None:
    """Pictures of a page, small; not the whole page if it lies under a dialogue."""
    for look in LOOKS:
        page.set_viewport_size({"width": look.width, "height": HEIGHT})
        page.emulate_media(color_scheme=look.scheme)
        shot = Image.open(io.BytesIO(page.screenshot(full_page=is_whole))).convert("RGB")
        path = out / f"desk-{name}{language}{look.ending}.png"
        shown = shot.crop((0, 0, shot.width, min(shot.height, look.tallest)))
        shown.quantize(64).save(path, optimize=True)
        size = path.stat().st_size
        assert size <= MOST_BYTES, f"{path}: {size:,} bytes"
        print(f"{path}: {size:,} bytes")
    page.set_viewport_size({"width": 1280, "height": HEIGHT})
    page.emulate_media(color_scheme="light")


def gallery() -> Iterator[str]:
    """Yield the lines of the page that shows all pictures."""
    yield "# The desk: pictures of every page"
    yield ""
    yield "[The desk](desk.md) says what each page is for."
    for name, title in PICTURES.items():
        yield ""
        yield f"## {title}"
        for width in (1280, 390):
            shown = [
                (f"{spoken}, {look.said}", f"{language}{look.ending}")
                for language, spoken in LANGUAGES.values()
                for look in LOOKS
                if look.width == width
            ]
            yield ""
            yield f"| {' | '.join(said for said, _ in shown)} |"
            yield f"| {' | '.join('---' for _ in shown)} |"
            cells = (f"![{title}, {said}](../images/desk-{name}{end}.png)" for said, end in shown)
            yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    take_pictures(Path(sys.argv[1]))
    (Path(sys.argv[1]).parent / "how-to" / "desk-pictures.md").write_text(
        "\n".join([*gallery(), ""]), encoding="utf-8"
    )

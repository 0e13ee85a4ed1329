"""The desk in a real browser: the whole journey, for everybody, and whatever a table holds."""

import csv
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import BrowserType, Locator, Route

from cli import jobs
from desk.browsing import wait_for
from desk.visiting import OUTSIDE, Visit, check_everybody
from service.running import running
from tools import hospital
from tools.browser import driver, needs_chromium
from tools.desk import Service, Walk, german_table
from tools.desk_process import Served, serving
from verix_anon.client.job import JourneyState, look_at
from verix_anon.client.table.roles_file import read_roles
from verix_anon.files.job_folder import MANIFEST
from verix_anon.files.tables import read_table

pytestmark = [needs_chromium, pytest.mark.long]
ALL_PAGES = [
    *("begin", "table", "columns", "privacy", "prepare"),
    *("send", "verdict", "release", "released", "jobs"),
]
RINGED = """() => {
  const style = getComputedStyle(document.activeElement);
  const box = document.activeElement.getBoundingClientRect();
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
    && box.width > 0 && box.right > 0 && box.bottom > 0 && box.top < innerHeight;
}"""
RUNS = "window.hacked=1"
HOSTILE = [f"<img src=x onerror={RUNS}>", f'"><b onclick={RUNS}>', f"</td><script>{RUNS}</script>"]


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserType]:
    with driver() as found:
        yield found


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("desk")) as found:
        yield found


def check_released(path: Path) -> None:
    """At least five records share each class."""
    table = read_table(path)
    assert table.num_rows == 600
    hidden = {"Patientennummer", "Diagnose", "Rückfall"}
    names = [name for name in table.column_names if name not in hidden]
    sizes = table.group_by(names).aggregate([([], "count_all")])["count_all"].to_pylist()
    assert min(sizes) >= 5
    assert len(sizes) > 1


@pytest.mark.long
def test_the_whole_journey_here_in_german_for_everybody(
    browser: BrowserType, desk: Served, tmp_path: Path
) -> None:
    looked: list[str] = []
    with Visit(browser, desk, "de") as page:

        def look(name: str) -> None:
            looked.append(name)
            assert page.locator("html").get_attribute("lang") == "de"
            assert "verix-anon " in page.inner_text("#command code")
            check_everybody(page)

        walk = Walk(page, desk.origin, "hier", look)
        walk.whole(german_table(tmp_path / "hier.csv", seed=1)).save_as(tmp_path / "out.csv")
        assert "freigegeben" in page.locator("[data-job]", has_text="hier").inner_text()
    assert looked == ALL_PAGES
    check_released(tmp_path / "out.csv")


@pytest.mark.long
def test_the_whole_journey_with_a_service(
    browser: BrowserType, desk: Served, tmp_path: Path
) -> None:
    with running(tmp_path / "service") as service, Visit(browser, desk) as page:
        given = Service(service.url, service.token())
        walk = Walk(page, desk.origin, "sent", lambda name: None)
        walk.whole(german_table(tmp_path / "sent.csv", seed=2), given).save_as(tmp_path / "o.csv")
        assert "released" in page.locator("[data-job]", has_text="sent").inner_text()
        assert given.token not in page.content()
    check_released(tmp_path / "o.csv")


COUNT = """() => {
  const add = (n) => { sessionStorage.clicks = Number(sessionStorage.clicks || 0) + n; };
  addEventListener("click", (event) => { if (event.isTrusted) add(1); }, true);
  // A list is opened, and one of its lines is chosen.
  addEventListener("change", (event) => { if (event.target.matches("select")) add(2); }, true);
}"""
READ = """() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  const lists = [...document.querySelectorAll(".glossary")];
  for (const list of lists) list.hidden = true;
  const text = document.querySelector("main").innerText;
  for (const list of lists) list.hidden = false;
  for (const details of document.querySelectorAll("details")) details.open = false;
  return text;
}"""
"""All that a page says, but for its list of words."""
EXPLAINED = {
    "k": r"\bk\b(?!\.A\.)",
    "l": r"\bl\b",
    "cap": r"\bcap\b",
    "traps": r"\b(trap|sentinel|twin|[Tt]est record)s?\b|Testdatens|Wächter",
    "loss": r"\bNCP\b",
    "class": r"\b[Cc]lass(es)?\b|\bKlassen?\b",
    "sheet": r"\bprivacy sheet\b|\bSchutzblatt\b",
    "manifest": r"\b[Mm]anifest\b",
    "receipt": r"\breceipt\b|\bQuittung\b",
    "tracker": r"\btracker\b",
    "model": r"\b(SHAP|AUC|F1)\b",
    "quasi": r"\b[Qq]uasi-[Ii]dentifi",
    "target": r"\btarget\b|\bZiel(spalte)?\b",
}
"""Words that a newcomer does not know, by their entry; a tree's words are on one page alone."""


@pytest.mark.parametrize(("language", "width"), [("en", 390), ("de", 1280)])
def test_a_newcomer_publishes_the_hospital_table_with_15_clicks(
    browser: BrowserType, desk: Served, language: str, width: int
) -> None:
    name = f"hospital-{language}"
    hospital.write(desk.folder / f"{name}.csv", 1_500, language=language)
    visit = Visit(browser, desk, language)
    visit.context.add_init_script(f"({COUNT})()")
    with visit as page:
        page.set_viewport_size({"width": width, "height": 800})
        walk = Walk(page, desk.origin, name, lambda name: None)

        def press(button: str, then: str) -> None:
            page.click(button)
            walk.until(then)
            text = page.evaluate(READ)
            assert page.evaluate(OUTSIDE) <= 0, page.url
            entries = page.locator(".glossary [data-term]").evaluate_all(
                "all => all.map(one => one.dataset.term)"
            )
            found = {term for term, words in EXPLAINED.items() if re.search(words, text)}
            assert found <= {*entries}, page.url

        page.reload()
        page.fill("#name", name)
        press("form[action='/jobs'] button", "#table")
        page.select_option("#table", f"{name}.csv")
        press("[value=draft]", "#role-0")
        press("[value=on]", "#try-k")
        press("[value=internal]", ".cards .chosen .share")
        press("[value=on]", "#becomes")
        press("form[action$='/prepare'] button", "#glimpse")
        press("form[action$='/anonymize'] button", "#profile")
        press("form[action$='/verdict'] button", "#layers")
        press("main a[href$='/release']", "#require-k")
        press("form[action$='/preview'] > button", "#records")
        press("form[action$='/release'] button", "#released")
        with page.expect_download():
            page.click("a[href$='released.csv']")
        assert 0 < int(page.evaluate("sessionStorage.clicks")) <= 15


def drafted(desk: Served, name: str, seed: int) -> Path:
    """A job that a command began."""
    table = german_table(desk.folder / f"{name}.csv", seed=seed)
    (desk.folder / name).mkdir()
    assert jobs.exit_code("init", table, "--out", desk.folder / name / "roles.toml") == 0
    return desk.folder / name


@pytest.mark.long
def test_a_job_that_was_begun_here_is_finished_by_commands(
    browser: BrowserType, desk: Served, tmp_path: Path
) -> None:
    table, job = german_table(tmp_path / "begun.csv", seed=3), desk.folder / "begun"
    with Visit(browser, desk) as page:
        walk = Walk(page, desk.origin, "begun", lambda name: None)
        walk.begin()
        walk.table(table)
        walk.columns()
        kept, roles = desk.folder / "begun.csv", job / "roles.toml"
        assert jobs.exit_code("prepare", kept, "--roles", roles, "--out", job) == 0
        finish(job, kept)
        page.goto(desk.origin)
        assert "released" in page.locator("[data-job]", has_text="begun").inner_text()
        walk.goto("release")
        assert page.locator("#released").is_visible()
    check_released(job / "released.csv")


def finish(job: Path, table: Path) -> None:
    """All that follows on a submission, by commands."""
    delivery, verdict, known = (
        job / "delivery",
        job / "verdict.json",
        ("--manifest", job / MANIFEST),
    )
    assert jobs.exit_code("anonymize", job / "submission", "--out", delivery) == 0
    less = ("--submission", job / "submission", "--skip", "fingerprint,utility")
    assert jobs.exit_code("verify", delivery, *known, *less, "--out", verdict) == 0
    given = ("--verdict", verdict, "--table", table, "--out", job / "released.csv")
    assert jobs.exit_code("release", delivery, *known, *given) == 0


@pytest.mark.long
def test_a_hostile_table_that_a_command_prepared_is_text_on_every_page(
    browser: BrowserType, desk: Served
) -> None:
    table, job = desk.folder / f"<img src=x onerror={RUNS}>.csv", desk.folder / "hostile"
    with table.open("w") as file:
        writer = csv.writer(file)
        writer.writerow(HOSTILE)
        writer.writerows([1950 + i % 40, HOSTILE[i % 3], HOSTILE[i // 9 % 2]] for i in range(200))
    job.mkdir()
    assert jobs.exit_code("init", table, "--out", job / "roles.toml") == 0
    with Visit(browser, desk) as page:
        walk = Walk(page, desk.origin, "hostile", lambda name: None)
        for step in ("table", "columns", "privacy", "send"):
            walk.goto(step)
            assert page.locator("#main").get_by_text(HOSTILE[2]).count(), step
        given = ("--roles", job / "roles.toml", "--out", job)
        assert jobs.exit_code("prepare", table, *given) == 0
        assert jobs.exit_code("anonymize", job / "submission", "--out", job / "delivery") == 0
        walk.goto("verdict")
        walk.verdict()
        walk.release()
        assert page.locator("#main").get_by_text(HOSTILE[2]).count()
        assert page.evaluate("window.hacked") is None
    assert look_at(job).state is JourneyState.RELEASED


def test_values_are_put_into_groups_by_drag_by_key_and_by_lists(
    browser: BrowserType, desk: Served
) -> None:
    table, job = german_table(desk.folder / "grouped.csv", seed=4), desk.folder / "grouped"
    job.mkdir()
    roles, overview = job / "roles.toml", job / "overview.json"
    assert jobs.exit_code("init", table, "--out", roles, "--overview", overview) == 0
    with Visit(browser, desk) as page:
        walk = Walk(page, desk.origin, "grouped", lambda name: None)
        walk.goto("columns")
        row = page.locator("tr[data-name=plz]")
        row.locator("summary").click()
        row.locator("[data-groups]").click()
        dialog = page.locator("dialog[open]")
        dialog.wait_for()

        def chip(value: str) -> Locator:
            return dialog.locator(f"[data-value='{value}']")

        def boxes() -> list[list[str]]:
            return [
                [str(one.get_attribute("data-value")) for one in box.locator("[data-value]").all()]
                for box in dialog.locator(".box").all()
            ]

        assert boxes() == [["10115", "10117", "20095", "50667", "80331"]]
        chip("10117").drag_to(chip("10115"))
        assert boxes() == [["20095", "50667", "80331"], ["10115", "10117"]]
        check_everybody(page)
        chip("80331").focus()
        page.keyboard.press("Enter")
        assert page.evaluate(RINGED)
        page.keyboard.press("Escape")
        assert dialog.is_visible(), "it only puts the value back"
        for value in ("80331", "20095"):
            chip(value).focus()
            page.keyboard.press(" ")
        assert boxes() == [["50667"], ["10115", "10117"], ["20095", "80331"]]
        assert chip("80331").evaluate("one => one === document.activeElement")
        page.select_option("#groups-what", "50667")
        page.select_option("#groups-where", label="Group 1")
        dialog.get_by_role("button", name="Move").click()
        chip("80331").click()
        dialog.get_by_role("button", name="Put it here").click()
        assert boxes() == [["20095", "80331"], ["10115", "10117", "50667"]]
        chip("20095").drag_to(chip("80331"))
        check_everybody(page)
        with page.expect_response("**/advice"):
            dialog.get_by_role("button", name="Use these groups").click()
        assert page.locator("p.problem").count() == 0
        walk.submit("columns", "[value=on]")
        walk.until("#try-k")
    west, east = "10115, 10117, 50667", "20095, 80331"
    found = read_roles(roles)[1].hierarchy("PLZ").levels
    assert found == {
        **dict.fromkeys(west.split(", "), (west,)),
        **dict.fromkeys(east.split(", "), (east,)),
    }
    assert jobs.exit_code("prepare", table, "--roles", roles, "--out", job) == 0


def test_the_second_tab_is_told(browser: BrowserType, desk: Served) -> None:
    job = drafted(desk, "two", seed=6)
    visit = Visit(browser, desk)
    with visit as first:
        second = visit.context.new_page()
        for tab in (first, second):
            Walk(tab, desk.origin, "two", lambda name: None).goto("columns")
        first.select_option("#role-3", "kept")
        first.click("[value=stay]")
        first.wait_for_selector("#role-3 [value=kept][selected]", state="attached")
        second.select_option("#person", "record")
        second.click("[value=stay]")
        second.wait_for_selector("ins")
        assert '"PLZ" = "kept"' in second.locator("ins").first.inner_text()
        assert 'person = "record"' not in re.sub("#.*", "", (job / "roles.toml").read_text())
        check_everybody(second)
        second.click("main button.second")
        second.wait_for_selector("#person [value=record][selected]", state="attached")


class Keys(Walk):
    """The same way, without a mouse; whatever has the focus is seen to have it."""

    def tab_to(self, selector: str) -> None:
        self.page.wait_for_load_state()
        for _ in range(200):
            self.page.keyboard.press("Tab")
            assert self.page.evaluate(RINGED), self.page.evaluate(
                "document.activeElement.outerHTML"
            )
            if self.page.locator(f"{selector}:focus").count():
                return
        raise AssertionError(f"no way to {selector}")

    def press(self, selector: str, then: str) -> None:
        self.tab_to(selector)
        self.page.keyboard.press("Enter")
        self.until(then)


@pytest.mark.long
def test_the_keyboard_is_enough(browser: BrowserType, desk: Served, tmp_path: Path) -> None:
    german_table(desk.folder / "keys.csv", seed=11)
    with Visit(browser, desk) as page:
        keys = Keys(page, desk.origin, "keys", lambda name: None)
        page.keyboard.press("Tab")
        assert page.locator("a.skip:focus").count()
        assert page.evaluate(RINGED)
        page.keyboard.press("Enter")
        assert page.locator("main:focus").count()
        keys.tab_to("#name")
        page.keyboard.type("keys")
        page.keyboard.press("Enter")
        page.wait_for_selector("#table")
        keys.tab_to("#table")
        page.keyboard.type("keys")
        page.wait_for_selector("#rows table")
        keys.press("[value=draft]", "#role-0")
        keys.tab_to("#person")
        page.keyboard.press("ArrowDown")
        keys.press("[value=on]", "#try-k")
        keys.press("[value=internal]", "#settings")
        keys.press("[value=on]", "#becomes")
        keys.press("form[action$='/prepare'] button", "#glimpse")
        keys.press("form[action$='/anonymize'] button", "#profile")
        keys.press("form[action$='/verdict'] button", "#layers")
        keys.press("main a[href$='/release']", "#require-k")
        keys.press("form[action$='/preview'] button", "#records")
        keys.press("form[action$='/release'] button", "#released")
        keys.tab_to("a[href$='released.csv']")
        with page.expect_download() as found:
            page.keyboard.press("Enter")
        found.value.save_as(tmp_path / "out.csv")
    check_released(tmp_path / "out.csv")


def test_a_command_that_fails_says_why_to_everybody(browser: BrowserType, desk: Served) -> None:
    drafted(desk, "fails", seed=12)
    with Visit(browser, desk) as page:
        walk = Walk(page, desk.origin, "fails", lambda name: None)
        walk.goto("privacy")
        page.fill("#try-k", "100000")
        walk.submit("explore")
        page.wait_for_selector("pre.said")
        check_everybody(page)


def test_of_quick_changes_only_the_last_is_previewed(browser: BrowserType, desk: Served) -> None:
    drafted(desk, "quick", seed=13)
    asked: list[Route] = []
    with Visit(browser, desk) as page:
        page.route("**/privacy/preview", lambda route: asked.append(route))
        with page.expect_request("**/privacy/preview"):
            Walk(page, desk.origin, "quick", lambda name: None).goto("privacy")
        page.click("details:has(#k) > summary")
        for k in ("6", "7", "8"):
            page.fill("#k", k)
            page.dispatch_event("#k", "change")
        assert len(asked) == 1
        asked[0].fulfill(body="<div id=ahead>the first</div>")
        while len(asked) < 2:
            page.wait_for_timeout(50)
        asked[1].fulfill(body="<div id=ahead>the last</div>")
        page.wait_for_selector("#ahead:has-text('the last')")
        assert len(asked) == 2
        assert "k=8" in str(asked[1].request.post_data)


def test_closing_the_browser_in_the_middle_loses_nothing(
    browser: BrowserType, desk: Served
) -> None:
    german_table(desk.folder / "closed.csv", seed=7)
    (desk.folder / "closed").mkdir()
    with Visit(browser, desk) as page:
        page.goto(f"{desk.origin}/jobs/closed/table?table=closed.csv")
        page.click("[value=draft]")
        page.wait_for_selector("[data-events]")
        check = partial(look_at, desk.folder / "closed")
        assert check().state is JourneyState.NEW
    wait_for(lambda: check().state is JourneyState.DRAFTED)
    with Visit(browser, desk) as page:
        page.click("a[href='/jobs/closed']")
        page.wait_for_selector("#role-0")


MANY = ",".join(map(str, range(5, 60)))
"""So many k that trying them takes until somebody cancels it."""


def cancel(browser: BrowserType, desk: Served, name: str) -> None:
    """In another tab."""
    with Visit(browser, desk) as page:
        page.goto(f"{desk.origin}/jobs/{name}/table")
        page.click("form[action$='/task/cancel'] button")
        page.wait_for_selector(".task:not([data-events])")


@pytest.mark.parametrize("is_well", [True, False], ids=["well", "badly"])
def test_what_is_being_edited_outlives_the_end_of_a_task(
    browser: BrowserType, desk: Served, is_well: bool
) -> None:
    name = f"edited-{is_well}".lower()
    job = drafted(desk, name, seed=9)
    with Visit(browser, desk) as page:
        walk = Walk(page, desk.origin, name, lambda name: None)
        walk.goto("privacy")
        page.fill("#try-k", "5" if is_well else MANY)
        walk.submit("explore")
        page.wait_for_selector("[data-events]")
        # Only then its script has run.
        page.wait_for_load_state()
        page.click("details:has(#k) > summary")
        page.fill("#k", "17")
        if not is_well:
            cancel(browser, desk, name)
        page.wait_for_selector(".task [role=status] a")
        assert page.input_value("#k") == "17"
        assert page.locator(".task progress, .task button").count() == 0
        assert (job / "explore.json").exists() is is_well
        check_everybody(page)
        page.click(".task a")
        page.wait_for_selector("#settings" if is_well else "#task-title", state="attached")


@pytest.mark.parametrize(("step", "form"), [("columns", "columns"), ("send", "prepare")])
def test_a_form_is_not_sent_again_when_a_task_ends_badly(
    browser: BrowserType, desk: Served, step: str, form: str
) -> None:
    name = f"again-{step}"
    job, posted = drafted(desk, name, seed=10), []
    with Visit(browser, desk) as page:
        walk = Walk(page, desk.origin, name, lambda name: None)
        walk.goto("privacy")
        page.fill("#try-k", MANY)
        walk.submit("explore")
        page.wait_for_selector("[data-events]")
        walk.goto(step)
        (job / "roles.toml").write_text((job / "roles.toml").read_text() + "# changed\n")
        page.on("request", lambda asked: posted.append(asked) if asked.method == "POST" else None)
        page.locator(f"form[action$='/{form}'] button").last.click()
        page.wait_for_selector(".task[data-events] ~ p.problem[role=alert]")
        check_everybody(page)
        cancel(browser, desk, name)
        page.wait_for_selector(".task:not([data-events])")
        assert page.url == f"{desk.origin}/jobs/{name}/{step}"
        assert page.locator("p.problem[role=alert]").count() == 0
        check_everybody(page)
        walk.goto("nothing")
        check_everybody(page)
    assert len(posted) == 1


def test_a_tab_that_nobody_sees_listens_to_nothing(browser: BrowserType, desk: Served) -> None:
    """A browser has six connections to a server, which tabs in the back would use up."""
    german_table(desk.folder / "hidden.csv", seed=8)
    (desk.folder / "hidden").mkdir()
    visit = Visit(browser, desk)
    visit.context.add_init_script(
        "Object.defineProperty(document, 'hidden', {get: () => !sessionStorage.seen})"
    )
    with visit as page:
        page.goto(f"{desk.origin}/jobs/hidden/table?table=hidden.csv")
        page.click("[value=draft]")
        page.wait_for_selector("[data-events]")
        wait_for(lambda: look_at(desk.folder / "hidden").state is JourneyState.DRAFTED)
        page.wait_for_timeout(500)
        assert page.locator("[data-events]").count() == 1
        page.evaluate(
            "sessionStorage.seen = 1; document.dispatchEvent(new Event('visibilitychange'))"
        )
        page.wait_for_selector("#role-0")

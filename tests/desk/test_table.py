"""The page of the table: its first rows as read, the draft of its columns, and hostile content."""

import re
import sys
from pathlib import Path

import pytest

from desk.browsing import Browser, Given, Shown, wait_for
from verix_anon.client.job import JourneyState, look_at
from verix_anon.client.table.roles_file import read_reading
from verix_anon.parent_process import SEEN

GERMAN = "Name;Geburt;Größe;Raucher\n" + "".join(
    f"Person {i};{i % 28 + 1:02}.03.19{50 + i % 40};1,{60 + i % 30};{'ja' if i % 3 else 'nein'}\n"
    for i in range(60)
)
HOSTILE = '"<script>alert(1)</script>",\'"><img src=x onerror=y>\n' + '"</td><b>&amp;",<i>\n' * 5
COMMAND = "verix-anon init people.csv --out job/roles.toml"


@pytest.fixture
def folder(given: Given) -> Path:
    (given.desk.folder / "job").mkdir()
    (given.desk.folder / "people.csv").write_text(GERMAN, encoding="windows-1252")
    return given.desk.folder


def digest(html: str) -> str:
    found = re.search(r'name="digest" value="(\w*)"', html)
    assert found is not None
    return found.group(1)


def draft(given: Given, browser: Browser, **fields: str) -> None:
    page = browser.get("/jobs/job/table").text
    answer = browser.submit("/jobs/job/table", {"do": "draft", "digest": digest(page), **fields})
    assert answer.status_code == 303, answer.text
    wait_for(lambda: not given.desk.tasks.of("job").is_running)  # type: ignore[union-attr]
    task = given.desk.tasks.of("job")
    assert task is not None
    assert task.code == 0, task.lines
    assert task.then == "/jobs/job/columns"


def test_the_first_rows_are_shown_as_read(browser: Browser, folder: Path) -> None:
    (folder / "other.parquet").touch()
    page = browser.get("/jobs/job/table?table=people.csv").text
    words = Shown(page).words
    assert {"Größe", "Person 0", "1950-03-01", "1.6", "Person 19"} <= set(words)
    assert "Person 20" not in words
    assert "semicolons, Windows-1252, decimal comma, dates dd.mm.yyyy" in page
    assert [one["value"] for one in Shown(page).all("option") if one.get("value")][:3] == [
        *(",", ";", "tab")
    ]
    assert COMMAND in page


def test_the_sample_of_a_job_is_not_listed_as_a_table(browser: Browser, folder: Path) -> None:
    (folder / "job" / "sample.arrow").touch()
    assert "job/sample.arrow" in browser.get("/jobs/job/table").text
    (folder / "job" / "overview.json").touch()
    assert "job/sample.arrow" not in browser.get("/jobs/job/table").text


def test_what_is_said_of_the_table_changes_the_rows_at_once(browser: Browser, folder: Path) -> None:
    query = "table=people.csv"
    page = browser.get(f"/jobs/job/table?{query}&delimiter=|").text
    assert "Name;Geburt;Größe;Raucher" in Shown(page).words
    assert f"{COMMAND} --delimiter" in page
    page = browser.get(f"/jobs/job/table?{query}&encoding=UTF-8").text
    assert "is not UTF-8 text" in page
    page = browser.get(f"/jobs/job/table?{query}&decimal=.").text
    assert "1,60" in Shown(page).words
    page = browser.get(f"/jobs/job/table?{query}&decimal=x").text
    assert "decimal must be one of" in page


def test_words_that_mean_missing_are_said(given: Given, browser: Browser, folder: Path) -> None:
    query = "table=people.csv&null=nein|%20x"
    page = browser.get(f"/jobs/job/table?{query}").text
    assert "nein" not in Shown(page).words
    assert "--null &#39;&#39; --null nein --null x" in page
    draft(given, browser, table="people.csv", null="nein")
    assert read_reading(folder / "job/roles.toml").null_tokens == ("", "nein")
    again = browser.get("/jobs/job/table").text
    assert 'name="null" value="nein"' in again
    kept = {"do": "keep", "digest": digest(again), "table": "people.csv", "null": "nein | ja"}
    assert browser.submit("/jobs/job/table", kept).status_code == 303
    assert read_reading(folder / "job/roles.toml").null_tokens == ("", "nein", "ja")


def test_a_button_shows_the_rows_too(browser: Browser, folder: Path) -> None:
    answer = browser.submit(
        "/jobs/job/table", {"do": "show", "table": "people.csv", "delimiter": ";"}
    )
    assert answer.status_code == 303
    assert answer.headers["location"] == "/jobs/job/table?table=people.csv&delimiter=%3B"


def test_columns_are_drafted_by_the_command_that_is_shown(
    given: Given, browser: Browser, folder: Path
) -> None:
    draft(given, browser, table="people.csv", decimal=",", date_format="dd.mm.yyyy")
    task = given.desk.tasks.of("job")
    assert task is not None
    assert task.shown == (
        "verix-anon init people.csv --out job/roles.toml --decimal , --date-format dd.mm.yyyy"
        " --overview job/overview.json"
    )
    shown = browser.get("/jobs/job/columns").text
    assert {"1.6", "1950-03-01"} <= set(Shown(shown).words)
    assert Shown(shown).all("svg")
    job = look_at(folder / "job")
    assert (job.state, job.table) == (JourneyState.DRAFTED, folder / "people.csv")
    assert read_reading(folder / "job/roles.toml").decimal == ","
    page = browser.get("/jobs/job/table").text
    assert "1950-03-01" in Shown(page).words, "as the roles file says"


def test_only_the_reading_is_changed(given: Given, browser: Browser, folder: Path) -> None:
    draft(given, browser, table="people.csv")
    roles = folder / "job" / "roles.toml"
    roles.write_text(roles.read_text().replace('"Name" = "identifier"', '"Name" = "kept"'))
    page = browser.get("/jobs/job/table").text
    fields = {"do": "keep", "digest": digest(page), "table": "people.csv"}
    fields |= {"delimiter": ";", "decimal": ",", "encoding": "ISO-8859-15"}
    fields |= {"date_format": "dd.mm.yyyy"}
    assert browser.submit("/jobs/job/table", fields).status_code == 303
    assert '"Name" = "kept"' in roles.read_text()
    reading = read_reading(roles)
    assert (reading.encoding, reading.date_format) == ("ISO-8859-15", "dd.mm.yyyy")
    assert (reading.dates, reading.delimiter, reading.decimal) == ({}, ";", ",")


def test_what_is_to_be_recognised_is_said_no_more(
    given: Given, browser: Browser, folder: Path
) -> None:
    draft(given, browser, table="people.csv", decimal=",", date_format="dd.mm.yyyy")
    roles = folder / "job" / "roles.toml"
    assert "date_format" in roles.read_text()
    fields = {"do": "keep", "digest": digest(browser.get("/jobs/job/table").text)}
    fields |= {"table": "people.csv", "delimiter": ";", "encoding": "windows-1252"}
    answer = browser.submit("/jobs/job/table", {**fields, "decimal": "", "date_format": ""})
    assert answer.status_code == 303
    reading = read_reading(roles)
    assert (reading.decimal, reading.date_format) == (None, None)
    assert (reading.delimiter, reading.encoding) == (";", "windows-1252")


@pytest.mark.parametrize("said", [True, False])
def test_another_table_can_have_the_same_columns(
    given: Given, browser: Browser, folder: Path, *, said: bool
) -> None:
    draft(given, browser, table="people.csv")
    roles = folder / "job" / "roles.toml"
    if not said:
        roles.write_text(re.sub("(?m)^table = .*\n", "", roles.read_text()))
    columns = roles.read_text().split("[columns]")[1].split("[contract]")[0]
    (folder / "next").mkdir()
    (folder / "next" / "people.csv").write_text(GERMAN, encoding="windows-1252")
    fields = {"do": "keep", "digest": digest(browser.get("/jobs/job/table").text)}
    answer = browser.submit("/jobs/job/table", {**fields, "table": "next/people.csv"})
    assert answer.status_code == 303
    assert look_at(folder / "job").table == folder / "next" / "people.csv"
    assert columns in roles.read_text()


def test_a_second_writer_is_told(given: Given, browser: Browser, folder: Path) -> None:
    draft(given, browser, table="people.csv")
    roles = folder / "job" / "roles.toml"
    old = digest(browser.get("/jobs/job/table").text)
    roles.write_text(roles.read_text().replace("k = 5", "k = 7"))
    for do in ("keep", "draft"):
        fields = {"do": do, "digest": old, "table": "people.csv", "encoding": "UTF-8"}
        answer = browser.submit("/jobs/job/table", fields)
        assert answer.status_code == 409
        assert "k = 7" in roles.read_text()
        assert 'encoding = "UTF-8"' not in roles.read_text()
        again = {
            str(one["name"]): str(one["value"])
            for one in Shown(answer.text).all("input")
            if one["name"] != "csrf"
        }
        assert again["digest"] != old
    again["do"] = "keep"
    assert browser.submit("/jobs/job/table", again).status_code == 303
    assert 'encoding = "UTF-8"' in roles.read_text()


def test_a_draft_is_told_what_it_may_replace(given: Given, browser: Browser, folder: Path) -> None:
    draft(given, browser, table="people.csv")
    seen = digest(browser.get("/jobs/job/table").text)
    says = f"import os, sys; print(os.environ[{SEEN!r}], file=sys.stderr)"
    given.desk.tasks.program = (sys.executable, "-c", says)
    draft(given, browser, table="people.csv")
    task = given.desk.tasks.of("job")
    assert task is not None
    assert list(task.lines) == [seen]
    assert seen not in task.shown


@pytest.mark.parametrize(
    "table", ["../secret.csv", "/etc/passwd", "link.csv", "nothing.csv", "job", ".", "", "a\0b"]
)
def test_a_table_outside_the_folder_is_not_read(
    given: Given, browser: Browser, folder: Path, table: str
) -> None:
    (folder.parent / "secret.csv").write_text("secret\nword\n")
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    page = browser.get("/jobs/job/table", params={"table": table})
    assert "word" not in Shown(page.text).words
    answer = browser.submit("/jobs/job/table", {"do": "draft", "table": table, "digest": ""})
    assert answer.status_code == 400 or table == "job"
    if table == "job":
        wait_for(lambda: not given.desk.tasks.of("job").is_running)  # type: ignore[union-attr]
    assert not (folder / "job" / "roles.toml").exists()


def test_html_in_a_table_is_text(browser: Browser, folder: Path) -> None:
    (folder / "<b>.csv").write_text(HOSTILE)
    page = browser.get("/jobs/job/table", params={"table": "<b>.csv"}).text
    shown = Shown(page)
    assert "</td><b>&amp;" in shown.words
    assert "<script>alert(1)</script>" in shown.words
    assert [one["src"] for one in shown.all("script")] == ["/static/desk.js"]
    assert not [tag for tag, _ in shown.tags if tag in ("b", "i", "img")]
    assert not [one for _, attributes in shown.tags for one in attributes if one.startswith("on")]


def test_a_name_like_an_option_is_a_name(given: Given, browser: Browser, folder: Path) -> None:
    (folder / "--overwrite.csv").write_text(GERMAN)
    draft(given, browser, table="--overwrite.csv")
    assert look_at(folder / "job").table == folder / "--overwrite.csv"


def test_a_prepared_job_keeps_its_table(browser: Browser, folder: Path) -> None:
    (folder / "job" / "manifest.verix").touch()
    page = browser.get("/jobs/job/table?table=people.csv").text
    assert "This job is prepared" in page
    answer = browser.submit("/jobs/job/table", {"do": "draft", "table": "people.csv"})
    assert answer.status_code == 400
    assert not (folder / "job" / "roles.toml").exists()

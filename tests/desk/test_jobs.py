"""The list of jobs: what lies in the folder, and nothing of what its names hold comes alive."""

import pytest

from cli import jobs
from desk.browsing import Browser, Given, Shown

HOSTILE = "<img src=x onerror=alert(1)>"


def test_jobs_are_listed_with_their_state(given: Given, browser: Browser) -> None:
    folder = given.desk.folder
    assert "There is no job" in browser.get("/").text
    (folder / "first").mkdir()
    (folder / "second").mkdir()
    (folder / "second" / "roles.toml").write_text("k = 5\n")
    words = Shown(browser.get("/").text).words
    assert [word for word in words if word in ("first", "new", "second", "columns proposed")] == [
        *("first", "new", "second", "columns proposed")
    ]


def test_a_job_stays_listed_when_its_table_is_put_into_it(given: Given, browser: Browser) -> None:
    for name in ("people.csv", ".hidden"):
        (given.desk.folder / "first").mkdir(exist_ok=True)
        (given.desk.folder / "first" / name).touch()
        assert "first" in Shown(browser.get("/").text).words
    (given.desk.folder / "first" / "notes.pdf").touch()
    assert "first" not in Shown(browser.get("/").text).words


def test_a_job_is_begun_by_the_command_that_is_shown(given: Given, browser: Browser) -> None:
    shown = "mkdir NAME && verix-anon init TABLE --out NAME/roles.toml"
    assert shown in Shown(browser.get("/").text).words
    (given.desk.folder / "people.csv").write_text("age,rich\n" + "1,0\n2,1\n" * 20)
    begun = given.desk.folder / "begun"
    begun.mkdir()
    table = given.desk.folder / "people.csv"
    assert jobs.exit_code("init", table, "--out", begun / "roles.toml") == 0
    assert "columns proposed" in Shown(browser.get("/").text).words


def test_an_example_is_begun_and_found_again(given: Given, browser: Browser) -> None:
    answer = browser.submit("/example", {})
    assert answer.headers["location"] == "/jobs/example/table?table=example.csv"
    assert "income" in browser.get(answer.headers["location"]).text
    table = given.desk.folder / "example.csv"
    table.write_text("mine")
    assert browser.submit("/example", {}).headers["location"] == "/jobs/example"
    assert table.read_text() == "mine"


def test_a_job_is_begun(given: Given, browser: Browser) -> None:
    answer = browser.submit("/jobs", {"name": " Aufnahmen 2024 "})
    assert answer.status_code == 303
    made = given.desk.folder / "Aufnahmen 2024"
    assert made.stat().st_mode & 0o777 == 0o700
    again = browser.submit("/jobs", {"name": "Aufnahmen 2024"})
    assert again.status_code == 400
    assert "already" in again.text


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        "a/b",
        "../x",
        "/etc",
        "a\\b",
        "a\0b",
        HOSTILE,
        ".x",
        "-x",
        "x" * 81,
        "NUL",
        "com1.x",
    ],
)
def test_what_is_no_name_makes_no_folder(given: Given, browser: Browser, name: str) -> None:
    answer = browser.submit("/jobs", {"name": name})
    assert answer.status_code == 400
    assert not list(given.desk.folder.iterdir())
    assert "img" not in [tag for tag, _ in Shown(answer.text).tags]


def test_html_in_names_is_text(given: Given, browser: Browser) -> None:
    (given.desk.folder / HOSTILE).mkdir()
    (given.desk.folder / HOSTILE / "roles.toml").write_text("not toml")
    answer = browser.get("/")
    shown = Shown(answer.text)
    assert HOSTILE in shown.words
    assert not shown.all("img")
    assert not shown.all("script")[1:]


@pytest.mark.parametrize(
    "path", ["/nothing", "/jobs/nothing", "/jobs/%2e%2e", "/jobs/.hidden", "/static/x"]
)
def test_what_is_not_there_is_not_found(given: Given, browser: Browser, path: str) -> None:
    (given.desk.folder / ".hidden").mkdir()
    answer = browser.get(path)
    assert answer.status_code == 404
    assert "There is no such page" in answer.text


def test_a_link_that_leads_out_of_the_folder_is_no_job(given: Given, browser: Browser) -> None:
    outside = given.desk.folder.parent / "outside"
    outside.mkdir()
    (outside / "roles.toml").write_text("k = 5\n")
    (given.desk.folder / "link").symlink_to(outside)
    assert "link" not in Shown(browser.get("/").text).words
    assert browser.get("/jobs/link").status_code == 404

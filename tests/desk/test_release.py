"""Release: what was previewed is published, once, and nothing else can be downloaded."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from cli import jobs
from desk.browsing import Browser, Given, Shown, wait_for
from verix_anon.client.release.preview import Preview
from verix_anon.desk.pages import release

SAYS = "import sys; print(sys.argv[1:])"


@pytest.fixture(scope="module")
def judged(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job with a verdict, and a look at its release."""
    home = tmp_path_factory.mktemp("judged")
    shutil.copytree(prepared, home, dirs_exist_ok=True)
    (home / "job/roles.toml").write_text('table = "../people.parquet"\n')
    verify, out = jobs.verify_arguments(home), home / "verdict.json"
    jobs.exit_code(*verify, "--skip", "fingerprint,utility", "--out", out)
    look = ("--l", "2", "--require", "k=5", "--preview", home / "job/preview.json")
    assert jobs.exit_code(*jobs.release_arguments(home), *look) == 0
    shutil.move(out, home / "job/verdict.json")
    return home


@pytest.fixture
def folder(judged: Path, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    shutil.copytree(judged, given.desk.folder, dirs_exist_ok=True)
    return given.desk.folder / "job"


def digest(browser: Browser) -> str:
    fields = Shown(browser.get("/jobs/job/release").text).all("input")
    return str(next(field["value"] for field in fields if field.get("name") == "digest"))


def words(browser: Browser) -> tuple[str, ...]:
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    wait_for(lambda: not task.is_running)
    assert task.code == 0, task.lines
    return task.words


def test_what_would_be_published_is_shown(folder: Path, browser: Browser) -> None:
    text = browser.get("/jobs/job/release").text
    found = Preview.from_json((folder / "preview.json").read_text())
    shown = Shown(text)
    for line in (*found.facts.values(), *found.warnings):
        assert line in shown.words
    assert len(shown.all("del")) == 10 * sum(not column.is_same for column in found.columns)
    assert str(folder.parent) in text
    charts = [a for a in shown.all("svg") if a.get("class") == "bars"]
    assert len(charts) == sum(len(loss.bars) > 1 for loss in found.losses) > 0
    assert all(loss.column in shown.words for loss in found.losses)
    assert "Share of the rows before and after the release." in str(charts[0]["aria-label"])
    values = {str(field.get("name")): field.get("value") for field in shown.all("input")}
    assert (values["l"], values["require-k"], values["require-t"]) == ("2", "5", "")


def test_without_a_look_nothing_can_be_published(folder: Path, browser: Browser) -> None:
    seen = digest(browser)
    (folder / "preview.json").unlink()
    text = browser.get("/jobs/job/release").text
    assert 'name="digest"' not in text
    assert (
        "release job/delivery --manifest job/manifest.verix --verdict job/verdict.json --table"
        " people.parquet --preview job/preview.json" in text
    )
    answer = browser.submit("/jobs/job/release", {"digest": seen, "format": "csv"})
    assert answer.status_code == 409
    assert browser.given.desk.tasks.of("job") is None


def test_a_look_that_another_tab_took_is_not_published_unseen(
    folder: Path, browser: Browser
) -> None:
    seen = digest(browser)
    other = (folder / "preview.json").read_text().replace('"l": {', '"t": {')
    (folder / "preview.json").write_text(other)
    answer = browser.submit("/jobs/job/release", {"digest": seen, "format": "csv"})
    assert answer.status_code == 409
    assert "has changed since" in answer.text
    (folder / "preview.json").write_text(other.replace('"root": "', '"root": "0', 1))
    assert 'name="digest"' not in browser.get("/jobs/job/release").text


def test_exact_ends_are_released_as_they_were_looked_at(folder: Path, browser: Browser) -> None:
    text = (folder / "preview.json").read_text()
    (folder / "preview.json").write_text(
        text.replace('"options": {', '"options": {"exact_ends": true, ', 1)
    )
    browser.given.desk.tasks.program = (sys.executable, "-c", SAYS)
    fields = Shown(browser.get("/jobs/job/release").text).all("input")
    chosen = next(field for field in fields if field.get("name") == "exact_ends")
    assert "checked" in chosen
    asked = {"digest": digest(browser), "format": "csv"}
    assert browser.submit("/jobs/job/release", asked).status_code == 303
    assert "--exact-ends" in words(browser)


def test_a_remedy_is_a_button_that_only_looks(
    folder: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_unsent", lambda _: ["<b>ill", "cost"])
    found = json.loads((folder / "preview.json").read_text())
    learns = "Anyone learns it. To prevent it, release with --l "
    found["warnings"] = [
        "75% are singled out; the most telling column is 'cost'",
        f"One value of column '<b>ill'. {learns}'<b>ill=2'.",
        f"One value of the target. {learns}2.",
    ]
    (folder / "preview.json").write_text(json.dumps(found))
    shown = Shown(browser.get("/jobs/job/release").text)
    # The first is what Enter presses: it asks for no remedy.
    buttons = [b.get("value") for b in shown.all("button") if b.get("form") == "look"]
    assert buttons == [None, "auto-1", "drop-1", "hide-0", "drop-0", "hide"]
    assert not shown.all("b")
    browser.given.desk.tasks.program = (sys.executable, "-c", SAYS)
    assert browser.submit("/jobs/job/preview", {"do": "drop-1"}).status_code == 303
    assert words(browser)[-2:] == ("--drop", "cost")
    assert browser.submit("/jobs/job/preview", {"do": "hide-0"}).status_code == 303
    assert words(browser)[-2:] == ("--l", "<b>ill=2")
    assert browser.submit("/jobs/job/preview", {"do": "hide"}).status_code == 303
    assert words(browser)[-2:] == ("--l", "2")
    assert "--preview" in words(browser)
    assert "--out" not in words(browser)


def test_a_gate_that_is_not_reached_has_no_button(folder: Path, browser: Browser) -> None:
    text = (folder / "preview.json").read_text()
    (folder / "preview.json").write_text(text.replace('"missed": []', '"missed": ["k is 5"]'))
    shown = browser.get("/jobs/job/release").text
    assert "k is 5" in shown
    assert 'name="digest"' not in shown


def test_what_is_asked_becomes_a_command(folder: Path, browser: Browser) -> None:
    browser.given.desk.tasks.program = (sys.executable, "-c", SAYS)
    fields = {"as": "set", "l": "2", "t": "0,5", "keep_order": "1", "exact_ends": "1"}
    fields |= {"require-singled-out": "0.1", "require-bound-owners": "0.2"}
    assert browser.submit("/jobs/job/preview", fields).status_code == 303
    assert words(browser)[10:] == (
        *("--overwrite", "--as", "set", "--l", "2", "--t", "0.5", "--exact-ends"),
        *("--keep-order", "--require", "singled-out=0.1", "--require", "bound-owners=0.2"),
    )
    fields = {"digest": digest(browser), "format": "xlsx"}
    assert browser.submit("/jobs/job/release", fields).status_code == 303
    assert words(browser)[8:] == (
        *("--out", "job/released.xlsx", "--privacy-sheet", "job/sheet.json"),
        *("--l", "income=2", "--require", "k=5"),
    )
    for wrong in ({"l": "x"}, {"require-k": "--force"}):
        assert browser.submit("/jobs/job/preview", wrong).status_code == 400
    fields = {"digest": digest(browser), "format": "csv --force"}
    assert browser.submit("/jobs/job/release", fields).status_code == 400


def test_a_table_is_released_once_and_downloaded(folder: Path, browser: Browser) -> None:
    fields = {"digest": digest(browser), "format": "csv"}
    assert browser.submit("/jobs/job/release", fields).status_code == 303
    words(browser)
    text = browser.get("/jobs/job/release").text
    assert "This table was released" in text
    assert 'name="digest"' not in text
    for name in ("released.csv", "released.schema.json"):
        answer = browser.get(f"/jobs/job/released/{name}")
        assert answer.content == (folder / name).read_bytes()
        assert "attachment" in answer.headers["content-disposition"]
    for name in ("manifest.verix", "preview.json", "sheet.json", "..%2Fpeople.parquet"):
        assert browser.get(f"/jobs/job/released/{name}").status_code == 404
    assert browser.submit("/jobs/job/release", fields).status_code == 404
    assert browser.submit("/jobs/job/preview", {}).status_code == 404


def test_nothing_is_released_that_did_not_pass(folder: Path, browser: Browser) -> None:
    (folder / "verdict.json").unlink()
    assert browser.get("/jobs/job/release").status_code == 404
    for path in ("release", "preview"):
        assert browser.submit(f"/jobs/job/{path}", {"format": "csv"}).status_code == 404


def test_a_job_whose_roles_lie_beside_it_is_released_with_the_table_that_is_chosen(
    folder: Path, browser: Browser
) -> None:
    """As the quick start begins one."""
    (folder / "roles.toml").rename(folder.parent / "roles.toml")
    shown = Shown(browser.get("/jobs/job/release").text)
    chosen = [one["id"] for one in shown.all("select") if one["name"] == "table"]
    assert chosen == ["table-release", "table-preview"]
    hrefs = [link.get("href") for link in shown.all("a")]
    assert "/jobs/job/verdict" in hrefs
    assert "/jobs/job/privacy" not in hrefs
    fields = {"digest": digest(browser), "format": "csv"}
    for wrong in ({}, {"table": "TABLE"}, {"table": "../people.parquet"}, {"table": "job"}):
        for path in ("preview", "release"):
            assert browser.submit(f"/jobs/job/{path}", {**fields, **wrong}).status_code == 400
    assert browser.given.desk.tasks.of("job") is None
    given = {"table": "people.parquet"}
    assert browser.submit("/jobs/job/preview", given).status_code == 303
    assert words(browser)[6:8] == ("--table", "./people.parquet")
    fields = {"digest": digest(browser), "format": "csv", **given}
    assert browser.submit("/jobs/job/release", fields).status_code == 303
    words(browser)
    assert "This table was released" in browser.get("/jobs/job/release").text


def test_remedies_are_options_of_the_look(
    folder: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if these columns were never sent.
    monkeypatch.setattr(release, "_unsent", lambda verdict: ["commute_km", "region"])
    fields = Shown(browser.get("/jobs/job/release").text).all("select")
    assert {"remedy-0", "remedy-1"} <= {field.get("name") for field in fields}
    filled = {"bins": "age=10 ,birth_date=5y", "suppress": "2,5", "remedy-0": "drop"}
    assert browser.submit("/jobs/job/preview", filled | {"round-1": "5"}).status_code == 303
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    assert task.words[task.words.index("--round") + 1] == "region=5"
    wait_for(lambda: not task.is_running)
    assert browser.submit("/jobs/job/preview", filled).status_code == 303
    told = words(browser)
    assert told[told.index("--bins") + 1] == "age=10,birth_date=5y"
    assert told[told.index("--suppress") + 1] == "2.5%"
    assert told[told.index("--drop") + 1] == "commute_km"
    again = Shown(browser.get("/jobs/job/release").text)
    values = {str(field.get("name")): field.get("value") for field in again.all("input")}
    assert values["suppress"] == "2.5"
    assert values["bins"] == "age=10, birth_date=5y"
    browser.submit("/jobs/job/release", {"digest": digest(browser), "format": "csv"})
    published = words(browser)
    for option in ("--bins", "--suppress", "--drop"):
        assert option in published
    assert "commute_km" not in (folder / "released.csv").read_text().splitlines()[0]

"""Send: the roles that were shown are prepared, and a token is in no command, page or file."""

import io
import os
import shutil
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from desk.browsing import Browser, Given, Shown, wait_for
from verix_anon.desk.pages.send import foreseen
from verix_anon.parent_process import SEEN

SAYS = "import os, sys; print(len(os.environ.get('VERIX_TOKEN', '')), file=sys.stderr)"
TOKEN = "vx_secret_token"
ROLES = """k = 3
target = "rich"
table = "../people.csv"
[columns]
name = "identifier"
age = "quasi"
"<b>city" = "quasi"
note = "kept"
[contract]
person = "record"
"""


@pytest.fixture
def folder(given: Given) -> Path:
    """A job whose columns are drafted."""
    home = given.desk.folder
    rows = [f"p{i},{20 + i % 40},{'ab'[i % 2]},n{i % 3},{i % 2}\n" for i in range(120)]
    (home / "people.csv").write_text("name,age,<b>city,note,rich\n" + "".join(rows))
    (home / "job").mkdir()
    (home / "job" / "roles.toml").write_text(ROLES)
    return home / "job"


@pytest.fixture
def ready(prepared: Path, given: Given) -> Path:
    """A job that is prepared."""
    shutil.copytree(prepared / "job", given.desk.folder / "job")
    shutil.rmtree(given.desk.folder / "job" / "delivery")
    return given.desk.folder / "job"


def digest(browser: Browser) -> str:
    fields = Shown(browser.get("/jobs/job/send").text).all("input")
    return str(next(field["value"] for field in fields if field.get("name") == "digest"))


def ended(browser: Browser) -> int | None:
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    wait_for(lambda: not task.is_running)
    return task.code


def test_what_becomes_of_the_columns_is_told_before(folder: Path, browser: Browser) -> None:
    answer = browser.get("/jobs/job/send")
    shown = Shown(answer.text)
    assert "<b>city" in shown.words
    assert not shown.all("b")
    assert "verix-anon prepare people.csv --roles job/roles.toml --out job" in answer.text
    assert foreseen(folder / "roles.toml") == {
        "Dropped for good": ["name"],
        "Sent as positions": ["age", "<b>city"],
        "Kept back, joined at release": ["rich", "note"],
    }
    text = ROLES + 'rule = "variance-reduction"\nclear = true\n'
    (folder / "roles.toml").write_text(text)
    assert foreseen(folder / "roles.toml")["Sent as they are"] == ["rich", "age", "<b>city"]


def test_a_job_is_prepared_and_shown_as_the_provider_sees_it(
    folder: Path, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERIX_LEDGER", str(tmp_path / "ledger.jsonl"))
    answer = browser.submit("/jobs/job/prepare", {"digest": digest(browser)})
    assert answer.headers["location"] == "/jobs/job/send"
    assert ended(browser) == 0, browser.given.desk.tasks.of("job").lines  # type: ignore[union-attr]
    text = browser.get("/jobs/job/send").text
    assert "The provider sees 2 columns as positions" in text
    words = Shown(text).words
    assert {"q0", "q1"} <= set(words)
    assert "<b>city" not in words
    assert str(folder / "submission") in words
    assert "verix-anon anonymize job/submission --out job/delivery" in text
    assert "verix-anon submit job/submission --url URL --out job/delivery" in text
    assert browser.submit("/jobs/job/prepare", {"digest": "x"}).status_code == 400
    assert browser.submit("/jobs/job/anonymize", {}).status_code == 303
    assert ended(browser) == 0
    assert "A delivery is here" in browser.get("/jobs/job/send").text
    assert browser.get("/jobs/job/verdict").status_code == 200


def test_who_is_who_is_asked_for_the_report(folder: Path, browser: Browser) -> None:
    browser.given.desk.tasks.program = (sys.executable, "-c", "import sys; print(sys.argv[1:])")
    said = {"controller": "--Klinik <b>", "processor": " ", "table_name": "for research"}
    assert browser.submit("/jobs/job/prepare", {"digest": digest(browser), **said})
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    assert task.words[-2:] == ("--table-name=for research", "--controller=--Klinik <b>")
    ended(browser)
    (folder / "roles.toml").write_text(ROLES + '[report]\ncontroller = "City <b>"\n')
    assert 'value="City &lt;b&gt;"' in browser.get("/jobs/job/send").text


def test_the_command_is_told_which_roles_were_shown(folder: Path, browser: Browser) -> None:
    program = f"import os, sys; print(os.environ[{SEEN!r}], *sys.argv[1:], file=sys.stderr)"
    browser.given.desk.tasks.program = (sys.executable, "-c", program)
    seen = digest(browser)
    browser.submit("/jobs/job/prepare", {"digest": seen, "passphrase": "word"})
    assert ended(browser) == 0
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    assert task.lines[0].split()[:2] == [seen, "prepare"]
    assert seen not in task.shown


def test_roles_that_changed_are_not_prepared_unseen(folder: Path, browser: Browser) -> None:
    seen = digest(browser)
    (folder / "roles.toml").write_text(ROLES.replace("kept", "quasi"))
    answer = browser.submit("/jobs/job/prepare", {"digest": seen})
    assert answer.status_code == 409
    assert "has changed since" in answer.text
    assert browser.given.desk.tasks.of("job") is None
    assert digest(browser) != seen


def test_a_table_that_the_roles_do_not_name_is_asked_for(folder: Path, browser: Browser) -> None:
    browser.given.desk.tasks.program = (sys.executable, "-c", SAYS)
    (folder / "roles.toml").write_text(ROLES.replace('table = "../people.csv"\n', ""))
    for page, path in (("send", "prepare"), ("privacy", "explore")):
        shown = Shown(browser.get(f"/jobs/job/{page}").text)
        assert [one["name"] for one in shown.all("select")].count("table") == 1
        fields = {"digest": digest(browser)}
        for wrong in ({}, {"table": "TABLE"}, {"table": "/etc/passwd"}):
            assert browser.submit(f"/jobs/job/{path}", {**fields, **wrong}).status_code == 400
        fields["table"] = "people.csv"
        assert browser.submit(f"/jobs/job/{path}", fields).status_code == 303
        assert ended(browser) == 0
        task = browser.given.desk.tasks.of("job")
        assert task is not None
        assert task.words[:2] == (path, "./people.csv")


def test_a_token_is_nowhere_to_be_seen(ready: Path, browser: Browser) -> None:
    browser.given.desk.tasks.program = (sys.executable, "-c", SAYS)
    fields = {"url": "https://provider.example", "token": TOKEN}
    assert browser.submit("/jobs/job/submit", fields).status_code == 303
    assert ended(browser) == 0
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    assert task.words == (
        *("submit", "job/submission", "--url", "https://provider.example"),
        *("--out", "job/delivery"),
    )
    assert list(task.lines) == [f"{len(TOKEN)}"]
    assert TOKEN not in repr(task) + task.shown + "".join(task.lines)
    assert TOKEN not in browser.get("/jobs/job/send").text
    assert "VERIX_TOKEN" not in os.environ
    for path in browser.given.desk.folder.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "", "token": "x"},
        {"url": "-x", "token": "x"},
        {"url": "file:///etc/passwd", "token": "x"},
        {"url": "https://user:word@provider.example", "token": "x"},
        {"url": "https://provider.example", "token": " "},
        {"url": "https://provider.example", "token": "x", "provider_key": "../key.pub"},
    ],
)
def test_what_cannot_be_sent_starts_nothing(
    ready: Path, browser: Browser, fields: dict[str, str]
) -> None:
    assert browser.submit("/jobs/job/submit", fields).status_code == 400
    assert browser.given.desk.tasks.of("job") is None


def test_the_submission_is_handed_over_whole_and_alone(ready: Path, browser: Browser) -> None:
    answer = browser.get("/jobs/job/submission.zip")
    assert "attachment" in answer.headers["content-disposition"]
    with ZipFile(io.BytesIO(answer.content)) as found:
        names = sorted(path.name for path in (ready / "submission").iterdir())
        assert sorted(found.namelist()) == [f"submission/{name}" for name in names]
        for name in names:
            assert found.read(f"submission/{name}") == (ready / "submission" / name).read_bytes()
    shutil.rmtree(ready / "submission")
    assert browser.get("/jobs/job/submission.zip").status_code == 404
    assert "not here any more" in browser.get("/jobs/job/send").text


def test_a_new_job_has_nothing_to_send(given: Given, browser: Browser) -> None:
    (given.desk.folder / "job").mkdir()
    assert browser.get("/jobs/job/send").status_code == 404

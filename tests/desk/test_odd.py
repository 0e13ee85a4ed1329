"""Fields that no form of the desk sends are mistakes, told in a sentence; nothing is started."""

import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from desk.browsing import ORIGIN, Browser, Given, wait_for
from verix_anon.desk.rendering import Desk
from verix_anon.desk.sessions import Sessions
from verix_anon.desk.tasks import Tasks
from verix_anon.provider.local import LocalProvider

ROLES = 'table = "../t.csv"\nk = 5\ntarget = "b"\n\n[columns]\n"a" = "quasi"\n'
PRIVACY = {"k": "5", "rule": "importance-spread", "traps": "adaptive", "min_leaf": "k"}
TABLE = {"table": "t.csv", "do": "draft"}
SUBMIT = {"url": "http://localhost:1", "token": "t"}
LONG, DIGITS = "a" * 200_000, "9" * 5_000
ODD = [
    ("table", TABLE | {"encoding": "\0"}),
    ("table", TABLE | {"date_format": LONG}),
    ("privacy", PRIVACY | {"k": DIGITS}),
    ("privacy", PRIVACY | {"min_leaf": DIGITS}),
    ("privacy", PRIVACY | {"column": "b", "l-0": "inf"}),
    ("prepare", {"passphrase": "a\0b"}),
    ("prepare", {"passphrase": LONG}),
    ("prepare", {"provider_key": "/etc/passwd"}),
    ("submit", SUBMIT | {"url": "https://["}),
    ("submit", SUBMIT | {"url": "https://me:secret@host"}),
    ("submit", SUBMIT | {"token": "a\0b"}),
]


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    """A desk whose commands take their time."""
    (tmp_path / "job").mkdir()
    (tmp_path / "job/roles.toml").write_text(ROLES)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    tasks = Tasks(tmp_path, (sys.executable, "-c", "input()"))
    try:
        yield Given(Desk(tmp_path, tasks, LocalProvider()), Sessions())
    finally:
        tasks.close()


@pytest.mark.parametrize(("page", "fields"), ODD)
def test_a_mistake_is_told(
    browser: Browser, given: Given, page: str, fields: dict[str, str]
) -> None:
    digest = sha256(ROLES.encode()).hexdigest()
    answer = browser.submit(f"/jobs/job/{page}", {"digest": digest, **fields})
    assert answer.status_code == 400
    assert 'class="problem"' in answer.text
    assert given.desk.tasks.of("job") is None
    assert (given.desk.folder / "job/roles.toml").read_text() == ROLES


def test_a_name_that_is_too_long_is_no_job_and_no_reason_not_to_take_a_file(
    browser: Browser, given: Given
) -> None:
    assert browser.get("/jobs/" + "x" * 300).status_code == 404
    headers = {"Origin": ORIGIN, "X-Verix-Csrf": browser.csrf}
    answer = browser.put(
        "/jobs/job/upload", params={"name": "字" * 100 + ".csv"}, content=b"a\n1\n", headers=headers
    )
    assert (given.desk.folder / answer.json()["table"]).read_bytes() == b"a\n1\n"


@pytest.mark.parametrize("command", ["init", "prepare"])
def test_nobody_writes_the_roles_while_a_command_reads_or_writes_them(
    browser: Browser, given: Given, command: str
) -> None:
    task = given.desk.tasks.start("job", (command,), then="/")
    digest = sha256(ROLES.encode()).hexdigest()
    for page, fields in (
        ("columns", {"column": "a", "role-0": "kept"}),
        ("privacy", PRIVACY | {"k": "6"}),
        ("table", TABLE | {"do": "keep", "decimal": ","}),
    ):
        answer = browser.submit(f"/jobs/job/{page}", {"digest": digest, **fields})
        assert (answer.status_code, "a command runs" in answer.text) == (400, True)
    assert (given.desk.folder / "job/roles.toml").read_text() == ROLES
    task.cancel()
    wait_for(lambda: not task.is_running)
    answer = browser.submit("/jobs/job/privacy", {"digest": digest, **PRIVACY, "k": "6"})
    assert answer.status_code == 303


def test_what_failed_by_itself_is_not_called_cancelled(browser: Browser, given: Given) -> None:
    tasks = Tasks(given.desk.folder, (sys.executable, "-c", "raise SystemExit(2)"))
    task = tasks.start("job", (), then="/")
    wait_for(lambda: not task.is_running)
    task.cancel()
    assert not task.is_cancelled

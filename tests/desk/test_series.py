"""A series at the desk: what was published, and what all of it tells together."""

import os
import re
from html import unescape
from pathlib import Path

import pytest

from cli import jobs
from cli.test_series import ROLES, write_month
from desk.browsing import Browser, Given, Shown
from verix_anon.protocol.series_log import SeriesLog


@pytest.fixture
def folder(given: Given, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desk's folder with a series of two releases, sealed."""
    made = given.desk.folder
    monkeypatch.setenv("VERIX_LEDGER", str(made / "ledger.jsonl"))
    monkeypatch.setenv("VERIX_PASSPHRASE", "a long passphrase")
    (made / "roles.toml").write_text(ROLES)
    new = ("series", "new", made / "monthly", "--roles", made / "roles.toml", "--seal")
    assert jobs.exit_code(*new) == 0
    for month in (1, 2):
        words = ("--series", made / "monthly", "--out", made / f"job{month}")
        table, out = write_month(made, month), made / f"released{month}.csv"
        assert jobs.exit_code("run", table, *words, "--release", out, "--quiet") == 0
    monkeypatch.delenv("VERIX_PASSPHRASE")
    return made


def test_a_series_shows_its_releases_and_what_they_tell(folder: Path, browser: Browser) -> None:
    first = browser.get("/").text
    assert 'href="/series/monthly"' in first
    assert "2 releases so far" in first
    assert 'data-job="monthly"' not in first, "it is not a job, though it has a roles file"
    page = browser.get("/series/monthly")
    assert page.text.count('<th scope="row">') == 2
    told = browser.submit("/series/monthly", {"passphrase": "a long passphrase"})
    words = " ".join(Shown(told.text).words)
    assert told.status_code == 200
    assert "Below l" in words
    assert 'class="bars"' in told.text
    refused = browser.submit("/series/monthly", {"passphrase": "another one"})
    assert refused.status_code == 400
    assert 'href="/language/de?back=/series/monthly"' in refused.text
    assert "Below l" not in " ".join(Shown(refused.text).words)
    # Only a series of the folder is shown.
    for name in ("job1", "%2e%2e%2fmonthly", "none", "."):
        assert browser.get(f"/series/{name}").status_code in (307, 404)
    (folder / "monthly" / "series.json").write_text("{}")
    assert browser.get("/series/monthly").status_code == 400
    assert browser.get("/").status_code == 200


def test_odd_names_are_quoted_or_left_out(given: Given, browser: Browser) -> None:
    home = given.desk.folder
    for name in (b"a b; $(id)", b".hidden", b"gr\xfcn"):
        folder = Path(os.fsdecode(os.fsencode(home) + b"/" + name))
        folder.mkdir()
        (folder / "series.json").write_text(SeriesLog(()).to_json())
    (home / "link").symlink_to(home / "a b; $(id)")
    front = browser.get("/")
    assert front.status_code == 200
    assert re.findall(r'href="/series/([^"]+)"', front.text) == ["a%20b%3B%20%24%28id%29"]
    page = browser.get("/series/a%20b%3B%20%24%28id%29")
    assert "--series './a b; $(id)' --out JOB" in unescape(page.text)

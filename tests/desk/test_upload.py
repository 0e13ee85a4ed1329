"""A dropped file: streamed beside its name, never over another, never more than there is room."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from desk.browsing import ORIGIN, Browser, Given
from verix_anon.files import desk_folder


@pytest.fixture
def folder(given: Given) -> Path:
    (given.desk.folder / "job").mkdir()
    return given.desk.folder


def put(
    browser: Browser, name: str, content: bytes | Iterator[bytes]
) -> tuple[int, dict[str, str]]:
    answer = browser.put(
        "/jobs/job/upload",
        params={"name": name},
        content=content,
        headers={"Origin": ORIGIN, "X-Verix-Csrf": browser.csrf},
    )
    return answer.status_code, answer.json()


def test_a_file_is_copied_and_never_replaces_another(browser: Browser, folder: Path) -> None:
    assert put(browser, "people.csv", b"a,b\n") == (200, {"table": "people.csv"})
    assert put(browser, "people.csv", iter([b"c,", b"d\n"])) == (200, {"table": "people-2.csv"})
    assert (folder / "people.csv").read_bytes() == b"a,b\n"
    assert (folder / "people-2.csv").read_bytes() == b"c,d\n"
    assert (folder / "people.csv").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("../../x.csv", "x.csv"),
        ("C:\\fakepath\\y.csv", "y.csv"),
        (".hidden.csv", "hidden.csv"),
        ("-rf.csv", "rf.csv"),
        ("a\0b<i>.csv", "a_b_i_.csv"),
        ("Ärzte 2024.csv", "Ärzte 2024.csv"),
        ("x" * 300 + ".csv", "x" * 116 + ".csv"),
        # Windows takes these for devices, and what follows a colon for a hidden part of a file.
        ("Con.csv", "table-Con.csv"),
        ("lpt1 .v2.csv", "table-lpt1 .v2.csv"),
        ("console.csv", "console.csv"),
        ("a.csv:b.csv", "a.csv_b.csv"),
    ],
)
def test_names_are_cleaned(browser: Browser, folder: Path, given_name: str, name: str) -> None:
    assert put(browser, given_name, b"a\n1\n") == (200, {"table": name})
    assert (folder / name).is_file()


@pytest.mark.parametrize(
    "name", ["", "x", "x.py", ".verix-desk.url", "x.exe", "x.csv/", "roles.toml"]
)
def test_what_is_no_table_is_not_taken(browser: Browser, folder: Path, name: str) -> None:
    status, said = put(browser, name, b"a\n")
    assert status == 400
    assert said["problem"]
    assert [path.name for path in folder.iterdir()] == ["job"]


def test_the_disk_is_not_filled(
    browser: Browser, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_folder, "LEFT_FREE", 1 << 60)
    status, said = put(browser, "x.csv", b"a\n")
    assert status == 400
    assert "there is no room" in said["problem"]
    monkeypatch.setattr(desk_folder, "LOOK_EVERY", 10)
    monkeypatch.setattr(desk_folder, "LEFT_FREE", 0)

    def pieces() -> Iterator[bytes]:
        yield b"a" * (1 << 20)
        monkeypatch.setattr(desk_folder, "LEFT_FREE", 1 << 60)
        yield b"a" * (1 << 20)

    assert put(browser, "x.csv", pieces())[0] == 400
    assert [path.name for path in folder.iterdir()] == ["job"]


def test_it_needs_the_word_of_the_session(browser: Browser, folder: Path) -> None:
    for headers in ({"Origin": ORIGIN}, {"X-Verix-Csrf": browser.csrf}):
        answer = browser.put("/jobs/job/upload?name=x.csv", content=b"a", headers=headers)
        assert answer.status_code == 403
    assert not (folder / "x.csv").exists()

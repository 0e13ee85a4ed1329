"""Names that somebody gave stay within their folder, and what is listed is what may be a table."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from verix_anon.errors import TableError
from verix_anon.files import desk_folder as module
from verix_anon.files.desk_folder import clean_name, inside, tables_in


def test_only_what_lies_in_the_folder_is_found(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "deep").mkdir(parents=True)
    for path in (home / "a.csv", home / "deep" / "b.csv", tmp_path / "out.csv"):
        path.touch()
    (home / "in.csv").symlink_to("deep/b.csv")
    (home / "out.csv").symlink_to("../out.csv")
    (home / "loop.csv").symlink_to("loop.csv")
    assert inside(home, "a.csv") == home / "a.csv"
    assert inside(home, "deep/../a.csv") == home / "a.csv"
    assert inside(home, "in.csv") == home / "deep" / "b.csv"
    assert inside(home, str(home / "a.csv")) == home / "a.csv"
    for name in ("out.csv", "../out.csv", "loop.csv", "none.csv", "", ".", "..", "/", "a\0b"):
        with pytest.raises(TableError):
            inside(home, name)


def test_tables_are_listed_by_their_endings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("job/submission", "job/delivery", ".hidden", "a/b/c"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("people.CSV", "notes.md", "a/x.parquet", "a/b/y.xlsx", "a/b/c/deep.csv"):
        (tmp_path / name).touch()
    for name in ("job/submission/records.parquet", ".hidden/z.csv", ".z.csv"):
        (tmp_path / name).touch()
    (tmp_path / "link.csv").symlink_to("people.CSV")
    assert tables_in(tmp_path) == ["a/b/y.xlsx", "a/x.parquet", "people.CSV"]
    monkeypatch.setattr(module, "MOST_LISTED", 2)
    assert len(tables_in(tmp_path)) == 2


def test_a_name_that_is_all_ending_is_refused() -> None:
    assert clean_name("///.csv") == "csv"
    with pytest.raises(TableError, match="too long"):
        clean_name("x." + "y" * 200)


def test_a_name_has_room_for_its_bytes() -> None:
    assert clean_name("字" * 100 + ".csv") == "字" * 38 + ".csv"


def test_what_cannot_be_read_or_shown_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").touch()
    (tmp_path / "theirs").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/gr\xfcn.csv")).touch()
    listed = os.scandir

    def denied(path: Path) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "theirs":
            raise PermissionError
        return listed(path)

    monkeypatch.setattr(os, "scandir", denied)
    assert tables_in(tmp_path) == ["a.csv"]

"""By the ending of its name: Feather, Arrow, what is not taken, and what is not installed."""

import gzip
import re
import sys
from pathlib import Path

import fsspec
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest

from verix_anon.errors import TableError
from verix_anon.files import optional_packages
from verix_anon.files.tables import file_kinds, read_table, write_table

TABLE = pa.table({"a": [1, None], "code": ["007", "1"]})


def test_arrow_files_and_streams(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(TABLE, tmp_path / "t.feather", compression="zstd")
    pl.from_arrow(TABLE).write_ipc(tmp_path / "t.arrow")  # type: ignore[union-attr]
    pl.from_arrow(TABLE).write_ipc_stream(tmp_path / "t.arrows")  # type: ignore[union-attr]
    pl.from_arrow(TABLE).write_ipc_stream(tmp_path / "t.ipc")  # type: ignore[union-attr]
    for name in ("t.feather", "t.arrow", "t.arrows", "t.ipc"):
        assert read_table(tmp_path / name).to_pydict() == TABLE.to_pydict(), name


def test_the_first_feather_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.feather").write_bytes(b"FEA1" + b"\0" * 100)
    with pytest.raises(TableError, match="the first version of Feather"):
        read_table(tmp_path / "t.feather")


@pytest.mark.parametrize("ending", sorted(file_kinds.NOT_TAKEN))
def test_other_kinds_are_refused_with_a_way_out(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"people{ending}"
    path.write_bytes(b"something")
    with pytest.raises(TableError) as caught:
        read_table(path)
    said = str(caught.value).removeprefix(str(path))
    assert said.startswith((" is ", " holds "))
    assert ";" in said
    assert "\n" not in said


CONTENTS = {
    "t.xlsx": "is a zip, as spreadsheets are, by",
    "t.parquet": "is Parquet by",
    "t.feather": "is an Arrow file by",
    "t.sav": "is SPSS by",
    "t.dta": "is Stata by",
    "t.csv": "is text by",
    "t.csv.gz": "is packed by gzip by",
}


@pytest.mark.parametrize("real", CONTENTS)
def test_files_under_the_name_of_another_kind(tmp_path: Path, real: str) -> None:
    if real.endswith(".gz"):
        (tmp_path / real).write_bytes(gzip.compress(b"a,b\n1,2\n"))
    else:
        write_table(TABLE, tmp_path / real)
    for other in CONTENTS:
        if other == real:
            continue
        path = tmp_path / f"other{other.removeprefix('t')}"
        path.write_bytes((tmp_path / real).read_bytes())
        with pytest.raises(TableError) as caught:
            read_table(path)
        said = str(caught.value)
        ending = real.removeprefix("t")
        if (real, other) == ("t.csv", "t.csv.gz"):
            assert said.endswith("is not packed by gzip; leave out .gz in its name")
        else:
            assert CONTENTS[real].removesuffix(", by") in said
            assert said.endswith(
                f"by its content, whatever its name says; give it a name in {ending}"
            )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"%PDF-1.4\n", "is a PDF by its content"),
        (b"<!DOCTYPE html>\n<html>", "is a web page by its content"),
        (b"SQLite format 3\0", "is a database by its content"),
    ],
)
def test_what_is_no_table_by_its_content(tmp_path: Path, content: bytes, said: str) -> None:
    for name in ("t.csv", "t.xlsx", "t.parquet", "t.sav", "t.arrow"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TableError, match=rf"{name} {said}.*;"):
            read_table(tmp_path / name)


@pytest.mark.parametrize("name", ["people", "people.unheard", ".hidden", "people."])
def test_names_that_tell_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(TableError, match=r"is not named like a table; .*\.csv, .*\.sas7bdat"):
        read_table(tmp_path / name)


def test_folders(tmp_path: Path) -> None:
    for name in ("folder", "folder.xlsx", "folder.sav", "folder.feather"):
        (tmp_path / name).mkdir()
        with pytest.raises(TableError, match="is a folder, not a table"):
            read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("t.xlsx", "python_calamine", "excel"),
        ("t.sav", "pyreadstat", "statistics"),
        ("postgresql://owner:hidden@host/db?table=t", "adbc_driver_postgresql", "sql"),
    ],
)
def test_what_is_not_installed_is_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
) -> None:
    monkeypatch.setattr(
        optional_packages, "find_spec", lambda asked: None if asked == package else asked
    )
    with pytest.raises(TableError) as caught:
        read_table(name)
    assert re.search(
        rf"{re.escape(sys.executable)} -m pip install .*\[{extra}\]", str(caught.value)
    )
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("t.xlsx", "xlsxwriter", "excel"),
        ("t.sav", "pyreadstat", "statistics"),
        ("t.dta", "polars", "statistics"),
    ],
)
def test_what_is_not_installed_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
) -> None:
    monkeypatch.setattr(
        optional_packages, "find_spec", lambda asked: None if asked == package else asked
    )
    with pytest.raises(TableError, match=rf"-m pip install .*\[{extra}\]"):
        write_table(TABLE, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_spreadsheets_and_statistics_behind_urls(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    try:
        for name in ("t.xlsx", "t.dta"):
            write_table(TABLE, tmp_path / name)
            with memory.open(f"/kinds/{name}", "wb") as file:
                file.write((tmp_path / name).read_bytes())
            assert read_table(f"memory://kinds/{name}").to_pydict() == TABLE.to_pydict()
    finally:
        memory.rm("/kinds", recursive=True)

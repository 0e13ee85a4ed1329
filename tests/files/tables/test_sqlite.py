"""Tables and queries of SQLite, whose cells have types of their own."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from verix_anon.errors import TableError
from verix_anon.files.tables import Reading, read_table, read_table_as


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "my people.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute('CREATE TABLE "the "" people" (plz, age, pay REAL, mixed, big)')
        made.execute("CREATE TABLE t (a INTEGER)")
        rows = [("01067", 33, 1.5, "x", 1), ("10115", None, 2, 7, 2**62), (None, 5, None, b"", 3)]
        made.executemany('INSERT INTO "the "" people" VALUES (?, ?, ?, ?, ?)', rows)
        made.commit()
    return path


def test_a_table_by_its_name(base: Path) -> None:
    read = read_table_as(f"sqlite:///{base}?table=the%20%22%20people")
    table = read.table
    assert table.to_pydict() == {
        "plz": ["01067", "10115", None],
        "age": [33, None, 5],
        "pay": [1.5, 2.0, None],
        "mixed": ["x", "7", ""],
        "big": [1, 2**62, 3],
    }
    assert "column 'mixed' mixes bytes and numbers and text" in read.notes[0]


def test_queries_and_paths(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base.parent)
    query = Reading(query='SELECT age * 2 AS twice FROM "the "" people" ORDER  BY age DESC')
    assert read_table("sqlite:///my%20people.db", query).to_pydict() == {"twice": [66, 10, None]}
    absolute = Reading(query="SELECT 1 AS one")
    assert "no ORDER BY" in read_table_as(f"sqlite:///{base}", absolute).notes[0]
    assert read_table(f"sqlite:///{base}?table=t").to_pydict() == {"a": []}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("DELETE FROM t", "cannot be read|no SELECT"),
        ("CREATE TABLE u (a)", "cannot be read"),
        ("ATTACH 'other.db' AS other", "cannot be read"),
        ("VACUUM INTO 'other.db'", "cannot be read"),
        ("SELECT 1; SELECT 2", "cannot be read"),
        ("SELECT 1 AS a, 2 AS a", "column name 'a' twice"),
        ("nonsense", "cannot be read"),
    ],
)
def test_what_is_no_table(
    base: Path, query: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(base.parent)
    before = base.read_bytes()
    with pytest.raises(TableError, match=said):
        read_table(f"sqlite:///{base}", Reading(query=query))
    assert base.read_bytes() == before
    assert [path.name for path in base.parent.iterdir()] == [base.name]


def test_what_is_not_there(base: Path) -> None:
    with pytest.raises(TableError, match="no such table: nothing"):
        read_table(f"sqlite:///{base}?table=nothing")
    with pytest.raises(TableError, match="names a file that is not there"):
        read_table("sqlite:///nothing.db?table=t")
    with pytest.raises(TableError, match=r"name one table .* or give a query \(--query"):
        read_table(f"sqlite:///{base}")
    with pytest.raises(TableError, match=r"is a database; .*sqlite:///people.db\?table=people"):
        read_table(base)
    base.write_bytes(b"no database at all" * 100)
    with pytest.raises(TableError, match="file is not a database"):
        read_table(f"sqlite:///{base}?table=t")

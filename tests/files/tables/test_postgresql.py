"""Tables and queries of a real PostgreSQL, whose password is never told."""

import datetime as dt
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import cluster
import verix_anon
from verix_anon.errors import TableError
from verix_anon.files.tables import Read, Reading, read_table, read_table_as

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")

WRONG = "wrong-one"
PEOPLE = """
CREATE TABLE people (
  nr int PRIMARY KEY, plz text, age smallint, pay numeric(10, 2), exact numeric, born date,
  seen timestamp, zoned timestamptz, ok boolean, five char(5), cash money, ip inet, id uuid
)
"""
ROWS = """
INSERT INTO people VALUES
 (3, '01067', 33, 1.10, 12345678901234567890123.5, '1990-02-01', '2020-01-02 03:04:05',
  '2020-01-02 03:04:05+02', true, 'ab', 1.50, '10.0.0.1',
  'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),
 (1, '10115', NULL, 'NaN', 7, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


def execute(folder: Path, *commands: str) -> None:
    with (
        closing(dbapi.connect(cluster.url(folder), autocommit=True)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        for command in commands:
            cursor.execute(command)


@pytest.fixture(scope="module")
def server() -> Iterator[Path]:
    with cluster.running() as folder:
        execute(folder, PEOPLE, ROWS, "CREATE SCHEMA other", "CREATE TABLE other.t (a int)")
        execute(folder, 'CREATE TABLE "odd "" name" (a int, b int)', "CREATE VIEW v AS SELECT 1 a")
        execute(folder, 'INSERT INTO "odd "" name" VALUES (2, 1), (1, 2)')
        yield folder


def asked(server: Path, query: str) -> Read:
    return read_table_as(cluster.url(server), Reading(query=query))


def test_a_table_by_its_name(server: Path) -> None:
    read = read_table_as(f"{cluster.url(server)}&table=people")
    table = read.table
    # By the primary key.
    assert table.slice(1).to_pylist() == [
        {
            "nr": 3,
            "plz": "01067",
            "age": 33,
            "pay": Decimal("1.10"),
            "exact": Decimal("12345678901234567890123.5"),
            "born": dt.date(1990, 2, 1),
            "seen": dt.datetime(2020, 1, 2, 3, 4, 5),
            "zoned": dt.datetime(2020, 1, 2, 1, 4, 5, tzinfo=dt.UTC),
            "ok": True,
            "five": "ab",
            "cash": Decimal("1.50"),
            "ip": "10.0.0.1/32",
            "id": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        }
    ]
    first = table.slice(0, 1).to_pylist()[0]
    assert first.pop("nr") == 1
    assert first.pop("plz") == "10115"
    assert first.pop("exact") == 7
    assert set(first.values()) == {None}
    assert read.notes == ()


def test_other_tables(server: Path) -> None:
    url = cluster.url(server)
    odd = f"{url}&table=odd%20%22%20name"
    assert read_table(odd).to_pydict() == {"a": [2, 1], "b": [1, 2]}
    assert read_table(f"{url}&table=other.t").to_pydict() == {"a": []}
    assert read_table(f"{url}&table=v").to_pydict() == {"a": [1]}
    with pytest.raises(TableError, match=r'cannot be read \(.*"nothing" does not exist'):
        read_table(f"{url}&table=nothing")


def test_queries(server: Path) -> None:
    read = asked(server, "SELECT plz, nr::numeric FROM people ORDER BY nr DESC; ")
    table = read.table
    assert table.to_pydict() == {"plz": ["01067", "10115"], "nr": [3, 1]}
    assert table.schema.field("nr").type == pa.int64()
    assert read.notes == ()
    assert "no ORDER BY" in asked(server, "SELECT 1 AS a -- one").notes[0]
    with pytest.raises(TableError, match=r"name one table.*--query"):
        read_table(cluster.url(server))
    with pytest.raises(TableError, match="name one table"):
        read_table(f"{cluster.url(server)}&table=people", Reading(query="SELECT 1"))
    with pytest.raises(TableError, match="column name 'a' twice"):
        asked(server, "SELECT 1 AS a, 2 AS a")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("'infinity'::date", "infinity as a date in column 'x'"),
        ("'-infinity'::date", "infinity as a date in column 'x'"),
        ("'infinity'::timestamp", "infinity as a date in column 'x'"),
        ("'-infinity'::timestamptz", "infinity as a date in column 'x'"),
        ("'infinity'::numeric", "an infinite number in column 'x'"),
        ("10::numeric ^ 90 + 0.5", "numbers of 9[0-9]+ digits|numbers of 1[0-9]+ digits"),
    ],
)
def test_what_is_no_value(server: Path, value: str, said: str) -> None:
    with pytest.raises(TableError, match=said):
        asked(server, f"SELECT {value} AS x")


@pytest.mark.parametrize("value", ["4712-01-01 BC", "9999-12-31", "1582-10-15"])
def test_dates_far_away_are_dates(server: Path, value: str) -> None:
    query = f"SELECT '{value}'::date AS x, '{value}'::timestamp AS y"
    assert len(asked(server, query).table) == 1


def test_nothing_is_written(server: Path) -> None:
    for command in (
        "DELETE FROM people",
        "INSERT INTO people (nr) VALUES (9) RETURNING nr",
        "SELECT 1) AS source; DELETE FROM people; SELECT * FROM (SELECT 1",
        "SELECT nextval('serial')",
    ):
        execute(server, "CREATE SEQUENCE IF NOT EXISTS serial")
        with pytest.raises(TableError, match="cannot be read"):
            asked(server, command)
    assert asked(server, "SELECT count(*) AS n FROM people").table.to_pydict() == {"n": [2]}


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://owner:{}@/postgres?host={}&table=people",
        "postgresql://owner:{}%zz@/postgres?host={}&table=people",
        "postgresql://owner:{} [@/postgres?host={}&table=people",
        "postgres://owner@/postgres?host={1}&password={0}&table=people",
        "postgresql://owner:{0}@/postgres?host={1}&sslpassword={0}&nonsense=1&table=people",
        "postgresql://owner:{}@/postgres?host={}",
        "mysql://owner:{}@host/db?table={}",
        "ftp+x://owner:{}@host/people.csv#{}",
        "https://owner:{}@nowhere.invalid:0/people.docx?{}",
    ],
)
def test_passwords_are_not_told(server: Path, where: str) -> None:
    with pytest.raises(TableError) as caught:
        read_table(where.format(WRONG, server))
    assert WRONG not in "".join(traceback.format_exception(caught.value))


JOURNEY = """
import sys
from verix_anon import cli
sys.argv = ["verix-anon", *sys.argv[1:]]
cli.main()
"""


def test_passwords_enter_no_file_and_no_output(server: Path, tmp_path: Path) -> None:
    execute(server, "DROP TABLE IF EXISTS census")
    columns = "id serial PRIMARY KEY, age int, plz text, income text"
    rows = "SELECT i, 20 + i % 50, lpad((i % 7)::text, 5, '0'), (i % 2)::text"
    execute(server, f"CREATE TABLE census ({columns})")
    execute(server, f"INSERT INTO census {rows} FROM generate_series(1, 300) AS i")
    url = f"{cluster.url(server)}&table=census"
    said = []

    def run(*command: str) -> None:
        environment = {**os.environ, "VERIX_LEDGER": str(tmp_path / "ledger"), "VERIX_DEBUG": "1"}
        done = subprocess.run(
            [sys.executable, "-c", JOURNEY, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout + done.stderr)

    run("init", url, "--out", "roles.toml", "--target", "income")
    run("prepare", url, "--roles", "roles.toml", "--out", "job")
    run("anonymize", "job/submission", "--out", "job/delivery")
    manifest = ("--manifest", "job/manifest.verix")
    run("verify", "job/delivery", *manifest, "--submission", "job/submission", "--out", "v.json")
    run("release", "job/delivery", *manifest, "-v", "v.json", "-t", url, "--out", "r.parquet")
    table = read_table(tmp_path / "r.parquet")
    assert table.num_rows == 300
    assert (tmp_path / "ledger").exists()
    for path in filter(Path.is_file, tmp_path.rglob("*")):
        said.append(path.read_bytes().decode(errors="replace"))
    for text in said:
        for form in (cluster.PASSWORD, "s3cr%2Fet%40pw", "s3cr"):
            assert form not in text
    assert json.dumps(verix_anon.read_manifest(tmp_path / "job" / "manifest.verix").roles)

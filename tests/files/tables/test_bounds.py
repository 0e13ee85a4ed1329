"""Hostile tables are refused in memory that does not grow with them, measured in a process."""

import json
import os
import sqlite3
import struct
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files.tables.test_hostile import SHEET, sav, with_sheet
from verix_anon.errors import TableError
from verix_anon.files.tables import read_table, sql_tables

MIB = 1 << 20
OWN, APART = 200 * MIB, 1_200 * MIB
"""What may be taken beyond what a process has anyway: by ours, and by one that only reads."""
READ = """
import json, resource, sys
from verix_anon.errors import TableError
from verix_anon.files.tables import read_table

def peak(who):
    return resource.getrusage(who).ru_maxrss << 10

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
before, said = peak(resource.RUSAGE_SELF), None
try:
    read_table(sys.argv[1])
except TableError as error:
    said = str(error)
own, apart = peak(resource.RUSAGE_SELF) - before, peak(resource.RUSAGE_CHILDREN)
print(json.dumps({"said": said, "own": own, "apart": max(0, apart - before)}))
"""


def refused(name: str | Path, said: str) -> None:
    """Read it under a limit of the operating system, and look at what that took."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(name)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert said in found["said"]
    assert "\n" not in found["said"]
    assert found["own"] < OWN, found
    assert found["apart"] < APART, found


ENDLESS = {
    "a line": (b"a,b\n1,", b"x"),
    "lines in quotes": (b'a,b\n1,"', b"line\n"),
    "doubled quotes": (b'a,b\n1,"', b'li""ne\n'),
    "a loose quote before": (b'a,b\n5" pipe,1\n1,"', b"line\n"),
    "single quotes": (b"'a','b'\n'1','", b"line\n"),
    "a header": (b"", b"a,"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_text_that_never_ends(tmp_path: Path, kind: str) -> None:
    path, (head, fill) = tmp_path / "t.csv", ENDLESS[kind]
    os.mkfifo(path)
    written = [0]

    def write() -> None:
        piece = fill * (MIB // len(fill))
        with suppress(BrokenPipeError), path.open("wb", buffering=0) as pipe:
            written[0] += pipe.write(head)
            while written[0] < 1 << 30:
                written[0] += pipe.write(piece)

    thread = threading.Thread(target=write)
    thread.start()
    refused(path, "MiB")
    thread.join()
    # Of a field of a gigabyte no more is ever asked for than of a small table.
    assert written[0] < 32 * MIB


def test_a_million_columns_of_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes((b",".join([b"a"] * 1_000_000) + b"\n") * 9)
    refused(path, "has 1,000,000 columns; at most 16,384 are read")


@pytest.mark.long
def test_a_million_columns_of_arrow(tmp_path: Path) -> None:
    schema = pa.schema([(f"c{i}", pa.int8()) for i in range(1_000_000)])
    with pa.ipc.new_stream(tmp_path / "t.arrows", schema):
        pass
    refused(tmp_path / "t.arrows", "has 1,000,000 columns, and a table may have 16,384")
    pq.ParquetWriter(tmp_path / "t.parquet", schema, store_schema=False).close()
    refused(tmp_path / "t.parquet", "t.parquet")


def test_a_million_columns_of_a_sheet(tmp_path: Path) -> None:
    cells = '<row r="1"><c r="A1"><v>1</v></c><c r="BDWGN1"><v>1</v></c></row>'
    path = with_sheet(tmp_path / "t.xlsx", f"{SHEET}{cells}</sheetData></worksheet>".encode())
    refused(path, "t.xlsx")


def test_fields_that_take_little_room_in_a_file(tmp_path: Path) -> None:
    table = pa.table({"a": ["x" * (300 * MIB)]})
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(
        path,
        table.schema,
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(table)
    assert path.stat().st_size < MIB
    refused(path, "unpacks to far more than its")


def test_buffers_that_take_little_room_in_a_file(tmp_path: Path) -> None:
    part = pa.record_batch({"a": ["x" * (64 * MIB)]})
    path, options = tmp_path / "t.feather", pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, part.schema, options=options) as writer:
        for _ in range(40):
            writer.write_batch(part)
    assert path.stat().st_size < MIB
    refused(path, "takes more than")


def test_one_text_in_thousands_of_rows(tmp_path: Path) -> None:
    once = pa.DictionaryArray.from_arrays(pa.array([0] * 4_000, pa.int32()), ["x" * MIB])
    pq.write_table(pa.table({"a": once}), tmp_path / "t.parquet", store_schema=False)
    refused(tmp_path / "t.parquet", "unpacks to far more than its")


def test_headers_that_lie(tmp_path: Path) -> None:
    (tmp_path / "t.sav").write_bytes(sav(2**31 - 1, 2**31 - 1))
    refused(tmp_path / "t.sav", "t.sav")
    head = struct.pack("<BBBBHi", 114, 2, 1, 0, 0xFFFF, 2**31 - 1)
    (tmp_path / "t.dta").write_bytes(head + b"\0" * (81 + 18) + b"\xff" + b"x\0" * 200)
    refused(tmp_path / "t.dta", "t.dta")


def test_a_sheet_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    path = with_sheet(tmp_path / "t.xlsx", b"<row/>" * (30 * MIB))
    refused(path, "unpacks to more than 100 times its")


def test_a_value_of_a_view_that_no_file_holds(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as base:
        base.execute("CREATE VIEW long AS SELECT zeroblob(900000000) AS a")
    refused(f"sqlite:////{tmp_path / 't.db'}?table=long", "too big")


def test_a_view_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_tables, "USUAL", MIB)
    with closing(sqlite3.connect(tmp_path / "t.db")) as base:
        base.execute(
            "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            " SELECT i FROM n"
        )
    with pytest.raises(TableError, match=r"takes more than .* GB to read"):
        read_table(f"sqlite:////{tmp_path / 't.db'}?table=endless")

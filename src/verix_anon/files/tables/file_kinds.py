"""Tell the kind of a file by its name's ending, and say what to do with other kinds."""

import tomllib
from importlib.resources import files
from pathlib import Path, PurePosixPath

from verix_anon.errors import TableError

TAB_SUFFIXES = (".tsv", ".tab", ".tsv.gz", ".tab.gz")
TEXT_SUFFIXES = (".csv", ".txt", ".csv.gz", ".txt.gz", *TAB_SUFFIXES)
PARQUET_SUFFIXES = (".parquet", ".pq")
IPC_SUFFIXES = (".feather", ".arrow", ".arrows", ".ipc")
SHEET_SUFFIXES = (".xlsx", ".xlsm", ".xls", ".ods")
TABLE = "Table"
"""The sheet that holds the table, of a spreadsheet that is written."""
STATISTICS_SUFFIXES = (".sav", ".zsav", ".dta", ".sas7bdat")
TAKEN = TEXT_SUFFIXES + PARQUET_SUFFIXES + IPC_SUFFIXES + SHEET_SUFFIXES + STATISTICS_SUFFIXES

_FILE = tomllib.loads((files("verix_anon.files.tables") / "file_kinds.toml").read_text("utf-8"))
NOT_TAKEN = {ending: kind["way_out"] for kind in _FILE["others"] for ending in kind["endings"]}


def not_taken(name: str) -> TableError:
    """Why a file with that name is not a table here, and what to do."""
    ending = PurePosixPath(name.rstrip("/").lower()).suffix
    if name.partition("://")[0].partition("+")[0].lower() in _FILE["databases"]["schemes"]:
        return TableError(
            f"{name} is a database of a kind that is not read; sqlite and postgresql are, and of"
            " others export the table as .csv or .parquet"
        )
    if way := NOT_TAKEN.get(ending):
        return TableError(f"{name} {way}")
    return TableError(
        f"{name} is not named like a table; the name of one ends in {', '.join(TAKEN)}"
    )


KINDS = (
    (b"PAR1", "Parquet", PARQUET_SUFFIXES),
    (b"ARROW1", "an Arrow file", IPC_SUFFIXES),
    (b"FEA1", "a Feather file", IPC_SUFFIXES),
    (b"PK\x03\x04", "a zip, as spreadsheets are", SHEET_SUFFIXES),
    (b"\xd0\xcf\x11\xe0", "an old Excel file", (".xls", *SHEET_SUFFIXES)),
    (b"$FL2", "SPSS", (".sav", ".zsav")),
    (b"$FL3", "SPSS", (".zsav", ".sav")),
    (b"<stata_dta>", "Stata", (".dta",)),
    (b"\x1f\x8b", "packed by gzip", (".csv.gz", ".gz")),
)
OPEN_IT = "open it in a spreadsheet program, and save it as .xlsx"
OTHERS = (
    (b"%pdf", "a PDF", "copy its table into a spreadsheet, and save that as .xlsx or .csv"),
    (b"<!doctype html", "a web page", OPEN_IT),
    (b"<html", "a web page", OPEN_IT),
    (b"<?xml", "XML", OPEN_IT),
    (b"sqlite format 3", "a database", "name a table of it: sqlite:///people.db?table=people"),
)
BINARY = PARQUET_SUFFIXES + IPC_SUFFIXES + SHEET_SUFFIXES + STATISTICS_SUFFIXES
HEAD = 64
WHATEVER = "by its content, whatever its name says"


def check_content(name: str) -> None:
    """Raise if the file is empty, or plainly of another kind; what cannot be told is let pass."""
    path, lower = Path(name), name.lower()
    if not path.is_file():
        return  # A pipe can be read once only.
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not head:
        raise TableError(f"{name} is empty; it has no header")
    for magic, what, endings in KINDS:
        if head.startswith(magic):
            if lower.endswith(endings):
                return
            raise TableError(f"{name} is {what} {WHATEVER}; give it a name in {endings[0]}")
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for magic, what, way_out in OTHERS:
        if start.startswith(magic):
            raise TableError(f"{name} is {what} {WHATEVER}; {way_out}")
    if lower.endswith(SHEET_SUFFIXES) and start.startswith(b"<"):
        raise TableError(f"{name} is part of a web page {WHATEVER}; {OPEN_IT}")
    if lower.endswith(BINARY) and all(byte >= 0x20 or byte in b"\t\r\n" for byte in head):
        raise TableError(f"{name} is text {WHATEVER}; give it a name in .csv")
    if lower.endswith(".gz"):
        raise TableError(f"{name} is not packed by gzip; leave out .gz in its name")

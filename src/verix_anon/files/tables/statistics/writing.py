"""A table as a file of SPSS or Stata: values alone, under names that these programs take."""

import datetime as dt
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyreadstat

from verix_anon.errors import TableError
from verix_anon.files.tables.opening import reason
from verix_anon.files.tables.plain import plain_values

__all__ = ["write_statistics"]


@dataclass(frozen=True, slots=True)
class Program:
    """What a program takes."""

    name: str
    pattern: re.Pattern[str]
    rule: str
    reserved: frozenset[str]
    most_bytes: int
    """Of a text."""
    first: dt.datetime
    """Before it there are no dates."""
    minds_case: bool


SPSS = Program(
    "SPSS",
    re.compile(r"(?=.{1,64}$)[^\W\d_]([\w.$#@]*\w)?"),
    "has up to 64 letters, digits, _ . $ # @, begins with a letter, and is no word such as ALL",
    frozenset(["all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with"]),
    32_767,
    dt.datetime(1583, 1, 1),
    minds_case=False,
)
STATA = Program(
    "Stata",
    re.compile(r"(?=.{1,32}$)[^\W\d]\w*"),
    "has up to 32 letters, digits and _, begins with a letter, and is no word such as if",
    frozenset(
        [
            "_all",
            "_b",
            "byte",
            "_coef",
            "_cons",
            "double",
            "float",
            "if",
            "in",
            "int",
            "long",
            "_n",
            "_pi",
            "_pred",
            "_rc",
            "_skip",
            "str",
            "strl",
            "using",
            "with",
        ]
    ),
    100_000,
    dt.datetime(1583, 1, 1),
    minds_case=True,
)


def write_statistics(table: pa.Table, path: Path, ending: str) -> None:
    """Write a .sav or .dta file; raises TableError if the program could not take it."""
    program = STATA if ending == ".dta" else SPSS
    _check_names(table.column_names, program)
    columns = {name: plain_values(name, table[name], program.first) for name in table.column_names}
    for name, column in columns.items():
        _check_lengths(name, column, program)
    frame = pl.DataFrame(pl.from_arrow(pa.table(columns)))
    try:
        if program is STATA:
            pyreadstat.write_dta(frame, path)
        else:
            pyreadstat.write_sav(frame, path)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
        raise TableError(f"{program.name} does not take this table ({reason(error)})") from None


def _check_names(names: list[str], program: Program) -> None:
    for name in names:
        is_long = program is SPSS and len(name.encode()) > 64
        if is_long or name.lower() in program.reserved or not program.pattern.fullmatch(name):
            raise TableError(
                f"{program.name} has no column {name[:80]!r}: a name there {program.rule}; rename"
                " it, or publish as .parquet or .csv"
            )
    counts = Counter(name if program.minds_case else name.lower() for name in names)
    for name in names:
        if counts[name if program.minds_case else name.lower()] > 1:
            raise TableError(
                f"{program.name} takes {name!r} and the same in other letters for one name; rename"
                " one of them, or publish as .parquet or .csv"
            )


def _check_lengths(name: str, column: pa.ChunkedArray, program: Program) -> None:
    if pa.types.is_large_string(column.type):
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest > program.most_bytes:
            raise TableError(
                f"column {name!r} has a text of {longest:,} bytes, and {program.name} holds"
                f" {program.most_bytes:,}; publish as .parquet or .csv"
            )

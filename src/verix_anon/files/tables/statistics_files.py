"""Read and write SPSS and Stata files, and read SAS files, with value labels (spec §2.6).

Values that are declared missing become missing. Reading runs in a process of its own with a memory
limit, because the reader is written in C and trusts the headers of a file.
"""

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyreadstat

from verix_anon.errors import TableError
from verix_anon.files.table_form import Reading
from verix_anon.files.tables.cell_values import column_of, plain_values
from verix_anon.files.tables.table_sources import check_names, reason

Code = float | str


def read_statistics(path: str, reading: Reading) -> tuple[pa.Table, list[str]]:
    """Return the table and notes about it; errors do not name the file."""
    try:
        values, meta = _read(path)
    except MemoryError:
        raise
    except Exception as error:
        # Any error: the content of the file decides how its reader fails.
        raise TableError(f"cannot be read ({reason(error)})") from None
    check_names(list(meta.column_names))
    columns: dict[str, pa.Array] = {}
    notes = []
    for name in meta.column_names:
        cells = [_cell(cell) for cell in values[name]]
        labels = _labels(name, meta)
        array, note = column_of(name, cells, range(1, len(cells) + 1))
        if labels and any(cell is not None for cell in cells):
            if {cell for cell in cells if cell is not None} <= labels.keys():
                # The codes give the order, which the people who coded the answers chose.
                place = {code: i for i, code in enumerate(labels)}
                places = pa.array([None if c is None else place[c] for c in cells], pa.int32())
                texts = pa.array(labels.values(), pa.string())
                array = pa.DictionaryArray.from_arrays(places, texts, ordered=True)
            else:
                note = (
                    f"column {name!r} has labels for some of its values only: it is read as the"
                    " values, without labels"
                )
        columns[name] = array
        notes += [note] if note else []
    if not columns:
        raise TableError("has no columns")
    return pa.table(columns), notes


def _read(path: str) -> tuple[Mapping[str, Sequence[Any]], Any]:
    lower = path.lower()
    if lower.endswith(".sas7bdat"):
        values, meta = pyreadstat.read_sas7bdat(path, output_format="dict")
        # SAS keeps labels in a catalog of its own, which may lie beside the table.
        catalog = Path(path).with_suffix(".sas7bcat")
        if catalog.is_file():
            labels = pyreadstat.read_sas7bcat(catalog, output_format="dict")[1].value_labels
            used = meta.variable_to_label.items()
            meta.variable_value_labels = {n: labels[key] for n, key in used if key in labels}
        return values, meta
    read = pyreadstat.read_dta if lower.endswith(".dta") else pyreadstat.read_sav
    values, _ = read(path, output_format="dict")
    # Only this call tells which values are declared missing; above, they are missing.
    return values, read(path, metadataonly=True, user_missing=True, output_format="dict")[1]


def _cell(cell: Any) -> Any:
    """Return None for a missing value; an empty text means missing."""
    if cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return None
    return cell


def _labels(name: str, meta: Any) -> dict[Code, str]:
    """Return the labels of a column's values in their order, without those that mean missing."""
    labels = meta.variable_value_labels.get(name) or {}
    ranges = meta.missing_ranges.get(name, ())

    def is_missing(code: Any) -> bool:
        return any(type(code) is type(r["lo"]) and r["lo"] <= code <= r["hi"] for r in ranges)

    is_text = meta.readstat_variable_types.get(name) == "string"
    # Stata has letters as the codes of missing values.
    codes = [c for c in labels if isinstance(c, str) == is_text and not is_missing(c)]
    texts = [labels[code] for code in sorted(codes)]
    shown = [f"{code:g}" if isinstance(code, float) else str(code) for code in sorted(codes)]
    return {
        code: text if texts.count(text) == 1 else f"{text} ({label})"
        for code, text, label in zip(sorted(codes), texts, shown, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Program:
    """The names, texts and dates that a program accepts."""

    name: str
    pattern: re.Pattern[str]
    rule: str
    reserved: frozenset[str]
    most_bytes: int
    """How many bytes a text may have."""
    first: dt.datetime
    """The first date that the program knows."""
    minds_case: bool
    time: tuple[bytes, int, bytes]
    """A mark, how many bytes after it the time of writing is, and what to write there instead."""


SPSS = Program(
    "SPSS",
    re.compile(r"(?=.{1,64}$)[^\W\d_]([\w.$#@]*\w)?"),
    "has up to 64 letters, digits, _ . $ # @, begins with a letter, and is not a word such as ALL",
    frozenset(["all", "and", "by", "eq", "ge", "gt", "le", "lt", "ne", "not", "or", "to", "with"]),
    32_767,
    dt.datetime(1583, 1, 1),
    minds_case=False,
    time=(b"$FL2", 92, b"01 Jan 0000:00:00"),
)
STATA_WORDS = (
    *("_all", "_b", "_coef", "_cons", "_n", "_pi", "_pred", "_rc", "_skip", "byte", "double"),
    *("float", "if", "in", "int", "long", "str", "strl", "using", "with"),
)
STATA = Program(
    "Stata",
    re.compile(r"(?=.{1,32}$)[^\W\d]\w*"),
    "has up to 32 letters, digits and _, begins with a letter, and is not a word such as if",
    frozenset(STATA_WORDS),
    100_000,
    dt.datetime(1583, 1, 1),
    minds_case=True,
    time=(b"<timestamp>\x11", 12, b"01 Jan 2000 00:00"),
)


def write_statistics(table: pa.Table, path: Path, ending: str) -> None:
    """Write a .sav or .dta file; raises TableError if the program could not take it."""
    program = STATA if ending == ".dta" else SPSS
    _check_names(table.column_names, program)
    columns = {name: plain_values(name, table[name], program.first) for name in table.column_names}
    for name, column in columns.items():
        if not pa.types.is_large_string(column.type):
            continue
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest > program.most_bytes:
            raise TableError(
                f"column {name!r} has a text of {longest:,} bytes, and {program.name} holds"
                f" {program.most_bytes:,}; publish as .parquet or .csv"
            )
    frame = pl.DataFrame(pl.from_arrow(pa.table(columns)))
    try:
        (pyreadstat.write_dta if program is STATA else pyreadstat.write_sav)(frame, path)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
        raise TableError(f"{program.name} does not take this table ({reason(error)})") from None
    mark, behind, neutral = program.time
    with path.open("r+b") as file:
        file.seek(file.read(512).index(mark) + behind)
        file.write(neutral)


def _check_names(names: list[str], program: Program) -> None:
    for name in names:
        is_long = program is SPSS and len(name.encode()) > 64
        if is_long or name.lower() in program.reserved or not program.pattern.fullmatch(name):
            raise TableError(
                f"{program.name} has no column {name[:80]!r}: a name there {program.rule}; rename"
                " it, or publish as .parquet or .csv"
            )
    told_by = [name if program.minds_case else name.lower() for name in names]
    counts = Counter(told_by)
    for name, by in zip(names, told_by, strict=True):
        if counts[by] > 1:
            raise TableError(
                f"{program.name} takes {name!r} and the same in other letters for one name; rename"
                " one of them, or publish as .parquet or .csv"
            )

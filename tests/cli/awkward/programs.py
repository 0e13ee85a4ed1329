"""Tables of other programs than editors of text: spreadsheets, statistics, Arrow, databases."""

import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from xml.sax.saxutils import escape

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import xlsxwriter

from cli.awkward.people import PEOPLE, Awkward, columns

__all__ = ["PROGRAMS", "TRUE", "of_postgresql"]

BORN, SEX, POSTCODE, HEIGHT, COST, CURED, NUMBER = columns(
    "born", "sex", "postcode", "height", "cost", "cured", "number"
)
TRUE = {"nr": NUMBER, "born": BORN, "plz": POSTCODE, "cost": COST, "cured": CURED}
ROWS = list(zip(*TRUE.values(), strict=True))
MIXED = [int(p.postcode) if i % 4 == 0 else p.postcode for i, p in enumerate(PEOPLE)]
ODS = (
    '<?xml version="1.0" encoding="UTF-8"?><office:document-content office:version="1.2"'
    ' xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
    '<office:body><office:spreadsheet><table:table table:name="Tabelle1">'
)
MIME = "application/vnd.oasis.opendocument.spreadsheet"
SEXES = {1.0: "female", 2.0: "male", 3.0: "diverse"}
CODES = [{"f": 1.0, "m": 2.0, "d": 3.0}[person.sex] for person in PEOPLE]
LABELS = [SEXES[code] for code in CODES]


def several_sheets() -> None:
    with xlsxwriter.Workbook("sheets.xlsx") as book:
        book.add_worksheet("Lies mich").write_string(0, 0, "Stand Mai")
        sheet = book.add_worksheet("Patienten")
        day = book.add_format({"num_format": "dd.mm.yyyy"})
        sheet.write_row(0, 0, [*TRUE])
        for i, (number, born, _, cost, cured) in enumerate(ROWS, 1):
            sheet.write_number(i, 0, number)
            sheet.write_datetime(i, 1, born, day)
            sheet.write(i, 2, MIXED[i - 1])
            sheet.write_number(i, 3, cost)
            sheet.write_string(i, 4, cured)


def titled() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Aufnahmen 2024"])
    sheet.merge_cells("A1:E1")
    sheet.append([])
    for row in [tuple(TRUE), *ROWS, ("Summe", None, None, sum(person.cost for person in PEOPLE))]:
        sheet.append(row)
    book.save("titled.xlsx")


def opendocument() -> None:
    rows = "".join(
        f"<table:table-row>{''.join(map(ods_cell, row))}</table:table-row>" for row in ROWS
    )
    head = f"<table:table-row>{''.join(map(ods_cell, TRUE))}</table:table-row>"
    end = "</table:table></office:spreadsheet></office:body></office:document-content>"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{MIME}"/>'
        "</manifest:manifest>"
    )
    with zipfile.ZipFile("calc.ods", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", MIME, zipfile.ZIP_STORED)
        archive.writestr("content.xml", ODS + head + rows + end)
        archive.writestr("META-INF/manifest.xml", manifest)


def ods_cell(value: object) -> str:
    if isinstance(value, str):
        text = f"<text:p>{escape(value)}</text:p>"
        return f'<table:table-cell office:value-type="string">{text}</table:table-cell>'
    kind, name = ("float", "value") if isinstance(value, int | float) else ("date", "date-value")
    return f'<table:table-cell office:value-type="{kind}" office:{name}="{value}"/>'


def spss() -> None:
    frame = pd.DataFrame({"nr": NUMBER, "born": BORN, "sex": CODES, "weight": weights(-1.0)})
    pyreadstat.write_sav(
        frame,
        "survey.sav",
        variable_value_labels={"sex": SEXES, "weight": {-1.0: "refused"}},
        missing_ranges={"weight": [-1.0]},
    )


def weights(unsaid: float | None) -> list[float | None]:
    return [unsaid if i % 10 == 0 else round(40 * p.height, 1) for i, p in enumerate(PEOPLE)]


def stata() -> None:
    frame = pd.DataFrame({"nr": NUMBER, "sex": CODES, "height": HEIGHT, "plz": POSTCODE})
    pyreadstat.write_dta(frame, "panel.dta", variable_value_labels={"sex": SEXES})


def of_pandas() -> None:
    frame = pd.DataFrame(TRUE).set_index("nr")
    frame["born"] = pd.to_datetime(frame["born"])
    frame["cured"] = frame["cured"].astype("category")
    frame.reset_index(drop=True).to_parquet("frame.parquet")


def indexed() -> None:
    pd.DataFrame(TRUE).set_index("nr").to_parquet("indexed.parquet")


def typed() -> None:
    kinds = {
        "cost": pa.array([Decimal(str(cost)) for cost in COST], pa.decimal128(9, 2)),
        "sex": pa.array(SEX).dictionary_encode(),
        "adult": pa.array([person.born.year < 1990 for person in PEOPLE]),
        "age": pa.array([2024 - person.born.year for person in PEOPLE], pa.uint8()),
    }
    pq.write_table(pa.table(kinds), "typed.parquet")


def sqlite() -> None:
    with closing(sqlite3.connect("clinic.db")) as base:
        base.execute("CREATE TABLE people (nr INTEGER PRIMARY KEY, born, plz, cost, cured)")
        rows = [(number, str(born), *rest) for number, born, *rest in ROWS]
        base.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
        base.commit()


def of_postgresql(url: str, execute: Callable[[str], None]) -> Awkward:
    """A table of a server, which `execute` fills."""
    rows = ", ".join(
        f"({n}, '{born}', '{plz}', {cost}, '{cured}')" for n, born, plz, cost, cured in ROWS
    )

    def make() -> None:
        execute(
            "CREATE TABLE people (nr int PRIMARY KEY, born date, plz char(5), cost numeric(9, 2),"
            " cured text)"
        )
        execute(f"INSERT INTO people VALUES {rows}")

    return Awkward(name=f"{url}&table=people", make=make, true=TRUE)


def sheets() -> list[Awkward]:
    return [
        Awkward(
            name="sheets.xlsx",
            make=several_sheets,
            true={**TRUE, "plz": [str(code) for code in MIXED]},
            options=("--sheet", "Patienten"),
            said=["column 'plz' mixes numbers and text"],
        ),
        Awkward(
            name="titled.xlsx",
            make=titled,
            true=TRUE,
            options=("--skip", "1", "--footer", "1"),
        ),
        Awkward(name="calc.ods", make=opendocument, true=TRUE),
    ]


def others() -> list[Awkward]:
    arrow = pa.table(TRUE)
    return [
        Awkward(
            name="survey.sav",
            make=spss,
            true={"nr": NUMBER, "born": BORN, "sex": LABELS, "weight": weights(None)},
        ),
        Awkward(
            name="panel.dta", make=stata, true={"sex": LABELS, "height": HEIGHT, "plz": POSTCODE}
        ),
        Awkward(
            name="people.feather",
            make=lambda: pyarrow.feather.write_feather(arrow, "people.feather"),
            true=TRUE,
        ),
        Awkward(
            name="polars.arrows",
            make=lambda: pl.DataFrame(TRUE).write_ipc_stream("polars.arrows"),
            true=TRUE,
        ),
        Awkward(
            name="frame.parquet",
            make=of_pandas,
            true={"born": BORN, "plz": POSTCODE, "cost": COST, "cured": CURED},
        ),
        Awkward(name="indexed.parquet", make=indexed, true=TRUE),
        Awkward(name="typed.parquet", make=typed, true={"cost": COST, "sex": SEX}),
        Awkward(
            name="sqlite:///clinic.db?table=people",
            make=sqlite,
            true=TRUE,
        ),
    ]


PROGRAMS = [*sheets(), *others()]

"""Released tables as files: the form of the input, other forms and formats, and the dictionary."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from client.release.releases import DECLARED, Job, N, columns, job
from verix_anon.client.job import BEGINNING, OURS
from verix_anon.client.ledger import Ledger
from verix_anon.client.release import Released, ReleaseOptions, release
from verix_anon.client.release.read_back import convert_released, read_released
from verix_anon.errors import TableError
from verix_anon.files.table_form import Read, Reading
from verix_anon.files.tables.table_writer import FORMS, TextForm

NAMED = ("other", "wanted")
GERMAN = Reading(delimiter=";", decimal=",", encoding="Windows-1252")


def table_of(**more: Any) -> pa.Table:
    """The usual one, with a kept column of umlauts."""
    found = columns()
    words = ["Köln", "Größe; 1", 'sagt "ja"', None]
    return pa.table(found | {"word": [words[i % 4] for i in range(N)], **more})


def case_of(table: pa.Table) -> Job:
    more = [name for name in table.column_names if name not in columns()]
    return job(table, replace(DECLARED, kept=[*DECLARED.kept, *more]))


@pytest.fixture(scope="module")
def german() -> Job:
    return case_of(table_of())


def publish(
    case: Job, out: Path, reading: Reading = GERMAN, ledger: Ledger | None = None, **options: Any
) -> Released[pa.Table]:
    return release(
        case.delivery,
        case.manifest,
        case.verdict,
        table=Read(case.table, reading),
        out=out,
        ledger=ledger,
        options=ReleaseOptions(**{"keep_order": True, **options}),
    )


def test_a_table_is_written_as_the_input_was(german: Job, tmp_path: Path) -> None:
    released = publish(german, tmp_path / "released.csv")
    text = (tmp_path / "released.csv").read_bytes().decode("windows-1252")
    assert text.splitlines()[0] == ";".join(released.table.column_names)
    frame = pd.read_csv(tmp_path / "released.csv", sep=";", decimal=",", encoding="cp1252")
    assert set(frame["word"].dropna()) == {"Köln", "Größe; 1", 'sagt "ja"'}
    assert frame["weight"].str.contains(r"\d,\d").any()
    assert not frame["weight"].str.contains(r"\d\.\d").any()
    # In memory, numbers have points in any case.
    assert all("," not in cell for cell in released.table["weight"].to_pylist())


@pytest.mark.parametrize(
    ("form", "ending"),
    [
        *((form, ".csv") for form in ("plain", "excel", "excel-de", "encoding=utf-16")),
        ("decimal=comma,delimiter=comma", ".csv"),
        *(("", ending) for ending in (".csv", ".tsv", ".xlsx", ".parquet")),
    ],
)
def test_every_form_reads_back_as_the_same_table(
    german: Job, tmp_path: Path, form: str, ending: str
) -> None:
    plain = publish(german, tmp_path / "plain.parquet", form="plain")
    publish(german, tmp_path / f"released{ending}", form=form)
    found = read_released(tmp_path / f"released{ending}")
    expected = read_released(tmp_path / "plain.parquet")
    assert found.column_names == expected.column_names
    assert found.select(["weight_min", "weight_max", "word"]).to_pydict() == (
        expected.select(["weight_min", "weight_max", "word"]).to_pydict()
    )
    assert plain.table.num_rows == found.num_rows


def test_numbers_beside_words_have_the_mark_too(german: Job, tmp_path: Path) -> None:
    publish(german, tmp_path / "released.csv", representation="midpoint")
    publish(german, tmp_path / "plain.csv", representation="midpoint", form="plain")
    text = (tmp_path / "released.csv").read_text(encoding="windows-1252")
    assert text != (tmp_path / "plain.csv").read_text()
    found, plain = (read_released(tmp_path / name) for name in ("released.csv", "plain.csv"))
    assert found["weight"].equals(plain["weight"])
    field = next(f for f in schema(tmp_path)["fields"] if f["name"] == "weight")
    assert (field["type"], field["decimalChar"]) == ("number", ",")


def test_a_character_that_the_encoding_lacks_is_not_lost(tmp_path: Path) -> None:
    case = case_of(table_of(tongue=["Łódź"] * N))
    released = publish(case, tmp_path / "released.csv")
    said = "The table is written as UTF-8: cp1252 lacks some characters."
    assert said in released.warnings
    assert (tmp_path / "released.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert schema(tmp_path)["encoding"] == "utf-8-sig"
    assert set(read_released(tmp_path / "released.csv")["tongue"].to_pylist()) == {"Łódź"}


def test_a_mark_of_the_input_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("\ufeffa;b\nä;1,5\n".encode())
    from verix_anon.files.tables import read_table_as

    read = read_table_as(path)
    assert TextForm.like(read.reading) == TextForm(";", ",", "utf-8-sig")
    assert read_table_as(path, read.reading).table.equals(read.table)
    path.write_bytes("a,b\nä,1.5\n".encode())
    assert TextForm.like(read_table_as(path).reading) == FORMS["plain"]


@pytest.mark.parametrize("form", ["excell", "decimal=;", "delimiter=x", "encoding=no", "plain=1"])
def test_forms_that_there_are_not(german: Job, tmp_path: Path, form: str) -> None:
    with pytest.raises(TableError, match=r"there is no|cannot be written"):
        publish(german, tmp_path / "released.csv", form=form)


def schema(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "released.schema.json").read_text())
    return found


def test_a_second_format_shares_the_dictionary(german: Job, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    publish(german, tmp_path / "released.csv", ledger=ledger)
    before = (tmp_path / "released.schema.json").stat()
    publish(german, tmp_path / "released.xlsx", ledger=ledger)
    assert (tmp_path / "released.schema.json").stat().st_mtime_ns == before.st_mtime_ns
    csv, xlsx = (read_released(tmp_path / f"released.{e}") for e in ("csv", "xlsx"))
    assert csv.to_pydict() == xlsx.to_pydict()
    with pytest.raises(TableError, match=r"released\.schema\.json exists already"):
        publish(german, tmp_path / "released.parquet", form="plain", ledger=ledger)
    assert not (tmp_path / "released.parquet").exists()


@pytest.mark.parametrize("ending", [".xlsx", ".parquet", ".tsv", ".feather", ".sav"])
def test_converted_to_another_format(german: Job, tmp_path: Path, ending: str) -> None:
    publish(german, tmp_path / "released.csv", keep_order=False)
    expected = read_released(tmp_path / "released.csv")
    for out in (tmp_path / f"released{ending}", tmp_path / f"other{ending}"):
        convert_released(tmp_path / "released.csv", out)
        # The same rows in the same order.
        assert read_released(out).to_pydict() == expected.to_pydict()
    convert_released(tmp_path / f"other{ending}", tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_bytes() == (tmp_path / "released.csv").read_bytes()


@pytest.mark.parametrize("form", ["plain", "excel", "excel-de", "decimal=point"])
def test_converted_to_another_form(german: Job, tmp_path: Path, form: str) -> None:
    publish(german, tmp_path / "released.csv")
    publish(german, tmp_path / "wanted.csv", form=form)
    convert_released(tmp_path / "released.csv", tmp_path / "other.csv", form=form)
    assert (tmp_path / "other.csv").read_bytes() == (tmp_path / "wanted.csv").read_bytes()
    dictionaries = [json.loads((tmp_path / f"{n}.schema.json").read_bytes()) for n in NAMED]
    assert dictionaries[0] == dictionaries[1]


def test_what_cannot_be_converted(german: Job, tmp_path: Path) -> None:
    publish(german, tmp_path / "released.csv")
    with pytest.raises(TableError, match="is, or holds, the input"):
        convert_released(tmp_path / "released.csv", tmp_path / "released.csv", overwrite=True)
    with pytest.raises(TableError, match="no dictionary"):
        convert_released(tmp_path / "nothing.csv", tmp_path / "out.xlsx")
    (tmp_path / "other.schema.json").write_text("{}")
    with pytest.raises(TableError, match=r"other\.schema\.json exists already"):
        convert_released(tmp_path / "released.csv", tmp_path / "other.xlsx")
    assert not (tmp_path / "other.xlsx").exists()


def test_a_spreadsheet_is_made_for_people(german: Job, tmp_path: Path) -> None:
    released = publish(german, tmp_path / "released.xlsx")
    book = openpyxl.load_workbook(tmp_path / "released.xlsx")
    assert book.sheetnames == ["Table", "Dictionary", "Privacy"]
    table, dictionary, privacy = (book[name] for name in book.sheetnames)
    assert table.freeze_panes == "A2"
    assert table["A1"].font.bold
    assert table.column_dimensions["A"].width >= 8
    listed = [row[0] for row in dictionary.iter_rows(min_row=2, values_only=True)]
    assert listed == released.table.column_names
    said = {row[0]: row[3] for row in privacy.iter_rows(min_row=2, values_only=True)}
    assert said["k reached"].startswith(f"{released.sheet.k:,}")
    # How leaves were joined is the owner's.
    assert not {"joined", "owners of bounds", "missing values"} & said.keys()


TABLE_SCHEMA = {
    "type": "object",
    "required": ["fields"],
    "properties": {
        "fields": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "type"],
                "properties": {
                    "name": {"type": "string"},
                    "type": {
                        "enum": [
                            *("string", "number", "integer", "boolean", "date", "datetime", "time"),
                            *("object", "array", "duration", "year", "yearmonth", "any"),
                        ]
                    },
                    "format": {"type": "string"},
                    "title": {"type": "string"},
                    "description": {"type": "string"},
                    "decimalChar": {"type": "string", "maxLength": 1},
                    "constraints": {
                        "type": "object",
                        "properties": {"required": {"type": "boolean"}},
                        "additionalProperties": False,
                    },
                    "verix": {"type": "object"},
                },
                "additionalProperties": False,
            },
        },
        "missingValues": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "dialect": {
            "type": "object",
            "properties": {
                "delimiter": {"type": "string"},
                "quoteChar": {"type": "string", "maxLength": 1},
                "doubleQuote": {"type": "boolean"},
            },
            "additionalProperties": False,
        },
        "encoding": {"type": "string"},
        "verix": {"type": "object"},
    },
    "additionalProperties": False,
}
"""Frictionless Table Schema, as far as a dictionary uses it, and our two extensions by name."""


@pytest.mark.parametrize("form", ["interval", "bounds", "midpoint", "mean", "shares", "model"])
def test_the_dictionary_is_a_table_schema(german: Job, tmp_path: Path, form: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    of_weight = {"weight": "bounds"} if form == "bounds" else {}
    usual = "interval" if form == "bounds" else form
    publish(german, tmp_path / "released.csv", representations=of_weight, representation=usual)
    found = schema(tmp_path)
    jsonschema.validate(found, TABLE_SCHEMA)
    # By this a job's folder is known to hold a release.
    assert OURS in (tmp_path / "released.schema.json").read_bytes()[:BEGINNING]
    frame = pd.read_csv(
        tmp_path / "released.csv",
        sep=found["dialect"]["delimiter"],
        encoding=found["encoding"],
        decimal=found["verix"]["decimal"],
        keep_default_na=False,
        na_values=found["missingValues"],
    )
    for field in found["fields"]:
        column = frame[field["name"]]
        if field["type"] in ("number", "integer"):
            assert pd.api.types.is_numeric_dtype(column), field
        if field.get("constraints", {}).get("required"):
            assert column.notna().all()


def odd_columns(n: int) -> Iterator[tuple[str, Any]]:
    """Columns that are kept, of types that no model takes."""
    yield "text", ["Z38.0", None, "", "é"] * (n // 4)
    yield "number", [1.5, None, float("nan"), float("inf")] * (n // 4)
    yield "whole", [1, None, 3, 2**60] * (n // 4)
    yield "nothing", pa.nulls(n)
    yield "truth", [True, None, False, True] * (n // 4)
    yield "day", pa.array([0, 1, None, 20000] * (n // 4), pa.date32())
    yield "moment", pa.array([0, 1, None, 10**15] * (n // 4), pa.timestamp("us"))
    yield "hour", pa.array([0, 1, None, 3600] * (n // 4), pa.time32("s"))
    yield "list", [[1, 2], None, [], [3]] * (n // 4)
    yield "coded", pa.array(["a", None, "c", "b"] * (n // 4)).dictionary_encode()
    yield "bytes", [b"x", None, b"", b"\xff"] * (n // 4)
    yield "largest", [1.7e308, -1.7e308, None, 0.0] * (n // 4)


ODD = dict(odd_columns(N))


@pytest.mark.parametrize("kept", [[], ["nothing"], ["largest", "coded"], [*ODD]])
def test_a_table_for_models_is_taken_as_it_is(tmp_path: Path, kept: list[str]) -> None:
    table = table_of()
    for name in kept:
        table = table.append_column(name, pa.array(ODD[name], from_pandas=False))
    publish(case_of(table), tmp_path / "released.csv", Reading(), representation="model")
    frame = pd.read_csv(tmp_path / "released.csv", keep_default_na=False)
    target = frame.pop("rich")
    assert all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes)
    assert np.isfinite(frame.to_numpy(float)).all()
    HistGradientBoostingClassifier(max_iter=2).fit(frame, target)
    with warnings.catch_warnings():
        # That it stops early, and that numbers are large, is no matter here.
        warnings.simplefilter("ignore")
        LogisticRegression(max_iter=2).fit(frame.clip(-1e100, 1e100), target)


def test_codes_and_units_are_in_the_dictionary(tmp_path: Path) -> None:
    table = table_of()
    for name in ("text", "day", "number"):
        table = table.append_column(name, pa.array(ODD[name], from_pandas=False))
    publish(case_of(table), tmp_path / "released.csv", Reading(), representation="model")
    ours = {field["name"]: field["verix"] for field in schema(tmp_path)["fields"]}
    assert ours["text"]["levels"] == ["", "Z38.0", "é"]
    assert ours["text"]["missing"] == -1
    assert ours["day"]["unit"] == "day"
    found = read_released(tmp_path / "released.csv").to_pydict()
    assert found["text"][:4] == [1, -1, 0, 2]
    assert found["day"][:2] == [0, 1]
    assert found["day_missing"][:4] == [0, 0, 1, 0]
    assert found["number"][:4] == pytest.approx([1.5] * 4)
    assert found["number_missing"][:4] == [0, 1, 1, 1]

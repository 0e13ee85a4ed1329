"""The hospital table is what its description says, and the same from the same seed."""

from pathlib import Path

import pyarrow as pa
import pytest

from tools import hospital
from verix_anon.files.tables import read_table_as


@pytest.mark.parametrize("language", ["de", "en"])
def test_the_same_seed_gives_the_same_file(tmp_path: Path, language: str) -> None:
    first, second = (
        hospital.write(tmp_path / f"{i}.csv", 60, language=language).read_bytes() for i in (1, 2)
    )
    assert first == second
    assert hospital.rows(60, language=language) != hospital.rows(60, seed=1, language=language)


def test_it_is_as_hospitals_export_it(tmp_path: Path) -> None:
    path = hospital.write(tmp_path / "de.csv")
    read = read_table_as(path)
    table, reading = read.table, read.reading
    assert isinstance(table, pa.Table)
    assert (table.num_rows, table.num_columns) == (12_000, 21)
    assert reading.encoding == "Windows-1252"
    assert (reading.delimiter, reading.decimal, reading.thousands) == (";", ",", ".")
    assert reading.dates["Geburtsdatum"] == "dd.mm.yyyy"
    assert len(reading.missing) >= 5
    n_values = {name: len(table[name].unique()) for name in table.column_names}
    assert n_values["Patienten-Nr"] == n_values["Versichertennummer"] == 7_800
    assert n_values["Geschlecht"] == 3
    remarks = table["Bemerkung"].drop_null().unique().to_pylist()
    assert len(remarks) == 955
    assert all(any(f"Dr. {name}" in each for name in hospital.DOCTORS) for each in remarks)
    assert any(each.startswith("0") for each in table["PLZ"].to_pylist())

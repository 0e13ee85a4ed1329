"""Columns that are made of others: the same at prepare and at release, and not in the digest."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from client.table.tables import table_digest
from verix_anon.client.manifest import read_manifest
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.table.columns import Derived
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.verify import verify
from verix_anon.errors import TableError
from verix_anon.provider.local import LocalProvider

BORN = [date(1960, 12, 31), date(1961, 1, 1), date(2000, 2, 29), None]


@pytest.mark.parametrize(
    ("given", "values", "wanted"),
    [
        ({"as": "age", "at": "2024-12-31"}, BORN, [64, 63, 24, None]),
        ({"as": "age", "at": "2024-02-28"}, BORN, [63, 63, 23, None]),
        ({"as": "age", "at": "2024-12-31"}, ["1961-01-01"], [63]),
        ({"as": "age", "at": "2024-12-31"}, [datetime(1961, 1, 1, 12)], [63]),
        ({"as": "year"}, BORN, [1960, 1961, 2000, None]),
        ({"as": "month"}, BORN, ["1960-12", "1961-01", "2000-02", None]),
        (
            {"as": "chapter"},
            ["I21.0", "A00", "B99.9", "D48", "D50.1", "H59", "H60", "T98", "Z38.0", "U07.1", None],
            [
                *("I00-I99", "A00-B99", "A00-B99", "C00-D48", "D50-D90", "H00-H59", "H60-H95"),
                *("S00-T98", "Z00-Z99", "U00-U99", None),
            ],
        ),
        ({"prefix": 2}, ["01067", "9", None, "äöü"], ["01", "9", None, "äö"]),
        ({"prefix": 2}, [10115, 80331], ["10", "80"]),
        ({"width": 10}, [0, 9, 10, -1, None], [0, 0, 10, -10, None]),
        ({"width": 500}, [1608.46, 500.0, 499.99], [1500.0, 500.0, 0.0]),
        ({"width": 0.5}, [1, 2], [1.0, 2.0]),
    ],
)
def test_what_is_made(given: dict[str, object], values: list[Any], wanted: list[Any]) -> None:
    made = Derived.of("x", {"from": "y", **given})
    for array in (pa.array(values), pa.array(values).dictionary_encode()):
        assert made.values("x", array).to_pylist() == wanted


@pytest.mark.parametrize(
    ("given", "values", "problem"),
    [
        ({"as": "age", "at": "2024-12-31"}, [date(2025, 1, 1)], "some dates are after 2024-12-31"),
        ({"as": "age", "at": "2024-12-31"}, ["young"], "no age can be made of column 'y'"),
        ({"as": "age", "at": "soon"}, BORN, "at must be a day, not 'soon'"),
        ({"as": "age"}, BORN, r"'x' must be \{ from"),
        ({"as": "decade"}, BORN, r"'x' must be \{ from"),
        ({"as": "year", "at": "2024-12-31"}, BORN, r"'x' must be \{ from"),
        ({"prefix": 0}, ["a"], r"'x' must be \{ from"),
        ({"width": 0}, [1], r"'x' must be \{ from"),
        ({"width": 10}, ["a"], "no width can be made of column 'y'"),
        ({"as": "chapter"}, ["I21.0", "hello"], "'hello' is not a code of ICD-10"),
        ({"as": "chapter"}, ["D49"], "'D49' is not a code of ICD-10"),
    ],
)
def test_mistakes(given: dict[str, object], values: list[Any], problem: str) -> None:
    with pytest.raises(TableError, match=problem):
        Derived.of("x", {"from": "y", **given}).values("x", pa.array(values))


def test_names() -> None:
    table = pa.table({"a": [1, 2], "b": [1, 2]})
    for derived, problem in (
        ({"x": {"from": "c", "width": 2}}, "there is no column 'c'"),
        ({"b": {"from": "a", "width": 2}}, "the table has a column of this name"),
    ):
        with pytest.raises(TableError, match=problem):
            read_owner_table(table, Declared(quasi="all", task="none", derived=derived))


N = 120
TABLE: dict[str, list[Any]] = {
    "born": [date(1940 + i % 60, 1 + i % 12, 1) for i in range(N)],
    "plz": [f"{i % 40 + 1000:05}" for i in range(N)],
    "icd": [("I21.0", "I10", "J45.0")[i % 3] for i in range(N)],
    "cost": [1000.5 + 17 * i for i in range(N)],
    "y": ["no", "yes", "no"] * 40,
}
ROLES = """
k = 3
target = "y"

[columns]
age = "quasi"
plz = "identifier"
region = "kept"
icd = "identifier"
cost = "sensitive"
chapter = "sensitive"

[derived]
age = { from = "born", as = "age", at = "2024-12-31" }
region = { from = "plz", prefix = 4 }
chapter = { from = "icd", as = "chapter" }
cost = { from = "cost", width = 500 }
"""


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "parquet"])
def test_from_the_roles_file_to_the_released_table(tmp_path: Path, kind: str) -> None:
    (tmp_path / "roles.toml").write_text(ROLES)
    table: Any = pa.table(TABLE)
    if kind == "pandas":
        table = pd.DataFrame(TABLE, index=range(N, 2 * N))
    elif kind == "parquet":
        pa.parquet.write_table(table, tmp_path / "t.parquet")
        table = tmp_path / "t.parquet"
    options = PrepareOptions(importance="uniform")
    prepared = prepare(table, roles=tmp_path / "roles.toml", person="record", options=options)
    write_manifest(prepared.manifest, tmp_path / "manifest.verix")
    manifest = read_manifest(tmp_path / "manifest.verix")
    assert manifest.derived == prepared.manifest.derived
    assert manifest.table == table_digest(pa.table(TABLE))
    assert dict(manifest.roles)["born"] == "identifier"
    assert [column.name for column in manifest.quasi] == ["age"]
    delivery = LocalProvider().anonymize(prepared.submission)
    verdict = verify(delivery, manifest, submission=prepared.submission)
    released = release(
        *(delivery, manifest, verdict),
        table=table,
        options=ReleaseOptions(keep_order=True, force=True),
    ).table
    found = (
        {name: list(released[name]) for name in released}
        if kind == "pandas"
        else released.to_pydict()
    )
    assert list(found) == ["age", "region", "chapter", "cost", "y"]
    assert found["region"] == [plz[:4] for plz in TABLE["plz"]]
    assert found["cost"] == [cost // 500 * 500 for cost in TABLE["cost"]]
    assert set(found["chapter"]) == {"I00-I99", "J00-J99"}
    assert all(".." in cell or cell.isdigit() or cell[0] in "<>" for cell in found["age"])


def test_a_source_with_a_role_keeps_it_and_others_are_dropped() -> None:
    derived = {"age": {"from": "born", "as": "age", "at": "2024-12-31"}}
    roles = Declared(target="y", quasi="all", derived=derived).roles(["born", "age", "y"])
    assert roles == {"born": "identifier", "age": "quasi", "y": "target"}
    said = Declared(target="y", quasi=["born", "age"], derived=derived)
    assert said.roles(["born", "age", "y"])["born"] == "quasi"


def test_a_dropped_source_that_repeats_does_not_tell_people_apart() -> None:
    derived = {"age": {"from": "born", "as": "age", "at": "2024-12-31"}}
    table = pa.table({"born": [date(1960, 1, 1)] * 30 + [date(1970, 1, 1)] * 30, "y": [0, 1] * 30})
    declared = Declared(target="y", quasi="all", derived=derived)
    options = PrepareOptions(importance="uniform", traps="none")
    prepared = prepare(table, roles=declared, k=2, options=options)
    delivery = LocalProvider().anonymize(prepared.submission)
    force = ReleaseOptions(force=True)
    released = release(delivery, prepared.manifest, None, table=table, options=force)
    assert released.sheet.counted_by == "record"
    said = Declared(target="y", quasi="age", identifier="born", derived=derived)
    with pytest.raises(TableError, match="say who a person is"):
        prepare(table, roles=said, k=2)

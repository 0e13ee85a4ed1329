"""Nothing is published but values: no metadata, no unused category, no index, no attribute."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from client.release.releases import DECLARED, N, columns, job
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.release.published import bare_array
from verix_anon.client.verify import verify
from verix_anon.errors import TableError
from verix_anon.files.tables import read_table
from verix_anon.provider.local import LocalProvider

SECRET = "CANARY"
NOTES = [f"note {i % 7}" for i in range(7)]


def coded(labels: list[str], *, ordered: bool = False) -> pa.DictionaryArray:
    """The notes as a dictionary that knows of people who are not in the table."""
    places = [i % 7 for i in range(N)]
    return pa.DictionaryArray.from_arrays(
        pa.array(places, pa.int32()), pa.array(labels), ordered=ordered
    )


def with_secrets() -> pa.Table:
    data: dict[str, Any] = columns()
    data["note"] = coded([*NOTES, f"{SECRET} unused"])
    fields = [
        pa.field(name, pa.array(values).type, metadata={"who": f"{SECRET} field"})
        for name, values in data.items()
    ]
    arrays = [pa.array(values) for values in data.values()]
    return pa.table(arrays, pa.schema(fields, metadata={"pandas": f"{SECRET} schema"}))


def raw(path: Path) -> bytes:
    """The bytes of a file, and of a Parquet file all that its readers see."""
    data = path.read_bytes()
    if path.suffix != ".parquet":
        return data
    found = pq.read_table(path)
    file = pq.ParquetFile(path)
    dictionaries = [c.chunk(0).dictionary for c in found.columns if pa.types.is_dictionary(c.type)]
    return data + repr((found.to_pydict(), file.schema_arrow, file.metadata, dictionaries)).encode()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_hold_values_alone(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{suffix}"
    job(with_secrets()).release(out=out)
    assert SECRET.encode() not in raw(out)
    # Neither is an identifier's, nor its column's name.
    assert b"person" not in raw(out)
    assert b'"name"' not in raw(out)
    assert read_table(out)["note"].to_pylist() == columns()["note"]


def test_arrow_tables_hold_values_alone() -> None:
    released = job(with_secrets()).release().table
    assert released.schema.metadata is None
    assert all(field.metadata is None for field in released.schema)
    assert SECRET not in repr(released["note"].chunk(0).dictionary)
    assert released["note"].to_pylist() == columns()["note"]


def test_pandas_tables_hold_values_alone() -> None:
    frame = pd.DataFrame(columns(), index=[f"{SECRET} {i}" for i in range(N)])
    frame["note"] = pd.Categorical(frame["note"], [*NOTES, f"{SECRET} unused"], ordered=True)
    frame.attrs["source"] = SECRET
    frame.columns.name = SECRET
    released = job(frame).release().table
    assert list(released.index) == list(range(N))
    assert released.attrs == {}
    assert released.columns.name is None
    assert list(released["note"].cat.categories) == NOTES
    assert released["note"].cat.ordered
    assert released["note"].tolist() == columns()["note"]


def test_polars_tables_hold_values_alone() -> None:
    frame = pl.DataFrame(columns()).with_columns(
        pl.col("note").cast(pl.Enum([*NOTES, f"{SECRET} unused"]))
    )
    released = job(frame).release().table
    assert released["note"].dtype == pl.String
    assert released["note"].to_list() == columns()["note"]


def test_stale_metadata_does_not_make_a_file_unreadable(tmp_path: Path) -> None:
    frame = pd.DataFrame(columns())
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "raw.parquet")
    job(pq.read_table(tmp_path / "raw.parquet")).release(out=tmp_path / "out.parquet")
    assert len(pd.read_parquet(tmp_path / "out.parquet")) == N


def test_an_index_with_a_name_needs_a_role() -> None:
    frame = pd.DataFrame({"age": np.arange(60) % 9, "y": ["a", "b"] * 30})
    frame.index = pd.Index([f"p{i}" for i in range(60)], name="patient")
    options = PrepareOptions(unsafe_seed=1)
    with pytest.raises(TableError, match=r"the index 'patient' .* reset_index\(\)"):
        prepare(frame, target="y", quasi="all", options=options)
    frame.index.name = None
    (warning,) = prepare(frame, target="y", quasi="all", options=options).warnings
    assert "neither sent nor published" in warning
    for index in (pd.RangeIndex(60, name="row"), pd.Index(range(60))):
        frame.index = index
        assert prepare(frame, target="y", quasi="all", options=options).warnings == ()


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([], pa.dictionary(pa.int8(), pa.string())),
        pa.array([None, None], pa.dictionary(pa.int8(), pa.string())),
        pa.array([[1, 2], None, []]),
        pa.array([{"a": 1, "b": ["x"]}, None]),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([1.5, None]),
    ],
)
def test_values_stay(array: pa.Array) -> None:
    assert bare_array(array).to_pylist() == array.to_pylist()


@pytest.mark.parametrize("representation", ["midpoint", "mean", "interval"])
def test_the_middle_of_categories_is_one_that_occurs(representation: str) -> None:
    """An ordered type may know of labels between those in the table."""
    labels = ["Bern", f"{SECRET} 1", "Chur", f"{SECRET} 2", f"{SECRET} 3", "Genf"]
    data: dict[str, Any] = columns()
    places = pa.array([labels.index(city) for city in data["city"]], pa.int8())
    data["city"] = pa.DictionaryArray.from_arrays(places, pa.array(labels), ordered=True)
    found = job(pa.table(data), replace(DECLARED, orders={})).release(representation=representation)
    assert SECRET not in str(found.table["city"].to_pylist())
    # Nor was such a label sent.
    made = prepare(
        pa.table(data).select(["age", "city", "rich"]),
        target="rich",
        quasi="all",
        k=3,
        options=PrepareOptions.paper(unsafe_seed=1),
    )
    assert SECRET.encode() not in made.submission.contract.to_bytes()


def test_views_can_be_shuffled() -> None:
    data: dict[str, Any] = columns()
    notes = data["note"]
    data["note"] = pa.array(notes).cast(pa.string_view())
    released = job(pa.table(data)).release(keep_order=False).table
    assert sorted(released["note"].to_pylist()) == sorted(notes)


def test_pandas_columns_of_arrow_hold_values_alone() -> None:
    """Dictionaries keep what is missing missing; those within lists and structs count too."""
    data: dict[str, Any] = columns()
    notes = [None, *data["note"][1:]]
    known = coded([*NOTES, f"{SECRET} unused"])
    data["note"] = pa.array(notes).dictionary_encode()
    inner = pa.field("inner", known.type, metadata={"who": SECRET})
    data["illness"] = pa.StructArray.from_arrays([known], fields=[inner])
    frame = pa.table(data).to_pandas(types_mapper=pd.ArrowDtype)
    declared = replace(DECLARED, sensitive=[], kept=["note", "illness"])
    released = job(frame, declared).release().table
    assert released["note"].isna().tolist() == [True] + [False] * (N - 1)
    held = pa.chunked_array(released["illness"].array.__arrow_array__())
    assert held.type == pa.struct([pa.field("inner", pa.string())])
    assert [row["inner"] for row in held.to_pylist()] == columns()["note"]


@pytest.mark.parametrize("representation", ["midpoint", "interval"])
def test_a_class_of_which_every_category_is_missing(representation: str) -> None:
    data: dict[str, Any] = columns()
    labels = pa.array(["Bern", "Chur", "Genf"])
    places = [None if age < 60 else i % 3 for i, age in enumerate(data["age"])]
    data["city"] = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), labels, ordered=True)
    table = pa.table(data).select(["city", "age", "rich"])
    options = PrepareOptions(unsafe_seed=1)
    made = prepare(table, target="rich", quasi="all", k=3, options=options)
    delivery = LocalProvider(threads=1).anonymize(made.submission)
    verdict = verify(
        delivery, made.manifest, submission=made.submission, skip=("fingerprint", "utility")
    )
    released = release(
        delivery,
        made.manifest,
        verdict,
        table=table,
        options=ReleaseOptions(representation=representation),
    )
    assert released.sheet.n_records == N

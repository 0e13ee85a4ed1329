"""A released table and its dictionary give typed columns back, and no cell changes its meaning."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.release.classes import of_classes
from client.release.releases import DECLARED, Job, N, columns, job
from verix_anon import read_released
from verix_anon.client.release.read_back import LabelSets
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind

ODD = ["a, b", "a", "b", "}", "x..y", "x", "y", "*", "missing", "10-12", "NA", "null"]


def odd_job() -> Job:
    """A table with labels and numbers that are hard to read back."""
    data = columns()
    rng = np.random.default_rng(3)
    data["label"] = rng.choice(ODD, N).tolist()
    data["level"] = rng.choice(["20-39", "40-59", "60+"], N).tolist()
    data["depth"] = rng.normal(0, 5, N).round(1).tolist()
    data["zip"] = [f"{z:05d}" for z in rng.integers(1000, 1040, N)]
    for i in range(0, N, 9):
        data["age"][i] = data["label"][i] = None
    orders = {"level": ["20-39", "40-59", "60+"]}
    hierarchies = {"zip": "prefix", "born": "date"}
    return job(pa.table(data), replace(DECLARED, orders=orders, hierarchies=hierarchies))


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather"])
def test_every_value_lies_in_its_cell(tmp_path: Path, ending: str) -> None:
    case = odd_job()
    path = tmp_path / f"released.{ending}"
    case.release(out=path, top_code={"weight": (60.0, 80.0)})
    found = read_released(path).to_pandas()
    source = case.table.to_pandas()
    for name in ("age", "weight", "depth"):
        is_there = source[name].notna()
        assert (found[f"{name}_min"] <= source[name])[is_there].all()
        assert (source[name] <= found[f"{name}_max"])[is_there].all()
    assert (found["born_min"] <= source["born"]).all()
    assert (source["born"] <= found["born_max"]).all()
    assert found["age_missing"][source["age"].isna()].all()
    for label, labels in zip(case.table["label"].to_pylist(), found["label"], strict=True):
        assert label is None or label in labels
    for level, levels in zip(source["level"], found["level"], strict=True):
        assert level in levels
    for code, prefix in zip(source["zip"], found["zip"], strict=True):
        assert code.startswith(prefix.strip("{}").rstrip("*"))
    assert found["illness"].equals(source["illness"])
    assert found["rich"].equals(source["rich"])


def test_intervals_of_pandas(tmp_path: Path) -> None:
    case = odd_job()
    path = tmp_path / "released.csv"
    case.release(out=path)
    found = read_released(path, intervals="pandas")
    for name in ("age", "born"):
        assert isinstance(found[name].dtype, pd.IntervalDtype)
    weights = case.table["weight"].to_pylist()
    assert all(w in cell for w, cell in zip(weights, found["weight"], strict=True))


@pytest.mark.parametrize("form", ["bounds", "midpoint", "mean", "shares", "model", "set"])
def test_other_representations_are_read_with_their_types(tmp_path: Path, form: str) -> None:
    case = job(pa.table(columns()))
    path, same = tmp_path / "released.csv", tmp_path / "same.parquet"
    released = case.release(out=path, representation=form)
    case.release(out=same, representation=form)
    found = read_released(path)
    assert found.equals(read_released(same).cast(found.schema))
    if form == "model":
        numbers = [n for n in found.column_names if n.split("_")[0] in ("age", "city", "born")]
        assert all(pa.types.is_floating(found[n].type) for n in numbers)
    assert found.num_rows == released.sheet.n_records


def test_the_dictionary_says_what_each_column_is(tmp_path: Path) -> None:
    odd_job().release(out=tmp_path / "released.csv")
    schema = json.loads((tmp_path / "released.schema.json").read_text())
    fields = {field["name"]: field for field in schema["fields"]}
    assert "name" not in fields
    ours = {name: field.pop("verix") for name, field in fields.items()}
    assert ours["age"]["kind"] == "numeric"
    assert ours["age"]["missing"] == "missing"
    assert ours["born"]["hierarchy"] == "date"
    assert ours["level"] == {
        "role": "quasi",
        "column": "level",
        "kind": "categorical",
        "representation": "interval",
        "ordered": True,
        "levels": ["20-39", "40-59", "60+"],
    }
    assert "lo..hi" in fields["level"].pop("description")
    assert fields["level"] == {"name": "level", "type": "string", "constraints": {"required": True}}
    # The codes behind a name of a hierarchy are not told.
    assert "levels" not in ours["zip"]
    assert fields["illness"] == {"name": "illness", "type": "string"}
    assert ours["illness"] == {"role": "sensitive"}
    assert schema["verix"] == {"format": "verix/schema/3", "decimal": "."}


LABELS = st.text(st.sampled_from('ab*, .{}"\\\n-1é'), max_size=6) | st.sampled_from(
    ["missing", "x or missing", "2 more", "not {a}", "*", "", " ", "Mar-12", "-3..2", "=1"]
)


@given(st.lists(LABELS, min_size=1, max_size=12, unique=True), st.booleans(), st.data())
def test_cells_of_any_labels_read_back(
    labels: list[str], is_ordered: bool, data: st.DataObject
) -> None:
    column = Column(name="x", kind=Kind.CATEGORICAL, categories=tuple(labels))
    places = st.sets(st.integers(0, len(labels) - 1), min_size=1)
    sets = data.draw(st.lists(places, min_size=1, max_size=4))
    everything = set[int]().union(*sets)
    texts, covered = of_classes(
        [sorted(map(float, s)) for s in sets], column, is_ordered=is_ordered
    )
    levels = [labels[i] for i in sorted(everything)]
    reader = LabelSets(levels, is_ordered=is_ordered)
    for text, members, n_covered in zip(texts, sets, covered, strict=True):
        found = reader.read(text)
        assert {labels[i] for i in members} <= {*found}
        assert len(found) == len({*found}) == n_covered


def test_the_dictionary_tells_no_more_than_the_cells(tmp_path: Path) -> None:
    case = odd_job()
    weights = case.table["weight"].to_pylist()
    for form, tells in (("interval", True), ("bounds", True), ("mean", False), ("model", False)):
        path = tmp_path / f"{form}.csv"
        sets = dict.fromkeys(("city", "label"), "set") if form == "bounds" else {}
        sets |= {"zip": "set"} if form == "bounds" else {}
        case.release(out=path, representation=form, representations=sets, exact_ends=True)
        text = (tmp_path / f"{form}.schema.json").read_text()
        assert (str(max(weights)) in text) is tells, form
        assert "person 1" not in text
        assert '"name"' in text
        assert '"01005"' not in text or form == "bounds"


def test_what_is_no_cell() -> None:
    labels = LabelSets(["a", "b"], is_ordered=True)
    for wrong in ("{", "{a", "a and b", "{c}", "", "b..", "..", "{a} and more", '"a'):
        # Whatever it says: who reads a table says it better.
        with pytest.raises(ValueError):  # noqa: PT011
            labels.read(wrong)


def test_what_is_no_release(tmp_path: Path) -> None:
    path = tmp_path / "released.csv"
    path.write_text("a\n1\n")
    with pytest.raises(TableError, match=r"no dictionary .*released.schema.json"):
        read_released(path)
    schema = tmp_path / "released.schema.json"
    schema.write_text('{"format": "verix/schema/2", "fields": []}')
    with pytest.raises(TableError, match="not a dictionary"):
        read_released(path)
    document: dict[str, Any] = {"fields": [], "encoding": "utf-8", "dialect": {"delimiter": ","}}
    document["verix"] = {"format": "verix/schema/3", "decimal": "."}
    schema.write_text(json.dumps(document))
    with pytest.raises(TableError, match="other columns"):
        read_released(path)
    ours = {"role": "quasi", "column": "a", "kind": "numeric", "representation": "interval"}
    document["fields"] = [{"name": "a", "type": "string", "verix": ours}]
    schema.write_text(json.dumps(document))
    path.write_text("a\nmany\n")
    with pytest.raises(TableError, match="cell 'many'"):
        read_released(path)


def test_other_libraries_read_the_same_cells(tmp_path: Path) -> None:
    path = tmp_path / "released.csv"
    released = odd_job().release(out=path)
    table = released.table.to_pandas()
    by_pandas = pd.read_csv(path)
    by_polars = pl.read_csv(path).to_pandas()
    for name in ("weight", "depth", "born", "level", "zip", "label"):
        assert by_pandas[name].tolist() == table[name].tolist() == by_polars[name].tolist()

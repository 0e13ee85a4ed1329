"""A pseudonym keeps the rows of a person together, and the sheet says what that costs."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from client.release.releases import job
from client.release.test_persons import DECLARED, visits
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.release.published import schema_path
from verix_anon.client.table.roles import Declared
from verix_anon.errors import GateError, TableError


def linked(n: int = 3, **options: Any) -> tuple[pa.Table, Any]:
    table = visits(np.random.default_rng(n), 4)
    wanted: dict[str, Any] = {"person": "person", "pseudonym": "who", "keep_order": False}
    return table, job(table, DECLARED).release(**(wanted | options))


def test_it_tells_people_apart_and_nothing_else() -> None:
    table, released = linked()
    people = np.array(table["person"].to_pylist())[released.rows].tolist()
    numbers = released.table["who"].to_pylist()
    assert released.table.column_names[0] == "who"
    assert len(set(zip(people, numbers, strict=True))) == len(set(people)) == len(set(numbers))
    assert sorted(set(numbers)) == list(range(1, len(set(people)) + 1))


def test_it_is_fresh_for_every_release() -> None:
    """Numbers of two releases agree for as few people as chance has it."""
    found = []
    for _ in range(2):
        table, released = linked()
        people = np.array(table["person"].to_pylist())[released.rows].tolist()
        found.append(dict(zip(people, released.table["who"].to_pylist(), strict=True)))
    assert sum(found[0][who] == found[1][who] for who in found[0]) < 10


@pytest.mark.parametrize("suppress", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(4))
def test_the_sheet_counts_people_with_the_same_classes(seed: int, suppress: float) -> None:
    _, released = linked(seed, suppress=suppress)
    classes = defaultdict(list)
    for row in released.table.select(["who", "age", "city"]).to_pylist():
        classes[row["who"]].append((row["age"], row["city"]))
    combinations = Counter(tuple(sorted(each)) for each in classes.values())
    shared = [combinations[tuple(sorted(each))] for each in classes.values()]
    found = released.sheet.linked
    assert found.column == "who"
    assert found.k == min(shared)
    assert found.below_k == pytest.approx(np.mean([n < 3 for n in shared]))
    assert found.unique == pytest.approx(np.mean([n == 1 for n in shared]))
    assert any("Column 'who' links the rows of each person" in w for w in released.warnings)
    assert "over all rows of a person k is 1" in released.sheet.facts()["linked rows"]
    assert Sheet.from_json(released.sheet.to_json()) == released.sheet


def test_it_can_be_a_gate() -> None:
    with pytest.raises(GateError, match="linked-k is 1, not at least 3"):
        linked(require={"linked-k": 3})
    assert linked(pseudonym=None, require={"linked-k": 3})[1].sheet.linked is None


def test_a_published_person_column_links_rows_too() -> None:
    kept = Declared(target="rich", quasi=["age", "city"], kept=["person", "illness", "pay"])
    released = job(visits(np.random.default_rng(3), 4), kept).release(person="person")
    assert released.sheet.linked == replace(linked()[1].sheet.linked, column="person")


def test_the_dictionary_says_what_it_is(tmp_path: Path) -> None:
    table = visits(np.random.default_rng(3), 4)
    job(table, DECLARED).release(
        out=tmp_path / "out.csv", person="person", pseudonym="who", keep_order=False
    )
    schema = json.loads(Path(schema_path(str(tmp_path / "out.csv"))).read_text())
    assert schema["fields"][0] == {
        "name": "who",
        "type": "integer",
        "verix": {"role": "pseudonym"},
    }
    assert (tmp_path / "out.csv").read_text().startswith("who,")


def test_mistakes() -> None:
    with pytest.raises(TableError, match="name the column that tells people apart"):
        linked(person="record")
    with pytest.raises(TableError, match="two columns 'illness'"):
        linked(pseudonym="illness")

"""A look at a release: the same figures and cells, and nothing written or counted."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from client.release import releases
from verix_anon.client.ledger import Ledger, LookedAt
from verix_anon.client.release import ReleaseOptions
from verix_anon.client.release.preview import Preview, preview_sample
from verix_anon.errors import TableError
from verix_anon.provider.local import LocalProvider


def look(case: releases.Job, ledger: Ledger | None = None, **options: Any) -> Preview:
    released = case.release(ledger, **options)
    return Preview.of(released, ReleaseOptions(**options), case.manifest, case.table)


def test_records_are_those_of_the_release_and_of_the_table(case: releases.Job) -> None:
    found = look(case)
    published = case.release().table.to_pydict()
    before = case.table.to_pydict()
    rows = [i * (releases.N - 1) // 9 for i in range(10)]
    columns = {column.name: column for column in found.columns}
    assert list(columns) == list(before)
    for name, column in columns.items():
        assert column.before == tuple(str(before[name][row]) for row in rows)
        if name != "name":
            assert column.after == {name: tuple(str(published[name][row]) for row in rows)}
    assert columns["name"].after == {}
    assert columns["note"].is_same
    assert not columns["name"].is_same
    assert found.facts == case.release().sheet.facts()


def test_a_whole_number_is_shown_as_it_is_written(case: releases.Job) -> None:
    found = look(case, representations={"age": "midpoint"})
    age = next(column for column in found.columns if column.name == "age")
    assert not any(str(cell).endswith(".0") for cell in age.after["age"])
    assert any("." not in str(cell) for cell in age.after["age"])


def test_a_column_may_become_several(case: releases.Job) -> None:
    found = look(case, representations={"age": "bounds"})
    age = next(column for column in found.columns if column.name == "age")
    assert list(age.after) == ["age_min", "age_max"]
    assert found.options == {"representations": {"age": "bounds"}}


def test_a_look_is_not_counted_and_knows_what_was(case: releases.Job, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    look(case, LookedAt(ledger.path))
    assert not ledger.path.exists()
    case.release(ledger)
    lines = ledger.path.read_text()
    found = look(case, LookedAt(ledger.path), l=2)
    assert any("released 1 time before" in warning for warning in found.warnings)
    assert ledger.path.read_text() == lines


def test_it_is_read_back(case: releases.Job) -> None:
    found = look(case, l=2, representation="set")
    assert [loss.column for loss in found.losses] == [c.name for c in case.manifest.quasi]
    again = Preview.from_json(found.to_json())
    assert again == found
    assert again.options == {"l": {"rich": 2}, "representation": "set"}
    with pytest.raises(TableError):
        Preview.from_json("{}")
    with pytest.raises(TableError):
        Preview.from_json(found.to_json().replace('"before": [', '"before": [[', 1))
    with pytest.raises(TableError, match="cells must be a list"):
        Preview.from_json(found.to_json().replace('"before": [', '"other": [', 1))


def test_a_mistake_in_the_roles_of_a_sample_names_no_copy(tmp_path: Path) -> None:
    rows = pa.table({"age": [1, 2, 3] * 10, "sex": ["f", "m", "f"] * 10})
    roles = '[columns]\nage = "quasi"\nsex = "quasi"\n[report]\ntable_name = "a\\nb"\n'
    with pytest.raises(TableError, match=r"^table_name"):
        preview_sample(rows, roles, tmp_path, LocalProvider())

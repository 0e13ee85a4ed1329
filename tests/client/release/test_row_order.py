"""Rows are published in random order, and nothing in a file tells how they stood."""

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from client.release import releases
from client.release.releases import DECLARED, Job, N, job, parse
from verix_anon.client.release import ReleaseOptions, published, row_order
from verix_anon.client.release.preview import Preview
from verix_anon.client.release.published import Published, bare_array, schema_path
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.roles import Declared
from verix_anon.datasets import census
from verix_anon.files.tables import Reading, read_table

FORMATS = ("csv", "tsv", "parquet", "feather", "xlsx", "sav", "dta")
Floats = npt.NDArray[np.float64]


def columns() -> dict[str, Any]:
    """People, each with a note of their own."""
    return releases.columns() | {"note": [f"note {i:02d}" for i in range(N)]}


def rows_of(notes: list[str]) -> list[int]:
    return [int(note.removeprefix("note ")) for note in notes]


@pytest.mark.parametrize("ending", FORMATS)
def test_files_are_shuffled(ending: str, tmp_path: Path) -> None:
    case = job(pa.table(columns()))
    released = case.release(out=tmp_path / f"out.{ending}", keep_order=False)
    reading = Reading(sheet="Table") if ending == "xlsx" else None
    found = read_table(tmp_path / f"out.{ending}", reading)
    rows = rows_of(found["note"].to_pylist())
    # The owner knows which row is which.
    assert rows == released.rows.tolist() != list(range(N))
    assert found["illness"].to_pylist() == case.table["illness"].take(rows).to_pylist()
    assert sorted(rows) == list(range(N))
    assert case.release(keep_order=False).rows.tolist() != rows


@pytest.mark.parametrize("library", [pa.table, pd.DataFrame, pl.DataFrame])
def test_tables_in_memory_are_shuffled(library: Any) -> None:
    case = job(library(columns()))
    released, kept = case.release(keep_order=False), case.release()
    before, after = (pa.table(dict(columns_of(each.table))) for each in (kept, released))
    rows = rows_of(after["note"].to_pylist())
    assert rows == released.rows.tolist() != sorted(rows)
    assert kept.rows.tolist() == sorted(rows) == list(range(N))
    # Cells go with their records.
    assert after.to_pydict() == before.take(rows).to_pydict()
    if library is pd.DataFrame:
        assert released.table.index.tolist() == list(range(N))


def test_each_order_is_as_likely() -> None:
    counts = np.zeros((4, 4), int)
    for _ in range(4_000):
        counts[np.arange(4), row_order.random_order(4)] += 1
    # 1,000 each, with a standard deviation of 27.
    assert np.abs(counts - 1_000).max() < 200


def test_rows_of_one_person_do_not_stand_together(tmp_path: Path) -> None:
    """The published order has nothing to do with the table's, in which each person's rows do."""
    n_rows = 3_000
    table = census(n_rows, seed=4).select(["age", "region", "income"])
    visits = {"patient": [f"p{i // 3}" for i in range(n_rows)], "visit": [*range(n_rows)]}
    for name, values in visits.items():
        table = table.append_column(name, pa.array(values))
    roles = Declared(
        target="income", quasi="all", identifier="patient", kept="visit", person="patient"
    )
    case = job(table, roles, k=5, min_leaf=5, traps=0)
    released = case.release(out=tmp_path / "out.parquet", keep_order=False, person="patient")
    visit = pq.read_table(tmp_path / "out.parquet")["visit"].to_numpy()
    assert visit.tolist() == released.rows.tolist()
    # By chance 2 of the 2,999 pairs of neighbours are of one person; in the table 2,000 are.
    assert (np.diff(visit // 3) == 0).sum() < 15
    # Ranks of 3,000 rows agree by chance with a standard deviation of 0.018, and so do classes'.
    assert abs(np.corrcoef(visit, np.arange(n_rows))[0, 1]) < 0.1
    cells = read_table(tmp_path / "out.parquet").drop(["visit", "income"]).to_pylist()
    n_alike = sum(a == b for a, b in itertools.pairwise(cells))
    by_chance = sum(n * n for n in Counter(map(str, cells)).values()) / n_rows
    assert n_alike < 2 * by_chance + 15


def test_a_preview_shows_each_record_in_its_place() -> None:
    case = job(pa.table(columns()))
    kept, shuffled = (
        Preview.of(case.release(keep_order=keep), ReleaseOptions(), case.manifest, case.table)
        for keep in (True, False)
    )
    assert kept.columns == shuffled.columns


def test_a_type_that_cannot_be_put_in_order_is_published_all_the_same(tmp_path: Path) -> None:
    notes = pa.array(columns()["note"])
    coded = pa.compute.run_end_encode(notes)
    released = job(pa.table(columns() | {"note": coded})).release(
        keep_order=False, out=tmp_path / "out.parquet"
    )
    assert sorted(released.table["note"].to_pylist()) == notes.to_pylist()


def sorted_people(n_rows: int = 2_000, *, turned: bool = False) -> pa.Table:
    people = census(n_rows, seed=3).select(
        ["age", "region", "hours_per_week", "education", "income"]
    )
    return people.sort_by([("age", "descending" if turned else "ascending")])


def people_job(table: pa.Table, k: int = 5) -> Job:
    return job(table, Declared(target="income", quasi="all"), k=k, min_leaf=k, traps=0)


def attacked(cells: list[str]) -> tuple[Floats, Floats]:
    """Bounds of each row by its own cell and by those above and below it."""
    low, high = np.array([parse(cell) for cell in cells]).T
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


def told(released: Any, table: pa.Table) -> float:
    """The share of ages that the attack tells exactly, and rightly."""
    low, high = attacked(released.table["age"].to_pylist())
    ages = table["age"].to_numpy()[released.rows]
    return float(((low == high) & (low == ages)).mean())


def by_cells(released: Any) -> float:
    low, high = np.array([parse(cell) for cell in released.table["age"].to_pylist()]).T
    return float((low == high).mean())


def test_running_bounds_tell_ages_of_a_sorted_table_and_none_of_a_shuffled_one() -> None:
    table = sorted_people()
    case = people_job(table)
    kept, shuffled = case.release(), case.release(keep_order=False)
    assert told(kept, table) > 0.6 > 0.2 > by_cells(kept) == by_cells(shuffled)
    assert told(shuffled, table) <= by_cells(shuffled)


def below_k(released: Any, table: pa.Table, k: int) -> float:
    """The share of people whom fewer than k rows can be, counted one by one."""
    low, high = attacked(released.table["age"].to_pylist())
    ages = table["age"].to_pylist()
    looks = list(zip(*released.table.drop(["income"]).to_pydict().values(), strict=True))
    fewer = 0
    for age, look in zip(ages, looks, strict=True):
        alike = [i for i, other in enumerate(looks) if other == look]
        fewer += sum(low[i] <= age <= high[i] for i in alike) < k
    return fewer / len(ages)


def test_the_warning_measures_this_attack() -> None:
    table = sorted_people(400)
    released = people_job(table).release()
    (said,) = (line for line in released.warnings if "--keep-order" in line)
    assert "sorted by 'age'" in said
    assert f"With the order, {told(released, table):.1%} of its values" in said
    assert f"from the cells alone, {by_cells(released):.1%}" in said
    assert f"For {below_k(released, table, 5):.1%} of the records fewer than 5 rows" in said
    assert not any("order" in line for line in people_job(table).release(keep_order=False).warnings)


def measured(table: pa.Table, **options: Any) -> row_order.Sorted | None:
    """What is measured of the age."""
    found: list[row_order.Sorted | None] = []
    measure = row_order._measured
    with pytest.MonkeyPatch.context() as patch:

        def kept(*given: Any) -> row_order.Sorted | None:
            found.append(measure(*given))
            return found[-1]

        patch.setattr(row_order, "_measured", kept)
        people_job(table).release(**options)
    assert found[1:] == [None] * (len(found) - 1)
    return found[0]


def test_tables_that_are_sorted_downwards_or_nearly_are_measured_too() -> None:
    up = measured(sorted_people())
    down = measured(sorted_people(turned=True))
    assert up is not None
    assert down is not None
    assert down.exact == pytest.approx(up.exact, abs=0.1)
    table = sorted_people()
    order = np.arange(table.num_rows)
    # One row in thirty elsewhere, the last one first.
    order[::30] = np.roll(order[::30], 1)
    nearly = measured(table.take(order))
    assert nearly is not None
    assert nearly.exact_by_cells == up.exact_by_cells
    assert up.exact - 0.2 < nearly.exact < up.exact
    shuffled = table.take(np.random.default_rng(1).permutation(order))
    assert measured(shuffled) is None
    (said,) = (w for w in people_job(shuffled).release().warnings if "--keep-order" in w)
    assert "not sorted by a quasi-identifier" in said


def test_what_is_coarser_gives_less_away() -> None:
    table = sorted_people()
    plain, rounded = measured(table), measured(table, round_to={"age": 10})
    capped = measured(table, top_code={"age": (30, 50)})
    assert plain is not None
    assert rounded is not None
    assert capped is not None
    assert rounded.exact < capped.exact < plain.exact
    assert rounded.below_k < plain.below_k
    # Means have no ends to run along.
    assert measured(table, representation="mean") is None


def test_missing_values_are_not_measured() -> None:
    table = sorted_people()
    plain = measured(table)
    assert plain is not None
    ages = [None if i % 9 == 0 else age for i, age in enumerate(table["age"].to_pylist())]
    found = measured(table.set_column(0, "age", pa.array(ages, pa.int64())))
    assert found is not None
    # A cell of a class in which some are missing tells nothing exactly.
    assert found.exact < plain.exact


def test_a_column_of_one_value_is_not_sorted() -> None:
    table = sorted_people(200)
    one = table.set_column(0, "age", pa.array([7] * 200))
    assert measured(one.take(np.random.default_rng(1).permutation(200))) is None


def in_order_of_notes(self: Published, begin: int = 0, end: int | None = None) -> Any:
    assert self.kept is not None
    return np.argsort(self.kept["note"].to_list()).astype(np.int32)[begin:end]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("text", [pa.string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_files_do_not_depend_on_the_order_of_the_table(
    ending: str, text: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same rows in the same order, but of a table that was sorted otherwise."""
    monkeypatch.setattr(Published, "rows", in_order_of_notes)
    table = pa.table(columns())
    written = []
    for n, order in enumerate((np.arange(N), np.random.default_rng(4).permutation(N))):
        taken = table.take(order).to_pydict()
        kept = {"note": taken["note"], "illness": taken["illness"]}
        coded = {
            name: pa.array(values).dictionary_encode().cast(text) for name, values in kept.items()
        }
        case = job(pa.table(taken | coded), traps=0)
        path = tmp_path / f"{n}.{ending}"
        case.release(out=path)
        written.append((path.read_bytes(), Path(schema_path(str(path))).read_bytes()))
    assert written[0] == written[1]


def dictionaries(path: Path) -> dict[str, list[Any]]:
    """Those of every column that has one, as the file has them."""
    if path.suffix == ".feather":
        table = pa.ipc.open_file(path).read_all()
    else:
        names = pq.read_schema(path).names
        table = pq.read_table(path, read_dictionary=names)
    chunked = {name: table[name] for name in table.column_names}
    return {
        name: column.chunk(0).dictionary.to_pylist()
        for name, column in chunked.items()
        if pa.types.is_dictionary(column.type)
    }


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_dictionaries_are_sorted(ending: str, tmp_path: Path) -> None:
    notes = [f"note {i:02d}" for i in np.random.default_rng(5).permutation(N)]
    coded = {"note": notes, "illness": columns()["illness"]}
    table = columns() | {name: pa.array(v).dictionary_encode() for name, v in coded.items()}
    frames = (pa.table(table), pa.table(table).to_pandas())
    for n, frame in enumerate(frames):
        released = job(frame).release(out=tmp_path / f"{n}.{ending}", keep_order=False)
        found = dictionaries(tmp_path / f"{n}.{ending}")
        assert found["note"] == sorted(notes)
        assert found["illness"] == sorted(set(coded["illness"]))
        if ending == "parquet":
            # In the file, and not only there: cells of quasi-identifiers.
            assert {"age", "city", "weight", "born"} < set(found)
        assert all(entries == sorted(entries) for entries in found.values())
        held = released.table["note"]
        labels = held.cat.categories if n else held.chunk(0).dictionary.to_pylist()
        assert list(labels) == sorted(notes)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("ordered", [False, True])
def test_categories_of_polars_are_sorted(ending: str, ordered: bool, tmp_path: Path) -> None:
    notes = [f"note {i:02d}" for i in np.random.default_rng(5).permutation(N)]
    kind = pl.Enum(notes) if ordered else pl.Categorical()
    frame = pl.DataFrame(columns()).with_columns(pl.Series("note", notes, dtype=kind))
    job(frame).release(out=tmp_path / f"out.{ending}", keep_order=False)
    # Of plain text, Parquet has a dictionary in the order of the published rows, which is random.
    assert dictionaries(tmp_path / f"out.{ending}")["note"] == sorted(notes)


def test_a_rank_stays_unless_it_is_the_order_of_the_rows() -> None:
    labels = [f"step {i}" for i in np.random.default_rng(6).permutation(12)]
    places = np.random.default_rng(7).integers(0, 12, N)
    rank = pa.DictionaryArray.from_arrays(pa.array(places), pa.array(labels), ordered=True)
    assert bare_array(rank).type.ordered
    assert bare_array(rank).dictionary.to_pylist() == labels
    rows = pa.DictionaryArray.from_arrays(pa.array(range(12)), pa.array(labels), ordered=True)
    assert not bare_array(rows).type.ordered
    assert bare_array(rows).dictionary.to_pylist() == sorted(labels)
    assert bare_array(rows).to_pylist() == labels
    few = pa.DictionaryArray.from_arrays(pa.array(range(3)), pa.array(labels[:3]), ordered=True)
    assert bare_array(few).dictionary.to_pylist() == labels[:3]
    for array, stays in ((rank, True), (rows, False)):
        frame: Any = nw.from_native(pd.DataFrame({"x": array.to_pandas()}))
        bare: Any = published.bare_frame(frame)
        assert list(bare["x"].cat.categories) == (labels if stays else sorted(labels))
        assert bare["x"].cat.ordered is stays


@pytest.mark.parametrize(
    ("ending", "time"), [("sav", b"Y@01 Jan 0000:00:00 "), ("dta", b"\x1101 Jan 2000 00:00<")]
)
def test_files_of_statistics_do_not_say_when_they_were_written(
    ending: str, time: bytes, tmp_path: Path
) -> None:
    case = job(pa.table(columns()), replace(DECLARED, orders={}))
    case.release(out=tmp_path / f"out.{ending}")
    assert time in (tmp_path / f"out.{ending}").read_bytes()[:512]

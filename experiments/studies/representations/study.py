"""Representations: what a released table is worth to a model, and how large it is, by its cells.

Adult whole, k = 5, the journey with traps as a user gets it. Seven tenths of the rows are released
in every representation as CSV and read back with `read_released`; a model fitted to that is tested
on the others, raw. Categories are a number for each label: its share of the labels possible.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments import data
from experiments.core import owner
from experiments.core.cells import Params, Result
from verix_anon.client import models
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import ReleaseOptions, Representation, release
from verix_anon.client.release.read_back import read_released
from verix_anon.client.table.categories import as_label
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.verify.utility import measure
from verix_anon.files.tables import write_table
from verix_anon.protocol.contract import Column, Kind
from verix_anon.provider.local import LocalProvider

__all__ = ["cells", "features", "run", "summarize"]

PLACE = 14
NAME, TARGET = "adult", "target"
TEST_SHARE = 0.3
WHOLE = 10**9
SEEDS = 3
FORMS = tuple(Representation)

Floats = npt.NDArray[np.float64]


def cells(*, quick: bool) -> list[Params]:
    """Some seeds, each with its own split and secrets."""
    rows, seeds = (1_000, 1) if quick else (WHOLE, SEEDS)
    return [{"rows": rows, "seed": seed} for seed in range(1, seeds + 1)]


def run(params: Params) -> Result:
    """Every representation of one release, and the raw rows beside them."""
    seed = int(params["seed"])
    table = owner.sample(NAME, seed=seed, rows=int(params["rows"]))
    kinds = dict.fromkeys(data.describe(NAME).nominal, Kind.CATEGORICAL)
    declared = Declared(target=TARGET, quasi="all", kinds=kinds)
    encoded = read_owner_table(table, declared)
    rng = np.random.default_rng([seed, table.num_rows, 3])
    is_test = np.zeros(table.num_rows, bool)
    is_test[rng.permutation(table.num_rows)[: round(TEST_SHARE * table.num_rows)]] = True
    train, test = table.filter(pa.array(~is_test)), table.filter(pa.array(is_test))
    of_train = encoded.labels.of(np.flatnonzero(~is_test))
    of_test = encoded.labels.of(np.flatnonzero(is_test))

    def scored(seen: pa.Table, raw: pa.Table) -> dict[str, float]:
        both = [features(t, encoded.quasi) for t in (seen, raw)]
        return measure(of_test, models.predict(both[0], of_train, both[1]))

    options = PrepareOptions(importance="auto", witnesses=0, unsafe_seed=seed, threads=1)
    made = prepare(train, roles=declared, k=owner.K, options=options)
    delivery = LocalProvider(threads=1).anonymize(made.submission)
    with tempfile.TemporaryDirectory() as folder:
        raw_size = _written(train, Path(folder) / "raw.csv")
        runs: list[Result] = []
        for form in FORMS:
            path = Path(folder) / f"{form}.csv"
            # The middle of a cell with an open end is not defined.
            wanted = ReleaseOptions(
                representation=form,
                representations=_numbers_only(form, encoded.quasi),
                # The labels of the models stand in the order of the table.
                keep_order=True,
                exact_ends=True,
                force=True,
            )
            found = release(delivery, made.manifest, None, table=train, options=wanted, out=path)
            size = path.stat().st_size / raw_size
            score = scored(read_released(path), test)
            runs.append({"form": form.value, "size": size, "ncp": found.sheet.ncp, **score})
    return {"raw": scored(train, test), "runs": runs}


def _numbers_only(form: Representation, columns: Sequence[Column]) -> dict[str, Representation]:
    """Bounds are for numbers; categories beside them are sets."""
    if form is not Representation.BOUNDS:
        return {}
    return {c.name: Representation.SET for c in columns if c.categories is not None}


def _written(table: pa.Table, path: Path) -> int:
    write_table(table, path)
    return path.stat().st_size


def features(table: pa.Table, columns: Sequence[Column]) -> Floats:
    """What a model takes of a table, raw or read back: alike for both."""
    found: list[Floats] = []
    for column in columns:
        if column.categories is None:
            found.append(_number(table, column.name))
        else:
            found.extend(_shares(table, column))
    return np.column_stack(found)


def _number(table: pa.Table, name: str) -> Floats:
    if name in table.column_names:
        return table[name].cast(pa.float64()).to_numpy()  # type: ignore[no-any-return]
    low, high = (table[f"{name}_{end}"].cast(pa.float64()).to_numpy() for end in ("min", "max"))
    middle: Floats = low / 2 + high / 2
    return middle


def _shares(table: pa.Table, column: Column) -> list[Floats]:
    """For each label the share of the labels that are possible, or the one that is published."""
    labels = column.categories or ()
    named = [f"{column.name}_{label}" for label in labels]
    if column.name not in table.column_names:
        zeros = np.zeros(table.num_rows)
        return [table[n].to_numpy() if n in table.column_names else zeros for n in named]
    place = {label: i for i, label in enumerate(labels)}
    shares = np.zeros((table.num_rows, len(labels)))
    for row, cell in enumerate(table[column.name].to_pylist()):
        # A label of a raw row, a list of those that are possible, or nothing.
        possible = cell if isinstance(cell, list) else [] if cell is None else [as_label(cell)]
        for label in possible:
            shares[row, place[label]] = 1 / len(possible)
    return list(shares.T)


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """The means over the seeds."""
    results = [result for _, result in found]
    rows = []
    for i, first in enumerate(results[0]["runs"]):
        group = [result["runs"][i] for result in results]
        rows.append({"form": first["form"], **_means(group, leave=("form",))})
    return {
        "k": owner.K,
        "seeds": len(results),
        "raw": _means([result["raw"] for result in results]),
        "rows": rows,
    }


def _means(group: Sequence[Result], leave: Sequence[str] = ()) -> Result:
    names = [name for name in group[0] if name not in leave]
    return {name: float(np.mean([r[name] for r in group])) for name in names}

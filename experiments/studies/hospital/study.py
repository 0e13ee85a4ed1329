"""The hospital: what is left of each column by its weights, and what common bins do to counts.

The admissions of tools/hospital.py, k = 5, the journey with traps. The roles are those that `init`
drafts, or a few quasi-identifiers with all other columns dropped. Births are counted by ten years,
and by ten years and sex, as a reader of the release would: once by `groupby`, which has only the
rows whose cells lie in one group, and once with each row shared evenly over the groups that its
cell leaves possible.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.core import owner
from experiments.core.cells import Params, Result
from tools import hospital
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.release.read_back import read_released
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.roles_file import draft, parse_roles
from verix_anon.files.tables import read_table
from verix_anon.provider.local import LocalProvider

__all__ = ["cells", "run", "summarize"]

PLACE = 16
ROWS, SEEDS = hospital.ROWS, 3
BORN, SEX = "Geburtsdatum", "Geschlecht"
SEXES = ("1", "2", "9")
FEW = (BORN, SEX, "PLZ")
YEARS = 10
FIRST, LAST = 1930, 2029
DECADES = np.array([f"{year}-01-01" for year in range(FIRST, LAST + 2, YEARS)], "M8[D]").astype(int)
BINS: Mapping[str, str | dict[str, float | str]] = {
    "none": {},
    "10y": {BORN: "10y"},
    "auto": "auto",
}

Floats = npt.NDArray[np.float64]


def cells(*, quick: bool) -> list[Params]:
    """Some seeds, each with a table and secrets of its own."""
    rows, seeds = (600, 1) if quick else (ROWS, SEEDS)
    return [{"rows": rows, "seed": seed} for seed in range(1, seeds + 1)]


def run(params: Params) -> Result:
    """The draft with both weights, and with equal weights every kind of bins; few columns too."""
    seed = int(params["seed"])
    losses: list[Result] = []
    counts: list[Result] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = hospital.write(folder / "table.csv", int(params["rows"]), seed=seed)
        _, drafted = parse_roles(draft(path), folder)
        few = Declared(
            target=drafted.target,
            quasi=FEW,
            identifier=[n for n in hospital.COLUMNS["de"] if n not in (*FEW, drafted.target)],
            kinds={SEX: "categorical"},
            hierarchies={name: drafted.hierarchy(name) for name in (BORN, "PLZ")},
            positive=drafted.positive,
            person=drafted.person,
        )
        raw = _shares(read_table(path))
        for roles, declared, weights, kinds in (
            ("draft", drafted, "auto", ("none",)),
            ("draft", drafted, "uniform", tuple(BINS)),
            ("few", few, "uniform", tuple(BINS)),
        ):
            options = PrepareOptions(importance=weights, witnesses=0, unsafe_seed=seed, threads=1)
            made = prepare(path, roles=declared, k=owner.K, options=options)
            delivery = LocalProvider(threads=1).anonymize(made.submission)
            for bins in kinds:
                out = folder / f"{roles}-{weights}-{bins}.parquet"
                wanted = ReleaseOptions(bins=BINS[bins], force=True)
                found = release(delivery, made.manifest, None, table=path, options=wanted, out=out)
                setting = {"roles": roles, "weights": weights, "bins": bins}
                texts, sheet = read_table(out), found.sheet
                for loss in sheet.losses:
                    binned = sheet.bins.get(loss.column)
                    losses.append(
                        {
                            **setting,
                            "column": loss.column,
                            "exact": loss.exact,
                            "width": loss.median_width,
                            "unit": loss.unit,
                            "ncp": loss.ncp,
                            "cells": len(texts[loss.column].unique()),
                            "spanning": None if binned is None else binned.spanning,
                        }
                    )
                counts += [setting | error for error in _errors(raw, _shares(read_released(out)))]
    return {"losses": losses, "counts": counts}


def _shares(table: pa.Table) -> tuple[Floats, Floats]:
    """For each row the share of each ten years of birth, and of each sex, that is possible."""
    names = (BORN, BORN) if BORN in table.column_names else (f"{BORN}_min", f"{BORN}_max")
    days = [table[name].cast(pa.date32()).cast(pa.int32()).to_pandas() for name in names]
    is_missing = days[0].isna() & days[1].isna()
    # An end that is open is that of the first or the last group.
    low = days[0].fillna(DECADES[0]).to_numpy()[:, None]
    high = days[1].fillna(DECADES[-1] - 1).to_numpy()[:, None]
    shared = np.minimum(high + 1, DECADES[1:]) - np.maximum(low, DECADES[:-1])
    born = np.clip(shared, 0, None) / (high - low + 1)
    born[is_missing] = 0.0
    sex = np.zeros((table.num_rows, len(SEXES)))
    for row, cell in enumerate(table[SEX].to_pylist()):
        possible = cell if isinstance(cell, list) else [str(cell)]
        for label in possible:
            sex[row, SEXES.index(label)] = 1 / len(possible)
    return born, sex


def _errors(raw: tuple[Floats, Floats], seen: tuple[Floats, Floats]) -> list[Result]:
    """The error of each count, in rows, by how it is counted."""
    found: list[Result] = []
    for how in ("groupby", "shared"):
        born, sex = (np.floor(part) if how == "groupby" else part for part in seen)
        for what, true, counted in (
            ("ten years", raw[0].sum(axis=0), born.sum(axis=0)),
            ("ten years and sex", raw[0].T @ raw[1], born.T @ sex),
        ):
            occurs = true > 0
            error = np.abs(counted - true)[occurs]
            found.append(
                {
                    "how": how,
                    "what": what,
                    "group": float(true[occurs].mean()),
                    "mean": float(error.mean()),
                    "most": float(error.max()),
                }
            )
    return found


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """The means over the seeds, with their standard errors."""
    results = [result for _, result in found]
    rows = _means(
        results, "losses", ("roles", "weights", "bins", "column"), ("exact", "width", "ncp")
    )
    for row in rows:
        row["cells"] = round(row["cells"])
    return {
        "k": owner.K,
        "n_rows": max(int(params["rows"]) for params, _ in found),
        "seeds": len(results),
        "years": YEARS,
        "counts": _means(
            results, "counts", ("roles", "weights", "bins", "how", "what"), ("mean", "most")
        ),
        "rows": rows,
    }


def _means(
    results: Sequence[Result], part: str, key: Sequence[str], with_error: Sequence[str]
) -> list[Result]:
    groups: dict[tuple[str, ...], list[Result]] = {}
    for one in (one for result in results for one in result[part]):
        groups.setdefault(tuple(one[name] for name in key), []).append(one)
    rows = []
    for group in groups.values():
        row: Result = {}
        for name, value in group[0].items():
            is_number = isinstance(value, int | float)
            values = [one[name] for one in group] if is_number else []
            row[name] = float(np.mean(values)) if is_number else value
            if name in with_error:
                of = len(values)
                row[f"{name}_error"] = float(np.std(values, ddof=1) / of**0.5) if of > 1 else 0.0
        rows.append(row)
    return rows

"""What a provider recovers of a submission: columns named and cells valued.

The table is sent in clear, coded, and coded with a limit on places. The provider knows some rows
of other people of the same population, or sees the release of the very table.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments import data
from experiments.core import owner
from experiments.core.cells import Params, Result
from experiments.studies.coding.attack import Known, Seen, name_columns, place_values
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.options import Importance
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.release import ReleaseOptions, Representation, release
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared, Missing
from verix_anon.protocol.contract import Column, Kind, Rule
from verix_anon.provider.local import LocalProvider

__all__ = ["BACKGROUNDS", "SENT", "cells", "run", "summarize"]

PLACE = 13
SEEDS = 3
OTHERS = 503
"""Rows of other people that the provider knows."""
NEAR = 0.01
"""A number is nearly right within this share of its column's range."""
TABLES = ("adult", "bank", "magic")
SENT = {"clear": None, "coded": None, "1,024 places": 1_024, "64 places": 64}
BACKGROUNDS = ("other people", "the release")

Floats = npt.NDArray[np.float64]


def cells(*, quick: bool) -> list[Params]:
    """A table sent in one way, under a seed; all backgrounds on the same submission."""
    tables, seeds, rows = (("adult",), 1, 600) if quick else (TABLES, SEEDS, owner.ROWS)
    return [
        {"data": name, "seed": seed, "rows": rows, "sent": sent}
        for seed in range(1, seeds + 1)
        for name in tables
        for sent in (("clear", "coded") if quick else SENT)
    ]


def run(params: Params) -> Result:
    """Recover what can be, under every background."""
    case = _case(params)
    if params["sent"] == "clear":
        return dict.fromkeys(BACKGROUNDS, _read_off(case))
    return {
        "other people": _recovered(case, _from_rows(case)),
        "the release": _recovered(case, _from_release(case)),
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A submission, the truth of it, and other people's rows."""

    table: pa.Table
    made: Prepared
    columns: Sequence[Column]
    values: Floats
    """The owner's, (n_quasi, n_rows)."""
    others: Floats
    """Other people's, (n_quasi, n)."""

    @property
    def genuine(self) -> tuple[Floats, Floats]:
        """What was sent of the genuine records, and what it stands for."""
        owner_row = self.made.manifest.owner_row
        is_genuine = owner_row >= 0
        return (
            self.made.submission.records.values[:, is_genuine],
            self.values[:, owner_row[is_genuine]],
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Background:
    """What the provider compares: by name, by position, and records of both for correlations."""

    known: dict[str, Known]
    seen: list[Seen]
    knows: Floats
    sees: Floats


def _case(params: Params) -> _Case:
    name, seed, rows = str(params["data"]), int(params["seed"]), int(params["rows"])
    drawn = owner.sample(name, seed=seed, rows=rows + OTHERS)
    order = np.random.default_rng([seed, rows, 3]).permutation(drawn.num_rows)
    nominal = set(data.describe(name).nominal) & set(drawn.column_names)
    kinds = dict.fromkeys(nominal, Kind.CATEGORICAL)
    # Both parts together, so that a category has the same place in both.
    encoded = read_owner_table(drawn, Declared(target="target", quasi="all", kinds=kinds))
    orders = {c.name: c.categories for c in encoded.quasi if c.categories}
    declared = Declared(
        target="target", quasi="all", kinds=kinds, orders=orders, missing=Missing.IMPUTE
    )
    table = drawn.take(pa.array(order[OTHERS:]))
    is_sent = np.isin(np.arange(drawn.num_rows), order[OTHERS:])
    options = _options(str(params["sent"]), seed)
    # Encoded by itself: what is missing is filled in from this part alone.
    own = read_owner_table(table, declared)
    return _Case(
        table=table,
        made=prepare(table, roles=declared, k=owner.K, options=options),
        columns=own.quasi,
        values=own.matrix,
        others=owner.among_sent(encoded.matrix, encoded.quasi, is_sent)[:, order[:OTHERS]],
    )


def _options(sent: str, seed: int) -> PrepareOptions:
    is_clear = sent == "clear"
    return PrepareOptions(
        # Only the paper's rule can be sent in clear.
        rule=Rule.VARIANCE_REDUCTION if is_clear else Rule.IMPORTANCE_SPREAD,
        importance=Importance.AUTO,
        min_leaf="k",
        clear=is_clear,
        places=SENT[sent],
        traps=Traps.ADAPTIVE,
        witnesses=0,
        unsafe_seed=seed,
        threads=1,
    )


def _read_off(case: _Case) -> Result:
    """What stands in a submission in clear."""
    names = [column.name for column in case.made.submission.contract.quasi]
    right = [name == column.name for name, column in zip(names, case.columns, strict=True)]
    sent, truth = case.genuine
    return {"columns": float(np.mean(right)), **_scored(case, sent, truth)}


def _recovered(case: _Case, background: _Background) -> Result:
    """Name the columns, value the positions, and compare with the truth."""
    names = name_columns(background.known, background.seen, background.knows, background.sees)
    sent, truth = case.genuine
    right = [name == column.name for name, column in zip(names, case.columns, strict=True)]
    guess = np.full(sent.shape, np.nan)
    for j, (name, is_right) in enumerate(zip(names, right, strict=True)):
        if is_right:
            values = place_values(background.known[name], background.seen[j])
            guess[j] = values[sent[j].astype(np.int64)]
    return {"columns": float(np.mean(right)), **_scored(case, guess, truth)}


def _scored(case: _Case, guess: Floats, truth: Floats) -> Result:
    """The share of cells that are right, and nearly right; what is unknown is neither."""
    is_category = np.array([column.categories is not None for column in case.columns])
    within = np.where(is_category, 0.0, NEAR * np.ptp(case.values, axis=1))
    near = np.abs(guess - truth) <= within[:, None]
    return {"cells": float((guess == truth).mean()), "near": float(near.mean())}


def _from_rows(case: _Case) -> _Background:
    """Other people's rows, beside the positions of all records sent."""
    known = {}
    for column, values in zip(case.columns, case.others, strict=True):
        distinct, count = np.unique(values, return_counts=True)
        is_category = column.categories is not None
        known[column.name] = Known(
            values=distinct, count=count.astype(np.float64), is_category=is_category
        )
    sent = case.made.submission
    seen = [
        Seen(count=np.bincount(values.astype(np.int64), minlength=column.size or 0).astype(float))
        for column, values in zip(sent.contract.quasi, sent.records.values, strict=True)
    ]
    return _Background(known, seen, case.others.T, sent.records.values.T)


def _from_release(case: _Case) -> _Background:
    """The published intervals and sets, beside the bounds and members of the delivered leaves."""
    sent = case.made.submission
    delivery = LocalProvider(threads=1).anonymize(sent)
    # As much as a release can tell.
    options = ReleaseOptions(representation=Representation.SET, exact_ends=True, force=True)
    published = release(delivery, case.made.manifest, None, table=case.table, options=options).table
    leaf, leaves = delivery.records.leaf, delivery.leaves
    values = sent.records.values[:, delivery.records.row]
    known, seen, knows = {}, [], []
    for j, column in enumerate(case.columns):
        texts = published[column.name].combine_chunks().dictionary_encode()
        members = [_members(text, column) for text in texts.dictionary.to_pylist()]
        weight = np.bincount(texts.indices.to_numpy(), minlength=len(members))
        flat = np.concatenate([np.asarray(m) for m in members])
        distinct, inverse = np.unique(flat, return_inverse=True)
        weights = np.repeat(weight, [len(m) for m in members])
        counted = np.bincount(inverse, weights=weights).astype(np.float64)
        is_category = column.categories is not None
        known[column.name] = Known(values=distinct, count=counted, is_category=is_category)
        ends = np.concatenate([leaves.minimum[leaf, j], leaves.maximum[leaf, j]])
        if is_category:
            ends = _together(leaf, values[j])
        size = sent.contract.quasi[j].size or 0
        seen.append(Seen(count=np.bincount(ends.astype(np.int64), minlength=size).astype(float)))
        knows.append(np.array([np.mean(m) for m in members])[texts.indices.to_numpy()])
    middles = leaves.minimum[leaf] / 2 + leaves.maximum[leaf] / 2
    return _Background(known, seen, np.column_stack(knows), middles)


def _members(text: str, column: Column) -> list[float]:
    """The ends of a published interval, or the categories of a set."""
    if column.categories is None:
        low, _, high = text.replace("(", "").replace(")", "").partition("..")
        return [float(low), float(high or low)]
    held = set(text[1:-1].split(", "))
    return [float(at) for at, label in enumerate(column.categories) if label in held]


def _together(leaf: npt.NDArray[np.int32], values: Floats) -> Floats:
    """Each position of a leaf as often as the leaf has records."""
    size = int(values.max()) + 1
    keys = np.unique(leaf.astype(np.int64) * size + values.astype(np.int64))
    return np.repeat(keys % size, np.bincount(leaf)[keys // size]).astype(np.float64)


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """The mean over the seeds, by table, by what was sent and by what is known."""
    rows = []
    for name in dict.fromkeys(params["data"] for params, _ in found):
        for sent in dict.fromkeys(params["sent"] for params, _ in found):
            group = [r for p, r in found if (p["data"], p["sent"]) == (name, sent)]
            for background in BACKGROUNDS:
                runs = [r[background] for r in group]
                means = {m: float(np.mean([r[m] for r in runs])) for m in runs[0]}
                least = {f"{m}_least": min(r[m] for r in runs) for m in runs[0]}
                most = {f"{m}_most": max(r[m] for r in runs) for m in runs[0]}
                named = {"data": name, "sent": sent, "background": background, "seeds": len(runs)}
                rows.append(named | means | least | most)
    return {"others": OTHERS, "near": NEAR, "rows": rows}

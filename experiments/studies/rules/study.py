"""Which rule: what a release is worth under the paper's rule and under `importance-spread`.

The whole journey with traps, k = 5. Seven tenths of the rows are released; a model fitted to what
is published of them is tested on the others, raw. The trees differ in the rule, in what weighs the
columns and in the least leaf; each is released as it is and with two labels in every class. The
weights are equal or a model's (`auto`): both are measured on the same rows, splits and traps.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments import data
from experiments.core import owner
from experiments.core.cells import Params, Result
from experiments.core.inference import paired
from verix_anon.client import models
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.options import Importance
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.release import ReleaseOptions, Representation, read_back, release
from verix_anon.client.table.categories import is_text
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared, Missing
from verix_anon.client.table.task import Labels
from verix_anon.client.verify.utility import measure
from verix_anon.protocol.contract import Column, Kind, Rule
from verix_anon.protocol.messages import Delivery
from verix_anon.provider.local import LocalProvider

__all__ = ["AUTO", "OURS", "PAPER", "TREES", "Tree", "cells", "middle", "run", "summarize"]

PLACE = 11
K = owner.K
TEST_SHARE = 0.3
WHOLE = 10**9
SEEDS, WHOLE_SEEDS = 3, 3
EIGHT = (
    "age",
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "race",
    "sex",
    "native-country",
)
"""The quasi-identifiers of Adult that ARX ships hierarchies for."""
OTHERS = (("adult", "age"), ("adult", "marital-status"), ("electricity", "nswdemand"))
"""Targets that are no two classes: a quantity, seven classes, a quantity."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tree:
    """How a tree is asked for."""

    rule: Rule
    importance: str
    min_leaf: str

    def options(self, seed: int) -> PrepareOptions:
        """Everything that a tree may depend on, said."""
        return PrepareOptions(
            rule=self.rule,
            importance=self.importance or Importance.AUTO,
            min_leaf=self.min_leaf,
            traps=Traps.ADAPTIVE,
            clear=False,
            witnesses=0,
            unsafe_seed=seed,
            threads=1,
        )


PAPER = Tree(Rule.VARIANCE_REDUCTION, "", "2k")
OURS = Tree(Rule.IMPORTANCE_SPREAD, "uniform", "k")
AUTO = Tree(Rule.IMPORTANCE_SPREAD, "auto", "k")
TREES = (
    PAPER,
    Tree(Rule.VARIANCE_REDUCTION, "", "k"),
    OURS,
    Tree(Rule.IMPORTANCE_SPREAD, "uniform", "2k"),
    AUTO,
)
VIEW = Representation.INTERVAL


def cells(*, quick: bool) -> list[Params]:
    """A table, its target and a seed; all trees are grown from the same rows."""
    if quick:
        wanted = [("adult", "target", 8, 1_000, 1), ("electricity", "nswdemand", 0, 600, 1)]
    else:
        wanted = [("adult", "target", n, WHOLE, WHOLE_SEEDS) for n in (8, 14)]
        wanted += [(name, "target", 0, owner.ROWS, SEEDS) for name in data.NAMES]
        wanted += [(name, target, 0, owner.ROWS, SEEDS) for name, target in OTHERS]
    return [
        {"data": name, "target": target, "quasi": quasi, "rows": rows, "seed": seed}
        for name, target, quasi, rows, seeds in wanted
        for seed in range(1, seeds + 1)
    ]


def run(params: Params) -> Result:
    """Every tree, released without and with two labels in every class."""
    split = _split(params)
    seed = int(params["seed"])
    runs: list[Result] = []
    for tree in TREES if split.train_labels.is_binary else TREES[2:]:
        made = prepare(split.table, roles=split.declared, k=K, options=tree.options(seed))
        delivery = LocalProvider(threads=1).anonymize(made.submission)
        runs.extend(_released(split, tree, made, delivery, least) for least in (1, 2))
    return {"raw": _tested(split, split.train), "runs": runs, "columns": split.train.shape[1]}


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """A table in two parts: what is released, and what models are tested on."""

    table: pa.Table
    declared: Declared
    columns: Sequence[Column]
    """With the categories of both parts, so that their positions agree."""
    train: Floats
    train_labels: Labels
    test: Floats
    test_labels: Labels


def _split(params: Params) -> _Split:
    name, target, seed = str(params["data"]), str(params["target"]), int(params["seed"])
    table = owner.sample(name, seed=seed, rows=int(params["rows"]))
    if params["quasi"] == len(EIGHT):
        table = table.select([*EIGHT, target])
    nominal = set(data.describe(name).nominal) & set(table.column_names)
    kinds = dict.fromkeys(nominal, Kind.CATEGORICAL)
    encoded = read_owner_table(table, Declared(target=target, quasi="all", kinds=kinds))
    values, labels = encoded.matrix.T, encoded.labels
    rng = np.random.default_rng([seed, table.num_rows, 2])
    is_test = np.zeros(table.num_rows, bool)
    is_test[rng.permutation(table.num_rows)[: round(TEST_SHARE * table.num_rows)]] = True
    return _Split(
        table=table.filter(pa.array(~is_test)),
        declared=Declared(target=target, quasi="all", kinds=kinds, missing=Missing.IMPUTE),
        columns=encoded.quasi,
        train=values[~is_test],
        train_labels=labels.of(np.flatnonzero(~is_test)),
        test=values[is_test],
        test_labels=labels.of(np.flatnonzero(is_test)),
    )


def _released(split: _Split, tree: Tree, made: Prepared, delivery: Delivery, least: int) -> Result:
    """What a release is worth, as intervals and sets."""
    # Nothing is judged here: an honest provider made it.
    sets = {c.name: Representation.SET for c in split.columns if c.categories is not None}
    # The labels of the models stand in the order of the table, and the middle of a cell with an
    # open end is not defined.
    options = ReleaseOptions(
        representation=VIEW,
        representations=sets,
        exact_ends=True,
        keep_order=True,
        force=True,
        l=least,
    )
    released = release(delivery, made.manifest, None, table=split.table, options=options)
    sheet = released.sheet
    seen = middle(released.table, split.columns)
    return {
        "rule": tree.rule.value,
        "importance": tree.importance,
        "min_leaf": tree.min_leaf,
        "l": least,
        "view": VIEW.value,
        "classes": sheet.n_classes,
        "ncp": sheet.ncp,
        "ncp_before": sheet.joined.ncp_before,
        "same_target": sheet.same_target,
        **_tested(split, seen),
    }


def middle(published: pa.Table, columns: Sequence[Column]) -> Floats:
    """What a model can take: numbers, the middle of intervals, and the mean position of sets."""
    found = []
    for column in columns:
        if not is_text(published[column.name].type):
            found.append(published[column.name].to_numpy())
            continue
        texts = published[column.name].combine_chunks().dictionary_encode()
        numbers = [_middle(text, column) for text in texts.dictionary.to_pylist()]
        found.append(np.array(numbers)[texts.indices.to_numpy()])
    return np.column_stack(found)


def _middle(text: str, column: Column) -> float:
    if column.categories is None:
        low, high = read_back.interval(text, read_back.number_end, (-math.inf, math.inf))
        assert isinstance(low, float)
        assert isinstance(high, float)
        return low / 2 + high / 2
    possible = read_back.LabelSets(column.categories, is_ordered=False).read(text)
    return float(np.mean([column.categories.index(label) for label in possible]))


def _tested(split: _Split, rows: Floats) -> dict[str, float]:
    answers = models.predict(rows, split.train_labels, split.test)
    return measure(split.test_labels, answers)


KEY = ("rule", "importance", "min_leaf", "l", "view")
TABLE = ("data", "target", "quasi")


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """The mean over the seeds of every table and arm, and paired differences to the paper's."""
    rows, raw, pairs = [], [], []
    for key in dict.fromkeys(tuple(params[name] for name in TABLE) for params, _ in found):
        group = [r for params, r in found if tuple(params[name] for name in TABLE) == key]
        named = {**dict(zip(TABLE, key, strict=True)), "seeds": len(group)}
        named["columns"] = group[0]["columns"]
        raw.append(named | _means([r["raw"] for r in group]))
        arms = [tuple(one[name] for name in KEY) for one in group[0]["runs"]]
        for i, arm in enumerate(arms):
            means = _means([r["runs"][i] for r in group], leave=KEY)
            rows.append(named | dict(zip(KEY, arm, strict=True)) | means)
        pairs += [named | pair for pair in _pairs(group)]
    return {"k": K, "raw": raw, "pairs": pairs, "rows": rows}


def _means(group: Sequence[Result], leave: Sequence[str] = ()) -> Result:
    names = [name for name in group[0] if name not in leave]
    return {name: float(np.mean([r[name] for r in group])) for name in names}


def _pairs(group: Sequence[Result]) -> Iterator[Result]:
    """Both weightings less the paper's rule and less raw, and ours less `auto`; seed by seed."""
    runs = group[0]["runs"]
    for at, one in enumerate(runs):
        tree = _tree(one)
        if tree not in (OURS, AUTO):
            continue
        others = {"paper": _place(runs, PAPER, 1)}
        if tree == OURS:
            others["auto"] = _place(runs, AUTO, one["l"])
        for name in sorted({"auc", "f1", "macro_f1", "r2", "ncp"} & one.keys()):
            against = {"raw": [r["raw"].get(name, 0.0) for r in group]}
            for other, place in others.items():
                if place is not None:
                    against[other] = [r["runs"][place][name] for r in group]
            for other, theirs in against.items():
                differences = np.subtract([r["runs"][at][name] for r in group], theirs).tolist()
                named = {key: one[key] for key in ("importance", "l", "view")}
                yield {"against": other, "measure": name, **named, **_interval(differences)}


def _interval(differences: Sequence[float]) -> Result:
    if len(differences) == 1:
        return {"mean": differences[0], "low": None, "high": None}
    return dict(zip(("mean", "low", "high"), paired(differences), strict=True))


def _tree(run: Result) -> Tree:
    return Tree(Rule(run["rule"]), run["importance"], run["min_leaf"])


def _place(runs: Sequence[Result], tree: Tree, least: int) -> int | None:
    """Where a tree stands among the runs, with so many labels in every class."""
    places = (i for i, r in enumerate(runs) if (_tree(r), r["l"]) == (tree, least))
    return next(places, None)

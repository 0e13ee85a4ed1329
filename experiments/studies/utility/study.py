"""What a model learns from k-anonymous records: target-driven against blind (paper §6.6, §6.7).

Beside the paper's system stands ours: the same samples and splits under `importance-spread`, as
`prepare` does it by default, with equal weights and with those of a model.

5,000 rows, four fifths of which are anonymized; a model fitted to what is published of them is
tested on the last fifth, raw. Beside F1 at 0.5, which a model that never says yes makes 0 for
both sides, stand AUC and log-loss, which see the probabilities themselves.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments import data
from experiments.core import owner
from experiments.core.cells import Params, Result
from experiments.studies.utility.gaps import summarize
from verix_anon.adversaries import SplitsBlindly
from verix_anon.client import models
from verix_anon.client.prepare import Prepared, PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.release import privacy
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.verify.utility import auc, f1
from verix_anon.protocol.contract import Commitment, Kind
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.providers import Provider
from verix_anon.provider.local import LocalProvider

__all__ = ["KS", "METHODS", "cells", "run", "summarize"]

PLACE = 9
KS = (2, 3, 4, 5, 7, 10, 12, 15, 20, 25, 30)
ROWS, TEST_SHARE = 5_000, 0.2
SEEDS = 6

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Labels = npt.NDArray[np.uint8]

METHODS: dict[str, Callable[[int], Provider]] = {
    "target-driven": lambda seed: LocalProvider(threads=1),
    "blind": lambda seed: SplitsBlindly(seed),
    "blind, strict": lambda seed: SplitsBlindly(seed, strict=True),
}
OURS = {name: options for name, options in owner.CODED.items() if name != "variance-reduction"}
"""By name, our rule and what weighs the columns"""
# (method, traps, what the model sees of a class)
ARMS = (
    *((method, Traps.PAPER, "midpoint") for method in METHODS),
    *((method, Traps.NONE, "midpoint") for method in METHODS),
    ("target-driven", Traps.NONE, "mean"),
    ("blind", Traps.NONE, "mean"),
)


def cells(*, quick: bool) -> list[Params]:
    """A data set under a seed, all values of k on the same sample and split."""
    if quick:
        return [
            {"dataset": name, "seed": seed, "rows": 600, "ks": "2 10 30"}
            for name in ("adult", "magic")
            for seed in range(2)
        ]
    return [
        {"dataset": name, "seed": seed, "rows": ROWS, "ks": " ".join(map(str, KS))}
        for seed in range(SEEDS)
        for name in data.NAMES
    ]


def run(params: Params) -> Result:
    """Every value of k, method, kind of trap and view of the classes."""
    name, seed, rows = str(params["dataset"]), int(params["seed"]), int(params["rows"])
    ks = [int(k) for k in str(params["ks"]).split()]
    split = _split(name, seed, rows)
    made = {traps: _prepared(split, seed, traps) for traps in (Traps.PAPER, Traps.NONE)}
    ours = {name: _ours(split, seed, name) for name in OURS}
    return {
        "dataset": name,
        "seed": seed,
        "raw": _tested(split, split.train, {"": split.test}),
        "runs": [
            found
            for k in ks
            for found in (*_runs(split, made, k, seed), *_runs_of_ours(split, ours, k))
        ],
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """A sample in two parts: what is anonymized, and what models are tested on."""

    table: pa.Table
    """The part that is anonymized, as its owner has it."""
    declared: Declared
    """With the order that the categories have in both parts."""
    train: Floats
    train_target: Labels
    test: Floats
    test_target: Labels


def _split(name: str, seed: int, rows: int) -> _Split:
    table = owner.sample(name, seed=seed, rows=rows)
    nominal = set(data.describe(name).nominal) & set(table.column_names)
    kinds = dict.fromkeys(nominal, Kind.CATEGORICAL)
    encoded = read_owner_table(table, Declared(target="target", quasi="all", kinds=kinds))
    target = encoded.target
    rng = np.random.default_rng([seed, rows, 1])
    is_test = np.zeros(target.size, bool)
    for label in (0, 1):
        of_label = rng.permutation(np.flatnonzero(target == label))
        is_test[of_label[: round(TEST_SHARE * of_label.size)]] = True
    values = owner.among_sent(encoded.matrix, encoded.quasi, ~is_test).T
    return _Split(
        table=table.filter(pa.array(~is_test)),
        declared=Declared(
            target="target",
            quasi="all",
            kinds=kinds,
            orders={c.name: c.categories for c in encoded.columns[:-1] if c.categories},
        ),
        train=values[~is_test],
        train_target=target[~is_test],
        test=values[is_test],
        test_target=target[is_test],
    )


def _prepared(split: _Split, seed: int, traps: Traps) -> Prepared:
    options = PrepareOptions.paper(
        unsafe_seed=seed, traps=traps, commitment=Commitment.BINDING, witnesses=0, threads=1
    )
    return prepare(split.table, roles=split.declared, k=KS[0], options=options)


def _ours(split: _Split, seed: int, name: str) -> Prepared:
    """The same rows in positions, under our rule, with the traps that are the default."""
    rule, importance = OURS[name]
    options = PrepareOptions(
        rule=rule, importance=importance, unsafe_seed=seed, witnesses=0, threads=1
    )
    return prepare(split.table, roles=split.declared, k=KS[0], options=options)


def _runs(
    split: _Split, made: dict[Traps, Prepared], k: int, seed: int
) -> Iterator[dict[str, object]]:
    """All arms at one k; one delivery serves every view of its classes."""
    delivered: dict[tuple[str, Traps], Delivery] = {}
    for method, traps, view in ARMS:
        prepared = made[traps]
        if (method, traps) not in delivered:
            sent = _sent(prepared, k, 2 * k)
            delivered[method, traps] = METHODS[method](seed).anonymize(sent)
        classes = _Classes.of(delivered[method, traps], prepared, split.train)
        seen = classes.seen(view)
        # The same model is also asked about test records as the tree would generalize them.
        leaf = classes.delivery.tree.route(np.ascontiguousarray(split.test.T))
        tests = {"": split.test, "generalized_": seen[leaf]}
        yield {
            "k": k,
            "method": method,
            "traps": traps.value,
            "view": view,
            "classes": classes.n_classes,
            "ncp": classes.ncp(split.train),
            **_tested(split, seen[classes.of_row], tests),
            **(_distance(prepared, seen[classes.of_row]) if traps is Traps.PAPER else {}),
        }


def _runs_of_ours(split: _Split, made: dict[str, Prepared], k: int) -> Iterator[dict[str, object]]:
    """Our rule with both weightings at one k, in leaves of k records."""
    for name, prepared in made.items():
        delivery = LocalProvider(threads=1).anonymize(_sent(prepared, k, k))
        classes = _Classes.of(delivery, prepared, split.train)
        yield {
            "k": k,
            "method": name,
            "traps": Traps.ADAPTIVE.value,
            "view": "midpoint",
            "classes": classes.n_classes,
            "ncp": classes.ncp(split.train),
            # The tree splits positions, so it cannot tell the leaf of a test record.
            **_tested(split, classes.seen("midpoint")[classes.of_row], {"": split.test}),
        }


def _sent(prepared: Prepared, k: int, min_leaf: int) -> Submission:
    """The submission under another k: traps do not depend on it, so one serves all."""
    contract = replace(prepared.submission.contract, k=k, min_leaf=min_leaf)
    return Submission(contract=contract, records=prepared.submission.records)


@dataclass(frozen=True, slots=True, eq=False)
class _Classes:
    """The genuine records by leaf, with what their release would publish of each leaf."""

    delivery: Delivery
    of_row: Rows
    low: Floats
    high: Floats
    mean: Floats
    count: Rows

    @classmethod
    def of(cls, delivery: Delivery, prepared: Prepared, values: Floats) -> "_Classes":
        owner_row = prepared.manifest.owner_row
        is_genuine = owner_row >= 0
        of_row = np.empty(len(values), np.int64)
        of_row[owner_row[is_genuine]] = delivery.records.leaf[is_genuine]
        n_leaves = delivery.tree.n_leaves
        low = np.full((n_leaves, values.shape[1]), np.inf)
        high = np.full((n_leaves, values.shape[1]), -np.inf)
        total = np.zeros((n_leaves, values.shape[1]))
        np.minimum.at(low, of_row, values)
        np.maximum.at(high, of_row, values)
        np.add.at(total, of_row, values)
        count = np.bincount(of_row, minlength=n_leaves)
        # A leaf of traps alone has no genuine records: nobody looks it up but test records,
        # for whom the delivered bounds are all there is.
        empty = count == 0
        low[empty], high[empty] = delivery.leaves.minimum[empty], delivery.leaves.maximum[empty]
        mean = np.where(empty[:, None], low / 2 + high / 2, total / np.maximum(count, 1)[:, None])
        return cls(delivery, of_row, low, high, mean, count)

    @property
    def n_classes(self) -> int:
        return int((self.count > 0).sum())

    def seen(self, view: str) -> Floats:
        return self.mean if view == "mean" else self.low / 2 + self.high / 2

    def ncp(self, values: Floats) -> float:
        domain = values.min(axis=0), values.max(axis=0)
        width = privacy.widths(self.low, self.high, domain).mean(axis=1)
        return privacy.weighted(width, self.count)


def _tested(split: _Split, rows: Floats, tests: dict[str, Floats]) -> dict[str, float]:
    """What a model fitted to the rows is worth on each of the tests."""
    asked = np.concatenate(list(tests.values()))
    answers = models.predict(rows, owner.two_classes(split.train_target), asked)
    found = {}
    for name, probability in zip(tests, np.split(answers, len(tests)), strict=True):
        found[f"{name}f1"] = f1(split.test_target, probability)
        found[f"{name}auc"] = auc(split.test_target, probability)
        found[f"{name}logloss"] = logloss(split.test_target, probability)
    return found


def _distance(prepared: Prepared, rows: Floats) -> dict[str, float]:
    """The mean SHAP distance of the top three features, watch records against themselves raw."""
    manifest = prepared.manifest
    watched = rows[manifest.owner_row[manifest.watch_row]]
    values = models.shap_values(watched, manifest.watch_labels)
    moved = models.distances(manifest.baseline, values, manifest.top_features)
    return {"distance": float(np.mean(moved))}


def logloss(target: Labels, probability: Floats) -> float:
    """The mean negative log-likelihood, probabilities kept 1e-7 away from 0 and 1."""
    p = np.clip(probability, 1e-7, 1 - 1e-7)
    return float(-np.mean(np.where(target == 1, np.log(p), np.log1p(-p))))

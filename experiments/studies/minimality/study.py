"""What is certain by which leaves were joined, although the published class does not say so.

A leaf that falls short of l joins another. Somebody who knows how leaves are joined can tell from a
class that a part of it fell short, which means under l = 2 that all of that part share a label
(Wong et al., Minimality attack in privacy preserving data publishing, VLDB 2007).
"""

from collections.abc import Sequence

import numpy as np

from experiments import data
from experiments.core.cells import Params, Result
from experiments.core.owner import K, sample
from experiments.studies.minimality.attack import TRIES, Leaves, Rule, attack, form, ncp
from verix_anon.arrays import Ids
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.release import join
from verix_anon.client.release.acceptance import read_leaves
from verix_anon.client.release.representation import Presentation
from verix_anon.client.release.source import Source, read_source
from verix_anon.protocol.contract import Kind
from verix_anon.protocol.tree import Tree
from verix_anon.provider.local import LocalProvider

__all__ = ["cells", "run", "summarize"]

PLACE = 15
DATA = ("adult", "bank", "credit", "magic")
SEEDS = (1, 2)
ROWS = 10_000
CUTS = (0.95, 0.9, 0.8)
BEFORE = Rule(K, 0, 0.0)
"""Each residue joins the class where it adds least NCP, as releases did before."""
NOW = Rule(K, join.SMALL, join.CHANCE)
OTHERS = [NOW._replace(small=9), NOW._replace(small=36)]
OTHERS += [NOW._replace(chance=0.0), NOW._replace(chance=0.05)]
"""Tried on one table without traps, to show what each part of the rule is worth."""


def cells(*, quick: bool) -> list[Params]:
    """Samples of four tables under some seeds, with traps and without."""
    if quick:
        return [
            {
                "data": "magic",
                "seed": 1,
                "rows": 1_000,
                "traps": "none",
                "tries": 2_000,
                "others": 0,
            }
        ]
    return [
        {
            "data": name,
            "seed": seed,
            "rows": ROWS,
            "traps": traps.value,
            "tries": TRIES,
            "others": int(seed == 1 and name == "adult" and traps is Traps.NONE),
        }
        for seed in SEEDS
        for name in DATA
        for traps in (Traps.NONE, Traps.ADAPTIVE)
    ]


def run(params: Params) -> Result:
    """Join the leaves of one delivery by each rule, and attack the classes."""
    name, seed, tries = str(params["data"]), int(params["seed"]), int(params["tries"])
    tree, leaf, source = _delivered(name, seed, int(params["rows"]), str(params["traps"]))
    values = [source.of_quasi(j) for j in range(len(source.quasi))]
    is_category = np.array([column.categories is not None for column in source.quasi])
    genuine = join.Genuine(
        leaf_of_row=leaf, person_of_row=None, values=lambda: values, is_category=is_category
    )
    even, place = join.balanced(tree, genuine)
    label = source.attributes[0].codes
    found: Result = {}
    rules = [BEFORE, NOW, *(OTHERS if params["others"] else ())]
    for rule in rules:
        shape, own = (even, place[leaf]) if rule.small else (tree, leaf.astype(np.int64))
        leaves = Leaves.of(shape, own, values, is_category.tolist())
        positive = np.bincount(own, label, shape.n_leaves).astype(np.int64)
        chance = Secret.unsafe_from_seed(seed).generator("join")
        is_drawn = chance.random(shape.n_nodes) < rule.chance
        home = form(leaves, positive, 0, rule, is_drawn)
        believed = attack(leaves, positive, rule, is_drawn, home, seed=seed, tries=tries)
        share = leaves.size / leaves.size.sum()
        cuts = {f"{cut:g}": believed.published <= cut for cut in CUTS}
        found[f"{rule.small} {rule.chance:g}"] = {
            "small": rule.small,
            "chance": rule.chance,
            "ncp": ncp(leaves, home),
            "classes": np.unique(home[home >= 0]).size,
            **{f"certain_{c}": share[believed.is_certain & low].sum() for c, low in cuts.items()},
            "believed": share[(believed.belief >= 0.99) & cuts["0.95"]].sum(),
            "undecided": share[~believed.is_decided].sum(),
        }
    demand = join.Demand(column=source.attributes[0], least_values=2)
    chance = Secret.unsafe_from_seed(seed).generator("join")
    joined = join.join(tree, genuine, K, [demand], chance)
    same = np.bincount(joined.class_of_leaf[leaf], label) / np.bincount(joined.class_of_leaf[leaf])
    hides = np.maximum(same, 1 - same) <= CUTS[0]
    told = joined.is_told[leaf] & hides[joined.class_of_leaf[leaf]]
    found[f"{NOW.small} {NOW.chance:g}"]["bound"] = float(told.mean())
    return found


def _delivered(name: str, seed: int, rows: int, traps: str) -> tuple[Tree, Ids, Source]:
    """A tree, the leaf of each of the owner's rows, and these."""
    table = sample(name, seed=seed, rows=rows)
    nominal = set(data.describe(name).nominal) & set(table.column_names)
    made = prepare(
        table,
        target="target",
        quasi="all",
        k=K,
        kinds=dict.fromkeys(nominal, Kind.CATEGORICAL),
        options=PrepareOptions(traps=Traps(traps), unsafe_seed=seed, threads=1),
    )
    delivery = LocalProvider(threads=1).anonymize(made.submission)
    leaves = read_leaves(delivery, made.manifest)
    return (
        leaves.tree,
        leaves.leaf_of_row(),
        read_source(table, made.manifest, None, Presentation()),
    )


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """Per table, traps and rule: means over the seeds, and standard errors of what counts most."""
    rows, before = [], f"{BEFORE.small} {BEFORE.chance:g}"
    for data_set, traps in dict.fromkeys((str(p["data"]), str(p["traps"])) for p, _ in found):
        group = [r for p, r in found if (p["data"], p["traps"]) == (data_set, traps)]
        for rule in group[0]:
            runs = [r[rule] for r in group if rule in r]
            more = [r[rule]["ncp"] / r[before]["ncp"] - 1 for r in group if rule in r]
            means = {name: float(np.mean([r[name] for r in runs])) for name in runs[0]}
            rows.append(
                {"data": data_set, "traps": traps, "runs": len(runs), **means}
                | {"more_ncp": float(np.mean(more)), "more_ncp_error": _error(more)}
                | {"certain_error": _error([r["certain_0.95"] for r in runs])}
            )
    return {"rows": rows, "small": NOW.small, "chance": NOW.chance, "tries": TRIES}


def _error(values: Sequence[float]) -> float | None:
    """The standard error of the mean; None of a single value."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))

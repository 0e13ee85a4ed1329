"""A series: what batches reveal together, and what each remedy costs.

Twelve batches, each with a share of the people of the one before and new ones in place of the
others. k = 5, the journey without traps, which do not reach a release. What is chained is the
occupation in Adult, and the health insurer in the admissions of tools/hospital.py, of which each
patient has one. NCP is over the rows that are published, as the privacy sheet has it.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from experiments import data
from experiments.core import owner
from experiments.core.cells import Params, Result
from tools import hospital
from verix_anon.arrays import Ids, Ints
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.privacy_sheet import Conditions
from verix_anon.client.release.acceptance import read_leaves
from verix_anon.client.release.classes import Classes, join_leaves
from verix_anon.client.release.representation import Presentation
from verix_anon.client.release.source import Source, read_source
from verix_anon.client.series.deduction import SeenRecords
from verix_anon.client.series.withholding import Withholding
from verix_anon.client.table.roles import Declared
from verix_anon.errors import NotAcceptedError
from verix_anon.files.tables import read_table
from verix_anon.protocol.tree import Tree
from verix_anon.provider.local import LocalProvider

__all__ = ["cells", "run", "summarize"]

PLACE = 17
PERSON = "person"
BATCHES, PEOPLE = 12, 300
RETURNING = (0.3, 0.6, 0.9, 0.99)
ASKED = (2, 3)
WIDER = (1, 2, 3)
MOST = 3.0
"""A remedy may lose so many times what independent releases lose."""
LEAST = 0.5
"""And has to publish at least this share of those who return."""
ADULT: tuple[str, ...] = (
    "age",
    "workclass",
    "education",
    "marital-status",
    "race",
    "sex",
    "hours-per-week",
)
HOSPITAL: tuple[str, ...] = ("Date of birth", "Sex", "Postcode", "Occupation")
CHAINED = {"adult": "occupation", "hospital": "Health insurer"}


def cells(*, quick: bool) -> list[Params]:
    """Each table at each share of people who return; every remedy gets the same deliveries."""
    if quick:
        return [{"dataset": "hospital", "returning": 0.6, "people": 200, "batches": 3, "seed": 1}]
    return [
        {"dataset": name, "returning": share, "people": PEOPLE, "batches": BATCHES, "seed": 1}
        for name in CHAINED
        for share in RETURNING
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A delivery for one batch, and who is in it."""

    tree: Tree
    leaf: Ids
    source: Source
    people: Ints
    values: Ints


def run(params: Params) -> Result:
    """Release all batches by every remedy, and attack what is published."""
    name, n_batches = str(params["dataset"]), int(params["batches"])
    rng = np.random.default_rng([int(params["seed"]), int(100 * float(params["returning"]))])
    n = int(params["people"])
    table, quasi = _people(name, n * n_batches, int(params["seed"]))
    codes = table[CHAINED[name]].combine_chunks().dictionary_encode().indices
    values = codes.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    people, fresh, batches = np.arange(n), n, []
    for i in range(n_batches):
        if i:
            stay = rng.permutation(n)[: round(float(params["returning"]) * n)]
            people = np.sort(np.append(people[stay], np.arange(fresh, fresh + n - stay.size)))
            fresh += n - stay.size
        tree, leaf, source = _delivered(table.take(pa.array(people)), name, quasi, i)
        batches.append(Batch(tree, leaf, source, people, values[people]))
    runs = []
    for least in ASKED:
        for remedy in ("independent", "new", *(f"search {w}" for w in WIDER), "joined", "m-inv"):
            began = time.perf_counter()
            runs.append(_released(batches, CHAINED[name], least, remedy))
            runs[-1] |= {"l": least, "seconds": (time.perf_counter() - began) / n_batches}
    return {"dataset": name, "returning": float(params["returning"]), "runs": runs}


def _people(name: str, n: int, seed: int) -> tuple[pa.Table, tuple[str, ...]]:
    """So many people at most, one row each, in random order, with a number for each."""
    rng, quasi = np.random.default_rng(seed), ADULT if name == "adult" else HOSPITAL
    if name == "adult":
        table = data.load("adult")
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            table = read_table(hospital.write(path, n * 2, seed=seed, language="en"))
        # The first admission of each patient.
        first = np.unique(table["Patient ID"].to_numpy(), return_index=True)[1]
        table = table.take(pa.array(np.sort(first)))
    table = table.select([*quasi, CHAINED[name]]).take(
        pa.array(rng.permutation(table.num_rows)[:n])
    )
    return table.append_column(PERSON, pa.array([f"P{i}" for i in range(table.num_rows)])), quasi


def _delivered(
    table: pa.Table, name: str, quasi: tuple[str, ...], number: int
) -> tuple[Tree, Ids, Source]:
    declared = Declared(
        quasi=quasi,
        sensitive=[CHAINED[name]],
        identifier=[PERSON],
        person=PERSON,
        task="none",
        hierarchies={"Postcode": "prefix"} if name == "hospital" else {},
    )
    options = PrepareOptions(traps=Traps.NONE, witnesses=0, unsafe_seed=number, threads=1)
    made = prepare(table, roles=declared, k=owner.K, options=options)
    leaves = read_leaves(LocalProvider(threads=1).anonymize(made.submission), made.manifest)
    source = read_source(table, made.manifest, None, Presentation())
    return leaves.tree, leaves.leaf_of_row(), source


def _released(batches: Sequence[Batch], column: str, least: int, remedy: str) -> Result:
    """All batches by one remedy, one after the other."""
    past: list[SeenRecords] = []
    signatures: dict[int, frozenset[int]] = {}
    first: dict[int, int] = {}
    published: set[int] = set()
    n_returning, n_again, n_rows, loss, waits = 0, 0, 0, 0.0, 0
    for number, batch in enumerate(batches):
        classes, rows = _classes(batch, past, column, least, remedy, signatures)
        of_row, people = classes.of_row.astype(np.int64), batch.people[rows]
        values = {column: batch.values[rows]}
        if rows.size:
            past.append(SeenRecords(people, of_row, np.zeros_like(of_row), values))
            losses = [each.ncp for each in classes.write(Presentation()).losses]
            loss, n_rows = loss + rows.size * float(np.mean(losses)), n_rows + rows.size
        returning = [p for p in batch.people.tolist() if p in first]
        n_returning += len(returning)
        n_again += int(np.isin(returning, people).sum())
        for person in batch.people.tolist():
            first.setdefault(person, number)
        waits += sum(number - first[p] for p in {*people.tolist()} - published)
        published |= {*people.tolist()}
    seen = SeenRecords.of(past)
    left = seen.left(column)
    often = np.bincount(seen.person)[seen.person] > 1
    fewest = np.full(int(seen.person.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(fewest, seen.person, left)
    again = np.unique(seen.person[often])
    everybody = np.unique(seen.person)
    return {
        "remedy": remedy,
        "ncp": loss / max(n_rows, 1),
        "published": n_rows / sum(batch.people.size for batch in batches),
        "again": n_again / max(n_returning, 1),
        "below": float((fewest[everybody] < least).mean()),
        "certain": float((fewest[again] == 1).mean()) if again.size else 0.0,
        "delay": waits / max(len(published), 1),
        "never": 1 - len(published) / len(first),
    }


def _classes(
    batch: Batch,
    past: Sequence[SeenRecords],
    column: str,
    least: int,
    remedy: str,
    signatures: dict[int, frozenset[int]],
) -> tuple[Classes, Ints]:
    """The classes of one batch by a remedy, and the rows that are in them."""
    conditions = Conditions(
        k_agreed=owner.K,
        enforced={column: {"l": float(least)}},
        counted_by=PERSON,
        released_before=0,
        missing={},
        missing_as="mark",
    )
    given = batch.tree, batch.leaf, batch.source, conditions, Secret.unsafe_from_seed(len(past))
    asked = Withholding(past, batch.people, {column: batch.values}, {column: least})
    everything = np.arange(batch.people.size)
    if remedy == "m-inv":
        return _invariant(batch, join_leaves(*given, wider=2), least, signatures)
    if remedy == "joined":
        for wider in range(1, 8):
            classes = join_leaves(*given, wider=wider)
            if asked.kept(everything, classes.of_row).all():
                return classes, everything
        remedy = f"search {wider}"
    wider = int(remedy.split()[1]) if remedy.startswith("search") else 1
    is_new = ~asked.is_returning()
    if remedy == "new" and is_new.sum() < 2 * owner.K:
        # Too few people are new for a release.
        return join_leaves(*given), np.empty(0, np.int64)
    choose = {"independent": None, "new": lambda rows, _: is_new[rows]}.get(remedy, asked.kept)
    try:
        classes = join_leaves(*given, choose=choose, wider=wider)
    except NotAcceptedError:
        # Fewer than k people are left: this batch publishes nothing, and all of them wait.
        return join_leaves(*given), np.empty(0, np.int64)
    rows = classes.source.rows
    return classes, everything if rows is None else rows


def _invariant(
    batch: Batch, classes: Classes, least: int, signatures: dict[int, frozenset[int]]
) -> tuple[Classes, Ints]:
    """Leave in each class those of one set of values, whom new people complete; others wait.

    A person stays in classes with the same set of values. What is left of a class has all of them.
    """
    kept, of_class = [], classes.of_row
    order = np.argsort(of_class, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(of_class))[:-1]):
        sets = [signatures.get(p) for p in batch.people[rows].tolist()]
        choices = {s for s in sets if s is not None} or {frozenset(batch.values[rows].tolist())}
        best: list[int] = []
        for chosen in choices:
            some = [
                row
                for row, own in zip(rows.tolist(), sets, strict=True)
                if own in (None, chosen) and batch.values[row] in chosen
            ]
            is_whole = frozenset(batch.values[some].tolist()) == chosen and len(chosen) >= least
            if is_whole and len(some) >= max(owner.K, len(best) + 1):
                best = some
        whole = frozenset(batch.values[best].tolist())
        signatures |= dict.fromkeys(batch.people[best].tolist(), whole)
        kept += best
    found = np.sort(np.array(kept, np.int64))
    if not found.size:
        return classes, found
    number, of_row = np.unique(of_class[found], return_inverse=True)
    source = batch.source.only(found)
    left = replace(
        classes,
        source=source,
        of_row=of_row.astype(np.int32),
        is_joined=classes.is_joined[number],
        leaf_of_row=classes.leaf_of_row[found],
    )
    return left, found


def summarize(found: Sequence[tuple[Params, Result]]) -> Result:
    """A row for each table, share, l and remedy; and the remedy that the rule chooses."""
    rows = [
        {"dataset": result["dataset"], "returning": result["returning"], **each}
        for _, result in found
        for each in result["runs"]
    ]
    alone = {_setting(r): r["ncp"] for r in rows if r["remedy"] == "independent"}
    for row in rows:
        row["times"] = row["ncp"] / (alone[_setting(row)] or 1.0)
    good = {}
    for remedy in dict.fromkeys(r["remedy"] for r in rows if r["remedy"] != "independent"):
        own = [r for r in rows if r["remedy"] == remedy]
        is_safe = all(r["below"] == 0 for r in own)
        again, times = (float(np.mean([r[m] for r in own])) for m in ("again", "times"))
        good[remedy] = {
            "safe": is_safe,
            "again": again,
            "times": times,
            "published": float(np.mean([r["published"] for r in own])),
            "eligible": bool(is_safe and again >= LEAST and times <= MOST),
        }
    eligible = [remedy for remedy, each in good.items() if each["eligible"]]
    default = max(eligible, key=lambda r: good[r]["again"] / good[r]["times"], default="new")
    return {
        "k": owner.K,
        "people": max(int(params["people"]) for params, _ in found),
        "batches": max(int(params["batches"]) for params, _ in found),
        "remedies": good,
        "default": default,
        "rows": rows,
    }


def _setting(row: Result) -> tuple[str, float, int]:
    return row["dataset"], row["returning"], row["l"]

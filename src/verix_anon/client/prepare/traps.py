"""Traps: records planted among the genuine ones, to catch a provider that drops or changes some.

Sentinels are made up where a forest cannot tell the classes apart (paper §5.1): up to 2 % of the
records, taken from the band of uncertainty and moved a little, to values that occur. Without a
target there is no band, and any record will do. They vanish if a provider drops records blindly;
how surely is `evasion_probability`. Twins are second copies of genuine records (spec §7).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from verix_anon.arrays import Floats, Ints
from verix_anon.client.arguments import check_fields
from verix_anon.client.evidence import evasion_probability
from verix_anon.client.models import single_precision
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.table.task import Labels, Task
from verix_anon.errors import TableError
from verix_anon.files.optional_packages import need
from verix_anon.protocol.contract import Column

Rows = npt.NDArray[np.float32]
BANDS = ((0.45, 0.55), (0.40, 0.60))
NOISE = 0.05
"""How far a sentinel is moved, in standard deviations of the column."""
N_TREES, DEPTH = 50, 5
SAMPLE_LEAST, SAMPLE_MOST = 200, 20_000
BLOCK = 2**20
"""How many probabilities are asked for at a time."""


class Traps(StrEnum):
    """Which sentinels to plant."""

    ADAPTIVE = "adaptive"
    PAPER = "paper"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How surely a provider that drops a share of the records should be caught."""

    traps: Traps | str = Traps.ADAPTIVE
    evasion: float = 0.01
    """Adaptive traps leave a provider at most this chance ..."""
    dropped: float = 0.05
    """... if it drops this share of the records."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("evasion", "dropped"):
            if not 0 < getattr(self, name) < 1:
                raise TableError(f"{name} must lie between 0 and 1")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Planted:
    """The genuine records to make sentinels from, none unless given, and what those buy."""

    origin: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    n_boundary: int = 0
    """Records in the paper's band."""
    band: tuple[float, float] | None = None
    """None without a target."""
    evasion_before: float = 1.0
    """With the paper's band alone."""
    evasion_after: float = 1.0


def plant(values: Sequence[Floats] | Floats, labels: Labels, plan: Plan, secret: Secret) -> Planted:
    """Choose the records to make sentinels from; the values are by column."""
    n_rows = labels.values.size
    n_twin_records = n_twins(n_rows)
    wanted = needed(plan, n_rows, n_twin_records) if plan.traps is Traps.ADAPTIVE else 0
    rng = secret.generator("sentinels/choice")
    in_band, band = np.empty(0, np.int64), None
    if labels.task is Task.NONE:
        n_paper = wanted or cap(n_rows)
        chosen = np.sort(rng.choice(n_rows, n_paper, replace=False))
    else:
        as_paper = plan.traps is Traps.PAPER
        probability = boundary_probabilities(values, labels, secret, as_paper=as_paper)
        band = BANDS[0]
        in_band = np.flatnonzero((probability >= band[0]) & (probability <= band[1]))
        n_paper = min(in_band.size, cap(n_rows))
        chosen = np.sort(rng.choice(in_band, n_paper, replace=False))
        if n_paper < wanted:
            chosen, band = _widen(probability, wanted)

    def evasion(n: int) -> float:
        return evasion_probability(n, n_rows + n_twin_records + n, plan.dropped)

    return Planted(
        origin=chosen,
        n_boundary=int(in_band.size),
        band=band,
        evasion_before=evasion(n_paper),
        evasion_after=evasion(chosen.size),
    )


def _widen(probability: Floats, wanted: int) -> tuple[Ints, tuple[float, float]]:
    """The wanted number of records nearest to 0.5, and the band that holds them.

    The nearest ones of the wider band, and those beyond it, are the nearest of all.
    """
    distance = np.abs(probability - 0.5)
    chosen = np.argsort(distance, kind="stable")[:wanted]
    reach = float(distance[chosen].max(initial=0.0))
    wide = BANDS[1]
    if reach <= wide[1] - 0.5:
        return np.sort(chosen), wide
    return np.sort(chosen), (0.5 - reach, 0.5 + reach)


def needed(plan: Plan, n_rows: int, n_twin_records: int) -> int:
    """The fewest sentinels that reach the wanted evasion probability, or the cap."""
    most = cap(n_rows)
    for n in range(most + 1):
        if evasion_probability(n, n_rows + n_twin_records + n, plan.dropped) <= plan.evasion:
            return n
    return most


def cap(n_rows: int) -> int:
    """The most sentinels: ceil(0.02 N)."""
    return -(-n_rows // 50)


def boundary_probabilities(
    values: Sequence[Floats] | Floats, labels: Labels, secret: Secret, *, as_paper: bool = False
) -> Floats:
    """P(class 1) of every record, from a forest of 50 trees of depth 5 on a tenth of them.

    The forest sees at most 20,000 records: more of them do not bring sentinels any nearer to the
    boundary. The paper has no such limit.

    Of more classes it is (1 + d) / 2, where the two greatest probabilities differ by d: of two
    classes that is the greater one, so the band means the same. Of a quantity, class 1 is what
    lies above its lower median.
    """
    target = _classes(labels)
    most = None if as_paper else SAMPLE_MOST
    sample = _stratified_sample(target, secret.generator("sentinels/sample"), most)
    known = np.unique(target[sample])
    if known.size == 1:
        return np.full(target.size, float(known[0] > 0))
    probabilities = (_papers_forest if as_paper else _forest)(
        _rows(values, sample), np.searchsorted(known, target[sample]), secret
    )
    found = np.empty(target.size)
    n_rows = BLOCK // known.size
    for at in range(0, target.size, n_rows):
        of_class = probabilities(_rows(values, slice(at, at + n_rows)))
        if labels.n_outputs > 1:
            second, first = np.partition(of_class, -2, axis=1)[:, -2:].T
            found[at : at + n_rows] = (1 + (first - second)) / 2
        else:
            found[at : at + n_rows] = of_class[:, 1]
    return found


def _forest(rows: Rows, target: Ints, secret: Secret) -> Callable[[Rows], Floats]:
    """XGBoost's random forest: it is installed for the fingerprint in any case.

    Squared errors of a column per class choose the splits that Gini's impurity does, and a leaf
    predicts the share of each class in it. All sums are of whole numbers, hence exact, and so the
    same with any number of threads.
    """
    import xgboost

    rng = secret.generator("sentinels/forest")
    # The order decides which records a tree sees, and has more than the 31 bits of the seed.
    order = rng.permutation(target.size)
    one_hot = np.eye(int(target.max()) + 1, dtype=np.float32)[target[order]]
    settings = {
        "objective": "reg:squarederror",
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
        "num_parallel_tree": N_TREES,
        "max_depth": DEPTH,
        # As many different records as a bootstrap sample has.
        "subsample": 1 - 1 / math.e,
        "colsample_bynode": math.isqrt(rows.shape[1]) / rows.shape[1],
        # Nothing is shrunk: leaves hold shares.
        "base_score": 0.0,
        "eta": 1.0,
        "reg_lambda": 0.0,
        "seed": int(rng.integers(2**31)),
        # On a busy machine threads that wait for each other take ten times as long as one.
        "nthread": 1,
    }
    model = xgboost.train(settings, xgboost.DMatrix(rows[order], label=one_hot), num_boost_round=1)
    # One parallel loop over the rows: every core helps.
    model.set_param({"nthread": 0})
    return lambda asked: model.predict(xgboost.DMatrix(asked)).astype(np.float64)


def _papers_forest(rows: Rows, target: Ints, secret: Secret) -> Callable[[Rows], Floats]:
    """The forest of the paper's own system."""
    need("sklearn", "paper", "the forest of the paper's traps (--traps paper, --preset paper)")
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(
        n_estimators=N_TREES,
        max_depth=DEPTH,
        random_state=np.random.RandomState(np.random.MT19937(secret.seed("sentinels/forest"))),
        n_jobs=-1,
    )
    forest.fit(rows, target)
    return lambda asked: np.asarray(forest.predict_proba(asked))


def _classes(labels: Labels) -> Ints:
    """The class of every record, whatever the task."""
    if labels.task is Task.CLASSES:
        return labels.values.astype(np.int64)
    middle = (labels.values.size + 1) // 2 - 1
    median = float(np.partition(labels.values, middle)[middle])
    return (labels.values > median).astype(np.int64)


def _stratified_sample(
    target: Ints, rng: np.random.Generator, most: int | None = SAMPLE_MOST
) -> Ints:
    """A tenth of each class, at least 200 rows in all where there are, at most so many."""
    n_wanted = max(SAMPLE_LEAST, target.size / 10)
    share = (n_wanted if most is None else min(most, n_wanted)) / target.size
    chosen = []
    for label in np.unique(target):
        rows = np.flatnonzero(target == label)
        n = min(rows.size, max(1, round(share * rows.size)))
        chosen.append(rng.choice(rows, n, replace=False))
    return np.sort(np.concatenate(chosen))


def _rows(values: Sequence[Floats] | Floats, some: slice | Ints) -> Rows:
    """Some records as the forest takes them, one after the other."""
    return np.array([single_precision(column[some]) for column in values]).T.copy()


def moved(
    values: Sequence[Floats] | Floats,
    columns: Sequence[Column],
    rows: Ints,
    rng: np.random.Generator,
) -> Iterator[Floats]:
    """Those records moved by N(0, 0.05 sigma) in every numeric column, column by column.

    Categories stay as they are.
    """
    for own, column in zip(values, columns, strict=True):
        if column.categories is None:
            # The standard deviation, computed where its squares cannot overflow.
            scale = float(np.abs(own).max()) or 1.0
            deviation = float((own / scale).std()) * scale
            noise = rng.normal(0.0, NOISE * deviation, rows.size)
            # What overflows is next to the greatest value all the same.
            with np.errstate(over="ignore"):
                yield own[rows] + noise
        else:
            yield own[rows]


def snapped(values: Floats, ordered: Floats) -> Floats:
    """For each value the nearest of those that occur in its column, the lower of two.

    Of cents, tenths or firsts of a month none may lie in between: it would stand out.
    """
    above = np.searchsorted(ordered, values)
    low = ordered[np.maximum(above - 1, 0)]
    high = ordered[np.minimum(above, ordered.size - 1)]
    # Halves, because the distance of two numbers can be beyond all.
    return np.where(values / 2 - low / 2 <= high / 2 - values / 2, low, high)


def choose_twins(n_rows: int, rng: np.random.Generator) -> Ints:
    """The genuine records to duplicate, each at most once."""
    return np.sort(rng.choice(n_rows, n_twins(n_rows), replace=False)).astype(np.int64)


def n_twins(n_rows: int) -> int:
    """How many records get a twin: 5 %, rounded up."""
    return -(-n_rows // 20)

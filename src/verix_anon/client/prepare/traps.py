"""Traps: records planted among the genuine ones, to catch a provider that drops or changes some.

Sentinels are made up where a forest cannot tell the classes apart (paper §5.1): up to 2 % of the
records, taken from the band of uncertainty and moved a little, to values that occur. Without a
target there is no band, and any record will do. They vanish if a provider drops records blindly;
how surely is `evasion_probability`. Twins are second copies of genuine records (spec §7).
"""

from collections.abc import Iterator, Sequence
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
from verix_anon.protocol.contract import Column

BANDS = ((0.45, 0.55), (0.40, 0.60))
NOISE = 0.05
"""How far a sentinel is moved, in standard deviations of the column."""
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
        most = None if plan.traps is Traps.PAPER else SAMPLE_MOST
        probability = boundary_probabilities(values, labels, secret, most=most)
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
    values: Sequence[Floats] | Floats,
    labels: Labels,
    secret: Secret,
    *,
    most: int | None = SAMPLE_MOST,
) -> Floats:
    """P(class 1) of every record, from a forest of 50 trees of depth 5 on a tenth of them.

    The forest sees at most so many records: more of them do not bring sentinels any nearer to the
    boundary. The paper has no such limit.

    Of more classes it is (1 + d) / 2, where the two greatest probabilities differ by d: of two
    classes that is the greater one, so the band means the same. Of a quantity, class 1 is what
    lies above its lower median.
    """
    from sklearn.ensemble import RandomForestClassifier

    target = _classes(labels)
    sample = _stratified_sample(target, secret.generator("sentinels/sample"), most)
    forest = RandomForestClassifier(
        n_estimators=50,
        max_depth=5,
        random_state=np.random.RandomState(np.random.MT19937(secret.seed("sentinels/forest"))),
        n_jobs=-1,
    )
    forest.fit(_rows(values, sample), target[sample])
    n_classes = len(forest.classes_)
    if n_classes == 1:
        return np.full(target.size, float(forest.classes_[0] > 0))
    found = np.empty(target.size)
    n_rows = BLOCK // n_classes
    for at in range(0, target.size, n_rows):
        probabilities = forest.predict_proba(_rows(values, slice(at, at + n_rows)))
        if labels.n_outputs > 1:
            second, first = np.partition(probabilities, -2, axis=1)[:, -2:].T
            found[at : at + n_rows] = (1 + (first - second)) / 2
        else:
            found[at : at + n_rows] = probabilities[:, 1]
    return found


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


def _rows(values: Sequence[Floats] | Floats, some: slice | Ints) -> npt.NDArray[np.float32]:
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

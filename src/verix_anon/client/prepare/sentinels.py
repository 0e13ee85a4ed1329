"""Boundary sentinels: records made up where a forest cannot tell the classes apart (spec §7).

Paper §5.1: up to 2 % of the records, taken from the band of uncertainty and moved a little.
They vanish if a provider drops records blindly; how surely is `evasion_probability`.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.client.given import check_fields
from verix_anon.client.models import single_precision
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.prepare.twins import n_twins
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column

__all__ = [
    "Plan",
    "Planted",
    "Traps",
    "boundary_probabilities",
    "cap",
    "evasion_probability",
    "needed",
    "perturb",
    "plant",
]

BANDS = ((0.45, 0.55), (0.40, 0.60))
NOISE = 0.05
"""How far a sentinel is moved, in standard deviations of the column."""
SAMPLE_LEAST, SAMPLE_MOST = 200, 20_000


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
    """Sentinels to be, and what they buy."""

    origin: Ints
    """The genuine records they were made from."""
    values: Floats
    """(n_quasi, n_sentinels)"""
    n_boundary: int
    """Records in the paper's band."""
    band: tuple[float, float]
    evasion_before: float
    """With the paper's band alone."""
    evasion_after: float


def cap(n_rows: int) -> int:
    """The most sentinels: ceil(0.02 N)."""
    return -(-n_rows // 50)


def evasion_probability(n_sentinels: int, n_sent: int, dropped: float) -> float:
    """The chance that blind dropping of a share of the records hits no sentinel."""
    return float((1 - n_sentinels / n_sent) ** (dropped * n_sent))


def needed(plan: Plan, n_rows: int, n_twin_records: int) -> int:
    """The fewest sentinels that reach the wanted evasion probability, or the cap."""
    most = cap(n_rows)
    for n in range(most + 1):
        if evasion_probability(n, n_rows + n_twin_records + n, plan.dropped) <= plan.evasion:
            return n
    return most


def boundary_probabilities(values: Floats, target: Bytes, secret: Secret) -> Floats:
    """P(class 1) of every record, from a forest of 50 trees of depth 5 on a tenth of them."""
    from sklearn.ensemble import RandomForestClassifier

    rows = np.ascontiguousarray(single_precision(values).T)
    sample = _stratified_sample(target, secret.generator("sentinels/sample"))
    forest = RandomForestClassifier(
        n_estimators=50,
        max_depth=5,
        random_state=np.random.RandomState(np.random.MT19937(secret.seed("sentinels/forest"))),
        n_jobs=-1,
    )
    forest.fit(rows[sample], target[sample])
    if len(forest.classes_) == 1:
        return np.full(target.size, float(forest.classes_[0]))
    probabilities: Floats = forest.predict_proba(rows)[:, 1]
    return probabilities


def _stratified_sample(target: Bytes, rng: np.random.Generator) -> Ints:
    """A tenth of each class, at least 200 rows in all where there are, at most 20,000."""
    n_rows = target.size
    share = min(SAMPLE_MOST, max(SAMPLE_LEAST, n_rows / 10)) / n_rows
    chosen = []
    for label in (0, 1):
        rows = np.flatnonzero(target == label)
        n = min(rows.size, max(1, round(share * rows.size))) if rows.size else 0
        chosen.append(rng.choice(rows, n, replace=False))
    return np.sort(np.concatenate(chosen))


def plant(
    values: Floats,
    target: Bytes,
    columns: tuple[Column, ...],
    plan: Plan,
    secret: Secret,
) -> Planted:
    """Choose and move the sentinels; all else about them is their origin's."""
    n_rows = target.size
    n_twin_records = n_twins(n_rows)
    probability = boundary_probabilities(values, target, secret)
    rng = secret.generator("sentinels/choice")
    in_band = np.flatnonzero((probability >= BANDS[0][0]) & (probability <= BANDS[0][1]))
    n_paper = min(in_band.size, cap(n_rows))
    chosen = np.sort(rng.choice(in_band, n_paper, replace=False))
    band = BANDS[0]
    if plan.traps is Traps.ADAPTIVE and n_paper < needed(plan, n_rows, n_twin_records):
        chosen, band = _widen(probability, needed(plan, n_rows, n_twin_records))

    def evasion(n: int) -> float:
        return evasion_probability(n, n_rows + n_twin_records + n, plan.dropped)

    return Planted(
        origin=chosen,
        values=perturb(values, columns, chosen, secret.generator("sentinels/noise")),
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


def perturb(
    values: Floats, columns: tuple[Column, ...], rows: Ints, rng: np.random.Generator
) -> Floats:
    """Those records moved by N(0, 0.05 sigma) in every numeric column, within its range.

    Whole-number columns stay whole; categories stay as they are.
    """
    moved = values[:, rows].copy()
    for j, column in enumerate(columns):
        if column.categories is not None:
            continue
        source = values[j]
        noise = rng.normal(0.0, NOISE * _deviation(source), rows.size)
        # What overflows is clipped to the greatest value all the same.
        with np.errstate(over="ignore"):
            moved[j] = np.clip(moved[j] + noise, source.min(), source.max())
        if not (source % 1).any():
            moved[j] = np.rint(moved[j])
    return moved + 0.0


def _deviation(values: Floats) -> float:
    """The population standard deviation, computed where its squares cannot overflow."""
    scale = float(np.abs(values).max()) or 1.0
    return float((values / scale).std()) * scale

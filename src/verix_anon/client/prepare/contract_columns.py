"""The columns of the contract: positions or values, with weights or with the target (spec §3).

Splits at lower medians depend on the order of values alone, so positions in that order are enough.
What they stand for is known only from the owner's table. Weights stand in the contract, so no one
has to compute them again.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verix_anon.arrays import Bytes, Floats, Ids, Ints
from verix_anon.client import models
from verix_anon.client.prepare.options import Importance, PrepareOptions, factor_of
from verix_anon.client.prepare.trackers import Secret, Values
from verix_anon.client.prepare.traps import snapped
from verix_anon.client.table.owner_table import OwnerTable
from verix_anon.client.table.roles import unknown_column
from verix_anon.client.table.task import Labels, TableRole, Task
from verix_anon.errors import TableError
from verix_anon.protocol.contract import MAX_SCORE, Column, Kind, Role, Rule

SAMPLE_ROWS = 20_000
SHAP_ROWS = 2_000
"""Of how many of them SHAP values are taken: enough for a mean, and ten times as fast as all."""
BLOCK = 2**22
"""How many SHAP values are held at a time where only their mean is wanted."""
LEAST = 1 / 8


@dataclass(frozen=True, slots=True, eq=False)
class SentTable:
    """The columns of the contract, and records as they are sent."""

    columns: tuple[Column, ...]
    values: list[Values]
    """Of the genuine records, by column"""
    moved: list[Values]
    """Of the sentinels, likewise"""
    target: Bytes


def check_sent(table: OwnerTable, options: PrepareOptions) -> None:
    """Raise TableError unless rule, coding, priorities and target go together."""
    rule = Rule(options.rule)
    if rule is Rule.VARIANCE_REDUCTION and not table.labels.is_binary:
        raise TableError(
            f"the rule {rule} needs a target with two classes; {Rule.IMPORTANCE_SPREAD} takes any"
        )
    if options.clear and rule is Rule.IMPORTANCE_SPREAD:
        raise TableError(
            f"the rule {rule} needs coded columns: do not ask for clear ones,"
            f" or choose the rule {Rule.VARIANCE_REDUCTION}"
        )
    if options.clear and options.places is not None:
        raise TableError("places are for coded columns; leave them out, or do not send in clear")
    for name in options.priorities:
        if name not in table.roles:
            raise unknown_column(name, list(table.roles))
        if table.roles[name] is not TableRole.QUASI:
            raise TableError(
                f"column {name!r} is declared as {table.roles[name]}; a priority is for"
                " quasi-identifiers, which are generalized"
            )
    if options.priorities and rule is Rule.VARIANCE_REDUCTION:
        raise TableError(
            f"the rule {rule} has no weights, so priorities would do nothing: leave them out,"
            f" or choose the rule {Rule.IMPORTANCE_SPREAD}"
        )


def send(
    table: OwnerTable,
    values: list[Floats],
    moved: Iterable[Floats],
    options: PrepareOptions,
    secret: Secret,
) -> SentTable:
    """Code the table unless it is to be sent in clear, and leave the target at home if possible.

    `values` are those of the table and `moved` those of the sentinels, not yet values that occur,
    both by column. The list is used up: each column ends when it is coded.
    """

    def settle(j: int, own: Floats) -> tuple[Values, Values, int]:
        column, values[j] = values[j], own[:0]
        if options.clear:
            return column, snapped(own, np.sort(column)), 0
        coding, positions = code(column, places=options.places)
        return positions, coding.positions(snapped(own, coding.levels)), coding.size

    with ThreadPoolExecutor(options.threads) as pool:
        settled = list(pool.map(settle, range(len(values)), moved))
    sizes = [size for _, _, size in settled]
    genuine = [positions for positions, _, _ in settled]
    weight: Sequence[int] = ()
    if Rule(options.rule) is Rule.IMPORTANCE_SPREAD:
        factors = [factor_of(c.name, options.priorities.get(c.name, 1)) for c in table.quasi]
        how = Importance(options.importance)
        weight = weights(genuine, table.labels, sizes, factors, importance=how, secret=secret)
    columns = sent_columns(table, options, sizes, weight)
    has_target = any(column.role is Role.TARGET for column in columns)
    target = table.target if has_target else np.zeros(table.labels.values.size, np.uint8)
    return SentTable(columns, genuine, [own for _, own, _ in settled], target)


def sent_columns(
    table: OwnerTable, options: PrepareOptions, sizes: Sequence[int], weight: Sequence[int]
) -> tuple[Column, ...]:
    """The columns of the contract: as they are, or numbered positions."""
    if options.clear:
        return table.columns
    if Rule(options.rule) is Rule.IMPORTANCE_SPREAD:
        return tuple(
            Column(name=f"q{j}", kind=Kind.RANK, size=n, weight=w)
            for j, (n, w) in enumerate(zip(sizes, weight, strict=True))
        )
    ranks = [Column(name=f"q{j}", kind=Kind.RANK, size=n) for j, n in enumerate(sizes)]
    at = next(i for i, c in enumerate(table.columns) if c.role is Role.TARGET)
    ranks.insert(at, Column(name="y", role=Role.TARGET, kind=Kind.RANK, size=2))
    return tuple(ranks)


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """The values that occur in a column, ascending, and the position of each."""

    levels: Floats
    position: Ints | None
    """None: each has its own."""

    @property
    def size(self) -> int:
        """How many positions the column has."""
        return self.levels.size if self.position is None else int(self.position[-1]) + 1

    def positions(self, values: Floats) -> Ids:
        """The positions of some values that all occur."""
        level = np.searchsorted(self.levels, values)
        return (level if self.position is None else self.position[level]).astype(np.int32)


def code(values: Floats, *, places: int | None) -> tuple[Coding, Ids]:
    """The coding of a column, and its positions: at most so many places, by quantiles."""
    # What np.unique does, except for half of its memory and of its time: columns are large.
    order = np.argsort(values)
    ordered = values[order]
    is_first = np.empty(ordered.size, np.bool_)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    levels = ordered[is_first]
    del ordered
    level = np.cumsum(is_first, dtype=np.int32)
    level -= 1
    position = None
    if places is not None and levels.size > places:
        # Equal values stay together, so some places may be empty; then they are made dense.
        below = np.flatnonzero(is_first)
        position = np.unique(places * below // values.size, return_inverse=True)[1]
        level = position[level].astype(np.int32)
    found = np.empty_like(level)
    found[order] = level
    return Coding(levels, position), found


def weights(
    positions: Sequence[Values] | Floats,
    labels: Labels,
    sizes: Sequence[int],
    factors: Sequence[float],
    *,
    importance: Importance,
    secret: Secret,
) -> tuple[int, ...]:
    """The weight of every column; `positions` are those of the genuine records, by column."""
    # Without a target there is nothing that a model could tell.
    is_auto = importance is Importance.AUTO and labels.task is not Task.NONE
    shares = _by_model(positions, labels, secret) if is_auto else [1.0] * len(sizes)
    scores = [share * factor for share, factor in zip(shares, factors, strict=True)]
    greatest = max(scores)
    # The quotient is exact: a binary64 is a fraction of whole numbers.
    return tuple(
        max(1, MAX_SCORE * Fraction(score / greatest) // max(1, size - 1))
        for score, size in zip(scores, sizes, strict=True)
    )


def mean_shap(rows: Floats, labels: Labels, asked: Floats) -> Floats:
    """The mean absolute SHAP value of every column, over the records asked for and outputs."""
    model = models.fit(rows, labels)
    n_rows = max(1, BLOCK // (labels.n_outputs * rows.shape[1]))

    def sums() -> Iterator[Floats]:
        for at in range(0, len(asked), n_rows):
            found = models.contributions(model, models.single_precision(asked[at : at + n_rows]))
            yield np.abs(found).sum(axis=(0, 1), dtype=np.float64)

    total: Floats = np.sum(list(sums()), axis=0)
    return total / (len(asked) * labels.n_outputs)


def _by_model(positions: Sequence[Values] | Floats, labels: Labels, secret: Secret) -> list[float]:
    """The root of each column's mean absolute SHAP value, the greatest scaled to 1."""
    n_rows = labels.values.size
    some = secret.generator("importance").permutation(n_rows)[:SAMPLE_ROWS]
    rows = np.array([column[some] for column in positions], np.float64).T
    mean = mean_shap(rows, labels.of(some), rows[:SHAP_ROWS])
    if not mean.any():
        return [1.0] * mean.size
    return [max(LEAST, float(share)) for share in np.sqrt(mean / mean.max())]

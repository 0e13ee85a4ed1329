"""What is sent of a table: positions or values, with weights or with the target (spec §3)."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Bytes, Floats
from verix_anon.client.prepare.importance import weights
from verix_anon.client.prepare.options import Importance, PrepareOptions
from verix_anon.client.prepare.parts import Values
from verix_anon.client.prepare.sentinels import snapped
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.table.coding import code
from verix_anon.client.table.encode import Described
from verix_anon.client.table.task import Task
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind, Role, Rule

__all__ = ["Sent", "check_sent", "send", "sent_columns"]


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """The columns of the contract, and records as they are sent."""

    columns: tuple[Column, ...]
    values: list[Values]
    """Of the genuine records, by column"""
    moved: list[Values]
    """Of the sentinels, likewise"""
    target: Bytes


def check_sent(encoded: Described, options: PrepareOptions) -> None:
    """Raise TableError unless rule, coding, importance and target go together."""
    rule = Rule(options.rule)
    if rule is Rule.VARIANCE_REDUCTION and not encoded.labels.is_binary:
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
    _importance(options, encoded)


def send(
    encoded: Described,
    values: list[Floats],
    moved: Iterable[Floats],
    options: PrepareOptions,
    secret: Secret,
) -> Sent:
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
        chosen = _importance(options, encoded)
        weight = weights(genuine, encoded.labels, sizes, importance=chosen, secret=secret)
    columns = sent_columns(encoded, options, sizes, weight)
    has_target = any(column.role is Role.TARGET for column in columns)
    target = encoded.target if has_target else np.zeros(encoded.labels.values.size, np.uint8)
    return Sent(columns, genuine, [own for _, own, _ in settled], target)


def sent_columns(
    encoded: Described, options: PrepareOptions, sizes: Sequence[int], weight: Sequence[int]
) -> tuple[Column, ...]:
    """The columns of the contract: as they are, or numbered positions."""
    if options.clear:
        return encoded.columns
    if Rule(options.rule) is Rule.IMPORTANCE_SPREAD:
        return tuple(
            Column(name=f"q{j}", kind=Kind.RANK, size=n, weight=w)
            for j, (n, w) in enumerate(zip(sizes, weight, strict=True))
        )
    ranks = [Column(name=f"q{j}", kind=Kind.RANK, size=n) for j, n in enumerate(sizes)]
    at = next(i for i, c in enumerate(encoded.columns) if c.role is Role.TARGET)
    ranks.insert(at, Column(name="y", role=Role.TARGET, kind=Kind.RANK, size=2))
    return tuple(ranks)


def _importance(options: PrepareOptions, encoded: Described) -> Importance | list[float]:
    """What weighs the columns; without a target only nothing, or the owner."""
    given = options.importance
    if isinstance(given, Mapping):
        names = [column.name for column in encoded.quasi]
        if given.keys() != set(names):
            raise TableError(
                "importance must be given for every quasi-identifier and for nothing else:"
                f" {', '.join(map(repr, names))}"
            )
        return [given[name] for name in names]
    if encoded.labels.task is Task.NONE:
        return Importance.UNIFORM
    return Importance(given)

"""What is sent of a table: positions or values, with weights or with the target (spec §3)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Bytes, Floats
from verix_anon.client.prepare.importance import weights
from verix_anon.client.prepare.options import Importance, PrepareOptions
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.table.coding import Coding, code
from verix_anon.client.table.encode import Encoded
from verix_anon.client.table.task import Task
from verix_anon.errors import TableError
from verix_anon.protocol.contract import Column, Kind, Role, Rule

__all__ = ["Sent", "send"]


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """The columns of the contract, and the genuine records as they are sent."""

    columns: tuple[Column, ...]
    values: Floats
    target: Bytes
    coding: Coding | None

    def coded(self, values: Floats) -> Floats:
        """Other records as they are sent; all their values occur in the table."""
        return values if self.coding is None else self.coding.positions(values)


def send(encoded: Encoded, options: PrepareOptions, secret: Secret) -> Sent:
    """Code the table unless it is to be sent in clear, and leave the target at home if possible."""
    rule, labels = Rule(options.rule), encoded.labels
    if rule is Rule.VARIANCE_REDUCTION and not labels.is_binary:
        raise TableError(
            f"the rule {rule} needs a target with two classes; {Rule.IMPORTANCE_SPREAD} takes any"
        )
    if options.clear:
        if rule is Rule.IMPORTANCE_SPREAD:
            raise TableError(
                f"the rule {rule} needs coded columns: do not ask for clear ones,"
                f" or choose the rule {Rule.VARIANCE_REDUCTION}"
            )
        if options.places is not None:
            raise TableError(
                "places are for coded columns; leave them out, or do not send in clear"
            )
        return Sent(encoded.columns, encoded.values, encoded.target, None)
    coding, positions = code(encoded.values, places=options.places, threads=options.threads)
    if rule is Rule.VARIANCE_REDUCTION:
        ranks = [Column(name=f"q{j}", kind=Kind.RANK, size=n) for j, n in enumerate(coding.sizes)]
        at = next(i for i, c in enumerate(encoded.columns) if c.role is Role.TARGET)
        ranks.insert(at, Column(name="y", role=Role.TARGET, kind=Kind.RANK, size=2))
        return Sent(tuple(ranks), positions, encoded.target, coding)
    chosen = _importance(options, encoded)
    weight = weights(positions, labels, coding.sizes, importance=chosen, secret=secret)
    columns = tuple(
        Column(name=f"q{j}", kind=Kind.RANK, size=n, weight=w)
        for j, (n, w) in enumerate(zip(coding.sizes, weight, strict=True))
    )
    return Sent(columns, positions, np.zeros(positions.shape[1], np.uint8), coding)


def _importance(options: PrepareOptions, encoded: Encoded) -> Importance | list[float]:
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

"""How to prepare: the rule and its weights, what is sent, traps, witnesses (spec §3, §7)."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from verix_anon.client.manifest import Parties
from verix_anon.client.prepare.traps import Plan, Traps
from verix_anon.client.table.roles_file import read_options
from verix_anon.errors import ContractError, TableError
from verix_anon.files.trust import keys_that_count
from verix_anon.machine import available_cores
from verix_anon.progress import Progress, ignore
from verix_anon.protocol.contract import Commitment, Rule
from verix_anon.protocol.envelopes import PublicKey

WATCH_RECORDS = 2_000
MAX_PLACES = 2**31 - 1
MULTIPLE = re.compile(r"[1-9][0-9]{0,3}k|k")


class Importance(StrEnum):
    """What weighs the columns under the rule `importance-spread`."""

    UNIFORM = "uniform"
    """Nothing: all weigh the same."""
    AUTO = "auto"
    """A model of the target."""


PRIORITIES = {"fine": 4.0, "normal": 1.0, "coarse": 0.25}
"""What a priority multiplies the weight of its column by."""


def factor_of(name: str, priority: str | float) -> float:
    """Return what a column's weight is multiplied by; raises TableError."""
    factor = PRIORITIES.get(priority, 0.0) if isinstance(priority, str) else priority
    if not 0 < factor <= sys.float_info.max:
        raise TableError(
            f"the priority of column {name!r} must be {', '.join(PRIORITIES)}"
            f" or a number greater than 0, not {priority!r:.40}"
        )
    return float(factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareOptions(Plan):
    """How to prepare; the defaults are for everybody but researchers.

    Examples:
        >>> options = verix_anon.PrepareOptions(priorities={"age": "fine", "sex": "coarse"})
        >>> prepared = verix_anon.prepare("people.csv", roles="roles.toml", options=options)
    """

    rule: Rule | str = Rule.IMPORTANCE_SPREAD
    importance: Importance | str = Importance.UNIFORM
    """What weighs the columns under `importance-spread`: nothing, or a model of the target."""
    priorities: Mapping[str, str | float] = field(default_factory=dict)
    """How fine a quasi-identifier stays: fine, normal, coarse, or a number to weigh it by."""
    min_leaf: int | str = "k"
    """The least number of records in a leaf, or a multiple of k such as "2k"."""
    clear: bool = False
    """Send names and values as they are, not positions."""
    places: int | None = None
    """At most so many positions a column, by quantiles."""
    max_depth: int = 50
    commitment: Commitment | str = Commitment.BINDING
    witnesses: int = 20
    calibrate: int = 0
    """How many honest local runs calibrate the fingerprint."""
    table_name: str = ""
    """What the report calls the table; it and the parties are kept in the manifest, never sent."""
    controller: str = ""
    """Who answers for the table."""
    processor: str = ""
    """Who anonymizes it: the provider."""
    provider_keys: Sequence[str | os.PathLike[str]] = ()
    """The provider's public keys, or files of pinned ones: verify() then needs its receipt."""
    unsafe_seed: int | None = None
    """Makes everything repeatable, to anybody who knows it; the manifest says so."""
    threads: int = field(default_factory=available_cores)
    progress: Progress = ignore

    def __post_init__(self) -> None:
        Plan.__post_init__(self)
        if not 0 <= self.witnesses <= WATCH_RECORDS:
            raise TableError(f"witnesses must be a number from 0 to {WATCH_RECORDS}")
        if self.places is not None and not 2 <= self.places <= MAX_PLACES:
            raise TableError(f"places must be a number from 2 to {MAX_PLACES}")
        if isinstance(self.min_leaf, str) and not MULTIPLE.fullmatch(self.min_leaf):
            raise TableError('min_leaf must be a number, or a multiple of k such as "2k"')
        if self.calibrate < 0:
            raise TableError("calibrate must be a number of runs, 0 or more")
        if self.threads < 1:
            raise TableError(f"threads must be at least 1, not {self.threads}")
        for name, priority in self.priorities.items():
            factor_of(name, priority)
        _ = self.parties, self.pinned

    @property
    def parties(self) -> Parties:
        """Whose table it is, for the report."""
        return Parties(
            table_name=self.table_name, controller=self.controller, processor=self.processor
        )

    @property
    def pinned(self) -> tuple[PublicKey, ...]:
        """The provider's keys that count now."""
        return keys_that_count(self.provider_keys)

    @classmethod
    def paper(cls, **given: Any) -> "PrepareOptions":
        """The paper's system, as published; what is given beside it wins."""
        return cls(**(PAPER | given))

    @classmethod
    def of_roles(cls, path: str | os.PathLike[str], **given: Any) -> "PrepareOptions":
        """What a roles file says beside the roles; what is given beside it wins.

        Priorities win column by column.
        """
        said = read_options(path)
        try:
            made = cls(**(said | given))
            return replace(made, priorities={**said["priorities"], **made.priorities})
        except TableError as error:
            raise TableError(f"{path}: {error}") from None

    def least(self, k: int) -> int:
        """The least number of records in a leaf, for this k."""
        if isinstance(self.min_leaf, int):
            return self.min_leaf
        if not isinstance(k, int):
            raise ContractError(f"k must be a whole number, not {k!r:.40}")
        return int(self.min_leaf.removesuffix("k") or 1) * k


PAPER: dict[str, Any] = {
    "rule": Rule.VARIANCE_REDUCTION,
    "traps": Traps.PAPER,
    "min_leaf": "2k",
    "clear": True,
    "commitment": Commitment.PAPER,
}

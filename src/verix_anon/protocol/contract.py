"""The contract: what owner and provider agreed on, as canonical bytes (spec §3)."""

import hashlib
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NewType

import rfc8785

from verix_anon.errors import ContractError
from verix_anon.fields import Fields, shown

Digest = NewType("Digest", bytes)
"""A SHA-256 digest: 32 bytes."""

ColumnJson = dict[str, str | int | list[str]]
ContractJson = dict[str, str | int | list[ColumnJson]]

FORMAT = "verix/contract/2"
RESERVED_NAMES = frozenset({"row", "tracker", "leaf"})
MAX_DEPTH = 50
# The integers up to here are exact in binary64.
EXACT = 2**53
# Positions are int32 on the wire; k and min_leaf are doubled by the rules.
MAX_CATEGORIES = MAX_SIZE = 2**31 - 1
MAX_K = 2**31 - 1
MAX_SCORE = 2**52
"""The limit for a weight times the largest spread of its column, so that scores are exact."""
# The paper's commitment joins names and numbers with these, so a name must not contain them.
PAPER_SEPARATORS = frozenset("|:,")


class Role(StrEnum):
    """What a sent column is for."""

    QUASI = "quasi"
    TARGET = "target"


class Kind(StrEnum):
    """How a sent column's values are represented.

    Examples:
        >>> roles = verix_anon.Declared(quasi="all", kinds={"zip": verix_anon.Kind.CATEGORICAL})
    """

    NUMERIC = "numeric"
    DATETIME = "datetime"
    CATEGORICAL = "categorical"
    RANK = "rank"
    """A position among the values that occur, without the values."""


class Rule(StrEnum):
    """How the tree is grown (spec §4)."""

    VARIANCE_REDUCTION = "variance-reduction"
    IMPORTANCE_SPREAD = "importance-spread"


class Unit(StrEnum):
    """What a datetime counts, from 1970-01-01 UTC; coarsest first."""

    DAY = "day"
    SECOND = "s"
    MILLISECOND = "ms"
    MICROSECOND = "us"


class Commitment(StrEnum):
    """Which root the provider computes (spec §6)."""

    BINDING = "binding"
    PAPER = "paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One sent column: its name, role and kind, and what the kind needs to be read back."""

    name: str
    role: Role = Role.QUASI
    kind: Kind
    categories: tuple[str, ...] | None = None
    unit: Unit | None = None
    size: int | None = None
    """How many values occur in a column of ranks."""
    weight: int | None = None
    """How much a column's spread counts under the rule `importance-spread`."""

    def __post_init__(self) -> None:
        _check_text(self.name, "a column's name")
        if self.name in RESERVED_NAMES:
            raise ContractError(f"column name {self.name!r} is reserved; rename the column")
        if (self.categories is None) is (self.kind is Kind.CATEGORICAL):
            raise ContractError(
                f"column {self.name!r}: categories go with categorical, and only there"
            )
        if self.categories is not None:
            self._check_categories(self.categories)
        if (self.unit is None) is (self.kind is Kind.DATETIME):
            raise ContractError(f"column {self.name!r}: a unit goes with datetime, and only there")
        if (self.size is None) is (self.kind is Kind.RANK):
            raise ContractError(f"column {self.name!r}: a size goes with rank, and only there")
        made = Fields(
            {"size": self.size, "weight": self.weight}, f"column {self.name!r}", ContractError
        )
        if self.size is not None:
            made.whole("size", range(1, MAX_SIZE + 1))
        if self.weight is not None:
            most = MAX_SCORE // max(1, (self.size or 1) - 1)
            made.whole("weight", range(1, most + 1))
        if self.role is Role.TARGET and (self.n_values != 2 or self.weight is not None):
            raise ContractError(f"target {self.name!r} must have two classes, and no weight")

    @property
    def n_values(self) -> int | None:
        """How many values the column can have, or None if it does not send positions."""
        return self.size if self.categories is None else len(self.categories)

    def _check_categories(self, categories: tuple[str, ...]) -> None:
        for label in categories:
            _check_text(label, f"a category of column {self.name!r}")
        if not 1 <= len(categories) <= MAX_CATEGORIES:
            raise ContractError(f"column {self.name!r} must have at least one category")
        if len(set(categories)) != len(categories):
            raise ContractError(f"column {self.name!r} names a category twice")


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What the parties agreed on. Equal contracts have equal bytes, and so equal digests.

    Examples:
        >>> contract = verix_anon.read_submission("job/submission").contract
    """

    submission_id: str
    k: int
    min_leaf: int
    columns: tuple[Column, ...]
    max_depth: int = MAX_DEPTH
    rule: Rule = Rule.VARIANCE_REDUCTION
    commitment: Commitment = Commitment.BINDING

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{32}", self.submission_id):
            raise ContractError("submission_id must be 32 lower-case hexadecimal digits")
        made = Fields(vars(self), "contract", ContractError)
        made.whole("k", range(2, MAX_K + 1))
        made.whole("min_leaf", range(self.k, MAX_K + 1))
        made.whole("max_depth", range(1, MAX_DEPTH + 1))
        names: set[str] = set()
        for column in self.columns:
            if column.name in names:
                raise ContractError(f"column name {column.name!r} occurs twice")
            names.add(column.name)
        if not self.quasi:
            raise ContractError("a contract has at least one quasi-identifier")
        self._check_rule()
        if self.commitment is Commitment.PAPER:
            self._check_paper()

    def _check_rule(self) -> None:
        """Check what the rule can be combined with (spec §3)."""
        if len({column.kind is Kind.RANK for column in self.columns}) > 1:
            raise ContractError("either all columns of a contract are coded (rank), or none is")
        n_targets = len(self.columns) - len(self.quasi)
        has_weight = [column.weight is not None for column in self.quasi]
        if self.rule is Rule.IMPORTANCE_SPREAD:
            if n_targets or not all(has_weight):
                raise ContractError(
                    f"the rule {self.rule} has no target, and a weight for every quasi-identifier"
                )
            if not self.is_coded:
                raise ContractError(f"the rule {self.rule} needs coded columns (rank)")
        elif n_targets != 1 or any(has_weight):
            raise ContractError(
                f"the rule {self.rule} has exactly one target and no weights;"
                f" the contract has {n_targets} targets"
            )

    def _check_paper(self) -> None:
        if self.is_coded:
            raise ContractError("the paper's commitment needs values in clear")
        for column in self.quasi:
            if PAPER_SEPARATORS & set(column.name):
                raise ContractError(
                    f"column name {column.name!r} has '|', ':' or ',', which the paper's"
                    " commitment cannot represent"
                )

    @property
    def is_coded(self) -> bool:
        """Whether positions are sent instead of values."""
        return self.columns[0].kind is Kind.RANK

    @cached_property
    def quasi(self) -> tuple[Column, ...]:
        """The quasi-identifiers in contract order."""
        return tuple(c for c in self.columns if c.role is Role.QUASI)

    @cached_property
    def target(self) -> Column | None:
        """The target column, or None if none is sent."""
        return next((c for c in self.columns if c.role is Role.TARGET), None)

    def to_json(self) -> ContractJson:
        """The contract as an object of JSON."""
        return {
            "format": FORMAT,
            "submission_id": self.submission_id,
            "k": self.k,
            "min_leaf": self.min_leaf,
            "max_depth": self.max_depth,
            "rule": self.rule.value,
            "commitment": self.commitment.value,
            "columns": [column_to_json(c) for c in self.columns],
        }

    def to_bytes(self) -> bytes:
        """The contract as canonical JSON (RFC 8785)."""
        return rfc8785.dumps(self.to_json())

    @cached_property
    def digest(self) -> Digest:
        """SHA-256 of the canonical bytes."""
        return Digest(hashlib.sha256(self.to_bytes()).digest())

    @classmethod
    def from_bytes(cls, data: bytes) -> "Contract":
        """Read a contract. Only the canonical bytes of a valid one are accepted."""
        contract = cls.from_fields(Fields.parse(data, "contract", ContractError))
        if contract.to_bytes() != data:
            raise ContractError("contract: the bytes are not canonical JSON (RFC 8785)")
        return contract

    @classmethod
    def from_fields(cls, fields: Fields) -> "Contract":
        """Read a contract from an object of JSON, in any spelling of that JSON."""
        # Look at the format first, so that the error for a later version says so.
        fields.expect("format", FORMAT)
        fields.only(CONTRACT_FIELDS)
        return cls(
            submission_id=fields.text("submission_id"),
            k=fields.whole("k"),
            min_leaf=fields.whole("min_leaf"),
            rule=fields.choice("rule", Rule),
            max_depth=fields.whole("max_depth"),
            commitment=fields.choice("commitment", Commitment),
            columns=tuple(column_from_json(column) for column in fields.each("columns")),
        )


CONTRACT_FIELDS = frozenset(
    ["format", "submission_id", "k", "min_leaf", "max_depth", "rule", "commitment", "columns"]
)
COLUMN_EXTRAS = {
    Kind.NUMERIC: frozenset[str](),
    Kind.DATETIME: frozenset({"unit"}),
    Kind.CATEGORICAL: frozenset({"categories"}),
    Kind.RANK: frozenset({"size"}),
}


def column_to_json(column: Column) -> ColumnJson:
    """Return one column as an object of JSON."""
    name, role, kind = column.name, column.role.value, column.kind.value
    fields: ColumnJson = {"name": name, "role": role, "kind": kind}
    if column.categories is not None:
        fields["categories"] = list(column.categories)
    if column.unit is not None:
        fields["unit"] = column.unit.value
    if column.size is not None:
        fields["size"] = column.size
    if column.weight is not None:
        fields["weight"] = column.weight
    return fields


def column_from_json(fields: Fields) -> Column:
    """Read one column from an object of JSON."""
    kind = fields.choice("kind", Kind)
    is_rank = kind is Kind.RANK
    fields.only(COLUMN_EXTRAS[kind] | {"name", "role", "kind"}, ["weight"] if is_rank else [])
    return Column(
        name=fields.text("name"),
        role=fields.choice("role", Role),
        kind=kind,
        categories=fields.texts("categories") if kind is Kind.CATEGORICAL else None,
        unit=fields.choice("unit", Unit) if kind is Kind.DATETIME else None,
        size=fields.whole("size") if is_rank else None,
        weight=fields.whole("weight") if "weight" in fields.values else None,
    )


def _check_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise ContractError(f"{what} must be text, not {shown(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ContractError(f"{what} ({shown(value)}) is not valid Unicode text") from None


def show_value(column: Column, value: float) -> str:
    """Return a value as people write it: a date, a whole number, a label or a place.

    A value between two others, such as a midpoint, is shown as the date or label below it. A
    provider may send a value that the column cannot have; that is shown as a bare number.
    """
    if column.size is not None and 0 <= value < column.size:
        return f"place {math.floor(value) + 1} of {column.size}"
    if column.categories is not None and 0 <= value < len(column.categories):
        return column.categories[math.floor(value)]
    if column.unit is not None and abs(value) <= EXACT:
        # Checking a proof loads numpy only if the contract has dates.
        import numpy as np

        from verix_anon.protocol.tree import NUMPY_UNITS

        return str(np.int64(math.floor(value)).astype(f"M8[{NUMPY_UNITS[column.unit]}]"))
    # Above 2**53 a float no longer stands for one integer, so show the float's own notation.
    return str(int(value)) if abs(value) <= EXACT and value == int(value) else repr(value)

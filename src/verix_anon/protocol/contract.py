"""The contract: what owner and provider agreed on, as canonical bytes (spec §3)."""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NewType

import rfc8785

from verix_anon.errors import ContractError
from verix_anon.fields import Fields, shown

__all__ = [
    "EXACT",
    "FORMAT",
    "RULE",
    "Column",
    "Commitment",
    "Contract",
    "Digest",
    "Kind",
    "Role",
    "Unit",
]

Digest = NewType("Digest", bytes)
"""A SHA-256 digest: 32 bytes."""

FORMAT = "verix/contract/1"
RULE = "variance-reduction"
RESERVED_NAMES = frozenset({"row", "tracker", "leaf"})
MAX_DEPTH = 50
# The integers up to here are exact in binary64.
EXACT = 2**53
# Positions of categories are int32 on the wire, and k is doubled twice by the rule.
MAX_CATEGORIES = 2**31 - 1
MAX_K = 2**31 - 1
# The paper's commitment joins names and numbers by these, so a name with one is ambiguous.
PAPER_SEPARATORS = frozenset("|:,")


class Role(StrEnum):
    """What a sent column is for."""

    QUASI = "quasi"
    TARGET = "target"


class Kind(StrEnum):
    """How a sent column's values are represented."""

    NUMERIC = "numeric"
    DATETIME = "datetime"
    CATEGORICAL = "categorical"


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

    def __post_init__(self) -> None:
        _check_text(self.name, "a column's name")
        if self.name in RESERVED_NAMES:
            raise ContractError(f"column name {self.name!r} is reserved; rename the column")
        self._check_categories()
        if (self.unit is None) is (self.kind is Kind.DATETIME):
            raise ContractError(f"column {self.name!r}: a unit goes with datetime, and only there")

    def _check_categories(self) -> None:
        if (self.categories is None) is (self.kind is Kind.CATEGORICAL):
            raise ContractError(
                f"column {self.name!r}: categories go with categorical, and only there"
            )
        if self.role is Role.TARGET and (self.categories is None or len(self.categories) != 2):
            raise ContractError(f"target {self.name!r} must be categorical with two categories")
        if self.categories is None:
            return
        for label in self.categories:
            _check_text(label, f"a category of column {self.name!r}")
        if not 1 <= len(self.categories) <= MAX_CATEGORIES:
            raise ContractError(f"column {self.name!r} must have at least one category")
        if len(set(self.categories)) != len(self.categories):
            raise ContractError(f"column {self.name!r} names a category twice")


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What was agreed; equal contracts have equal bytes and so equal digests."""

    submission_id: str
    k: int
    columns: tuple[Column, ...]
    max_depth: int = MAX_DEPTH
    commitment: Commitment = Commitment.BINDING

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{32}", self.submission_id):
            raise ContractError("submission_id must be 32 lower-case hexadecimal digits")
        made = Fields(vars(self), "contract", ContractError)
        made.whole("k", range(2, MAX_K + 1))
        made.whole("max_depth", range(1, MAX_DEPTH + 1))
        names: set[str] = set()
        for column in self.columns:
            if column.name in names:
                raise ContractError(f"column name {column.name!r} occurs twice")
            names.add(column.name)
        n_targets = sum(c.role is Role.TARGET for c in self.columns)
        if n_targets != 1:
            raise ContractError(f"a contract has exactly one target, not {n_targets}")
        if not self.quasi:
            raise ContractError("a contract has at least one quasi-identifier")
        if self.commitment is Commitment.PAPER:
            for column in self.quasi:
                if PAPER_SEPARATORS & set(column.name):
                    raise ContractError(
                        f"column name {column.name!r} has '|', ':' or ',', which the paper's"
                        " commitment cannot represent"
                    )

    @property
    def min_leaf(self) -> int:
        """The least number of records in a leaf: twice k."""
        return 2 * self.k

    @cached_property
    def quasi(self) -> tuple[Column, ...]:
        """The quasi-identifiers in contract order."""
        return tuple(c for c in self.columns if c.role is Role.QUASI)

    @cached_property
    def target(self) -> Column:
        """The target column."""
        return next(c for c in self.columns if c.role is Role.TARGET)

    def to_bytes(self) -> bytes:
        """The contract as canonical JSON (RFC 8785)."""
        return rfc8785.dumps(
            {
                "format": FORMAT,
                "submission_id": self.submission_id,
                "k": self.k,
                "min_leaf": self.min_leaf,
                "max_depth": self.max_depth,
                "rule": RULE,
                "commitment": self.commitment.value,
                "columns": [_column_to_json(c) for c in self.columns],
            }
        )

    @cached_property
    def digest(self) -> Digest:
        """SHA-256 of the canonical bytes."""
        return Digest(hashlib.sha256(self.to_bytes()).digest())

    @classmethod
    def from_bytes(cls, data: bytes) -> "Contract":
        """Read a contract; anything but the canonical bytes of a valid one is refused."""
        fields = Fields.parse(data, "contract", ContractError)
        # The format first, so that a contract of a later version is named as such.
        fields.expect("format", FORMAT)
        fields.only(CONTRACT_FIELDS)
        fields.expect("rule", RULE)
        contract = cls(
            submission_id=fields.text("submission_id"),
            k=fields.whole("k"),
            max_depth=fields.whole("max_depth"),
            commitment=fields.choice("commitment", Commitment),
            columns=tuple(_column_from_json(column) for column in fields.each("columns")),
        )
        fields.expect("min_leaf", contract.min_leaf)
        if contract.to_bytes() != data:
            raise ContractError("contract: the bytes are not canonical JSON (RFC 8785)")
        return contract


CONTRACT_FIELDS = frozenset(
    ["format", "submission_id", "k", "min_leaf", "max_depth", "rule", "commitment", "columns"]
)
COLUMN_EXTRAS = {
    Kind.NUMERIC: frozenset[str](),
    Kind.DATETIME: frozenset({"unit"}),
    Kind.CATEGORICAL: frozenset({"categories"}),
}


def _column_to_json(column: Column) -> dict[str, str | list[str]]:
    fields: dict[str, str | list[str]] = {
        "name": column.name,
        "role": column.role.value,
        "kind": column.kind.value,
    }
    if column.categories is not None:
        fields["categories"] = list(column.categories)
    if column.unit is not None:
        fields["unit"] = column.unit.value
    return fields


def _column_from_json(fields: Fields) -> Column:
    kind = fields.choice("kind", Kind)
    fields.only(COLUMN_EXTRAS[kind] | {"name", "role", "kind"})
    return Column(
        name=fields.text("name"),
        role=fields.choice("role", Role),
        kind=kind,
        categories=fields.texts("categories") if kind is Kind.CATEGORICAL else None,
        unit=fields.choice("unit", Unit) if kind is Kind.DATETIME else None,
    )


def _check_text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise ContractError(f"{what} must be text, not {shown(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ContractError(f"{what} ({shown(value)}) is not valid Unicode text") from None

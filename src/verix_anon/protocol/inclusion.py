"""A proof of inclusion: one record lies in one leaf of a committed root (spec §14).

Proves: the party that committed to the root put the record with this tracker into a class with this
count and these bounds, under this contract and for this submission. The class lies on its side of
every split on the path.
Does not prove: whose record it is, what its values are, that the splits follow the rule, that the
record is in no other leaf, how many records of the class are genuine, or that the class was
released.
Can err: never, as long as SHA-256 holds.
"""

import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import rfc8785

from verix_anon.errors import ContractError, ProofError
from verix_anon.fields import Fields
from verix_anon.protocol.contract import EXACT, Column, Commitment, Contract, Digest, Kind
from verix_anon.protocol.digests import binding_root, leaf_digest, node_digest

FORMAT = "verix/proof/1"
MAX_BYTES = 16 << 20
"""The size limit of a proof, enough for a class of more than a hundred thousand records."""
COUNTS = range(2**53)


class Side(StrEnum):
    """Where a split sends a record: left if its value is <= the threshold."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One split above the leaf: which side the leaf is on, and the digest of the other one."""

    column: int
    threshold: float
    side: Side
    sibling: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A leaf that holds a record, and its path to the root. It proves nothing before `check`.

    Examples:
        >>> root = verix_anon.read_verdict("job/verdict.json").root
        >>> proof = verix_anon.check_proof("job/proof.json", root=root)
        >>> proof.count >= proof.contract.k
        True
    """

    root: Digest
    submission: Digest
    contract: Contract
    tracker: bytes
    count: int
    bounds: tuple[tuple[float, float], ...]
    """Least and greatest value of each quasi-identifier, in contract order."""
    members: tuple[tuple[int, bytes], ...]
    """Row and tracker of each record of the leaf, in ascending row."""
    path: tuple[Turn, ...]
    """From the leaf to the root."""

    def __repr__(self) -> str:
        return (
            f"<Proof that {self.tracker.hex()[:16]}… is one of {self.count:,} records"
            f" under the root {self.root.hex()[:16]}…>"
        )

    def to_bytes(self) -> bytes:
        """The proof as canonical JSON (RFC 8785)."""
        return rfc8785.dumps(
            {
                "format": FORMAT,
                "root": self.root.hex(),
                "submission": self.submission.hex(),
                "contract": self.contract.to_json(),
                "tracker": self.tracker.hex(),
                "count": self.count,
                "bounds": [{"min": low, "max": high} for low, high in self.bounds],
                "members": [
                    {"row": row, "tracker": tracker.hex()} for row, tracker in self.members
                ],
                "path": [
                    {
                        "column": turn.column,
                        "threshold": turn.threshold,
                        "side": turn.side.value,
                        "sibling": turn.sibling.hex(),
                    }
                    for turn in self.path
                ],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "Proof":
        """Read a proof from an untrusted source, without checking that it holds.

        Raises:
            ProofError: These are not the canonical bytes of a proof.
        """
        if len(data) > MAX_BYTES:
            raise ProofError(f"the proof is larger than {MAX_BYTES:,} bytes, which is the limit")
        fields = Fields.parse(data, "proof", ProofError)
        fields.expect("format", FORMAT)
        fields.only({"format", *cls.__dataclass_fields__})
        try:
            contract = Contract.from_fields(fields.inner("contract"))
        except ContractError as error:
            raise ProofError(f"proof: {error}") from None
        proof = fields.record(
            cls,
            contract=contract,
            count=fields.whole("count", COUNTS),
            bounds=tuple(map(_bound, fields.each("bounds"))),
            members=tuple(map(_member, fields.each("members"))),
            path=tuple(map(_turn, fields.each("path"))),
        )
        # Each proof has exactly one file, so no byte of it can be changed.
        if proof.to_bytes() != data:
            raise ProofError("proof: the bytes are not canonical JSON (RFC 8785)")
        return proof


def _bound(fields: Fields) -> tuple[float, float]:
    fields.only({"min", "max"})
    return float(fields.number("min")), float(fields.number("max"))


def _member(fields: Fields) -> tuple[int, bytes]:
    fields.only({"row", "tracker"})
    return fields.whole("row", COUNTS), fields.digest("tracker")


def _turn(fields: Fields) -> Turn:
    fields.only(Turn.__dataclass_fields__)
    column = fields.whole("column", range(2**31))
    return fields.record(Turn, column=column, threshold=float(fields.number("threshold")))


def check(proof: Proof, *, root: Digest, tracker: bytes | None = None) -> None:
    """Raise ProofError unless the proof holds under this root, and for this tracker if given.

    1. The proof is about this root and this tracker.
    2. Its parts have the sizes that the contract gives them.
    3. The root follows from the leaf and the path, for this contract and submission.
    4. The contract allows the leaf: enough records, each once, and possible bounds.
    5. The record is in the leaf.
    6. The bounds lie on the leaf's side of every split.
    """
    _require(hmac.compare_digest(proof.root, root), "it is of another root than the one given")
    if tracker is not None:
        same = hmac.compare_digest(proof.tracker, tracker)
        _require(same, "it is about another tracker than the one given")
    _check_sizes(proof)
    _require(hmac.compare_digest(proof.root, root_of(proof)), "the root does not follow from it")
    _check_leaf(proof)
    is_member = any(member == proof.tracker for _, member in proof.members)
    _require(is_member, "no record of the class has the tracker")
    for turn in proof.path:
        low, high = proof.bounds[turn.column]
        fits = high <= turn.threshold if turn.side is Side.LEFT else low > turn.threshold
        name = proof.contract.quasi[turn.column].name
        _require(fits, f"the class does not lie {turn.side} of the split at column {name!r}")


def root_of(proof: Proof) -> Digest:
    """Compute the root from the leaf and the path."""
    top = leaf_digest(proof.count, proof.bounds, proof.members)
    for turn in proof.path:
        sides = (top, turn.sibling) if turn.side is Side.LEFT else (turn.sibling, top)
        top = node_digest(turn.column, turn.threshold, *sides)
    return binding_root(proof.contract.digest, proof.submission, top)


def _check_sizes(proof: Proof) -> None:
    contract = proof.contract
    binds = contract.commitment is Commitment.BINDING
    _require(binds, "the contract's commitment is the paper's, which binds no record to a leaf")
    n, n_quasi = len(proof.bounds), len(contract.quasi)
    _require(n == n_quasi, f"it has bounds for {n} columns, and the contract {n_quasi}")
    has_columns = all(turn.column < n_quasi for turn in proof.path)
    _require(has_columns, "a split is by a column that the contract has not")
    depth, most = len(proof.path), contract.max_depth
    _require(depth <= most, f"the leaf lies {depth} splits deep, and the contract allows {most}")


def _check_leaf(proof: Proof) -> None:
    count, contract = proof.count, proof.contract
    found = len(proof.members)
    _require(count == found, f"the class says {count:,} records and has {found:,}")
    least = contract.min_leaf
    _require(
        count >= least, f"the class has {count:,} records, and the contract asks for {least:,}"
    )
    rows = [row for row, _ in proof.members]
    _require(all(a < b for a, b in pairwise(rows)), "its rows are not distinct and ascending")
    _require(len({tracker for _, tracker in proof.members}) == count, "a tracker occurs twice")
    for column, (low, high) in zip(contract.quasi, proof.bounds, strict=True):
        can_be = low <= high and _can_have(column, (low, high))
        _require(can_be, f"column {column.name!r} cannot have the bounds of the class")
    for turn in proof.path:
        column = contract.quasi[turn.column]
        can_be = _can_have(column, (turn.threshold,))
        _require(can_be, f"column {column.name!r} cannot have the threshold of a split")


def _can_have(column: Column, values: Sequence[float]) -> bool:
    """Whether a column can hold all of these values."""
    if not all(map(math.isfinite, values)):
        return False
    if column.n_values is not None:
        return all(value.is_integer() and 0 <= value < column.n_values for value in values)
    is_date = column.kind is Kind.DATETIME
    return not is_date or all(value.is_integer() and abs(value) <= EXACT for value in values)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ProofError(f"the proof does not hold: {otherwise}")

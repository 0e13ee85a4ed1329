"""A second implementation of the protocol, written from the text alone.

Slow and plain on purpose: spec §3 to §6 made executable, with nothing but the standard library.
"""

import hashlib
import json
import math
import string
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

CHUNK_ROWS = 65536

CONTRACT_FIELDS = {"format", "submission_id", "k", "min_leaf", "max_depth", "rule"}
CONTRACT_FIELDS |= {"commitment", "columns"}

# The field that a kind adds to a column's `name`, `role` and `kind` (spec §2, §3).
KIND_FIELDS = {
    "numeric": set[str](),
    "datetime": {"unit"},
    "categorical": {"categories"},
    "rank": {"size"},
}

Node = tuple[int, float, int, int, int]  # column, threshold, left, right, leaf (spec §8)
Bounds = list[tuple[float, float]]  # (min, max) for each quasi-identifier


@dataclass(frozen=True)
class Anonymized:
    """What an honest provider answers, and the digests that bind it."""

    nodes: list[Node]
    leaves: list[tuple[int, Bounds]]
    leaf_of_row: list[int]
    contract_digest: str
    submission_digest: str
    root: str


@dataclass(frozen=True)
class Column:
    """One sent column: what the contract says of it, and its values by row."""

    name: str
    role: str
    kind: str
    weight: int
    values: list[float]


@dataclass(frozen=True)
class Work:
    """All that the protocol's functions read: the contract's terms and the records."""

    rule: str
    min_leaf: int
    max_depth: int
    trackers: list[bytes]
    columns: list[Column]
    quasi: list[Column]
    target: list[float]


@dataclass(frozen=True)
class Leaf:
    """Records that stay together, as ascending row numbers."""

    rows: list[int]


@dataclass(frozen=True)
class Split:
    """Records with value <= threshold in a quasi-identifier go left, the others right."""

    column: int
    threshold: float
    left: "Leaf | Split"
    right: "Leaf | Split"


def anonymize(
    contract_bytes: bytes,
    trackers: Sequence[bytes],
    columns: Sequence[Sequence[float]],
    by: "Callable[[Work, list[int], int], Leaf | Split] | None" = None,
) -> Anonymized:
    """Grow the tree of spec §4 over the records and commit to it as the contract says (spec §6).

    `columns` are all sent columns, the target among them, in contract order. `by` may grow the
    tree in place of `grow`, where there are many records.
    Raises ValueError if the contract or the records are not what the spec allows.
    """
    contract = read_contract(contract_bytes)
    job = read_records(contract, trackers, columns)
    tree = (by or grow)(job, list(range(len(trackers))), 0)

    leaves = leaves_of(tree)
    leaf_of_row = [-1] * len(trackers)
    for number, leaf in enumerate(leaves):
        for row in leaf.rows:
            leaf_of_row[row] = number

    contract_digest = sha256(contract_bytes)
    submission = submission_digest(job, contract_digest)
    if contract["commitment"] == "paper":
        root = paper_digest(job, tree)
    else:
        root = sha256(b"\x03", contract_digest, submission, binding_digest(job, tree)).hex()

    return Anonymized(
        nodes=number_nodes(tree),
        leaves=[(len(leaf.rows), bounds_of(job, leaf)) for leaf in leaves],
        leaf_of_row=leaf_of_row,
        contract_digest=contract_digest.hex(),
        submission_digest=submission.hex(),
        root=root,
    )


# The contract and the records (spec §3).


def read_contract(contract_bytes: bytes) -> dict[str, Any]:
    """Read canonical bytes and refuse all others (spec §3)."""
    fields = json.loads(contract_bytes.decode("utf-8"))
    # For text and integers under ASCII names, and no other is allowed, this is RFC 8785.
    canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    require(canonical.encode("utf-8") == contract_bytes, "the contract is not canonical JSON")
    require(isinstance(fields, dict) and set(fields) == CONTRACT_FIELDS, "wrong contract fields")

    require(fields["format"] == "verix/contract/2", "unknown format")
    require(is_text(fields["submission_id"]), "submission_id must be text")
    require(len(fields["submission_id"]) == 32, "submission_id must have 32 digits")
    lower_case = set(string.digits + "abcdef")
    require(set(fields["submission_id"]) <= lower_case, "submission_id must be lower-case hex")
    for name in ("k", "min_leaf", "max_depth"):
        require(type(fields[name]) is int, f"{name} must be an integer")
    require(fields["k"] >= 2, "k must be at least 2")
    require(fields["k"] <= fields["min_leaf"] < 2**31, "min_leaf must be from k to 2^31 - 1")
    require(1 <= fields["max_depth"] <= 50, "max_depth must be 1 to 50")
    require(fields["rule"] in ("variance-reduction", "importance-spread"), "unknown rule")
    require(fields["commitment"] in ("binding", "paper"), "unknown commitment")

    require(isinstance(fields["columns"], list), "columns must be a list")
    for column in fields["columns"]:
        require(isinstance(column, dict), "a column must be an object")
        check_column(column, fields["rule"], fields["commitment"])
    names = [column["name"] for column in fields["columns"]]
    require(len(set(names)) == len(names), "column names must be distinct")
    roles = [column["role"] for column in fields["columns"]]
    n_targets = 1 if fields["rule"] == "variance-reduction" else 0
    require(roles.count("target") == n_targets, "a target goes with variance-reduction alone")
    require(roles.count("quasi") >= 1, "there must be a quasi-identifier")
    coded = {column["kind"] == "rank" for column in fields["columns"]}
    require(len(coded) == 1, "all columns are coded or none is")
    if fields["rule"] == "importance-spread" or fields["commitment"] == "paper":
        wanted = fields["rule"] == "importance-spread"
        require(coded == {wanted}, "this rule, or this commitment, needs the other kind of column")
        require(fields["commitment"] == "binding" or not wanted, "no such combination")
    return dict(fields)


def check_column(column: dict[str, Any], rule: str, commitment: str) -> None:
    """Refuse a column that spec §3 does not allow."""
    kind = column.get("kind", "")
    require(is_text(kind) and kind in KIND_FIELDS, "unknown kind")
    weighted = {"weight"} if rule == "importance-spread" else set()
    require(
        set(column) == {"name", "role", "kind"} | KIND_FIELDS[kind] | weighted,
        "wrong column fields",
    )
    name, role = column["name"], column["role"]
    require(is_text(name) and name not in ("row", "tracker", "leaf"), "forbidden column name")
    require(role in ("quasi", "target"), "unknown role")
    if kind == "datetime":
        require(column["unit"] in ("day", "s", "ms", "us"), "unknown unit")
    if kind == "categorical":
        labels = column["categories"]
        require(isinstance(labels, list) and all(map(is_text, labels)), "labels must be text")
        require(len(set(labels)) == len(labels) > 0, "categories must be some, and distinct")
    if kind == "rank":
        require(type(column["size"]) is int, "size must be an integer")
        require(1 <= column["size"] < 2**31, "size must be from 1 to 2^31 - 1")
    if weighted:
        require(type(column["weight"]) is int, "weight must be an integer")
        span = max(1, column["size"] - 1)
        require(column["weight"] >= 1 and column["weight"] * span <= 2**52, "weight out of range")
    if role == "target":
        require(kind in ("categorical", "rank"), "the target must have classes")
        n_classes = column["size"] if kind == "rank" else len(column["categories"])
        require(n_classes == 2, "the target must have two classes")
    elif commitment == "paper":
        # These characters would make the text that is hashed ambiguous (spec §6).
        require(not set(name) & set("|:,"), "the paper's commitment forbids this column name")


def read_records(
    contract: dict[str, Any], trackers: Sequence[bytes], columns: Sequence[Sequence[float]]
) -> Work:
    """Join the contract's columns with their values, and refuse records that do not fit."""
    n = len(trackers)
    require(n >= contract["min_leaf"], "fewer than min_leaf records")  # spec §4
    require(all(len(tracker) == 32 for tracker in trackers), "a tracker has 32 bytes")
    require(len(columns) == len(contract["columns"]), "wrong number of columns")
    joined = []
    for terms, values in zip(contract["columns"], columns, strict=True):
        require(len(values) == n, "columns differ in length")
        require(all(math.isfinite(value) for value in values), "values must be finite")
        if terms["kind"] == "categorical":
            positions = range(len(terms["categories"]))
            require(all(value in positions for value in values), "no such category")
        if terms["kind"] == "rank":
            places = range(terms["size"])
            require(all(value in places for value in values), "no such position")
        # Adding 0.0 turns -0.0 into 0.0, as it is written everywhere (spec §6).
        plain = [float(value) + 0.0 for value in values]
        weight = terms.get("weight", 0)
        joined.append(Column(terms["name"], terms["role"], terms["kind"], weight, plain))
    return Work(
        rule=contract["rule"],
        min_leaf=contract["min_leaf"],
        max_depth=contract["max_depth"],
        trackers=list(trackers),
        columns=joined,
        quasi=[column for column in joined if column.role == "quasi"],
        target=next((column.values for column in joined if column.role == "target"), []),
    )


# The rules (spec §4) and the published leaves (spec §5).


def grow(job: Work, rows: list[int], depth: int) -> Leaf | Split:
    """Split the records of a node for as long as the rule allows; `rows` ascend."""
    if len(rows) < 2 * job.min_leaf or depth >= job.max_depth:
        return Leaf(rows)
    if job.rule == "variance-reduction" and positives(job, rows) in (0, len(rows)):
        return Leaf(rows)
    offers = [offer_of(job, rows, column) for column in range(len(job.quasi))]
    # Equal scores: the first in contract order, which is what max() returns.
    best = max((offer for offer in offers if offer), key=lambda offer: offer[0], default=None)
    if best is None:
        return Leaf(rows)
    _, column, threshold = best
    left, right = sides_of(job, rows, column, threshold)
    return Split(column, threshold, grow(job, left, depth + 1), grow(job, right, depth + 1))


def offer_of(job: Work, rows: list[int], column: int) -> tuple[float, int, float] | None:
    """Return the score, the column and the threshold of a column's candidate, if it has one."""
    values = sorted(job.quasi[column].values[row] for row in rows)
    median = values[(len(rows) + 1) // 2 - 1]  # position ceil(n/2), counted from 1
    if job.rule == "variance-reduction":
        left, right = sides_of(job, rows, column, median)
        valid = min(len(left), len(right)) >= job.min_leaf
        return (score_of(job, left, right), column, median) if valid else None
    for threshold in [median, *[value for value in values if value < median][-1:]]:
        left, right = sides_of(job, rows, column, threshold)
        if min(len(left), len(right)) >= job.min_leaf:
            spread = int(values[-1]) - int(values[0])
            return job.quasi[column].weight * spread, column, threshold
    return None


def sides_of(
    job: Work, rows: list[int], column: int, threshold: float
) -> tuple[list[int], list[int]]:
    """Return the rows with at most that value, and the rows above it."""
    values = job.quasi[column].values
    left = [row for row in rows if values[row] <= threshold]
    return left, [row for row in rows if values[row] > threshold]


def score_of(job: Work, left: list[int], right: list[int]) -> float:
    """Return l*l/nl + r*r/nr: counts are exact, every operation rounds to binary64."""
    l, nl = float(positives(job, left)), float(len(left))  # noqa: E741 (the spec's own name)
    r, nr = float(positives(job, right)), float(len(right))
    return l * l / nl + r * r / nr


def positives(job: Work, rows: list[int]) -> int:
    """Count the records of class 1."""
    return sum(job.target[row] == 1 for row in rows)


def leaves_of(tree: Leaf | Split) -> list[Leaf]:
    """List the leaves from left to right: a leaf's place is its number (spec §4)."""
    if isinstance(tree, Leaf):
        return [tree]
    return leaves_of(tree.left) + leaves_of(tree.right)


def number_nodes(tree: Leaf | Split, first_node: int = 0, first_leaf: int = 0) -> list[Node]:
    """List the nodes in preorder, as in nodes.parquet (spec §4, §8)."""
    if isinstance(tree, Leaf):
        return [(-1, 0.0, -1, -1, first_leaf)]
    left_node = first_node + 1
    left = number_nodes(tree.left, left_node, first_leaf)
    right_node = left_node + len(left)
    right = number_nodes(tree.right, right_node, first_leaf + len(leaves_of(tree.left)))
    return [(tree.column, tree.threshold, left_node, right_node, -1), *left, *right]


def bounds_of(job: Work, leaf: Leaf) -> Bounds:
    """Return the observed least and greatest value of each quasi-identifier (spec §5)."""
    bounds = []
    for column in job.quasi:
        values = [column.values[row] for row in leaf.rows]
        bounds.append((min(values), max(values)))
    return bounds


# Commitments (spec §6).


def submission_digest(job: Work, contract_digest: bytes) -> bytes:
    """Hash the contract and all records, chunk by chunk."""
    n = len(job.trackers)
    n_chunks = math.ceil(n / CHUNK_ROWS)
    chunks = [chunk_digest(job, number) for number in range(n_chunks)]
    return sha256(b"\x04", contract_digest, u64(n), *chunks)


def chunk_digest(job: Work, number: int) -> bytes:
    """Hash rows 65536c to 65536(c+1)-1, column after column; the last chunk may be shorter."""
    rows = slice(CHUNK_ROWS * number, CHUNK_ROWS * (number + 1))
    parts = [b"\x05", u64(number), *job.trackers[rows]]
    for column in job.columns:
        parts += [value_bytes(column, value) for value in column.values[rows]]
    return sha256(*parts)


def value_bytes(column: Column, value: float) -> bytes:
    """Write one value of a sent column."""
    if column.role == "target":
        return struct.pack("<B", int(value))
    if column.kind in ("categorical", "rank"):
        return struct.pack("<i", int(value))
    return f64(value)


def binding_digest(job: Work, tree: Leaf | Split) -> bytes:
    """Hash a subtree with its members."""
    if isinstance(tree, Leaf):
        members = [u64(row) + job.trackers[row] for row in tree.rows]
        bounds = [f64(least) + f64(greatest) for least, greatest in bounds_of(job, tree)]
        return sha256(b"\x00", u64(len(tree.rows)), *bounds, *members)
    left, right = binding_digest(job, tree.left), binding_digest(job, tree.right)
    return sha256(b"\x01", struct.pack("<I", tree.column), f64(tree.threshold), left, right)


def paper_digest(job: Work, tree: Leaf | Split) -> str:
    """Hash a subtree as the paper does: text in, hexadecimal out."""
    if isinstance(tree, Leaf):
        named = zip((column.name for column in job.quasi), bounds_of(job, tree), strict=True)
        bounds = [f"{name}:{six(least)},{six(most)}" for name, (least, most) in sorted(named)]
        return sha256("|".join(["LEAF", str(len(tree.rows)), *bounds]).encode()).hex()
    left, right = paper_digest(job, tree.left), paper_digest(job, tree.right)
    name = job.quasi[tree.column].name
    return sha256(f"INTERNAL|{name}|{six(tree.threshold)}|{left}|{right}".encode()).hex()


def sha256(*parts: bytes) -> bytes:
    """Hash the concatenation of the parts."""
    return hashlib.sha256(b"".join(parts)).digest()


def u64(number: int) -> bytes:
    """Write an integer in eight bytes, little-endian."""
    return struct.pack("<Q", number)


def f64(value: float) -> bytes:
    """Write a binary64, little-endian; `read_records` has already removed -0.0."""
    return struct.pack("<d", value)


def six(value: float) -> str:
    """Write a number as C's %.6f does, without the sign of what rounds to zero."""
    text = f"{value:.6f}"
    return "0.000000" if text == "-0.000000" else text


def is_text(value: object) -> bool:
    """Tell whether a JSON value is a string."""
    return isinstance(value, str)


def require(holds: bool, otherwise: str) -> None:
    """Refuse what the spec refuses."""
    if not holds:
        raise ValueError(otherwise)

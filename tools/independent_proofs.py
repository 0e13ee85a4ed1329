"""A second implementation of proofs of inclusion, written from the text of spec §14 alone.

Slow and plain on purpose, with nothing but the standard library and `independent`.
"""

import json
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tools.kit.independent import (
    Leaf,
    Split,
    Work,
    binding_digest,
    bounds_of,
    f64,
    grow,
    read_contract,
    read_records,
    require,
    sha256,
    submission_digest,
    u64,
)


def prove(
    contract_bytes: bytes,
    trackers: Sequence[bytes],
    columns: Sequence[Sequence[float]],
    row: int,
) -> str:
    """The proof for the record of one row of what an honest provider answers."""
    contract = read_contract(contract_bytes)
    require(contract["commitment"] == "binding", "the paper's commitment binds no members")
    job = read_records(contract, trackers, columns)
    tree = grow(job, list(range(len(trackers))), depth=0)
    contract_digest = sha256(contract_bytes)
    submission = submission_digest(job, contract_digest)
    leaf, path = walk(job, tree, row)
    proof = {
        "format": "verix/proof/1",
        "root": sha256(b"\x03", contract_digest, submission, binding_digest(job, tree)).hex(),
        "submission": submission.hex(),
        "contract": contract,
        "tracker": trackers[row].hex(),
        "count": len(leaf.rows),
        "bounds": [{"min": least, "max": most} for least, most in bounds_of(job, leaf)],
        "members": [{"row": member, "tracker": trackers[member].hex()} for member in leaf.rows],
        "path": path,
    }
    return canonical(proof)


def walk(job: Work, tree: Leaf | Split, row: int) -> tuple[Leaf, list[dict[str, Any]]]:
    """The leaf of a row, and the splits from it to the top with the digests of the other sides."""
    if isinstance(tree, Leaf):
        return tree, []
    goes_left = job.quasi[tree.column].values[row] <= tree.threshold
    own, other = (tree.left, tree.right) if goes_left else (tree.right, tree.left)
    leaf, path = walk(job, own, row)
    step = {
        "column": tree.column,
        "threshold": tree.threshold,
        "side": "left" if goes_left else "right",
        "sibling": binding_digest(job, other).hex(),
    }
    return leaf, [*path, step]


def holds(text: str, root: str) -> bool:
    """Whether a proof is about this root, and the root follows from it, and its leaf is allowed."""
    proof = json.loads(text)
    contract_bytes = canonical(proof["contract"]).encode()
    contract = read_contract(contract_bytes)
    members = [u64(member["row"]) + bytes.fromhex(member["tracker"]) for member in proof["members"]]
    bounds = [f64(float(pair["min"])) + f64(float(pair["max"])) for pair in proof["bounds"]]
    top = sha256(b"\x00", u64(proof["count"]), *bounds, *members)
    fits = True
    for step in proof["path"]:
        index, threshold = step["column"], float(step["threshold"])
        other, pair = bytes.fromhex(step["sibling"]), proof["bounds"][index]
        is_left = step["side"] == "left"
        fits &= pair["max"] <= threshold if is_left else pair["min"] > threshold
        sides = (top, other) if is_left else (other, top)
        top = sha256(b"\x01", struct.pack("<I", index), f64(threshold), *sides)
    submission = bytes.fromhex(proof["submission"])
    computed = sha256(b"\x03", sha256(contract_bytes), submission, top).hex()
    rows = [member["row"] for member in proof["members"]]
    found = {member["tracker"] for member in proof["members"]}
    return (
        computed == proof["root"] == root
        and fits
        and proof["tracker"] in found
        and rows == sorted(set(rows))
        and contract["min_leaf"] <= proof["count"] == len(rows) == len(found)
        and len(proof["path"]) <= contract["max_depth"]
    )


def canonical(value: object) -> str:
    """JSON in the form of RFC 8785."""
    if isinstance(value, dict):
        # Names of the format are ASCII, so that any order of characters is the same.
        fields = [f"{canonical(name)}:{canonical(value[name])}" for name in sorted(value)]
        return "{" + ",".join(fields) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def number(value: float) -> str:
    """A binary64 as ECMAScript writes it: the shortest digits, and an exponent beyond 10^21."""
    require(math.isfinite(value), "a number is finite")
    if value == 0:
        return "0"
    sign, figures, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, figures))
    point = len(digits) + exponent
    minus = "-" if sign else ""
    if 0 < point <= 21:
        whole = digits[:point].ljust(point, "0")
        return minus + whole + (f".{digits[point:]}" if digits[point:] else "")
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if digits[1:] else ""
    return f"{minus}{digits[0]}{fraction}e{point - 1:+d}"

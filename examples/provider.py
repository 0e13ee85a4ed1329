"""A whole provider, written from docs/spec.md: python provider.py SUBMISSION DELIVERY.

It writes a delivery, or refuses and leaves with 1. docs/implementers.md goes through it.
Whoever works for strangers needs the limits of spec §11 as well.
"""

import hashlib
import json
import re
import struct
import sys
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RULES, END, SIZE = ["variance-reduction", "importance-spread"], ("min", "max"), range(1, 2**31)
CONTRACT = {"format": ["verix/contract/2"], "submission_id": str, "columns": list, "rule": RULES}
CONTRACT |= {"k": SIZE[1:], "min_leaf": SIZE[1:], "max_depth": range(1, 51)}
CONTRACT |= {"commitment": ["binding", "paper"]}
KINDS = {"numeric": {}, "datetime": {"unit": ["day", "s", "ms", "us"]}}
KINDS |= {"categorical": {"categories": list}, "rank": {"size": SIZE}}
CLUSTER = {pa.binary(32): pa.binary(), pa.uint8(): pa.int16()}
ENCODINGS = "PLAIN PLAIN_DICTIONARY RLE_DICTIONARY RLE DELTA_BINARY_PACKED BYTE_STREAM_SPLIT"
NODE = [("column", "i4"), ("threshold", "f8"), ("left", "i4"), ("right", "i4"), ("leaf", "i4")]


def require(holds, otherwise):
    if not holds:
        raise ValueError(otherwise)


def check_fields(found, allowed):
    """Refuse an object with other fields than these, or with a value that is not allowed."""
    require(isinstance(found, dict) and found.keys() == allowed.keys(), "other fields")
    for name, of in allowed.items():
        kind = of if isinstance(of, type) else type(of[0])
        require(type(found[name]) is kind and (kind is of or found[name] in of), f"wrong {name}")


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def canonical(value):
    """Write JSON as RFC 8785 does where keys are ASCII and numbers are whole."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def read_file(path):
    require(path.is_file() and not path.is_symlink(), f"{path.name} is missing or no plain file")
    return path.read_bytes()


def read_parts(path):
    """Return the files of records.parquet, its digest, and other types in it (spec §8.3)."""
    if path.is_symlink() or not path.is_dir():
        return [data := read_file(path)], sha256(data), {}
    names = sorted(part.name for part in path.iterdir() if part.name[0] not in "._")
    are_named = all(re.fullmatch(r"[^\W_][\w.=-]{0,180}\.parquet", name, re.A) for name in names)
    require(names and are_named, "records.parquet has no parts, or one with another name")
    parts = {name.encode(): read_file(path / name) for name in names}
    named = [struct.pack("<Q", len(name)) + name + sha256(parts[name]) for name in parts]
    return list(parts.values()), sha256(*named), CLUSTER


def read_submission(folder):
    """Return the contract, the records, and submission.json if it is true (spec §8.1)."""
    require(not (folder / "delivery.json").exists(), "this is a delivery")
    header, agreed = read_file(folder / "submission.json"), read_file(folder / "contract.json")
    contract, (parts, digest, also) = read_contract(agreed), read_parts(folder / "records.parquet")
    trackers, columns = read_records(contract, parts, also)
    submission = submission_digest(sha256(agreed), trackers, columns).hex()
    files = {"contract.json": sha256(agreed).hex(), "records.parquet": digest.hex()}
    true = {"format": "verix/submission/2", "contract": files["contract.json"], "files": files}
    true |= {"submission": submission, "rows": len(trackers)}
    # An object in which a field stands twice is read as null, and so differs from the true one.
    hook = {"object_pairs_hook": lambda p: dict(p) if len(dict(p)) == len(p) else None}
    is_true = canonical(json.loads(header.decode("utf-8"), **hook)) == canonical(true)
    require(is_true and len(header) <= 65536, "it was damaged on the way")
    return contract, trackers, columns, true


def read_contract(data):
    """Return the contract if the bytes are the canonical form of a valid one (spec §3)."""
    contract = json.loads(data.decode("utf-8"))
    require(canonical(contract) == data, "contract.json is not in canonical form")
    check_fields(contract, CONTRACT)
    is_spread, is_paper = contract["rule"] == RULES[1], contract["commitment"] == "paper"
    number, columns = contract["submission_id"], contract["columns"]
    require(len(number) == 32 and not number.strip("0123456789abcdef"), "wrong submission_id")
    require(contract["k"] <= contract["min_leaf"], "min_leaf is below k")
    names = {check_column(column, is_spread, is_paper) for column in columns}
    roles, coded = [c["role"] for c in columns], [c["kind"] == "rank" for c in columns]
    require("quasi" in roles and len(names) == len(roles), "no quasi-identifier, or a name twice")
    require(roles.count("target") == (0 if is_spread else 1), "the rule has one target, or none")
    require(all(coded) or not (is_spread or any(coded)), "columns in clear beside coded ones")
    require(not is_paper or not any(coded), "the paper's commitment needs values in clear")
    return contract


def check_column(column, is_spread, is_paper):
    """Refuse a column that spec §3 does not allow; return its name."""
    extra = {"weight": range(1, 2**52 + 1)} if is_spread else {}
    extra |= KINDS.get(str(column.get("kind")), {}) if isinstance(column, dict) else {}
    check_fields(column, {"name": str, "kind": list(KINDS), "role": ["quasi", "target"]} | extra)
    name, labels = column["name"], column.get("categories", [""])
    size, is_target = column.get("size", len(labels)), column["role"] == "target"
    require(name not in ("row", "tracker", "leaf"), "reserved name")
    require({type(label) for label in labels} == {str}, "a category is no text, or there is none")
    require(len(set(labels)) == len(labels), "a category stands twice")
    require(column.get("weight", 1) * max(1, size - 1) <= 2**52, "too large a weight")
    require(not is_target or size == 2, "a target has two classes")
    require(is_target or not is_paper or not set(name) & set("|:,"), "name with | : or ,")
    return name


def read_records(contract, parts, also):
    """Return trackers and columns in ascending row, in the types of spec §8.1."""
    types = {"row": pa.int64(), "tracker": pa.binary(32)}
    for c in contract["columns"]:
        value = pa.float64() if c["kind"] in ("numeric", "datetime") else pa.int32()
        types[c["name"]] = value if c["role"] == "quasi" else pa.uint8()
    tables = []
    for file in (pq.ParquetFile(pa.BufferReader(part)) for part in parts):
        require(file.schema_arrow.names == list(types), "other columns than the contract's")
        pairs = zip(file.schema_arrow.types, types.values(), strict=True)
        require(all(found in (of, also.get(of)) for found, of in pairs), "a column of another type")
        chunks = map(file.metadata.row_group, range(file.num_row_groups))
        used = {e for g in chunks for c in range(len(types)) for e in g.column(c).encodings}
        # Spark lists BIT_PACKED for levels, though a flat column has none; no value can have it.
        require(used <= {"BIT_PACKED", *ENCODINGS.split()}, "an encoding that is not allowed")
        tables.append(file.read(use_threads=False).cast(pa.schema(types)))
    table = pa.concat_tables(tables).sort_by("row")
    require(not any(column.null_count for column in table.columns), "a value is missing")
    require(len(table) >= contract["min_leaf"], "too few records")
    require(np.array_equal(table["row"], np.arange(len(table))), "a row is missing, or twice")
    columns = [table[c["name"]].to_numpy() + 0 for c in contract["columns"]]  # -0.0 + 0 is 0.0
    for c, values in zip(contract["columns"], columns, strict=True):
        size = c.get("size", len(c.get("categories", [])))
        fits = (values >= 0) & (values < size) if size else np.isfinite(values)
        require(fits.all(), "a value that the column cannot have")
    return np.frombuffer(b"".join(table["tracker"].to_pylist()), "u1").reshape(-1, 32), columns


def submission_digest(contract_digest, trackers, columns):
    """Hash the records in chunks of 65,536 rows, column after column (spec §6.1)."""
    chunks = []
    for first in range(0, len(trackers), 65536):
        parts = [array[first : first + 65536].tobytes() for array in (trackers, *columns)]
        chunks.append(sha256(b"\x05", struct.pack("<Q", len(chunks)), *parts))
    return sha256(b"\x04", contract_digest, struct.pack("<Q", len(trackers)), *chunks)


class Tree:
    """The tree of the contract's rule, its leaves and its digest (spec §4 to §6)."""

    def __init__(self, contract, trackers, columns):
        sent = [(c["role"], c, v) for c, v in zip(contract["columns"], columns, strict=True)]
        self.contract, self.is_paper = contract, contract["commitment"] == "paper"
        self.quasi = [column for role, column, _ in sent if role == "quasi"]
        self.values = np.array([values for role, _, values in sent if role == "quasi"], "<f8")
        self.target = next((values for role, _, values in sent if role == "target"), None)
        rows = np.arange(len(trackers), dtype="<u8")
        self.members = np.hstack([rows.reshape(-1, 1).view("u1"), trackers])
        self.leaf_of_row, self.nodes, self.counts, self.bounds = rows.astype("i4"), [], [], []
        self.digest = self.grow(rows, depth=0)

    def grow(self, rows, depth):
        """Split the records of a node for as long as the rule allows; return its digest."""
        number, leaf = len(self.nodes), len(self.counts)
        self.nodes.append((-1, 0.0, -1, -1, leaf))
        offers = [] if depth >= self.contract["max_depth"] else list(self.offers(rows))
        if not offers:
            self.leaf_of_row[rows], values = leaf, self.values[:, rows]
            self.counts.append(rows.size)
            self.bounds.append(np.stack([values.min(axis=1), values.max(axis=1)], axis=1))
            return self.leaf_digest(rows, self.bounds[leaf])
        _, column, threshold = max(offers, key=lambda offer: offer[0])  # the first among equals
        is_left = self.values[column, rows] <= threshold
        left, second = self.grow(rows[is_left], depth + 1), len(self.nodes)
        right = self.grow(rows[~is_left], depth + 1)
        self.nodes[number] = (column, threshold, number + 1, second, -1)
        return self.split_digest(column, threshold, left, right)

    def offers(self, rows):
        """Yield score, column and threshold of every column that can be split (spec §4)."""
        n, m, half = rows.size, self.contract["min_leaf"], (rows.size - 1) // 2
        labels = None if self.target is None else self.target[rows]
        if n < 2 * m or (labels is not None and labels.sum() in (0, n)):
            return
        for j, column in enumerate(self.quasi):
            values = self.values[j, rows]
            median = np.partition(values, half)[half]
            below = values[values < median] if labels is None else values[:0]
            for threshold in (median, *([below.max()] if below.size else [])):
                is_left = values <= threshold
                if m <= is_left.sum() <= n - m:
                    yield self.score(column, values, labels, is_left), j, float(threshold)
                    break

    def score(self, column, values, labels, is_left):
        if labels is None:
            return column["weight"] * int(values.max() - values.min())
        l, nl = float(labels[is_left].sum()), float(is_left.sum())
        r, nr = float(labels[~is_left].sum()), float((~is_left).sum())
        return l * l / nl + r * r / nr

    def leaf_digest(self, rows, bounds):
        if not self.is_paper:
            head = b"\x00" + struct.pack("<Q", rows.size)
            return sha256(head, bounds.tobytes(), self.members[rows].tobytes())
        named = sorted(zip((c["name"] for c in self.quasi), bounds.tolist(), strict=True))
        parts = [f"{name}:{low:z.6f},{high:z.6f}" for name, (low, high) in named]
        return sha256("|".join(["LEAF", str(rows.size), *parts]).encode()).hex()

    def split_digest(self, column, threshold, left, right):
        if not self.is_paper:
            return sha256(b"\x01", struct.pack("<Id", column, threshold), left, right)
        name = self.quasi[column]["name"]
        return sha256(f"INTERNAL|{name}|{threshold:z.6f}|{left}|{right}".encode()).hex()


def tables_of(tree):
    """Return the columns of the three tables of a delivery (spec §8.2)."""
    bounds, nodes = np.array(tree.bounds), np.array(tree.nodes, NODE)
    trackers = pa.array([bytes(member[8:]) for member in tree.members], pa.binary(32))
    records = {"row": np.arange(len(trackers)), "tracker": trackers, "leaf": tree.leaf_of_row}
    records |= {} if tree.target is None else {"target": tree.target}
    leaves = {"leaf": np.arange(len(bounds), dtype="i4"), "count": np.array(tree.counts)}
    leaves |= {f"{END[i]}_{j}": bounds[:, j, i] for j, i in np.ndindex(bounds.shape[1:])}
    return {"records": records, "leaves": leaves, "nodes": {n: nodes[n] for n, _ in NODE}}


def main(source, place):
    """Answer a submission, or refuse it."""
    try:
        contract, trackers, columns, sent = read_submission(Path(source))
    except (ValueError, OSError, RecursionError, pa.ArrowException) as error:
        sys.exit(f"refused: {error}")
    tree = Tree(contract, trackers, columns)
    bound = b"\x03" + bytes.fromhex(sent["contract"] + sent["submission"])
    root = tree.digest if tree.is_paper else sha256(bound, tree.digest).hex()
    header = sent | {"root": root, "leaves": len(tree.counts), "nodes": len(tree.nodes)}
    header |= {"format": "verix/delivery/2", "engine": "example", "version": "1"}
    # It is written beside its place, and takes its name when it is complete (spec §8.4).
    (aside := Path(f"{place}.partial")).mkdir()
    for name, columns in tables_of(tree).items():
        pq.write_table(pa.table(columns), aside / f"{name}.parquet", compression="zstd")
    header["seconds"] = int(process_time())
    header["files"] = {path.name: sha256(path.read_bytes()).hex() for path in aside.iterdir()}
    (aside / "delivery.json").write_bytes(canonical(header))
    aside.rename(place)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The deliveries that a verifier is shown: honest ones, cheats, and what is not a delivery.

`verifier_cases.toml` is the table of them. Here stands what its words mean, and how a case is made.
"""

import json
import struct
import tomllib
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tools.kit import folders, owners
from tools.kit.tables import canonical, pretty
from tools.kit.writing import Made, UnmadeCase
from verix_anon.adversaries import ADVERSARIES, only
from verix_anon.adversaries.forged_deliveries import restamped
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Profile
from verix_anon.conform.kit import CaseKind
from verix_anon.files.folder_facts import read_header
from verix_anon.files.folder_writer import digests_of_folder, write_delivery
from verix_anon.files.hostile import thrift
from verix_anon.files.hostile.parquet_footer import MAGIC, SCHEMA
from verix_anon.files.job_folder import DELIVERY_HEADER, LEAVES, NODES, RECEIPT_FILE, RECORDS
from verix_anon.protocol.contract import Digest, Rule
from verix_anon.protocol.envelopes import PublicKey
from verix_anon.protocol.messages import Delivered, Delivery
from verix_anon.protocol.signing import sign
from verix_anon.protocol.statements import DELIVERED, Receipt
from verix_anon.protocol.tree import Leaves

Row = Mapping[str, Any]
"""What the table of cases says of one."""

NONE = Digest(bytes(32))
"""A digest of nothing."""
BEGAN = "2026-01-01T00:00:00Z"
"""And finished: what every receipt of a kit says, so that it is the same whenever it is made."""
NEUTRAL = bytes([1, *bytes(31)])
"""The neutral element of the curve as a public key"""
(NAN_WITH_PAYLOAD,) = struct.unpack("<d", bytes.fromhex("efbeaddeefbef87f"))

EXITS = {
    CaseKind.ACCEPTED: 0,
    CaseKind.CHEAT: 1,
    CaseKind.MALFORMED: 1,
    CaseKind.UNDECIDED: 3,
    CaseKind.MISTAKE: 2,
}
"""The exit code of a verifier (spec §10)."""

_cases: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)
SEEN = {name: set(layers) for name, layers in _cases["seen"].items()}
"""The layers that see each adversary with the submission at hand; others may as well."""
# On a table as small as the kit's its samples hold all of a coded column's positions.
NEEDS_LABELS = {"sampled-scores"}


def for_verifiers() -> list[UnmadeCase]:
    """What a verifier is shown."""
    found = [_case(CaseKind.ACCEPTED, *case) for case in _cases["accepted"].items()]
    found += [_case(CaseKind.CHEAT, f"adversary-{n}", _adversary_row(n)) for n in ADVERSARIES]
    found += [_case(CaseKind.CHEAT, *case) for case in _cases["cheat"].items()]
    for name, row in _cases["malformed"].items():
        usual = {"owner": "clear", "layers": ["commitment"]}
        found.append(_case(CaseKind.MALFORMED, f"malformed-{name}", usual | row))
    for name, row in _cases["receipt"].items():
        usual = {"owner": "signed", "section": "8.5"}
        layers = {} if row["kind"] == CaseKind.ACCEPTED else {"layers": ["receipt"]}
        found.append(_case(CaseKind(row["kind"]), name, usual | layers | row))
    return found + [_case(CaseKind.MISTAKE, *case) for case in _cases["mistake"].items()]


def _adversary_row(name: str) -> Row:
    has_labels = name in NEEDS_LABELS or only(name) is Rule.VARIANCE_REDUCTION
    return {
        "title": f"What the adversary `{name}` delivers.",
        "section": "9",
        "owner": "clear" if has_labels else "coded",
        "alter": ["by_adversary", name],
        "layers": sorted(SEEN[name]),
    }


def _case(kind: CaseKind, name: str, row: Row) -> UnmadeCase:
    return UnmadeCase(
        id=name,
        title=row["title"],
        section=row["section"],
        kind=kind,
        make=partial(_write, kind, name, row),
    )


def _write(kind: CaseKind, name: str, row: Row, kit: Path) -> Made:
    folder = {CaseKind.ACCEPTED: "accepted", CaseKind.MALFORMED: "malformed"}.get(kind, "cheats")
    owner = row.get("owner", "coded")
    judged_by = MANIFESTS[row["manifest"]](kit) if "manifest" in row else None
    paths = {**(judged_by or owners.write_owner(owner, kit)), "delivery": f"{folder}/{name}"}
    delivery = kit / paths["delivery"]
    delivery.parent.mkdir(exist_ok=True)
    if "alter" in row:
        alter, *values = row["alter"]
        altered = ALTERS[alter](owners.owner(owner), owners.honest(owner), *values)
        # The same whenever it is made.
        write_delivery(replace(altered, header=replace(altered.header, seconds=0)), delivery)
    elif "deliver" in row:
        deliver, *values = row["deliver"]
        DELIVERS[deliver](delivery, *values)
    else:
        owners.write_honest(owner, delivery)
        spoil, *values = row.get("spoil", [""])
        if spoil:
            SPOILS[spoil](delivery, *values)
    said = {"layers": row["layers"]} if "layers" in row else {}
    profile = row.get("profile", Profile.FULL.value)
    return paths, {"exit": EXITS[kind], "profile": profile, **said}


def _forge_root(made: Prepared, honest: Delivery) -> Delivery:
    root = Digest(sha256(b"forged" + honest.header.root).digest())
    return replace(honest, header=replace(honest.header, root=root))


def _invent_labels(made: Prepared, honest: Delivery) -> Delivery:
    """The labels have nothing to do with the records any more; trackers and leaves are true."""
    target = (honest.records.row % 2).astype(np.uint8)
    return replace(honest, records=replace(honest.records, target=target))


def _lose_sentinel(made: Prepared, honest: Delivery) -> Delivery:
    """One sentinel is not returned, from a leaf that stays large enough without it."""
    old = honest.records
    spare = honest.leaves.count[old.leaf] > made.submission.contract.min_leaf
    lost = next(row for row in made.manifest.sentinel_row.tolist() if spare[old.row == row].all())
    kept = old.row != lost
    records = replace(
        old,
        row=old.row[kept],
        tracker=old.tracker[kept],
        leaf=old.leaf[kept],
        target=old.target[kept],
    )
    return _fitting(made, honest, records)


def _change_tracker(made: Prepared, honest: Delivery, which: str) -> Delivery:
    """One trap is returned under another tracker, which the paper's root does not bind."""
    kept = made.manifest
    row = int(kept.sentinel_row[0] if which == "sentinel" else kept.twin_row[0, 1])
    tracker = honest.records.tracker.copy()
    tracker[row, 0] ^= 1
    return replace(honest, records=replace(honest.records, tracker=tracker))


def _state_none(made: Prepared, honest: Delivery, field: str) -> Delivery:
    """Everything is true except this digest in its header."""
    header: dict[str, Any] = {field: NONE}
    return replace(honest, header=replace(honest.header, **header))


def _move_watched(made: Prepared, honest: Delivery) -> Delivery:
    """One watch record that is not a twin lies in the neighbouring leaf."""
    twins = set(made.manifest.twin_row.ravel().tolist())
    return _moved(made, honest, [r for r in made.manifest.watch_row.tolist() if r not in twins])


def _moved(made: Prepared, honest: Delivery, rows: list[int]) -> Delivery:
    """The first of these rows that can be moved lies beside its leaf, where no witness looks."""
    tree, leaf = honest.tree, honest.records.leaf.copy()
    seen = {int(leaf[witness.row]) for witness in made.manifest.witnesses}
    pairs = [
        (int(tree.leaf[left]), int(tree.leaf[right]))
        for left, right in zip(tree.left.tolist(), tree.right.tolist(), strict=True)
        if left >= 0 and tree.leaf[left] >= 0 and tree.leaf[right] >= 0
    ]
    beside = {a: b for pair in pairs if not seen & set(pair) for a, b in (pair, pair[::-1])}
    large = honest.leaves.count > made.submission.contract.min_leaf
    moved = next(row for row in rows if int(leaf[row]) in beside and large[leaf[row]])
    leaf[moved] = beside[int(leaf[moved])]
    return _fitting(made, honest, replace(honest.records, leaf=leaf))


def _fitting(made: Prepared, honest: Delivery, records: Delivered) -> Delivery:
    """These records, with counts, bounds and a root that fit them."""
    values = made.submission.records.values[:, records.row].T
    shape = honest.leaves.minimum.shape
    minimum, maximum = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(minimum, records.leaf, values)
    np.maximum.at(maximum, records.leaf, values)
    count = np.bincount(records.leaf, minlength=shape[0]).astype(np.int64)
    leaves = Leaves(count=count, minimum=minimum, maximum=maximum)
    header = replace(honest.header, rows=records.row.size)
    altered = replace(honest, records=records, leaves=leaves, header=header)
    return restamped(made.submission, altered)


def _sign_bound(made: Prepared, honest: Delivery) -> Delivery:
    """One bound is -0.0 in place of 0.0, which leaves the root as it is."""
    minimum = honest.leaves.minimum.copy()
    minimum[tuple(np.argwhere(minimum == 0)[0])] = -0.0
    return replace(honest, leaves=replace(honest.leaves, minimum=minimum))


def _sign_threshold(made: Prepared, honest: Delivery) -> Delivery:
    """The threshold of one split is -0.0 in place of 0.0, which leaves the root as it is."""
    threshold = honest.tree.threshold.copy()
    threshold[np.flatnonzero((honest.tree.column >= 0) & (threshold == 0))[0]] = -0.0
    return replace(honest, tree=replace(honest.tree, threshold=threshold))


ALTERS: dict[str, Callable[..., Delivery]] = {
    "by_adversary": lambda made, _, name: ADVERSARIES[name](0).anonymize(made.submission),
    "forge_root": _forge_root,
    "invent_labels": _invent_labels,
    "lose_sentinel": _lose_sentinel,
    "change_tracker": _change_tracker,
    "state_none": _state_none,
    "move_watched": _move_watched,
    "move_twin": lambda made, honest: _moved(made, honest, made.manifest.twin_row[:, 1].tolist()),
    "sign_bound": _sign_bound,
    "sign_threshold": _sign_threshold,
}


def _as_parts(folder: Path) -> None:
    """Records in parts, the last row first."""
    table = pq.ParquetFile(folder / RECORDS).read()
    (folder / RECORDS).unlink()
    folders.parts(table.take(list(range(table.num_rows))[::-1]), folder / RECORDS)
    _state_digest(folder, RECORDS, digests_of_folder(folder, [RECORDS])[RECORDS])


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


BYTES: dict[str, Callable[..., bytes]] = {
    "cut": lambda data, n_bytes: data[:-n_bytes],
    "begin": lambda data, text: text.encode() + data[1:],
    "be": lambda data, text: text.encode(),
    "flip": _flip,
}


def _change_bytes(folder: Path, name: str, change: str, *values: object) -> None:
    """Other bytes in a file, while delivery.json states the old digest."""
    (folder / name).write_bytes(BYTES[change]((folder / name).read_bytes(), *values))


def _change_file(folder: Path, name: str, change: str, *values: object) -> None:
    """Other bytes in a file, and its digest."""
    _change_bytes(folder, name, change, *values)
    _state_digest(folder, name)


TABLES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "repeat_first": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    "add_note": lambda table: table.append_column("note", table.column("count")),
    "widen_leaf": folders.with_type("leaf", pa.int64()),
}


def _set_cell(folder: Path, name: str, column: str, row: int, value: object = None) -> None:
    _rewrite(folder, name, folders.with_cell(column, row, value))


def _rewrite(
    folder: Path, name: str, change: Callable[[pa.Table], pa.Table], **writing: Any
) -> None:
    """Another table in a file, and its digest."""
    table = change(pq.ParquetFile(folder / name).read())
    pq.write_table(table, folder / name, **writing)
    _state_digest(folder, name)


def _header(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / DELIVERY_HEADER).read_bytes())
    return found


def _write_header(folder: Path, data: bytes) -> None:
    (folder / DELIVERY_HEADER).write_bytes(data)


def _state(folder: Path, **fields: object) -> None:
    """Other fields in delivery.json, in canonical form."""
    _write_header(folder, canonical({**_header(folder), **fields}))


def _state_digest(folder: Path, name: str, digest: str | None = None) -> None:
    """Have delivery.json state a digest of a file; if none is given, its own."""
    found = digest or sha256((folder / name).read_bytes()).hexdigest()
    _state(folder, files={**_header(folder)["files"], name: found})


def _state_other_parts(folder: Path) -> None:
    table = pq.ParquetFile(folder / RECORDS).read()
    (folder / RECORDS).unlink()
    folders.parts(table, folder / RECORDS)
    _state_digest(folder, RECORDS, NONE.hex())


def _number_from_right(folder: Path) -> None:
    """All leaves are numbered the other way round, in all files alike."""
    last = _header(folder)["leaves"] - 1

    def renumbered(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("leaf")
        numbers = [last - leaf if leaf >= 0 else leaf for leaf in table.column(at).to_pylist()]
        return table.set_column(at, "leaf", pa.array(numbers, pa.int32()))

    _rewrite(folder, RECORDS, renumbered)
    _rewrite(folder, NODES, renumbered)
    _rewrite(folder, LEAVES, lambda table: renumbered(table).take(list(range(last, -1, -1))))


def _store_wide(folder: Path) -> None:
    """Labels of 8 bits, each with 256 added in the 32 bits that Parquet stores for it."""
    narrow = _footer_of((folder / RECORDS).read_bytes())

    def widen(table: pa.Table) -> pa.Table:
        wide = pa.array([value + 256 for value in table["target"].to_pylist()], pa.int32())
        return table.set_column(table.num_columns - 1, "target", wide)

    _rewrite(folder, RECORDS, widen, store_schema=False)
    data = (folder / RECORDS).read_bytes()
    body = data[: -8 - int.from_bytes(data[-8:-4], "little")]
    written = thrift.encode({**_footer_of(data), SCHEMA: narrow[SCHEMA]})
    (folder / RECORDS).write_bytes(body + written + struct.pack("<I", len(written)) + MAGIC)
    _state_digest(folder, RECORDS)


def _footer_of(data: bytes) -> thrift.Fields:
    return thrift.decode(memoryview(data), len(data) - 8 - int.from_bytes(data[-8:-4], "little"))[0]


SPOILS: dict[str, Callable[..., None]] = {
    "as_parts": _as_parts,
    "remove": lambda folder, name: (folder / name).unlink(),
    "change_bytes": _change_bytes,
    "change_file": _change_file,
    "change_table": lambda folder, name, change: _rewrite(folder, name, TABLES[change]),
    "set_cell": _set_cell,
    "set_nan_with_payload": partial(
        _set_cell, name=NODES, column="threshold", row=0, value=NAN_WITH_PAYLOAD
    ),
    "write_without_limit": partial(
        _rewrite, name=RECORDS, change=lambda table: table, **folders.WITHOUT_LIMIT
    ),
    "state": lambda folder, fields: _state(folder, **fields),
    "state_fraction": lambda folder: _state(folder, rows=float(_header(folder)["rows"])),
    "state_no_digest": partial(_state_digest, digest=NONE.hex()),
    "state_other_parts": _state_other_parts,
    "make_pretty": lambda folder: _write_header(folder, pretty(_header(folder))),
    "number_from_right": _number_from_right,
    "store_wide": _store_wide,
}


def _sign(folder: Path, key: str, change: Callable[[Receipt], Receipt] = lambda r: r) -> None:
    """An honest delivery with a receipt of this key."""
    owners.write_honest("signed", folder)
    files = digests_of_folder(folder, DELIVERED)
    said = change(Receipt.of(read_header(folder), files, BEGAN, BEGAN))
    (folder / RECEIPT_FILE).write_bytes(sign(said.to_bytes(), owners.signing_key(key)))


def _sign_other_root(folder: Path) -> None:
    other = owners.honest("paper").header.root
    _sign(folder, "provider", lambda said: replace(said, root=other))


def _sign_other_files(folder: Path) -> None:
    _sign(
        folder,
        "provider",
        lambda said: replace(said, files={**said.files, RECORDS: NONE.hex()}),
    )


def _forge_receipt(folder: Path) -> None:
    _sign(folder, "stranger")
    envelope = json.loads((folder / RECEIPT_FILE).read_bytes())
    envelope["signatures"][0]["keyid"] = owners.signing_key("provider").public.keyid
    (folder / RECEIPT_FILE).write_bytes(canonical(envelope))


def _sign_by_nobody(folder: Path) -> None:
    """A receipt with the constant that fits the neutral element for whatever is signed."""
    _sign(folder, "stranger")
    key = Ed25519PublicKey.from_public_bytes(NEUTRAL)
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    envelope = json.loads((folder / RECEIPT_FILE).read_bytes())
    signature = b64encode(NEUTRAL + bytes(32)).decode()
    envelope["signatures"] = [{"keyid": sha256(der).hexdigest(), "sig": signature}]
    (folder / RECEIPT_FILE).write_bytes(canonical(envelope))


DELIVERS: dict[str, Callable[..., None]] = {
    "honest": lambda folder, owner: owners.write_honest(owner, folder),
    "last_of_equals": partial(owners.write_last_of_equals, "clear"),
    "sign": _sign,
    "sign_other_root": _sign_other_root,
    "sign_other_files": _sign_other_files,
    "forge_receipt": _forge_receipt,
    "sign_by_nobody": _sign_by_nobody,
}


def _mix_owners(kit: Path) -> dict[str, str]:
    paths, others = owners.write_owner("coded", kit), owners.write_owner("clear", kit)
    return {**paths, "submission": others["submission"]}


def _damage_manifest(kit: Path) -> dict[str, str]:
    paths = owners.write_owner("coded", kit)
    data = (kit / paths["manifest"]).read_bytes()
    spoiled = "owners/damaged/manifest.verix"
    (kit / spoiled).parent.mkdir()
    (kit / spoiled).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    return {**paths, "manifest": spoiled}


def _pin_weak_key(kit: Path) -> dict[str, str]:
    weak = object.__new__(PublicKey)
    object.__setattr__(weak, "raw", NEUTRAL)
    paths, manifest = owners.write_owner("coded", kit), "owners/weak-key/manifest.verix"
    (kit / manifest).parent.mkdir()
    pinned = replace(owners.owner("coded").manifest, provider_keys=(weak,))
    write_manifest(pinned, kit / manifest)
    return {**paths, "manifest": manifest}


MANIFESTS: dict[str, Callable[[Path], dict[str, str]]] = {
    "mix_owners": _mix_owners,
    "damage_manifest": _damage_manifest,
    "pin_weak_key": _pin_weak_key,
}

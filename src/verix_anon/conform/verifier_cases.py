"""The deliveries that a verifier is shown: honest ones, cheats, and what is no delivery.

Each is a row of a table: what it shows, the owner whose delivery it is, what is changed about the
honest one, and the layers that see it. A cheat is made as consistent as can be: counts, bounds and
root fit what is delivered. Where a file is changed, delivery.json states its new digest, except in
the cases about a digest.
"""

import json
import math
import struct
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

from verix_anon.adversaries import ADVERSARIES, only
from verix_anon.adversaries.forged_deliveries import restamped
from verix_anon.client.owner_files import write_manifest
from verix_anon.client.prepare import Prepared
from verix_anon.client.verdict import Profile
from verix_anon.conform import folders, owners
from verix_anon.conform.kit import CaseKind, KitCase, Made
from verix_anon.conform.tables import canonical, pretty
from verix_anon.files.folder_facts import read_header
from verix_anon.files.folder_writer import digests_of_folder, write_delivery
from verix_anon.files.hostile import thrift
from verix_anon.files.hostile.parquet_footer import MAGIC, SCHEMA
from verix_anon.files.job_folder import LEAVES, NODES, RECEIPT_FILE
from verix_anon.protocol.contract import Digest, Rule
from verix_anon.protocol.envelopes import PublicKey
from verix_anon.protocol.messages import Delivered, Delivery
from verix_anon.protocol.signing import sign
from verix_anon.protocol.statements import DELIVERED, Receipt
from verix_anon.protocol.tree import Leaves

HEADER, RECORDS = "delivery.json", "records.parquet"
NONE = Digest(bytes(32))
"""A digest of nothing."""
BEGAN = "2026-01-01T00:00:00Z"
"""And finished: what every receipt of a kit says, so that it is the same whenever it is made."""
(NAN_WITH_PAYLOAD,) = struct.unpack("<d", bytes.fromhex("efbeaddeefbef87f"))

EXITS = {
    CaseKind.ACCEPTED: 0,
    CaseKind.CHEAT: 1,
    CaseKind.MALFORMED: 1,
    CaseKind.UNDECIDED: 3,
    CaseKind.MISTAKE: 2,
}
"""The exit code of a verifier (spec §10)."""

Deliver = Callable[[Path], object]
"""Writes a delivery's folder, or spoils that of an honest delivery."""
Alter = Callable[[Prepared, Delivery], Delivery]
"""Alters an honest delivery."""


def for_verifiers() -> list[KitCase]:
    """What a verifier is shown."""
    adversaries = [_adversary(name) for name in ADVERSARIES]
    return [*ACCEPTED, *adversaries, *CHEATS, *MALFORMED, *RECEIPTS, *MISTAKES]


def _case(
    kind: CaseKind, name: str, section: str, title: str, shown: tuple[str, Deliver], **said: object
) -> KitCase:
    """A case of an owner's and a delivery; `said` are the profile and the layers."""
    owner, deliver = shown
    make = partial(_write, kind, name, partial(owners.write_owner, owner), deliver, said)
    return KitCase(id=name, title=title, section=section, kind=kind, make=make)


def _write(
    kind: CaseKind,
    name: str,
    owner: Callable[[Path], dict[str, str]],
    deliver: Deliver,
    said: Mapping[str, object],
    kit: Path,
) -> Made:
    folder = {CaseKind.ACCEPTED: "accepted", CaseKind.MALFORMED: "malformed"}.get(kind, "cheats")
    paths = {**owner(kit), "delivery": f"{folder}/{name}"}
    (kit / folder).mkdir(exist_ok=True)
    deliver(kit / paths["delivery"])
    return paths, {"exit": EXITS[kind], "profile": Profile.FULL.value, **said}


def _accepted(
    name: str,
    section: str,
    title: str,
    owner: str,
    profile: str = "full",
    spoil: Deliver = lambda folder: None,
) -> KitCase:
    shown = owner, partial(_spoiled, owner, spoil)
    return _case(CaseKind.ACCEPTED, name, section, title, shown, profile=profile)


def _spoiled(owner: str, spoil: Deliver, folder: Path) -> None:
    """Write an honest delivery, and then do something to it."""
    owners.write_honest(owner, folder)
    spoil(folder)


def _as_parts(folder: Path) -> None:
    """Records in parts, the last row first."""
    table = pq.ParquetFile(folder / RECORDS).read()
    (folder / RECORDS).unlink()
    folders.parts(table.take(list(range(table.num_rows))[::-1]), folder / RECORDS)
    _state_digest(RECORDS, digests_of_folder(folder, [RECORDS])[RECORDS], folder)


ACCEPTED = [
    _accepted("honest-coded", "9", "An honest delivery of coded records.", "coded"),
    _accepted("honest-clear", "9", "An honest delivery of records in clear.", "clear"),
    _accepted("honest-paper", "6.3", "An honest one under the paper's commitment.", "paper"),
    _accepted("thin-coded", "9", "An honest one, judged thin.", "coded", "thin"),
    _accepted("thin-clear", "9", "An honest one in clear, judged thin.", "clear", "thin"),
    _accepted("paper-honest", "9", "An honest one, judged as in the paper.", "paper", "paper"),
    _accepted("honest-parts", "8.3",
        "An honest one whose records a cluster wrote, in parts and in no order.",
        "clear", spoil=_as_parts),
    _accepted("honest-pretty", "8.2",
        "An honest one whose delivery.json is in another form than that of RFC 8785.",
        "clear", spoil=lambda folder: _change_header(lambda fields: fields, folder, pretty)),
]  # fmt: skip

SEEN: dict[str, set[str]] = {
    "lazy": {"twins", "replay"},
    "dumb": {"commitment", "splits"},
    "approximate": {"splits"},
    "informed": {"replay"},
    "informed-40": {"replay"},
    "informed-echo": {"replay"},
    "informed-traps": {"sentinels", "twins", "replay"},
    "shallow": {"splits"},
    "half-columns": {"splits"},
    "sampled-splits": {"splits"},
    "sampled-scores": {"splits"},
    "blind-below": {"splits"},
    "blind-above": {"splits"},
    "sampled-tree": {"splits"},
    "mean": {"splits"},
    "half-k": {"commitment"},
    "leaf-k": {"commitment"},
    "flipped-labels": {"replay"},
    "swapped-trackers": {"replay"},
    "wide-bounds": {"replay"},
    "refilled": {"replay"},
    "echoed": {"replay"},
    "replayed": {"sentinels", "twins", "replay"},
    "deviates": {"splits"},
    "swapped-values": {"replay"},
    "moved-sentinels": {"replay"},
    "other-score": {"splits"},
    "cut-node": {"splits"},
    "no-weights": {"splits"},
    "mixed-weights": {"splits"},
    "no-value-below": {"splits"},
}
"""The layers that see each adversary with the submission at hand; others may as well."""

# On a table as small as the kit's its samples hold all of a coded column's positions.
NEEDS_LABELS = {"sampled-scores"}


def _adversary(name: str) -> KitCase:
    has_labels = name in NEEDS_LABELS or only(name) is Rule.VARIANCE_REDUCTION
    owner = "clear" if has_labels else "coded"

    def deliver(folder: Path) -> None:
        _write_altered(ADVERSARIES[name](0).anonymize(owners.owner(owner).submission), folder)

    title, layers = f"What the adversary `{name}` delivers.", sorted(SEEN[name])
    return _case(CaseKind.CHEAT, f"adversary-{name}", "9", title, (owner, deliver), layers=layers)


def _write_altered(delivery: Delivery, folder: Path) -> None:
    """Write a delivery that is the same whenever it is made."""
    write_delivery(replace(delivery, header=replace(delivery.header, seconds=0)), folder)


def _cheat(
    name: str, title: str, owner: str, alter: Alter, layer: str, profile: str = "full"
) -> KitCase:
    def deliver(folder: Path) -> None:
        _write_altered(alter(owners.owner(owner), owners.honest(owner)), folder)

    said = {"profile": profile, "layers": [layer]}
    return _case(CaseKind.CHEAT, name, "9", title, (owner, deliver), **said)


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


def _tracked_otherwise(honest: Delivery, row: int) -> Delivery:
    """One record is returned under another tracker, which the paper's root does not bind."""
    tracker = honest.records.tracker.copy()
    tracker[row, 0] ^= 1
    return replace(honest, records=replace(honest.records, tracker=tracker))


def _states(**said: Any) -> Alter:
    """Everything is true except what its header says about this."""
    return lambda made, honest: replace(honest, header=replace(honest.header, **said))


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


CHEATS = [
    _cheat("forged-root", "All is true but the root.", "coded", _forge_root, "commitment"),
    _cheat("forged-root-paper", "All is true but the root, which is the paper's.",
        "paper", _forge_root, "commitment", profile="paper"),
    _cheat("thin-forged-root", "All is true but the root, judged thin.",
        "coded", _forge_root, "commitment", profile="thin"),
    _cheat("stated-contract", "All is true, for another contract by its own word.",
        "clear", _states(contract=NONE), "commitment"),
    _cheat("stated-contract-paper",
        "The same under the paper's commitment, whose root does not bind the contract.",
        "paper", _states(contract=NONE), "commitment"),
    _cheat("lost-sentinel", "One sentinel is gone, and the paper's layers look.",
        "paper", _lose_sentinel, "sentinels", profile="paper"),
    _cheat("moved-twin", "One of two twins lies in the neighbouring leaf, judged thin.",
        "coded", lambda made, honest: _moved(made, honest, made.manifest.twin_row[:, 1].tolist()),
        "twins", profile="thin"),
    _cheat("changed-sentinel", "One sentinel has another tracker, and the paper's layers look.",
        "paper",
        lambda made, honest: _tracked_otherwise(honest, int(made.manifest.sentinel_row[0])),
        "sentinels", profile="paper"),
    _cheat("changed-twin", "One of two twins has another tracker, and the paper's layers look.",
        "paper",
        lambda made, honest: _tracked_otherwise(honest, int(made.manifest.twin_row[0, 1])),
        "twins", profile="paper"),
    _cheat("other-labels", "Labels that have nothing to do with the records.",
        "clear", _invent_labels, "replay"),
    _cheat("other-labels-paper",
        "Labels that have nothing to do with the records, and the paper's layers look.",
        "paper", _invent_labels, "fingerprint", profile="paper"),
    _cheat("thin-labels", "Labels that have nothing to do with the records, judged thin.",
        "clear", _invent_labels, "replay", profile="thin"),
    _cheat("thin-moved",
        "One watch record lies in the neighbouring leaf, and no witness in either; judged thin.",
        "coded", _move_watched, "replay", profile="thin"),
    _cheat("thin-wide", "Wider bounds than the records have, judged thin.",
        "coded", lambda made, honest: ADVERSARIES["wide-bounds"](0).anonymize(made.submission),
        "splits", profile="thin"),
    _case(CaseKind.CHEAT, "last-of-equals",
        "4.1", "Of equal scores the last in contract order was split.",
        ("clear", partial(owners.write_last_of_equals, "clear")), layers=["splits"]),
]  # fmt: skip


def _malformed(
    name: str,
    section: str,
    title: str,
    spoil: Callable[..., object],
    *values: object,
    **said: object,
) -> KitCase:
    """An honest delivery, spoiled by a function of these values and of the folder."""
    shown = "clear", partial(_spoiled, "clear", partial(spoil, *values, **said))
    return _case(
        CaseKind.MALFORMED, f"malformed-{name}", section, title, shown, layers=["commitment"]
    )


def _remove(name: str, folder: Path) -> None:
    (folder / name).unlink()


def _change_bytes(name: str, change: Callable[[bytes], bytes], folder: Path) -> None:
    """Other bytes in a file, while delivery.json states the old digest."""
    (folder / name).write_bytes(change((folder / name).read_bytes()))


def _change_file(name: str, change: Callable[[bytes], bytes], folder: Path) -> None:
    _change_bytes(name, change, folder)
    _state_digest(name, sha256((folder / name).read_bytes()).hexdigest(), folder)


def _change_table(
    name: str, change: Callable[[pa.Table], pa.Table], folder: Path, **writing: Any
) -> None:
    """Another table in a file."""
    table = change(pq.ParquetFile(folder / name).read())
    pq.write_table(table, folder / name, **writing)
    _change_file(name, lambda data: data, folder)


def _set_cell(name: str, column: str, row: int, value: object, folder: Path) -> None:
    _change_table(name, folders.with_cell(column, row, value), folder)


def _change_header(
    change: Callable[[dict[str, Any]], dict[str, Any]],
    folder: Path,
    write: Callable[[dict[str, Any]], bytes] = canonical,
) -> None:
    """Other fields in delivery.json, in canonical form."""
    header = json.loads((folder / HEADER).read_bytes())
    (folder / HEADER).write_bytes(write(change(header)))


def _state(folder: Path, **fields: object) -> None:
    _change_header(lambda header: {**header, **fields}, folder)


def _state_digest(name: str, digest: str, folder: Path) -> None:
    _change_header(lambda h: {**h, "files": {**h["files"], name: digest}}, folder)


def _state_other_parts(folder: Path) -> None:
    table = pq.ParquetFile(folder / RECORDS).read()
    (folder / RECORDS).unlink()
    folders.parts(table, folder / RECORDS)
    _state_digest(RECORDS, NONE.hex(), folder)


def _number_from_right(folder: Path) -> None:
    """All leaves are numbered the other way round, in all files alike."""
    last = json.loads((folder / HEADER).read_bytes())["leaves"] - 1

    def renumbered(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("leaf")
        numbers = [last - leaf if leaf >= 0 else leaf for leaf in table.column(at).to_pylist()]
        return table.set_column(at, "leaf", pa.array(numbers, pa.int32()))

    _change_table(RECORDS, renumbered, folder)
    _change_table(NODES, renumbered, folder)
    _change_table(LEAVES, lambda table: renumbered(table).take(list(range(last, -1, -1))), folder)


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _store_wide(folder: Path) -> None:
    """Labels of 8 bits, each with 256 added in the 32 bits that Parquet stores for it."""
    narrow = _footer_of((folder / RECORDS).read_bytes())

    def widen(table: pa.Table) -> pa.Table:
        wide = pa.array([value + 256 for value in table["target"].to_pylist()], pa.int32())
        return table.set_column(table.num_columns - 1, "target", wide)

    def described_as_narrow(data: bytes) -> bytes:
        footer = _footer_of(data)
        body = data[: -8 - int.from_bytes(data[-8:-4], "little")]
        written = thrift.encode({**footer, SCHEMA: narrow[SCHEMA]})
        return body + written + struct.pack("<I", len(written)) + MAGIC

    _change_table(RECORDS, widen, folder, store_schema=False)
    _change_file(RECORDS, described_as_narrow, folder)


def _footer_of(data: bytes) -> thrift.Fields:
    return thrift.decode(memoryview(data), len(data) - 8 - int.from_bytes(data[-8:-4], "little"))[0]


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


def _signed(name: str, title: str, alter: Alter, profile: str) -> KitCase:
    def deliver(folder: Path) -> None:
        _write_altered(alter(owners.owner("coded"), owners.honest("coded")), folder)

    said = {"profile": profile, "layers": ["commitment"]}
    return _case(CaseKind.MALFORMED, f"malformed-{name}", "2.1", title, ("coded", deliver), **said)


MALFORMED = [
    _malformed("no-header", "8.2", "There is no delivery.json.", _remove, HEADER),
    _malformed("no-nodes", "8.2", "A file is missing.", _remove, NODES),
    _malformed("header-no-json", "8.2", "delivery.json is cut short.",
        _change_bytes, HEADER, lambda data: data[:-1]),
    _malformed("header-twice", "8.2", "A field of delivery.json stands there twice.",
        _change_bytes, HEADER, lambda data: b'{"rows":1,' + data[1:]),
    _malformed("header-more", "8.2", "delivery.json has a field of its own.", _state, note=""),
    _malformed("header-format", "8.2", "delivery.json is of another version.",
        _state, format="verix/delivery/3"),
    _malformed("header-fraction", "8.2", "A count of delivery.json is written as a fraction.",
        _change_header, lambda header: {**header, "rows": float(header["rows"])}),
    _malformed("header-leaves", "11", "More leaves than the records can make.",
        _state, leaves=401, nodes=801),
    _malformed("header-nodes", "11", "As many nodes as no tree has.", _state, nodes=2),
    _malformed("header-rows", "11", "More records than were sent.", _state, rows=10**6),
    _malformed("damaged", "8.2",
        "A bit of the records was flipped, and the digest not stated anew.",
        _change_bytes, RECORDS, _flip),
    _malformed("other-digest", "8.2", "The files are honest, and another digest of one is stated.",
        _state_digest, LEAVES, NONE.hex()),
    _malformed("parts-digest", "8.3", "The parts are honest, and another digest of them is stated.",
        _state_other_parts),
    _malformed("no-parquet", "8", "A file is no Parquet.",
        _change_file, LEAVES, lambda _: b"leaves\n"),
    _malformed("cut-short", "8", "A file is cut short.",
        _change_file, RECORDS, lambda data: data[:-9]),
    _malformed("more-rows", "11", "More records than delivery.json says.",
        _change_table, RECORDS, lambda table: pa.concat_tables([table, table.slice(0, 1)])),
    _malformed("more-columns", "8", "A column more.",
        _change_table, LEAVES, lambda t: t.append_column("note", t.column("count"))),
    _malformed("wider-type", "8", "A column of another type.",
        _change_table, RECORDS, folders.with_type("leaf", pa.int64())),
    _malformed("null", "8", "A value is missing.", _set_cell, RECORDS, "leaf", 3, None),
    _malformed("encoding", "8", "An encoding that can unfold without limit.",
        _change_table, RECORDS, lambda table: table, **folders.WITHOUT_LIMIT),
    _malformed("row-beyond", "11", "A row that was not sent.", _set_cell, RECORDS, "row", 0, 10**6),
    _malformed("leaf-beyond", "11", "A leaf that there is not.",
        _set_cell, RECORDS, "leaf", 0, 10**6),
    _malformed("target-beyond", "11", "A target that is neither 0 nor 1.",
        _set_cell, RECORDS, "target", 0, 2),
    _malformed("bound-infinite", "11", "A bound that is not finite.",
        _set_cell, LEAVES, "max_0", 0, math.inf),
    _malformed("bound-none", "11", "A bound that is no number.",
        _set_cell, LEAVES, "min_0", 0, math.nan),
    _malformed("bounds-crossed", "11", "A least value above the greatest.",
        _set_cell, LEAVES, "min_0", 0, 1e9),
    _malformed("threshold-infinite", "11", "A threshold that is not finite.",
        _set_cell, NODES, "threshold", 0, math.inf),
    _malformed("threshold-none", "11", "A threshold that is no number, with bits to spare.",
        _set_cell, NODES, "threshold", 0, NAN_WITH_PAYLOAD),
    _malformed("leaf-minus-zero", "2.1", "The threshold of a leaf is -0.0, which equals 0.0.",
        _set_cell, NODES, "threshold", -1, -0.0),
    _signed("bound-minus-zero", "A bound is -0.0, which equals 0.0.", _sign_bound, "full"),
    _signed("thin-bound-minus-zero", "A bound is -0.0, judged thin.", _sign_bound, "thin"),
    _signed("threshold-minus-zero", "The threshold of a split is -0.0, which equals 0.0.",
        _sign_threshold, "full"),
    _malformed("target-wide", "11", "Labels whose low 8 bits are right, of the 32 that are stored.",
        _store_wide),
    _malformed("column-beyond", "11", "A split by a column that there is not.",
        _set_cell, NODES, "column", 0, 5),
    _malformed("loop", "11", "A node that is its own child.", _set_cell, NODES, "right", 0, 0),
    _malformed("leaf-order", "11", "Leaves are numbered from right to left, in all files alike.",
        _number_from_right),
]  # fmt: skip


def _receipt(kind: CaseKind, name: str, title: str, deliver: Deliver) -> KitCase:
    """A delivery to an owner who asks for the provider's receipt (spec §8.5)."""
    said = {} if kind is CaseKind.ACCEPTED else {"layers": ["receipt"]}
    return _case(kind, name, "8.5", title, ("signed", deliver), **said)


def _sign(key: str, folder: Path, change: Callable[[Receipt], Receipt] = lambda r: r) -> None:
    owners.write_honest("signed", folder)
    files = digests_of_folder(folder, DELIVERED)
    said = change(Receipt.of(read_header(folder), files, BEGAN, BEGAN))
    (folder / RECEIPT_FILE).write_bytes(sign(said.to_bytes(), owners.signing_key(key)))


def _forge_receipt(folder: Path) -> None:
    _sign("stranger", folder)
    envelope = json.loads((folder / RECEIPT_FILE).read_bytes())
    envelope["signatures"][0]["keyid"] = owners.signing_key("provider").public.keyid
    (folder / RECEIPT_FILE).write_bytes(canonical(envelope))


RECEIPTS = [
    _receipt(CaseKind.ACCEPTED, "receipt-honest",
        "An honest delivery with the receipt that is asked for.", partial(_sign, "provider")),
    _receipt(CaseKind.UNDECIDED, "receipt-missing",
        "An honest delivery without the receipt that is asked for.",
        partial(owners.write_honest, "signed")),
    _receipt(CaseKind.UNDECIDED, "receipt-of-a-stranger",
        "A receipt that a key signed which nobody pinned.", partial(_sign, "stranger")),
    _receipt(CaseKind.CHEAT, "receipt-of-another",
        "A receipt of the provider's about another root.",
        partial(_sign, "provider",
            change=lambda said: replace(said, root=owners.honest("paper").header.root))),
    _receipt(CaseKind.CHEAT, "receipt-other-files",
        "A receipt of the provider's about this root, and another file of records.",
        partial(_sign, "provider",
            change=lambda said: replace(said, files={**said.files, RECORDS: NONE.hex()}))),
    _receipt(CaseKind.CHEAT, "receipt-forged",
        "The true receipt, under the provider's name, with a signature of somebody else's.",
        _forge_receipt),
]  # fmt: skip


def _mistake(name: str, title: str, owner: Callable[[Path], dict[str, str]]) -> KitCase:
    """An honest delivery, judged by what does not belong to it: that accuses nobody."""
    deliver = partial(owners.write_honest, "coded")
    make = partial(_write, CaseKind.MISTAKE, name, owner, deliver, {})
    return KitCase(id=name, title=title, section="10", kind=CaseKind.MISTAKE, make=make)


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


def _sign_by_nobody(folder: Path) -> None:
    """A receipt with the constant that fits the neutral element for whatever is signed."""
    _sign("stranger", folder)
    key = Ed25519PublicKey.from_public_bytes(NEUTRAL)
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    envelope = json.loads((folder / RECEIPT_FILE).read_bytes())
    signature = b64encode(NEUTRAL + bytes(32)).decode()
    envelope["signatures"] = [{"keyid": sha256(der).hexdigest(), "sig": signature}]
    (folder / RECEIPT_FILE).write_bytes(canonical(envelope))


NEUTRAL = bytes([1, *bytes(31)])
"""The neutral element of the curve as a public key"""


def _names_another(owner: str) -> tuple[str, Deliver]:
    """An honest delivery that says it is for another submission."""
    alter = _states(submission=NONE)
    return owner, lambda folder: _write_altered(
        alter(owners.owner(owner), owners.honest(owner)), folder
    )


MISTAKES = [
    KitCase(id="weak-key", title="A key of small order is pinned: anybody can sign for it.",
        section="8.5", kind=CaseKind.MISTAKE,
        make=partial(_write, CaseKind.MISTAKE, "weak-key", _pin_weak_key, _sign_by_nobody, {})),
    _mistake("other-submission", "The submission is not the manifest's.", _mix_owners),
    _mistake("damaged-manifest", "The owner's own manifest is damaged.", _damage_manifest),
    _case(CaseKind.MISTAKE, "other-job", "10", "An honest delivery of another job.",
        ("clear", partial(owners.write_honest, "coded"))),
    _case(CaseKind.MISTAKE, "stated-submission", "10", "The delivery names another submission.",
        _names_another("clear")),
    _case(CaseKind.MISTAKE, "stated-submission-paper", "10",
        "The same under the paper's commitment, whose root does not bind the submission.",
        _names_another("paper")),
]  # fmt: skip

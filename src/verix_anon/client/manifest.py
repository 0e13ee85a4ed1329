"""The manifest: everything the owner keeps secret about one submission, in one file (spec §7).

A zip archive of one JSON document and plain arrays, after a line that names the format and a
SHA-256 that shows damage; sealed on request with scrypt and AES-256-GCM. Nothing in it is ever
unpickled.
"""

import io
import json
import os
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.client.parties import Parties
from verix_anon.client.table.diversity import Asked
from verix_anon.client.table.hierarchies import Hierarchy
from verix_anon.client.table.task import Labels, Task
from verix_anon.errors import Error, TableError
from verix_anon.fields import Fields
from verix_anon.files.aside import write_bytes, written_aside
from verix_anon.files.store import path_text
from verix_anon.files.tables import Reading
from verix_anon.protocol.contract import Column, Contract, Digest, column_from_json, column_to_json
from verix_anon.protocol.envelopes import PublicKey

__all__ = ["Manifest", "Step", "Witness", "is_manifest", "read_manifest", "write_manifest"]

PLAIN = b"verix/manifest/2 plain\n"
SEALED = b"verix/manifest/2 sealed\n"
SCRYPT = {"n": 2**17, "r": 8, "p": 1}
SCRYPT_SALT, NONCE = 16, 12


@dataclass(frozen=True, slots=True)
class Step:
    """One split on a witness's path: where it goes, and how many records the node holds."""

    column: int
    threshold: float
    goes_left: bool
    count: int


@dataclass(frozen=True, slots=True)
class Witness:
    """The honest path of one watch record, from the root to its leaf."""

    row: int
    path: tuple[Step, ...]
    leaf: Digest
    """The leaf's digest, whatever the contract's commitment (spec §6)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Manifest:
    """What was planted where, and what an honest delivery must show. Its repr says nothing."""

    contract: Contract
    submission: Digest
    table: Digest
    """Digest of the owner's table."""
    salt: bytes = field(repr=False)
    unsafe_seed: bool
    roles: Mapping[str, str]
    """The role of every column of the owner's table."""
    quasi: tuple[Column, ...]
    """The quasi-identifiers in the owner's own words, in contract order."""
    missing: str
    """What was done with missing values."""
    diversity: Asked = field(default_factory=dict)
    """What every class of a release must hide of the target and of sensitive columns."""
    ordered: Sequence[str] = ()
    """The categorical columns to which the owner gave an order."""
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    """Of quasi-identifiers, for the values that occur."""
    person: str | None = None
    """The column that tells people apart, or `record`; None if nothing was said."""
    parties: Parties = field(default_factory=Parties)
    """What the report calls the table, its controller and the processor."""
    provider_keys: Sequence[PublicKey] = ()
    """The provider's: where there is one, a receipt signed with it or its successor is needed."""
    reading: Reading | None = None
    """How the table's file was read; None if it came from memory."""
    imputed: Mapping[str, int]
    planted: Mapping[str, object]
    """Band, counts and evasion probabilities of the sentinels."""
    tracker_column: Digest
    target_column: Digest
    owner_row: Ints
    """For each submitted row its row in the owner's table, -1 for a trap."""
    sentinel_row: Ints
    sentinel_tracker: Bytes
    twin_row: Ints
    """(n_twins, 2): original and twin"""
    twin_tracker: Bytes
    """(n_twins, 2, 32)"""
    watch_row: Ints
    watch_values: Floats
    """(n_quasi, n_watch)"""
    task: Task
    classes: tuple[str, ...]
    """The names of the classes, if the task has them."""
    watch_target: Floats
    """The owner's own labels: positions among the classes, or quantities."""
    witnesses: Sequence[Witness]
    top_features: Sequence[int]
    baseline: Floats
    """(n_watch, outputs of the model, top features): SHAP values on the raw watch records"""
    calibration: Floats
    """(runs, top features): distances of honest local runs; empty if not asked for"""
    paper_calibration: Floats
    """(1, top features): the same between independent samples, as the paper has it"""

    def __post_init__(self) -> None:
        for name in ARRAYS:
            getattr(self, name).setflags(write=False)

    @property
    def target(self) -> str | None:
        """The target's name in the owner's table, where there is one."""
        return next((name for name, role in self.roles.items() if role == "target"), None)

    @property
    def n_rows(self) -> int:
        """How many records were submitted."""
        return int(self.owner_row.size)

    @property
    def n_genuine(self) -> int:
        """How many of them are genuine."""
        return int((self.owner_row >= 0).sum())

    @property
    def watch_labels(self) -> Labels:
        """The owner's labels of the watch records."""
        return Labels(task=self.task, values=self.watch_target, classes=self.classes)

    def __repr__(self) -> str:
        return f"<Manifest of submission {self.contract.submission_id}; content withheld>"


ARRAYS = (
    "owner_row",
    "sentinel_row",
    "sentinel_tracker",
    "twin_row",
    "twin_tracker",
    "watch_row",
    "watch_values",
    "watch_target",
    "baseline",
    "calibration",
    "paper_calibration",
)


def write_manifest(
    manifest: Manifest,
    path: str | os.PathLike[str],
    *,
    passphrase: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the manifest for the owner's eyes only (mode 0600), sealed if a passphrase is given."""
    if passphrase == "":
        raise TableError("an empty passphrase seals nothing; give another, or none at all")
    data = _pack(manifest)
    if passphrase is None:
        data = PLAIN + sha256(data).digest() + data
    else:
        salt, nonce = secrets.token_bytes(SCRYPT_SALT), secrets.token_bytes(NONCE)
        data = SEALED + salt + nonce + _cipher(passphrase, salt).encrypt(nonce, data, SEALED)
    with written_aside(path, overwrite=overwrite, folder=False, private=True) as aside:
        write_bytes(aside, data)


def is_sealed(path: str | os.PathLike[str]) -> bool:
    """Whether reading the manifest takes a passphrase."""
    return _first_line(path) == SEALED


def is_manifest(path: str | os.PathLike[str]) -> bool:
    """Whether a path is that of a manifest, and not of a folder or another file."""
    return Path(path_text(path)).is_file() and _first_line(path) in (PLAIN, SEALED)


def _first_line(path: str | os.PathLike[str]) -> bytes:
    try:
        with Path(path_text(path)).open("rb") as file:
            return file.readline(len(SEALED))
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror})") from None


def read_manifest(path: str | os.PathLike[str], *, passphrase: str | None = None) -> Manifest:
    """Read a manifest.

    Raises:
        TableError: There is none, it is damaged, or the passphrase is missing or wrong.
    """
    try:
        data = Path(path_text(path)).read_bytes()
    except FileNotFoundError:
        raise TableError(f"there is no manifest {path}") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror})") from None
    if data.startswith(SEALED):
        data = _unseal(data[len(SEALED) :], passphrase)
    elif data.startswith(PLAIN):
        digest, data = data[len(PLAIN) :][:32], data[len(PLAIN) :][32:]
        if sha256(data).digest() != digest:
            raise TableError(f"{path} is damaged")
    else:
        raise TableError(f"{path} is not a manifest")
    try:
        return _unpack(data)
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, Error) as error:
        raise TableError(f"{path} is damaged ({type(error).__name__})") from None


def _cipher(passphrase: str, salt: bytes) -> AESGCM:
    return AESGCM(
        Scrypt(salt=salt, length=32, **SCRYPT).derive(passphrase.encode("utf-8", "surrogatepass"))
    )


def _unseal(data: bytes, passphrase: str | None) -> bytes:
    if passphrase is None:
        raise TableError("the manifest is sealed; give its passphrase")
    salt, rest = data[:SCRYPT_SALT], data[SCRYPT_SALT:]
    try:
        return _cipher(passphrase, salt).decrypt(rest[:NONCE], rest[NONCE:], SEALED)
    except (InvalidTag, ValueError):
        raise TableError("the passphrase is wrong, or the manifest is damaged") from None


def _pack(manifest: Manifest) -> bytes:
    document = {
        "contract": manifest.contract.to_bytes().decode(),
        "submission": manifest.submission.hex(),
        "table": manifest.table.hex(),
        "salt": manifest.salt.hex(),
        "unsafe_seed": manifest.unsafe_seed,
        "roles": dict(manifest.roles),
        "quasi": [column_to_json(column) for column in manifest.quasi],
        "missing": manifest.missing,
        "diversity": {name: dict(asked) for name, asked in manifest.diversity.items()},
        "ordered": list(manifest.ordered),
        "hierarchies": {name: h.to_json() for name, h in manifest.hierarchies.items()},
        "person": manifest.person,
        "parties": manifest.parties.to_json(),
        "provider_keys": [key.pem for key in manifest.provider_keys],
        "reading": None if manifest.reading is None else manifest.reading.to_json(),
        "imputed": dict(manifest.imputed),
        "planted": dict(manifest.planted),
        "tracker_column": manifest.tracker_column.hex(),
        "target_column": manifest.target_column.hex(),
        "task": manifest.task.value,
        "classes": list(manifest.classes),
        "top_features": list(manifest.top_features),
        "witnesses": [_witness_to_json(w) for w in manifest.witnesses],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        _add(archive, "manifest.json", json.dumps(document).encode())
        for name in ARRAYS:
            array = io.BytesIO()
            np.lib.format.write_array(array, np.ascontiguousarray(getattr(manifest, name)))
            _add(archive, f"{name}.npy", array.getvalue())
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file without the time, so that the same manifest has the same bytes."""
    archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, compresslevel=1)


def _unpack(data: bytes) -> Manifest:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        fields = Fields.parse(archive.read("manifest.json"), "the manifest", TableError)
        arrays = {}
        for name in ARRAYS:
            source = io.BytesIO(archive.read(f"{name}.npy"))
            arrays[name] = np.lib.format.read_array(source, allow_pickle=False)
    roles, imputed, diversity, hierarchies = map(
        fields.inner, ("roles", "imputed", "diversity", "hierarchies")
    )
    return Manifest(
        contract=Contract.from_bytes(fields.text("contract").encode()),
        submission=Digest(fields.digest("submission")),
        table=Digest(fields.digest("table")),
        salt=fields.digest("salt"),
        unsafe_seed=fields.flag("unsafe_seed"),
        roles={name: roles.text(name) for name in roles.values},
        quasi=tuple(column_from_json(each) for each in fields.each("quasi")),
        missing=fields.text("missing"),
        diversity={name: diversity.inner(name).all_numbers() for name in diversity.values},
        ordered=fields.texts("ordered"),
        hierarchies={n: Hierarchy.from_json(hierarchies.inner(n)) for n in hierarchies.values},
        person=fields.text("person") if fields.has("person") else None,
        parties=Parties.from_json(fields.inner("parties")),
        provider_keys=_keys(fields),
        reading=Reading.from_json(fields.inner("reading")) if fields.has("reading") else None,
        imputed={name: imputed.whole(name) for name in imputed.values},
        planted=fields.inner("planted").values,
        tracker_column=Digest(fields.digest("tracker_column")),
        target_column=Digest(fields.digest("target_column")),
        task=fields.choice("task", Task),
        classes=fields.texts("classes"),
        top_features=list(fields.wholes("top_features")),
        witnesses=tuple(_witness_from_json(each) for each in fields.each("witnesses")),
        **arrays,
    )


def _keys(fields: Fields) -> tuple[PublicKey, ...]:
    """None in manifests from before keys were kept."""
    found = fields.texts("provider_keys") if fields.has("provider_keys") else ()
    return tuple(map(PublicKey.from_pem, found))


def _witness_to_json(witness: Witness) -> dict[str, object]:
    return {
        "row": witness.row,
        "path": [[s.column, s.threshold, s.goes_left, s.count] for s in witness.path],
        "leaf": witness.leaf.hex(),
    }


def _witness_from_json(fields: Fields) -> Witness:
    path = []
    for step in fields.items("path"):
        match step:
            case [int(column), float(threshold), bool(goes_left), int(count)]:
                path.append(Step(column, threshold, goes_left, count))
            case _:
                raise fields.wrong("path", "a list of steps")
    return Witness(row=fields.whole("row"), path=tuple(path), leaf=Digest(fields.digest("leaf")))

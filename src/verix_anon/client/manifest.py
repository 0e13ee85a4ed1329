"""The manifest: everything the owner keeps secret about one submission, in one file (spec §7).

A zip archive of one JSON document and plain arrays, after a line that names the format and a
SHA-256 that shows damage; sealed on request with scrypt and AES-256-GCM. Nothing in it is ever
unpickled.
"""

import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from verix_anon.arrays import Bytes, Floats, Ints
from verix_anon.client.table.task import Labels, Task
from verix_anon.errors import Error, TableError
from verix_anon.fields import Fields
from verix_anon.files.store import beginning
from verix_anon.protocol.contract import Column, Contract, Digest, column_from_json
from verix_anon.protocol.envelopes import PublicKey

PLAIN = b"verix/manifest/2 plain\n"
SEALED = b"verix/manifest/2 sealed\n"
SCRYPT = {"n": 2**17, "r": 8, "p": 1}
SCRYPT_SALT, NONCE = 16, 12
MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """What the table, its controller and the processor are called; empty where nothing was said."""

    table_name: str = ""
    controller: str = ""
    processor: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not value.isprintable() or len(value) > MOST_CHARACTERS:
                raise TableError(
                    f"{each.name} must be one line of at most {MOST_CHARACTERS} characters"
                )


@dataclass(frozen=True, slots=True)
class WitnessStep:
    """One split on a witness's path: where it goes, and how many records the node holds."""

    column: int
    threshold: float
    goes_left: bool
    count: int


@dataclass(frozen=True, slots=True)
class Witness:
    """The honest path of one watch record, from the root to its leaf."""

    row: int
    path: tuple[WitnessStep, ...]
    leaf: Digest
    """The leaf's digest, whatever the contract's commitment (spec §6)."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Manifest:
    """What was planted where, and what an honest delivery must show. Its repr says nothing.

    Examples:
        >>> verix_anon.read_manifest("job/manifest.verix")
        <Manifest of submission ...; content withheld>
    """

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
    diversity: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What every class of a release must hide of the target and of sensitive columns."""
    release: Mapping[str, object] = field(default_factory=dict)
    """What release() does unless it is told otherwise, as the roles file has it."""
    ordered: Sequence[str] = ()
    """The categorical columns to which the owner gave an order."""
    hierarchies: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Of quasi-identifiers, for the values that occur, as `Hierarchy` writes them: for release."""
    person: str | None = None
    """The column that tells people apart, or `record`; None if nothing was said."""
    derived: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The columns that are made of others whenever the table is read."""
    pseudonym: str | None = None
    """What a release calls the column of fresh numbers for people; None if it has none."""
    parties: Parties = field(default_factory=Parties)
    """What the report calls the table, its controller and the processor."""
    provider_keys: Sequence[PublicKey] = ()
    """The provider's: where there is one, a receipt signed with it or its successor is needed."""
    reading: Mapping[str, object] | None = None
    """How the table's file was read, as `Reading` writes it: for release; None if from memory."""
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
    *("owner_row", "sentinel_row", "sentinel_tracker", "twin_row", "twin_tracker", "watch_row"),
    *("watch_values", "watch_target", "baseline", "calibration", "paper_calibration"),
)


def read_manifest(path: str | os.PathLike[str], *, passphrase: str | None = None) -> Manifest:
    """Read a manifest.

    Raises:
        TableError: There is none, it is damaged, or the passphrase is missing or wrong.

    Examples:
        >>> manifest = verix_anon.read_manifest("job/manifest.verix")
    """
    data = beginning(path, -1, "manifest")
    if data.startswith(SEALED):
        data = unsealed(data, SEALED, passphrase, "manifest")
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


def cipher(passphrase: str, salt: bytes) -> AESGCM:
    """What seals a manifest, and opens it again."""
    secret = passphrase.encode("utf-8", "surrogatepass")
    return AESGCM(Scrypt(salt=salt, length=32, **SCRYPT).derive(secret))


def unsealed(data: bytes, mark: bytes, passphrase: str | None, what: str) -> bytes:
    """What was sealed under a mark; raises TableError."""
    if passphrase is None:
        raise TableError(f"the {what} is sealed; give its passphrase")
    salt, rest = data[len(mark) :][:SCRYPT_SALT], data[len(mark) + SCRYPT_SALT :]
    try:
        return cipher(passphrase, salt).decrypt(rest[:NONCE], rest[NONCE:], mark)
    except (InvalidTag, ValueError):
        raise TableError(f"the passphrase is wrong, or the {what} is damaged") from None


def _unpack(data: bytes) -> Manifest:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        fields = Fields.parse(archive.read("manifest.json"), "the manifest", TableError)
        arrays = {}
        for name in ARRAYS:
            source = io.BytesIO(archive.read(f"{name}.npy"))
            arrays[name] = np.lib.format.read_array(source, allow_pickle=False)
    # Older manifests have no release, no derived columns and no keys.
    keys = fields.texts("provider_keys") if fields.has("provider_keys") else ()
    return fields.record(
        Manifest,
        optional=("release", "derived"),
        contract=Contract.from_bytes(fields.text("contract").encode()),
        quasi=tuple(column_from_json(each) for each in fields.each("quasi")),
        provider_keys=tuple(map(PublicKey.from_pem, keys)),
        top_features=list(fields.wholes("top_features")),
        witnesses=tuple(_witness_from_json(each) for each in fields.each("witnesses")),
        **arrays,
    )


def _witness_from_json(fields: Fields) -> Witness:
    path = []
    for step in fields.items("path"):
        match step:
            case [int(column), float(threshold), bool(goes_left), int(count)]:
                path.append(WitnessStep(column, threshold, goes_left, count))
            case _:
                raise fields.wrong("path", "a list of steps")
    return Witness(row=fields.whole("row"), path=tuple(path), leaf=Digest(fields.digest("leaf")))

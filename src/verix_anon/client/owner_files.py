"""Write what the owner keeps to themselves, the manifest and the verdict, and read verdicts back.

Both files are for their owner alone (mode 0600). Verifying needs none of this, so `verify` does not
load it; `client/manifest.py` reads manifests.
"""

import io
import json
import os
import secrets
import zipfile
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import numpy as np

from verix_anon.client.manifest import ARRAYS, NONCE, PLAIN, SCRYPT_SALT, SEALED, Manifest, cipher
from verix_anon.client.verdict import DECIDING, FORMAT, RECEIPT, Outcome, Status, Verdict
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.atomic_write import write_bytes, written_aside
from verix_anon.files.store import FilePath, path_text
from verix_anon.protocol.contract import column_to_json
from verix_anon.protocol.signing import Judged, Judgement, SigningKey, sign


def write_manifest(
    manifest: Manifest,
    path: str | os.PathLike[str],
    *,
    passphrase: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the manifest for the owner's eyes only (mode 0600), sealed if a passphrase is given.

    Examples:
        >>> manifest = verix_anon.read_manifest("job/manifest.verix")
        >>> verix_anon.write_manifest(manifest, "sealed.verix", passphrase="correct horse")
    """
    write_secret(path, _pack(manifest), PLAIN, SEALED, passphrase, overwrite=overwrite)


def write_secret(
    path: FilePath,
    data: bytes,
    plain: bytes,
    sealed: bytes,
    passphrase: str | None,
    *,
    overwrite: bool,
) -> None:
    """Write a file for its owner alone, under one of two marks: sealed if there is a passphrase."""
    if passphrase == "":
        raise TableError("an empty passphrase seals nothing; give another, or none at all")
    if passphrase is None:
        data = plain + sha256(data).digest() + data
    else:
        salt, nonce = secrets.token_bytes(SCRYPT_SALT), secrets.token_bytes(NONCE)
        data = sealed + salt + nonce + cipher(passphrase, salt).encrypt(nonce, data, sealed)
    with written_aside(path, overwrite=overwrite, folder=False, private=True) as aside:
        write_bytes(aside, data)


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
        "release": dict(manifest.release),
        "ordered": list(manifest.ordered),
        "hierarchies": dict(manifest.hierarchies),
        "person": manifest.person,
        "derived": {name: dict(given) for name, given in manifest.derived.items()},
        "pseudonym": manifest.pseudonym,
        "parties": asdict(manifest.parties),
        "provider_keys": [key.pem for key in manifest.provider_keys],
        "reading": manifest.reading,
        "imputed": dict(manifest.imputed),
        "planted": dict(manifest.planted),
        "tracker_column": manifest.tracker_column.hex(),
        "target_column": manifest.target_column.hex(),
        "task": manifest.task.value,
        "classes": list(manifest.classes),
        "top_features": list(manifest.top_features),
        "witnesses": [
            {
                "row": witness.row,
                "path": [[s.column, s.threshold, s.goes_left, s.count] for s in witness.path],
                "leaf": witness.leaf.hex(),
            }
            for witness in manifest.witnesses
        ],
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


def write_verdict(
    verdict: Verdict, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a verdict as JSON, for the owner's eyes only.

    Examples:
        >>> verdict = verix_anon.verify("job/delivery", "job/manifest.verix")
        >>> verix_anon.write_verdict(verdict, "thin.json")
    """
    with written_aside(path, overwrite=overwrite, folder=False, private=True) as aside:
        write_bytes(aside, verdict.to_json().encode() + b"\n")


def signed_path(path: Path) -> Path:
    """Where the signed verdict lies: beside the verdict, with .dsse before its ending."""
    return path.with_suffix(".dsse.json")


def sign_verdict(verdict: Verdict, file: bytes, key: SigningKey) -> bytes:
    """The envelope of a statement about a verdict whose file holds these bytes."""
    judgement = Judgement(
        root=verdict.root,
        files=verdict.files,
        verdict=sha256(file).hexdigest(),
        contract=verdict.contract,
        submission=verdict.submission,
        outcome=verdict.outcome.value,
        profile=verdict.profile.value,
        findings=tuple(Judged(f.layer, f.status.value, f.decides) for f in verdict.findings),
        version=verdict.version,
        time=verdict.time,
    )
    return sign(judgement.to_bytes(), key)


def read_verdict(path: str | os.PathLike[str]) -> Verdict:
    """Read a verdict.

    Raises:
        TableError: There is none, or it was altered.

    Examples:
        >>> verdict = verix_anon.read_verdict("job/verdict.json")
    """
    try:
        text = Path(path_text(path)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise TableError(f"the verdict {path} cannot be read") from None
    return parse_verdict(text)


def parse_verdict(text: str) -> Verdict:
    """Read a verdict back; the outcome is derived again from the findings."""
    fields = Fields.parse(text, "the verdict", TableError)
    fields.expect("format", FORMAT)
    verdict = fields.record(Verdict, optional=("time", "warnings"))
    deciding = {f.layer for f in verdict.findings if f.decides}
    if deciding - {RECEIPT} != DECIDING[verdict.profile]:
        raise TableError("the verdict's deciding layers are not those of its profile")
    # A receipt that was looked at decides: it is not looked at unless a key is pinned.
    receipts = [f for f in verdict.findings if f.layer == RECEIPT]
    if not all(f.decides or f.status is Status.SKIPPED for f in receipts):
        raise TableError("the verdict's receipt was judged, and does not decide")
    if fields.choice("outcome", Outcome) is not verdict.outcome:
        raise TableError("the verdict's outcome is not the conjunction of its findings")
    return verdict


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

"""Make keys and write them: the private half for its holder alone, the public half for everybody.

Private keys are read here too, and keys of others are pinned, revoked and written to a trust file.
`files/trust.py` reads public keys and trust files, and says which keys count.
"""

import os
import stat
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from verix_anon.errors import TableError
from verix_anon.fields import to_json
from verix_anon.files.atomic_write import write_bytes, written_aside
from verix_anon.files.store import FilePath, path_text, small_file
from verix_anon.files.trust import FORMAT, MAX_KEY_BYTES, PRIVATE, TIMES, Pinned, Trust
from verix_anon.protocol.signing import SigningKey
from verix_anon.protocol.statements import as_time

SEALED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"


def new_key() -> SigningKey:
    """A new key, from the system's randomness."""
    return SigningKey(Ed25519PrivateKey.generate())


def public_path(path: FilePath) -> Path:
    """Where the public half of a key lies: beside it, with .pub after its name."""
    return Path(f"{path_text(path)}.pub")


def write_key(key: SigningKey, path: FilePath, *, passphrase: str | None = None) -> None:
    """Write both halves: PKCS #8 in PEM with mode 0600, sealed on request, and the public one.

    No key is ever replaced: what it has signed could not be told from what another did.
    """
    if passphrase == "":
        raise TableError("an empty passphrase seals nothing; give another, or none at all")
    how: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        how = serialization.BestAvailableEncryption(passphrase.encode("utf-8", "surrogatepass"))
    for target in (Path(path_text(path)), public_path(path)):
        if os.path.lexists(target):
            raise TableError(
                f"{target} exists already, and no key is replaced; choose another name"
            )
    data = key.held.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how
    )
    with written_aside(path, overwrite=False, folder=False, private=True) as aside:
        write_bytes(aside, data)
    with written_aside(public_path(path), overwrite=False, folder=False, private=False) as aside:
        write_bytes(aside, key.public.pem.encode())


def is_sealed(path: FilePath) -> bool:
    """Whether reading the private key takes a passphrase."""
    return small_file(path, MAX_KEY_BYTES, "key").lstrip().startswith(SEALED)


def is_private(path: FilePath) -> bool:
    """Whether it is the private half of a key."""
    return PRIVATE in small_file(path, MAX_KEY_BYTES, "key")


def read_signing_key(path: FilePath, *, passphrase: str | None = None) -> SigningKey:
    """Read a private key.

    Raises:
        TableError: There is none, others may read it, or the passphrase is missing or wrong.
    """
    data = small_file(path, MAX_KEY_BYTES, "key")
    if PRIVATE not in data:
        raise TableError(f"{path} is not a private key in PEM")
    found = Path(path).stat()
    mode = stat.S_IMODE(found.st_mode)
    # Of root's key, the group may read it.
    if mode & (0o037 if found.st_uid == 0 else 0o077):
        raise TableError(
            f"the key {path} can be read or changed by others (mode {mode:04o}):"
            f" chmod 600 {path}, and make a new one if they may have"
        )
    is_open = not data.lstrip().startswith(SEALED)
    if not is_open and passphrase is None:
        raise TableError(f"the key {path} is sealed; give its passphrase")
    secret = None if is_open or passphrase is None else passphrase.encode("utf-8", "surrogatepass")
    try:
        key = serialization.load_pem_private_key(data, secret)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        why = "is damaged" if is_open else "is damaged, or the passphrase is wrong"
        raise TableError(f"the key {path} {why}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise TableError(f"the key {path} is not of Ed25519; make one: verix-anon keys new")
    return SigningKey(key)


def pin(trust: Trust, pinned: Pinned) -> Trust:
    """The trust with another key; raises TableError if it is known already."""
    known = next((each for each in trust.keys if each.key == pinned.key), None)
    if known is not None:
        what = "revoked, which is final" if known.revoked else "pinned already"
        raise TableError(f"the key {pinned.key.keyid} was {what}")
    return Trust((*trust.keys, pinned))


def revoke(trust: Trust, keyid: str, now: datetime, reason: str) -> Trust:
    """The trust with a pinned key revoked, by its keyid or the beginning of it."""
    found = [each for each in trust.keys if each.key.keyid.startswith(keyid)]
    if len(found) != 1 or not keyid:
        raise TableError(f"{len(found)} pinned keys have a keyid that begins with {keyid!r}")
    if found[0].revoked is not None:
        raise TableError(f"the key {found[0].key.keyid} was revoked already")
    gone = replace(found[0], revoked=now, reason=reason)
    return Trust(tuple(gone if each is found[0] else each for each in trust.keys))


def write_trust(trust: Trust, path: FilePath) -> None:
    """Write a trust file, in place of the one that is there."""
    text = to_json({"format": FORMAT, "keys": [pinned_to_json(each) for each in trust.keys]})
    with written_aside(path, overwrite=True, folder=False, private=True) as aside:
        write_bytes(aside, text.encode() + b"\n")


def pinned_to_json(pinned: Pinned) -> dict[str, str]:
    """A pinned key as JSON values."""
    found = {"keyid": pinned.key.keyid, "public": pinned.key.pem, "name": pinned.name}
    times = {
        name: as_time(moment) for name in TIMES if (moment := getattr(pinned, name)) is not None
    }
    return {**found, **times, **({"reason": pinned.reason} if pinned.reason else {})}

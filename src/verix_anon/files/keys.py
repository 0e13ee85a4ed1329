"""Keys as files: the private half for its holder alone, the public half for everybody."""

import os
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from verix_anon.errors import ReceiptError, TableError
from verix_anon.files.aside import write_bytes, written_aside
from verix_anon.files.store import path_text, reason
from verix_anon.protocol.envelopes import PublicKey, SigningKey

__all__ = [
    "MAX_KEY_BYTES",
    "beginning",
    "is_private",
    "is_sealed",
    "new_key",
    "public_path",
    "read_public_key",
    "read_signing_key",
    "small_file",
    "write_key",
]

MAX_KEY_BYTES = 1 << 14
SEALED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
PRIVATE = b"PRIVATE KEY-----"


def new_key() -> SigningKey:
    """A new key, from the system's randomness."""
    return SigningKey(Ed25519PrivateKey.generate())


def public_path(path: str | os.PathLike[str]) -> Path:
    """Where the public half of a key lies: beside it, with .pub after its name."""
    return Path(f"{path_text(path)}.pub")


def write_key(
    key: SigningKey, path: str | os.PathLike[str], *, passphrase: str | None = None
) -> None:
    """Write both halves: PKCS #8 in PEM with mode 0600, sealed on request, and the public one.

    No key is ever replaced: what it has signed could not be told from what another did.
    """
    if passphrase == "":
        raise TableError("an empty passphrase seals nothing; give another, or none at all")
    how: KeySerializationEncryption = NoEncryption()
    if passphrase is not None:
        how = BestAvailableEncryption(passphrase.encode("utf-8", "surrogatepass"))
    for target in (Path(path_text(path)), public_path(path)):
        if os.path.lexists(target):
            raise TableError(
                f"{target} exists already, and no key is replaced; choose another name"
            )
    data = key.held.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how)
    with written_aside(path, overwrite=False, folder=False, private=True) as aside:
        write_bytes(aside, data)
    with written_aside(public_path(path), overwrite=False, folder=False, private=False) as aside:
        write_bytes(aside, key.public.pem.encode())


def is_sealed(path: str | os.PathLike[str]) -> bool:
    """Whether reading the private key takes a passphrase."""
    return small_file(path, MAX_KEY_BYTES, "key").lstrip().startswith(SEALED)


def is_private(path: str | os.PathLike[str]) -> bool:
    """Whether it is the private half of a key."""
    return PRIVATE in small_file(path, MAX_KEY_BYTES, "key")


def read_signing_key(path: str | os.PathLike[str], *, passphrase: str | None = None) -> SigningKey:
    """Read a private key.

    Raises:
        TableError: There is none, others may read it, or the passphrase is missing or wrong.
    """
    data = small_file(path, MAX_KEY_BYTES, "key")
    if PRIVATE not in data:
        raise TableError(f"{path} is not a private key in PEM")
    _check_private(path)
    is_open = not data.lstrip().startswith(SEALED)
    if not is_open and passphrase is None:
        raise TableError(f"the key {path} is sealed; give its passphrase")
    secret = None if is_open or passphrase is None else passphrase.encode("utf-8", "surrogatepass")
    try:
        key = load_pem_private_key(data, secret)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        why = "is damaged" if is_open else "is damaged, or the passphrase is wrong"
        raise TableError(f"the key {path} {why}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise TableError(f"the key {path} is not of Ed25519; make one: verix-anon keys new")
    return SigningKey(key)


def read_public_key(path: str | os.PathLike[str]) -> PublicKey:
    """Read a public key; raises TableError."""
    data = small_file(path, MAX_KEY_BYTES, "key")
    if PRIVATE in data:
        raise TableError(f"{path} is a private key; its public half is {path}.pub")
    try:
        return PublicKey.from_pem(data.decode("ascii", "replace"))
    except ReceiptError as error:
        raise TableError(f"{path}: {error}") from None


def small_file(path: str | os.PathLike[str], most: int, what: str) -> bytes:
    """The whole of a small file; raises TableError."""
    data = beginning(path, most + 1, what)
    if len(data) > most:
        raise TableError(f"{path} is larger than {most} bytes, so it is no {what}")
    return data


def beginning(path: str | os.PathLike[str], most: int, what: str) -> bytes:
    """So many bytes of a file, or all if it has fewer; raises TableError."""
    try:
        with Path(path_text(path)).open("rb") as file:
            return file.read(most)
    except FileNotFoundError:
        raise TableError(f"there is no {what} {path}") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read ({reason(error)})") from None


def _check_private(path: str | os.PathLike[str]) -> None:
    """Raise if others than its holder may read the key; of root's, its group may."""
    found = Path(path).stat()
    mode = stat.S_IMODE(found.st_mode)
    if mode & (0o037 if found.st_uid == 0 else 0o077):
        raise TableError(
            f"the key {path} can be read or changed by others (mode {mode:04o}):"
            f" chmod 600 {path}, and make a new one if they may have"
        )

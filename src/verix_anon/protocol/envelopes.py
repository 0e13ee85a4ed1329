"""Signed envelopes: bytes, what they are, and who vouches for them (DSSE, spec §8).

Only bytes that a trusted key has signed come out of an envelope, so that nothing else of it is
ever parsed. Signatures are Ed25519; a key is named by the SHA-256 of its public half in DER, which
is computed here and never taken on anybody's word.
"""

from base64 import b64decode
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from verix_anon.errors import ReceiptError
from verix_anon.fields import Fields, shown

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey


PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_BYTES = 1 << 16
MAX_SIGNATURES = 16


FIELD = 2**255 - 19
_EIGHTH = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
_OTHER_EIGHTH = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
SMALL_ORDER = frozenset(
    {0, 1, FIELD - 1, *(int.from_bytes(y, "little") for y in (_EIGHTH, _OTHER_EIGHTH))}
)
"""The y of the 8 points of small order: x differs in its sign alone, which a key's last bit has."""


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key, of which a signature shows that somebody holds the private half.

    For a point of small order there are signatures that fit almost any message and that anybody
    can write down, and a point in two encodings would have two names. Neither is a key here
    (spec §8.5), wherever it comes from.
    """

    raw: bytes
    """Its 32 bytes"""

    def __post_init__(self) -> None:
        y = int.from_bytes(self.raw, "little") % 2**255
        if len(self.raw) != 32 or y >= FIELD:
            raise ReceiptError("this public key is not in the canonical encoding of Ed25519")
        if y in SMALL_ORDER:
            raise ReceiptError("this public key is a point of small order: anybody can sign for it")

    @cached_property
    def keyid(self) -> str:
        """Its name: SHA-256 of the key in DER, as `openssl pkey -pubin -outform DER` writes it."""
        return sha256(self._key.public_bytes(Encoding.DER, _PUBLIC)).hexdigest()

    @property
    def pem(self) -> str:
        """The key as text."""
        return self._key.public_bytes(Encoding.PEM, _PUBLIC).decode()

    @classmethod
    def from_pem(cls, text: str) -> "PublicKey":
        """Read it back; raises ReceiptError unless it is a public key of Ed25519."""
        try:
            key = load_pem_public_key(text.encode())
        except (ValueError, UnsupportedAlgorithm):
            raise ReceiptError("this is not a public key in PEM") from None
        if not isinstance(key, Ed25519PublicKey):
            raise ReceiptError("this is a public key, but not of Ed25519")
        return cls(key.public_bytes_raw())

    @property
    def _key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)


_PUBLIC = PublicFormat.SubjectPublicKeyInfo


@dataclass(frozen=True, slots=True)
class Opened:
    """What an envelope holds, and the trusted keys that vouch for it."""

    payload: bytes
    keys: tuple[PublicKey, ...]


def open_envelope(data: bytes, keys: Collection[PublicKey], where: str) -> Opened:
    """What the envelope holds, if one of the keys at least has signed it.

    Signatures of other keys count for nothing, and against nothing.

    Raises:
        ReceiptError: It is no such envelope, or none of the keys has signed it.
    """
    payload, signatures = _parse(data, where)
    named = [key for key in keys if key.keyid in signatures]
    vouching = tuple(key for key in named if _has_signed(payload, key, signatures[key.keyid]))
    if not vouching:
        raise ReceiptError(f"{where}: no key that is trusted has signed it")
    return Opened(payload, vouching)


def keyids_of(data: bytes, where: str) -> tuple[str, ...]:
    """The keys that an envelope names: a claim, good for telling why it was not opened."""
    return tuple(_parse(data, where)[1])


def _has_signed(payload: bytes, key: PublicKey, signature: bytes) -> bool:
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import Error as LibraryError
    from securesystemslib.signer import Signature

    signed = Envelope(payload, PAYLOAD_TYPE, {key.keyid: Signature(key.keyid, signature.hex())})
    try:
        signed.verify([library_key(key)], 1)
    except LibraryError:
        return False
    return True


def library_key(key: PublicKey) -> "SSlibKey":
    """The key as the library that signs and verifies takes it."""
    from securesystemslib.signer import SSlibKey

    return SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(key.raw), key.keyid)


def _parse(data: bytes, where: str) -> tuple[bytes, dict[str, bytes]]:
    """The payload, and by the key that each names the signatures, which nobody has looked at.

    Signatures that name no key are passed over.
    """
    if len(data) > MAX_BYTES:
        raise ReceiptError(f"{where}: larger than {MAX_BYTES} bytes, the limit")
    fields = Fields.parse(data, where, ReceiptError)
    fields.only({"payload", "payloadType", "signatures"})
    fields.expect("payloadType", PAYLOAD_TYPE)
    signatures = fields.each("signatures")
    if not 1 <= len(signatures) <= MAX_SIGNATURES:
        raise ReceiptError(f"{where}: from 1 to {MAX_SIGNATURES} signatures are taken")
    found: dict[str, bytes] = {}
    for each in signatures:
        each.only({"sig"}, {"keyid"})
        keyid, signature = each.text("keyid") if each.has("keyid") else "", _decoded(each, "sig")
        if keyid in found:
            raise ReceiptError(f"{where}: two signatures of the key {shown(keyid)}")
        if keyid:
            found[keyid] = signature
    return _decoded(fields, "payload"), found


def _decoded(fields: Fields, name: str) -> bytes:
    """Bytes in the standard or the URL-safe alphabet of Base64, as DSSE allows."""
    text = fields.text(name)
    try:
        return b64decode(text, validate=True)
    except ValueError:
        pass
    try:
        return b64decode(text, altchars=b"-_", validate=True)
    except ValueError:
        raise fields.wrong(name, "Base64") from None

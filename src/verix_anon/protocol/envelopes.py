"""Opens signed envelopes: bytes, their type, and the signatures of those who vouch (DSSE, spec §8).

Only bytes that a trusted key has signed leave an envelope, so no unsigned payload is ever parsed.
Signatures are Ed25519. A key's name is the SHA-256 of its public half in DER. It is computed here,
because an envelope could claim any name.
"""

import re
from base64 import b64decode
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

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
"""The y of the 8 points of small order. Their x differ only in the sign, a key's last bit."""


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key. A signature shows that the signer holds the private half.

    Two kinds of points are refused, wherever they come from (spec §8.5). For a point of small
    order, anyone can write signatures that fit almost any message. A point with a second encoding
    would have two names, so that a revoked key could come back under the other one.
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
        """The key's name: SHA-256 of its DER, as `openssl pkey -pubin -outform DER` writes it."""
        return sha256(self._key.public_bytes(Encoding.DER, _PUBLIC)).hexdigest()

    @property
    def pem(self) -> str:
        """The key as text."""
        return self._key.public_bytes(Encoding.PEM, _PUBLIC).decode()

    @classmethod
    def from_pem(cls, text: str) -> "PublicKey":
        """Read a key in PEM; raises ReceiptError unless it is a public key of Ed25519."""
        # Libraries differ in what they take for PEM, and no two readers may find two keys.
        found = _PEM.match(text, max(0, text.find("-----BEGIN")))
        lines = [_BEGIN, "".join(found[1].split()) if found else "", _END]
        try:
            key = load_pem_public_key("\n".join(lines).encode())
        except (ValueError, UnsupportedAlgorithm):
            raise ReceiptError("this is not a public key in PEM") from None
        if not isinstance(key, Ed25519PublicKey):
            raise ReceiptError("this is a public key, but not of Ed25519")
        return cls(key.public_bytes_raw())

    @property
    def _key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)


_PUBLIC = PublicFormat.SubjectPublicKeyInfo
_BEGIN, _END = "-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"
_PEM = re.compile(rf"{_BEGIN}([A-Za-z0-9+/=\s]*){_END}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Opened:
    """What an envelope holds, and the trusted keys that vouch for it."""

    payload: bytes
    keys: tuple[PublicKey, ...]


def open_envelope(data: bytes, keys: Collection[PublicKey], where: str) -> Opened:
    """Return what the envelope holds, if at least one of the keys has signed it.

    Signatures of other keys are ignored.

    Raises:
        ReceiptError: It is not such an envelope, or none of the keys has signed it.
    """
    payload, signatures = _parse(data, where)
    named = [key for key in keys if key.keyid in signatures]
    vouching = tuple(key for key in named if _has_signed(payload, key, signatures[key.keyid]))
    if not vouching:
        raise ReceiptError(f"{where}: no key that is trusted has signed it")
    return Opened(payload, vouching)


def keyids_of(data: bytes, where: str) -> tuple[str, ...]:
    """Return the keys that an envelope names. This is a claim, only good for an error message."""
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
    """Return the key in the form that securesystemslib takes."""
    from securesystemslib.signer import SSlibKey

    return SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(key.raw), key.keyid)


def _parse(data: bytes, where: str) -> tuple[bytes, dict[str, bytes]]:
    """Return the payload, and the unchecked signatures by the key that each names.

    Signatures that do not name a key are skipped.
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
    """Read Base64 in the standard or the URL-safe alphabet, as DSSE allows."""
    text = fields.text(name)
    # Python alone takes more padding than belongs there, in some versions.
    if len(text) % 4 or not re.fullmatch("[A-Za-z0-9+/_-]*={0,2}", text):
        raise fields.wrong(name, "Base64")
    return b64decode(text.replace("-", "+").replace("_", "/"))

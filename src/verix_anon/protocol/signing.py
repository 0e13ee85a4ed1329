"""Signs statements, and holds the statement in which an owner publishes a verdict (spec §8).

Checking signatures does not need this module: see `envelopes` and `statements`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from verix_anon.errors import ReceiptError
from verix_anon.fields import Fields
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.envelopes import PAYLOAD_TYPE, PublicKey, library_key
from verix_anon.protocol.statements import (
    ROOT,
    as_said,
    read_statement,
    read_time,
    read_word,
    to_statement,
)

VERDICT = "urn:verix:verdict:1"
VERDICT_FILE = "verdict.json"
"""The name of the verdict's file among the subjects, whatever its real name is."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What one layer found, without its evidence."""

    layer: str
    status: str
    decides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The owner's statement of its verdict on these files and this root."""

    root: Digest
    files: Mapping[str, str]
    """SHA-256 of the delivery's files that were judged"""
    verdict: str
    """SHA-256 of the verdict's file"""
    contract: Digest
    submission: Digest
    outcome: str
    profile: str
    findings: tuple[Judged, ...]
    version: str
    time: str

    def to_bytes(self) -> bytes:
        """The statement as canonical JSON."""
        said = as_said(self)
        subjects = {**said.pop("files"), ROOT: said.pop("root"), VERDICT_FILE: said.pop("verdict")}
        return to_statement(VERDICT, subjects, said)

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "the signed verdict") -> "Judgement":
        """Read bytes whose signature is already checked; raises ReceiptError."""
        subjects, said = read_statement(data, VERDICT, where, needed=(ROOT, VERDICT_FILE))
        said.only({"contract", "submission", "outcome", "profile", "findings", "version", "time"})
        found = cls(
            root=Digest(bytes.fromhex(subjects.pop(ROOT))),
            verdict=subjects.pop(VERDICT_FILE),
            files=subjects,
            contract=Digest(said.digest("contract")),
            submission=Digest(said.digest("submission")),
            outcome=read_word(said, "outcome"),
            profile=read_word(said, "profile"),
            findings=tuple(_judged(each) for each in said.each("findings")),
            version=read_word(said, "version"),
            time=read_time(said, "time"),
        )
        # The same rule as in a verdict (spec §10), so a signer cannot state a better outcome.
        deciding = {each.status for each in found.findings if each.decides}
        passed = "VERIFIED" if deciding == {"pass"} else "INCONCLUSIVE"
        if found.outcome != ("VIOLATION" if "fail" in deciding else passed):
            raise ReceiptError(f"{where}: its outcome is not the conjunction of its findings")
        return found


def _judged(fields: Fields) -> Judged:
    fields.only({"layer", "status", "decides"})
    return Judged(read_word(fields, "layer"), read_word(fields, "status"), fields.flag("decides"))


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An Ed25519 private key. Its repr does not show it."""

    held: Ed25519PrivateKey = field(repr=False)

    @property
    def public(self) -> PublicKey:
        """The public half."""
        return PublicKey(self.held.public_key().public_bytes_raw())


def sign(payload: bytes, *keys: SigningKey) -> bytes:
    """Return the envelope of a statement, signed with each of the keys."""
    # Imported here because it loads the clients of all clouds that are installed.
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner

    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    for key in keys:
        envelope.sign(CryptoSigner(key.held, library_key(key.public)))
    return rfc8785.dumps(envelope.to_dict())

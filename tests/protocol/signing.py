"""Keys that are the same in every run, and envelopes made by hand."""

import base64
import json
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from verix_anon.protocol.contract import Digest
from verix_anon.protocol.envelopes import PAYLOAD_TYPE
from verix_anon.protocol.signing import Judged, Judgement, SigningKey
from verix_anon.protocol.statements import Receipt


def key(name: str) -> SigningKey:
    return SigningKey(Ed25519PrivateKey.from_private_bytes(sha256(name.encode()).digest()))


OURS, OTHER, THIRD = key("ours"), key("other"), key("third")


def digest(name: str) -> Digest:
    return Digest(sha256(name.encode()).digest())


FILES = {
    name: digest(name).hex()
    for name in ("delivery.json", "leaves.parquet", "nodes.parquet", "records.parquet")
}
RECEIPT = Receipt(
    root=digest("root"),
    files=FILES,
    contract=digest("contract"),
    submission=digest("submission"),
    engine="verix-local",
    version="0.2.0",
    rows=300,
    leaves=20,
    nodes=39,
    began="2026-11-16T05:00:00+00:00",
    finished="2026-11-16T05:00:07+00:00",
)
JUDGEMENT = Judgement(
    root=digest("root"),
    files=FILES,
    verdict=digest("verdict").hex(),
    contract=digest("contract"),
    submission=digest("submission"),
    outcome="VERIFIED",
    profile="full",
    findings=(Judged("commitment", "pass", True), Judged("utility", "skipped", False)),
    version="0.2.0",
    time="2026-11-16T06:00:00+00:00",
)


def envelope(payload: bytes, *keys: SigningKey, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """An envelope written by hand from the text of DSSE, signed over any type."""
    kind = payload_type.encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    return json.dumps(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": payload_type,
            "signatures": [
                {
                    "keyid": each.public.keyid,
                    "sig": base64.b64encode(each.held.sign(signed)).decode(),
                }
                for each in keys
            ],
        }
    ).encode()

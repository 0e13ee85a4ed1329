"""Make the golden envelopes: a receipt and a signed verdict, by a key that everybody knows.

Written from spec §8.5 alone, with plain Ed25519: nothing of the package, and not the library that
it signs with, has a part in it. A private key in a repository signs nothing but tests.
"""

import base64
import json
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FOLDER = Path(__file__).parent.parent / "tests" / "vectors" / "signed"
TYPE = b"application/vnd.in-toto+json"
DER = bytes.fromhex("302a300506032b6570032100")
"""What stands before the 32 bytes of an Ed25519 key in DER"""


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


FILES = ("delivery.json", "leaves.parquet", "nodes.parquet", "records.parquet")
COMMON = {"contract": digest("contract"), "submission": digest("submission"), "version": "1.2.3"}
STATEMENTS: dict[str, tuple[str, tuple[str, ...], dict[str, object]]] = {
    "receipt": (
        "urn:verix:receipt:1",
        (*FILES, "root"),
        {
            **COMMON,
            "engine": "verix-local",
            "rows": 1000,
            "leaves": 60,
            "nodes": 119,
            "began": "2026-11-16T05:00:00+00:00",
            "finished": "2026-11-16T05:00:07+00:00",
        },
    ),
    "verdict": (
        "urn:verix:verdict:1",
        (*FILES, "root", "verdict.json"),
        {
            **COMMON,
            "outcome": "INCONCLUSIVE",
            "profile": "thin",
            "findings": [
                {"layer": "commitment", "status": "pass", "decides": True},
                {"layer": "utility", "status": "skipped", "decides": False},
                {"layer": "receipt", "status": "inconclusive", "decides": True},
            ],
            "time": "2026-11-16T06:00:00+00:00",
        },
    ),
}


def canonical(value: object) -> bytes:
    """RFC 8785 of what has whole numbers and ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def statement(name: str) -> bytes:
    kind, subjects, said = STATEMENTS[name]
    return canonical(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": each, "digest": {"sha256": digest(each)}} for each in subjects],
            "predicateType": kind,
            "predicate": said,
        }
    )


def signed_bytes(payload: bytes) -> bytes:
    """What DSSE has signed in place of the payload."""
    return b" ".join([b"DSSEv1", b"%d" % len(TYPE), TYPE, b"%d" % len(payload), payload])


def vector(name: str) -> dict[str, object]:
    """One vector: the key, the statement, and the envelope that it gives."""
    seed = sha256(b"a key for tests").digest()
    key, payload = Ed25519PrivateKey.from_private_bytes(seed), statement(name)
    public = key.public_key().public_bytes_raw()
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": TYPE.decode(),
        "signatures": [
            {
                "keyid": sha256(DER + public).hexdigest(),
                "sig": base64.b64encode(key.sign(signed_bytes(payload))).decode(),
            }
        ],
    }
    return {
        "private": seed.hex(),
        "public": public.hex(),
        "statement": payload.decode(),
        "envelope": canonical(envelope).decode(),
    }


def render(name: str) -> str:
    """One vector as its file has it."""
    return json.dumps(vector(name), indent=1) + "\n"


def write_all() -> None:
    """Make the files."""
    for name in STATEMENTS:
        (FOLDER / f"{name}.json").write_text(render(name), encoding="utf-8")

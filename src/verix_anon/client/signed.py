"""The owner's signed word: what its verdict on a delivery was, for others to check (spec §10).

It names layers and what they found, and no evidence: that may tell what was planted.
"""

from hashlib import sha256
from pathlib import Path

from verix_anon.client.verdict import Verdict
from verix_anon.protocol.envelopes import SigningKey, sign
from verix_anon.protocol.statements import Judged, Judgement

__all__ = ["sign_verdict", "signed_path"]


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

"""Layer `receipt`: the provider has signed that these files are its own.

Proves: the holder of a pinned key signed these very files and this root, for this contract and
submission (spec §8.5), so that it cannot say later that they are not its work.
Does not prove: that the work is right, which is for the other layers; nor when it was done, which
is the provider's claim; nor who holds the key, which is for the owner to learn by another way.
Can err: never, as long as Ed25519 and SHA-256 hold and the key is no one else's.
"""

import hmac
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256

from verix_anon.client.verdict import RECEIPT, Evidence, Finding, Status
from verix_anon.client.verify.case import Case
from verix_anon.errors import ReceiptError
from verix_anon.files.job_folder import RECEIPT_FILE
from verix_anon.protocol.envelopes import Opened, keyids_of, open_envelope
from verix_anon.protocol.statements import Receipt

GUARANTEE = (
    "The holder of the key signed these files and this root for this contract and submission, and"
    " cannot deny it. The times are the holder's own statement. Whether the work is right is for"
    " the other layers to find out."
)
NOTHING = "No signature shows whose work these files are."
ASK = "ask the provider for it and verify again. The provider need not repeat the work"
UNKNOWN = (
    "No pinned key has signed the receipt. If the provider has a new key, learn it by another"
    " way than this delivery, pin it, and verify again."
)
SHORT = 16
"""So many digits of a key's name are shown."""


def check(case: Case) -> Finding:
    """Open the envelope with the keys that count now, and compare what it says."""
    if not case.trust:
        is_there = "There is a receipt" if case.receipt is not None else "There is no receipt"
        why = f"Not run: no key of the provider's is pinned. {is_there}."
        return _finding(Status.SKIPPED, why, {"is_there": case.receipt is not None})
    if case.receipt is None:
        # Nothing false was said, so nothing was violated: it is for the provider to hand it in.
        why = f"A key of the provider's is pinned, but there is no {RECEIPT_FILE}: {ASK}."
        if any(name.startswith("memory:") for name in case.files):
            why = "A delivery in memory has no receipt: verify the folder that it came in."
        return _finding(Status.INCONCLUSIVE, why, {"is_there": False})
    if isinstance(case.receipt, ReceiptError):
        return _finding(Status.FAIL, f"The receipt cannot be read: {case.receipt}.", {})
    now = datetime.now(UTC)
    try:
        opened = open_envelope(case.receipt, case.trust.counting(now), RECEIPT_FILE)
    except ReceiptError as error:
        return _closed(case, case.receipt, error, now)
    try:
        said = Receipt.from_bytes(opened.payload, RECEIPT_FILE)
    except ReceiptError as error:
        why = f"A pinned key has signed it, but it is not a receipt: {error}."
        return _finding(Status.FAIL, why, _evidence(case.receipt, opened))
    return _compared(case, said, _evidence(case.receipt, opened))


def _closed(case: Case, data: bytes, error: ReceiptError, now: datetime) -> Finding:
    """Why no key that counts vouches: a false signature fails, another key's proves nothing."""
    evidence = _evidence(data, None)
    try:
        named = keyids_of(data, RECEIPT_FILE)
    except ReceiptError:
        return _finding(Status.FAIL, f"This is not a receipt: {error}.", evidence)
    refusals = {keyid: case.trust.refusal(keyid, now) for keyid in named}
    false = [keyid for keyid, refusal in refusals.items() if refusal == ""]
    if false:
        why = f"The receipt is not what the key {false[0][:SHORT]}… has signed."
        return _finding(Status.FAIL, why, {**evidence, "named": false})
    old = [f"the key {keyid[:SHORT]}… {why}" for keyid, why in refusals.items() if why]
    if old:
        why = f"The receipt does not count: {', and '.join(old)}."
        return _finding(Status.INCONCLUSIVE, why, {**evidence, "problems": old})
    return _finding(Status.INCONCLUSIVE, UNKNOWN, evidence)


def _compared(case: Case, said: Receipt, evidence: Evidence) -> Finding:
    problems = []
    if not hmac.compare_digest(said.submission, case.manifest.submission):
        problems.append("it is for another submission")
    if not hmac.compare_digest(said.contract, case.contract.digest):
        problems.append("it is for another contract")
    if not hmac.compare_digest(said.root, case.delivery.header.root):
        problems.append("it names another root")
    stated, judged = (repr(sorted(files.items())) for files in (said.files, case.files))
    if not hmac.compare_digest(stated.encode(), judged.encode()):
        problems.append("it names other files")
    header = case.delivery.header
    counts = (header.rows, header.leaves, header.nodes)
    if not problems and (said.rows, said.leaves, said.nodes) != counts:
        problems.append("it states other counts than delivery.json")
    told = {name: asdict(said)[name] for name in ("engine", "version", "began", "finished")}
    evidence = {**evidence, **told, "problems": problems}
    if problems:
        why = f"The receipt is not for this delivery: {', and '.join(problems)}."
        return _finding(Status.FAIL, why, evidence)
    signed = f"The provider signed these files and this root ({said.finished}, by its clock)."
    return _finding(Status.PASS, signed, evidence)


def _evidence(data: bytes, opened: Opened | None) -> dict[str, object]:
    keys = [] if opened is None else [key.keyid for key in opened.keys]
    return {"is_there": True, "sha256": sha256(data).hexdigest(), "keys": keys}


def _finding(status: Status, summary: str, evidence: Evidence) -> Finding:
    return Finding(
        layer=RECEIPT,
        status=status,
        summary=summary,
        guarantee=GUARANTEE if status is Status.PASS else NOTHING,
        evidence=evidence,
    )

"""What may be released: a delivery that can be followed, and a verdict on that very delivery."""

import hmac

from verix_anon.client import in_memory
from verix_anon.client.audit_log import AuditLog
from verix_anon.client.given import FilePath, opened
from verix_anon.client.manifest import Manifest
from verix_anon.client.verdict import RECEIPT, Status, Verdict
from verix_anon.errors import MalformedDeliveryError, NotAcceptedError
from verix_anon.files.deliveries import Snapshot, read_delivery
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivery

__all__ = ["bare", "check", "read"]


def read(delivery: Delivery | Snapshot | FilePath, manifest: Manifest) -> Delivery | Snapshot:
    """The delivery, from its files if a path was given; one that can be followed."""
    if isinstance(delivery, Delivery):
        _check_form(delivery, manifest)
        return delivery
    try:
        held = opened(
            delivery,
            Snapshot,
            lambda path: read_delivery(path, manifest.contract, n_rows=manifest.n_rows),
            "delivery",
        )
    except MalformedDeliveryError as error:
        raise NotAcceptedError(f"this is not a delivery: {error}") from None
    _check_form(held.delivery, manifest)
    return held


def bare(delivery: Delivery | Snapshot) -> Delivery:
    """The delivery itself."""
    return delivery.delivery if isinstance(delivery, Snapshot) else delivery


def check(
    delivery: Delivery | Snapshot,
    manifest: Manifest,
    verdict: Verdict | None,
    others: list[str],
    *,
    log: AuditLog | None,
    force: bool,
) -> tuple[str, ...]:
    """Raise unless this delivery may be released; returns what `force` passed over.

    `others` is what speaks against it besides the verdict and the log.
    """
    held = bare(delivery)
    problems = _verdict_problems(delivery, manifest, verdict)
    found = log and log.standing_violation(manifest.submission, held.header.root)
    if found:
        problems.append(
            f"a delivery for this submission was found in VIOLATION ({found}), which stands above"
            " an older or weaker pass; verify this one with the submission and audit all"
        )
    problems += others
    if problems and not force:
        raise NotAcceptedError("; ".join(problems))
    return tuple(problems)


def _check_form(delivery: Delivery, manifest: Manifest) -> None:
    """Raise unless the delivery can be followed at all; what is read from files always can."""
    contract, tree, leaf = manifest.contract, delivery.tree, delivery.records.leaf
    try:
        in_memory.check_types(delivery)
        tree.check(n_quasi=len(contract.quasi), max_depth=contract.max_depth)
    except MalformedDeliveryError as error:
        raise NotAcceptedError(f"the delivered tree cannot be followed: {error}") from None
    if delivery.leaves.minimum.shape != (tree.n_leaves, len(contract.quasi)):
        raise NotAcceptedError("the delivered leaves are not those of the delivered tree")
    if ((leaf < 0) | (leaf >= tree.n_leaves)).any():
        raise NotAcceptedError("a delivered record lies in a leaf that the tree does not have")


def _verdict_problems(
    delivery: Delivery | Snapshot, manifest: Manifest, verdict: Verdict | None
) -> list[str]:
    """Why the verdict does not allow this release; nothing if it does."""
    if verdict is None:
        return ["there is no verdict on the delivery"]
    problems = []
    if not verdict.accepted:
        layers = [f.layer for f in verdict.findings if f.decides and f.status is not Status.PASS]
        named = f" ({', '.join(layers)})" if layers else ""
        problems.append(f"the verdict is {verdict.outcome.value}{named}, not VERIFIED")
    if manifest.provider_keys and not any(
        f.layer == RECEIPT and f.decides for f in verdict.findings
    ):
        problems.append("the manifest pins a key of the provider's, but no receipt was looked at")
    if not hmac.compare_digest(verdict.contract, manifest.contract.digest):
        problems.append("the verdict is about another contract")
    if not hmac.compare_digest(verdict.submission, manifest.submission):
        problems.append("the verdict is about another submission")
    held = bare(delivery)
    if not hmac.compare_digest(verdict.root, held.header.root):
        problems.append("the verdict is about a delivery with another root")
    if isinstance(delivery, Snapshot):
        judged, given = (repr(sorted(f.items())) for f in (verdict.files, delivery.files))
        if not hmac.compare_digest(judged.encode(), given.encode()):
            problems.append("the verdict is about other files")
    elif verdict.files and dict(verdict.files) != dict(in_memory.digests(held)):
        problems.append("the verdict is about another delivery")
    elif not hmac.compare_digest(_root_of(held, manifest), held.header.root):
        problems.append("the root does not follow from the delivery")
    return problems


def _root_of(delivery: Delivery, manifest: Manifest) -> Digest:
    # Compiled code comes with it, which files do not need.
    from verix_anon.client.verify.case import Case
    from verix_anon.client.verify.commitment import root_of

    return root_of(Case(delivery=delivery, manifest=manifest, submission=None))

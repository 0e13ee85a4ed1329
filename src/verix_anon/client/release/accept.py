"""What may be released: a delivery that can be followed, and a verdict on that very delivery."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Ids
from verix_anon.client import in_memory
from verix_anon.client.audit_log import AuditLog
from verix_anon.client.given import FilePath, opened
from verix_anon.client.manifest import Manifest
from verix_anon.client.verdict import RECEIPT, Status, Verdict
from verix_anon.errors import Error, MalformedDeliveryError, NotAcceptedError, TableError
from verix_anon.files.deliveries import Snapshot, read_delivery
from verix_anon.machine import give_back
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivery, Header
from verix_anon.protocol.tree import Tree

__all__ = ["Followed", "check", "read"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Followed:
    """What a release needs of a delivery; the rest of its files ends when they are read."""

    header: Header
    tree: Tree
    files: Mapping[str, str] | None
    """The SHA-256 of each file; None if it never was any."""
    delivery: Delivery | None
    """The delivery itself, if it never was files."""
    aligned: Ids | Error
    """The leaf of each of the owner's rows, or why there is none."""

    @property
    def digests(self) -> Mapping[str, str]:
        """Of its files, or of what would be their content."""
        if self.files is not None:
            return self.files
        assert self.delivery is not None
        return in_memory.digests(self.delivery)

    def leaf_of_row(self) -> Ids:
        """The leaf of each of the owner's rows, by row number.

        Raises:
            NotAcceptedError: Not every genuine record came back once.
            TableError: The manifest does not name every row once.
        """
        if isinstance(self.aligned, Error):
            raise self.aligned
        return self.aligned


def read(delivery: Delivery | Snapshot | FilePath, manifest: Manifest) -> Followed:
    """The delivery, from its files if a path was given; one that can be followed."""
    held, files = delivery, None
    if not isinstance(held, Delivery):
        held, files = _from_files(held, manifest)
    _check_form(held, manifest)
    followed = Followed(
        header=held.header,
        tree=held.tree,
        files=files,
        delivery=held if files is None else None,
        aligned=_aligned(held, manifest),
    )
    del held
    give_back()
    return followed


def _from_files(
    given: Snapshot | FilePath, manifest: Manifest
) -> tuple[Delivery, Mapping[str, str]]:
    try:
        found = opened(
            given,
            Snapshot,
            lambda path: read_delivery(path, manifest.contract, n_rows=manifest.n_rows),
            "delivery",
        )
    except MalformedDeliveryError as error:
        raise NotAcceptedError(f"this is not a delivery: {error}") from None
    return found.delivery, found.files


def _aligned(delivery: Delivery, manifest: Manifest) -> Ids | Error:
    """The leaf of each of the owner's rows, by row number; traps drop out."""
    owner_row, records, n_rows = manifest.owner_row, delivery.records, manifest.n_genuine
    sent = owner_row[owner_row >= 0]
    if sent.size and (sent.max() >= n_rows or np.bincount(sent, minlength=n_rows).max() > 1):
        return TableError("the manifest does not name every row of the table once")
    del sent
    is_sent = (records.row >= 0) & (records.row < owner_row.size)
    owner = np.where(is_sent, owner_row[np.where(is_sent, records.row, 0)], -1)
    is_genuine = owner >= 0
    owner = owner[is_genuine]
    times = np.bincount(owner, minlength=n_rows)
    if (times != 1).any():
        return NotAcceptedError(
            f"the rows cannot be aligned: of {n_rows:,} genuine records {(times == 0).sum():,} are"
            f" missing and {(times > 1).sum():,} came back more than once"
        )
    leaf_of_row = np.empty(n_rows, np.int32)
    leaf_of_row[owner] = records.leaf[is_genuine]
    return leaf_of_row


def check(
    delivery: Followed,
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
    problems = _verdict_problems(delivery, manifest, verdict)
    found = log and log.standing_violation(manifest.submission, delivery.header.root)
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


def _verdict_problems(delivery: Followed, manifest: Manifest, verdict: Verdict | None) -> list[str]:
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
    root = delivery.header.root
    if not hmac.compare_digest(verdict.root, root):
        problems.append("the verdict is about a delivery with another root")
    held = delivery.delivery
    if held is None:
        judged, given = (repr(sorted(f.items())) for f in (verdict.files, delivery.digests))
        if not hmac.compare_digest(judged.encode(), given.encode()):
            problems.append("the verdict is about other files")
    elif verdict.files and dict(verdict.files) != dict(delivery.digests):
        problems.append("the verdict is about another delivery")
    elif not hmac.compare_digest(_root_of(held, manifest), root):
        problems.append("the root does not follow from the delivery")
    return problems


def _root_of(delivery: Delivery, manifest: Manifest) -> Digest:
    # Compiled code comes with it, which files do not need.
    from verix_anon.client.verify.case import Case
    from verix_anon.client.verify.commitment import root_of

    return root_of(Case(delivery=delivery, manifest=manifest, submission=None))

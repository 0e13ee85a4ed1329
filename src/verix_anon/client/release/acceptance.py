"""Check that a delivery may be released: its leaves fit the table, and a verdict accepts it.

Earlier releases of the same table speak against another one; the ledger knows them.
"""

import hmac
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import numpy as np
import pyarrow as pa

from verix_anon import __version__
from verix_anon.arrays import Ids
from verix_anon.client import arguments
from verix_anon.client.arguments import FilePath, opened
from verix_anon.client.audit_log import LogLines
from verix_anon.client.ledger import Claim, Ledger, LedgerEntry, LookedAt
from verix_anon.client.manifest import Manifest
from verix_anon.client.verdict import RECEIPT, Status, Verdict
from verix_anon.errors import Error, MalformedDeliveryError, NotAcceptedError, TableError
from verix_anon.files.atomic_write import Aside
from verix_anon.files.deliveries import Snapshot, check_answers, read_delivery
from verix_anon.machine import give_back
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivery, Header
from verix_anon.protocol.tree import Tree


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeliveredLeaves:
    """The parts of a delivery that a release needs; the rest is freed once it is read."""

    header: Header
    tree: Tree
    files: Mapping[str, str] | None
    """The SHA-256 of each file; None if the delivery was given in memory."""
    delivery: Delivery | None
    """The delivery itself, if it was given in memory."""
    aligned: Ids | Error
    """The leaf of each of the owner's rows, or why there is none."""

    @property
    def digests(self) -> Mapping[str, str]:
        """The SHA-256 of its files, or of what would be their content."""
        if self.files is not None:
            return self.files
        assert self.delivery is not None
        return arguments.digests(self.delivery)

    def leaf_of_row(self) -> Ids:
        """The leaf of each of the owner's rows, by row number.

        Raises:
            NotAcceptedError: Not every genuine record came back once.
            TableError: The manifest does not name every row once.
        """
        if isinstance(self.aligned, Error):
            raise self.aligned
        return self.aligned


def read_leaves(delivery: Delivery | Snapshot | FilePath, manifest: Manifest) -> DeliveredLeaves:
    """Read a delivery, and find the leaf of each of the owner's rows.

    Raises:
        MixedUpError: The delivery says that it is for another submission.
        NotAcceptedError: This is not a delivery, or its tree cannot be followed.
    """
    held, files = delivery, None
    if not isinstance(held, Delivery):
        read = partial(
            read_delivery,
            contract=manifest.contract,
            n_rows=manifest.n_rows,
            submission=manifest.submission,
        )
        try:
            found = opened(held, Snapshot, read, "delivery")
        except MalformedDeliveryError as error:
            raise NotAcceptedError(f"this is not a delivery: {error}") from None
        held, files = found.delivery, found.files
        del found
    _check_form(held, manifest)
    leaves = DeliveredLeaves(
        header=held.header,
        tree=held.tree,
        files=files,
        delivery=held if files is None else None,
        aligned=_aligned(held, manifest),
    )
    # Of the files only the leaves are needed from here on.
    del held
    give_back()
    return leaves


def _check_form(delivery: Delivery, manifest: Manifest) -> None:
    """Raise unless the delivery can be followed at all; what is read from files always can."""
    contract, tree, leaf = manifest.contract, delivery.tree, delivery.records.leaf
    try:
        arguments.check_types(delivery)
        check_answers(delivery.header, manifest.submission)
        tree.check(n_quasi=len(contract.quasi), max_depth=contract.max_depth)
    except MalformedDeliveryError as error:
        raise NotAcceptedError(f"the delivered tree cannot be followed: {error}") from None
    if delivery.leaves.minimum.shape != (tree.n_leaves, len(contract.quasi)):
        raise NotAcceptedError("the delivered leaves are not those of the delivered tree")
    if ((leaf < 0) | (leaf >= tree.n_leaves)).any():
        raise NotAcceptedError("a delivered record lies in a leaf that the tree does not have")


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


def check_verdict(
    delivery: DeliveredLeaves,
    manifest: Manifest,
    verdict: Verdict | None,
    others: list[str],
    *,
    logged: LogLines | None,
    force: bool,
) -> tuple[str, ...]:
    """Raise unless this delivery may be released; returns what `force` passed over.

    `others` is what speaks against it besides the verdict and the audit log.
    """
    problems = _verdict_problems(delivery, manifest, verdict)
    problems += [] if logged is None else logged.problems(delivery.header.root)
    problems += others
    if problems and not force:
        raise NotAcceptedError(*problems)
    return tuple(problems)


def _verdict_problems(
    delivery: DeliveredLeaves, manifest: Manifest, verdict: Verdict | None
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


@dataclass(frozen=True, slots=True)
class CountedRelease:
    """A release, and the earlier ones of its table; without a ledger no one counts."""

    ledger: Ledger | None
    claim: Claim
    earlier: tuple[LedgerEntry, ...] = ()
    sharing: tuple[str, ...] = ()
    """Which other released tables share people with this one."""

    @property
    def n_earlier(self) -> int | None:
        """How often something else was released of the table; None if no one knows."""
        return None if self.ledger is None else len(self.earlier)

    @property
    def problems(self) -> list[str]:
        """What speaks against releasing the table; nothing if it is the first time, or a look."""
        if self.ledger is None or isinstance(self.ledger, LookedAt) or not self.earlier:
            return []
        before = (
            f"this table was released before ({self.earlier[-1].time}, by the ledger"
            f" {self.ledger.path}), with other options or from another delivery. Somebody who"
            " compares two releases of one table can single people out. For another format of the"
            " first, use verix-anon convert. To release it once more nevertheless, use force"
            " (--force)"
        )
        return [before]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The ledger's warnings, and those about people in other releases."""
        return self.sharing + (() if self.ledger is None else self.ledger.warnings())

    def name(
        self, beside: Sequence[Aside], table: Aside | None, within: AbstractContextManager[None]
    ) -> None:
        """Give files their names `within` a block, the table last, after the release's line."""
        counts: AbstractContextManager[None] = nullcontext()
        if self.ledger is not None:
            counts = self.ledger.releasing(self.claim, self.earlier)
        with counts, within:
            if table is not None:
                # An old table must not stand beside a new dictionary.
                table.free_name()
            for aside in filter(None, (*beside, table)):
                aside.take_name()


def count_release(
    ledger: Ledger | None,
    delivery: DeliveredLeaves,
    manifest: Manifest,
    decides: Mapping[str, object],
    persons: pa.Array | None,
    series: Collection[Digest] = (),
) -> CountedRelease:
    """Look a release up in the ledger; `decides` holds the options that decide its rows.

    `persons` is the column that tells people apart, and `series` has the tables of its series.
    """
    told = {
        "version": __version__,
        "submission": manifest.submission.hex(),
        "files": sorted(delivery.digests.items()),
        **decides,
    }
    release = sha256(json.dumps(told, sort_keys=True, default=str).encode()).digest()
    people = None if ledger is None or persons is None else ledger.sketch(persons)
    claim = Claim(manifest.table, delivery.header.root, Digest(release), people)
    if ledger is None:
        return CountedRelease(None, claim)
    return CountedRelease(ledger, claim, ledger.others(claim), ledger.sharing(claim, series))

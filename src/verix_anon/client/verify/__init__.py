"""verify(): judge a delivery by its layers, in order (spec §9, §10).

    1. commitment   the root follows from the delivery, for this contract and submission
    2. sentinels    every sentinel is back
    3. twins        both of every pair are back, in one leaf
    4. replay       every record is the one that was sent, and lies in the leaf it must
    5. splits       every split is the one that the rule chooses
    6. fingerprint  how far the SHAP distributions moved
    7. utility      what a model trained on the delivery is worth

No layer reads what an earlier one has not checked: `splits` with the submission runs only on
records that `replay` found to be those that were sent. The last two only measure, and run side
by side.
"""

import hmac
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from verix_anon import __version__
from verix_anon.client.manifest import Manifest
from verix_anon.client.verdict import DECIDING, LAYERS, Finding, Profile, Status, Verdict
from verix_anon.client.verify import (
    commitment,
    fingerprint,
    in_memory,
    replay,
    sentinels,
    splits,
    twins,
    utility,
)
from verix_anon.client.verify.case import KEPT_BYTES, Case, VerifyOptions
from verix_anon.errors import MalformedDeliveryError, TableError
from verix_anon.files.deliveries import Snapshot, read_delivery
from verix_anon.machine import check_memory
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivery, Submission

__all__ = ["LAYERS", "VerifyOptions", "verify"]

NO_ROOT = Digest(bytes(32))
"""Stands in a verdict on bytes that are not a delivery."""

Check = Callable[[], Finding]


def verify(
    delivery: Delivery | Snapshot | str | os.PathLike[str],
    manifest: Manifest,
    *,
    submission: Submission | None = None,
    profile: Profile | None = None,
    options: VerifyOptions | None = None,
) -> Verdict:
    """Judge a delivery.

    Args:
        delivery: What the provider returned: in memory, or the folder or URL of its files.
        manifest: What the owner kept.
        submission: What was sent, if it is at hand; without it the verification is thin.
        profile: Which layers decide; `full` with the submission and `thin` without by default.
        options: Which nodes to audit, and the fingerprint's thresholds.

    Raises:
        TableError: The submission is not the one this manifest was made for, or was altered.
    """
    began = time.perf_counter()
    options = options or VerifyOptions()
    profile = Profile(profile or (Profile.THIN if submission is None else Profile.FULL))
    _check_memory(manifest, profile, options)
    _check_own(manifest, submission, profile, options)
    try:
        snapshot = _snapshot(delivery, manifest)
    except MalformedDeliveryError as error:
        findings, root, files = _malformed(error, profile), NO_ROOT, dict[str, str]()
    else:
        # A thin verification shows what the manifest alone can prove, whatever is at hand.
        sent = None if profile is Profile.THIN else submission
        case = Case(delivery=snapshot.delivery, manifest=manifest, submission=sent, options=options)
        findings, root = _run(case, profile), snapshot.delivery.header.root
        files = dict(snapshot.files)
    return Verdict(
        profile=profile,
        root=root,
        files=files,
        contract=manifest.contract.digest,
        submission=manifest.submission,
        findings=findings,
        unsafe_seed=manifest.unsafe_seed,
        version=__version__,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.perf_counter() - began, 3),
    )


def _check_memory(manifest: Manifest, profile: Profile, options: VerifyOptions) -> None:
    """Refuse what will not fit: the records by row and by leaf, and in full values by leaf."""
    n_rows, n_quasi = manifest.n_rows, len(manifest.contract.quasi)
    values = 0 if profile is not Profile.FULL else n_rows * n_quasi * 8
    check_memory(
        n_rows * (150 + 2 * options.threads)
        + (values if values <= KEPT_BYTES else 8 * n_rows * options.threads),
        f"verifying {n_rows:,} records with {n_quasi} quasi-identifiers",
        TableError,
    )


def _check_own(
    manifest: Manifest, submission: Submission | None, profile: Profile, options: VerifyOptions
) -> None:
    """The owner's own files first: a verdict on the wrong submission would be worthless."""
    unknown = options.epsilon_per_feature.keys() - {c.name for c in manifest.contract.quasi}
    if unknown:
        raise TableError(f"an epsilon is given for {min(unknown)!r}, which is no quasi-identifier")
    if profile is Profile.FULL and submission is None:
        raise TableError("the profile 'full' needs the submission")
    if submission is None:
        return
    if not hmac.compare_digest(submission.contract.digest, manifest.contract.digest):
        raise TableError("the submission's contract is not the one this manifest was made for")
    digest = submission.digest(threads=options.threads)
    if not hmac.compare_digest(digest, manifest.submission):
        raise TableError(
            "the submission is not the one this manifest was made for, or it was altered"
        )


def _snapshot(
    delivery: Delivery | Snapshot | str | os.PathLike[str], manifest: Manifest
) -> Snapshot:
    """The delivery, well-formed, and the digests of what will be judged."""
    if not isinstance(delivery, Delivery | Snapshot):
        return read_delivery(delivery, manifest.contract, n_rows=manifest.n_rows)
    held = delivery.delivery if isinstance(delivery, Snapshot) else delivery
    in_memory.check_types(held)
    # A snapshot may have been read for another submission.
    held.check(manifest.contract, n_rows=manifest.n_rows)
    if isinstance(delivery, Snapshot):
        return delivery
    return Snapshot(delivery=held, files=in_memory.digests(held))


def _run(case: Case, profile: Profile) -> tuple[Finding, ...]:
    """Every layer in its order; the numbers are those of the list above."""
    done: dict[str, Finding] = {}

    def layer(name: str, check: Check) -> None:
        began = time.perf_counter()
        finding = check()
        done[name] = replace(
            finding,
            decides=name in DECIDING[profile],
            seconds=round(time.perf_counter() - began, 4),
        )

    layer("commitment", lambda: commitment.check(case))  # 1
    layer("sentinels", lambda: sentinels.check(case))  # 2
    layer("twins", lambda: twins.check(case))  # 3
    if profile is Profile.PAPER:
        layer("replay", lambda: _skipped("replay", "the paper has no such layer"))
        layer("splits", lambda: _skipped("splits", "the paper has no such layer"))
    else:
        layer("replay", lambda: replay.check(case))  # 4
        # 5: what the nodes hold is known only if the records are those that were sent.
        if done["replay"].status is Status.PASS:
            layer("splits", lambda: splits.check(case))
        else:
            layer("splits", lambda: _skipped("splits", "replay failed"))
    # What both of the last layers read is made ready before them: they run side by side, since
    # each trains models on one core.
    _ = case.records, case.position_of_row
    with ThreadPoolExecutor(min(2, case.options.threads)) as pool:
        last = [
            pool.submit(layer, "fingerprint", lambda: fingerprint.check(case, profile)),  # 6
            pool.submit(layer, "utility", lambda: utility.check(case)),  # 7
        ]
    for future in last:
        future.result()
    return tuple(done[name] for name in LAYERS)


def _skipped(name: str, reason: str) -> Finding:
    return Finding(layer=name, status=Status.SKIPPED, summary=f"Not run: {reason}.")


def _malformed(error: MalformedDeliveryError, profile: Profile) -> tuple[Finding, ...]:
    """The findings on bytes that are not a delivery: the first layer fails, the others rest."""
    first = Finding(
        layer="commitment",
        status=Status.FAIL,
        summary=f"This is not a delivery: {error}.",
        guarantee="Malformed bytes are never accepted.",
        evidence={"malformed": str(error)},
    )
    rest = [_skipped(name, "the delivery is malformed") for name in LAYERS[1:]]
    return tuple(replace(f, decides=f.layer in DECIDING[profile]) for f in (first, *rest))

"""verify(): judge a delivery by its layers, in order (spec §9, §10).

    1. commitment   the root follows from the delivery, for this contract and submission
    2. sentinels    every sentinel is back
    3. twins        both records of every pair are back, in one leaf
    4. replay       every record is the one that was sent, and lies in the right leaf
    5. splits       every split is the one that the rule chooses
    6. fingerprint  how far the SHAP distributions moved
    7. utility      what a model trained on the delivery is worth
    8. receipt      the provider has signed that these files are its own

No layer reads what an earlier one has not checked: `splits` with the submission runs only on
records that `replay` found to be those that were sent. Fingerprint and utility only measure, and
the receipt is checked only if a key of the provider is pinned. Layers that do not rest on each
other run side by side.
"""

import hmac
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from verix_anon import __version__
from verix_anon.client import arguments
from verix_anon.client.arguments import FilePath, is_path, opened, options_of
from verix_anon.client.audit_subject import account_of
from verix_anon.client.manifest import Manifest, read_manifest
from verix_anon.client.verdict import (
    DECIDING,
    INFORMING,
    LAYERS,
    RECEIPT,
    Finding,
    Profile,
    Status,
    Verdict,
)
from verix_anon.client.verify import (
    commitment,
    fingerprint,
    receipt,
    replay,
    splits,
    trap_rows,
    utility,
)
from verix_anon.client.verify.case import (
    KEPT_BYTES,
    Audit,
    Case,
    CaseSubmission,
    VerifyOptions,
    columns_at_once,
    is_kept,
)
from verix_anon.errors import MalformedDeliveryError, MixedUpError, TableError
from verix_anon.fields import shown
from verix_anon.files.deliveries import Snapshot, check_answers, read_delivery
from verix_anon.files.submissions import read_submission_by_column
from verix_anon.files.trust import Trust, trust_in
from verix_anon.machine import check_memory
from verix_anon.progress import compiling
from verix_anon.protocol.contract import Digest
from verix_anon.protocol.messages import Delivery, Submission

if TYPE_CHECKING:
    from verix_anon.client.audit_log import AuditLog
    from verix_anon.client.ledger import Ledger

__all__ = ["LAYERS", "VerifyOptions", "verify"]

NO_ROOT = Digest(bytes(32))
"""Stands in a verdict on bytes that are not a delivery."""


def verify(
    delivery: Delivery | Snapshot | FilePath,
    manifest: Manifest | FilePath,
    *,
    submission: Submission | FilePath | None = None,
    profile: Profile | str | None = None,
    skip: Sequence[str] | str = (),
    provider_keys: Trust | Sequence[FilePath] | FilePath = (),
    log: "AuditLog | FilePath | None" = None,
    ledger: "Ledger | FilePath | None" = None,
    options: VerifyOptions | None = None,
) -> Verdict:
    """Judge a delivery.

    Args:
        delivery: What the provider returned: in memory, or the folder or URL of its files.
        manifest: What the owner kept, or its file.
        submission: What was sent, or its folder, if it is at hand; without it the verification
            is thin, and a thin one ignores it.
        profile: Which layers decide; `full` with the submission and `thin` without by default.
        skip: Informing layers to leave out, `fingerprint` and `utility`; no verdict rests on them.
        provider_keys: The provider's public keys, or files of keys, or of pinned and revoked keys.
            With at least one, here or in the manifest, a valid receipt is needed.
        log: The audit log; the verdict is added, and a VIOLATION found before is final. None:
            nothing is written.
        ledger: It remembers the log's last line, and the verdict warns of lines that it remembers
            and the log lacks. None: only the lines of the log are compared with each other.
        options: Which nodes to audit, and the fingerprint's thresholds.

    Raises:
        MixedUpError: The delivery says that it is for another submission. It is not judged; the
            log gets a line that is not a verdict.
        TableError: The submission is not the one this manifest was made for, or was altered; or
            something given is not what it should be.
        NotAcceptedError: The log has a VIOLATION for this submission, and this check may have
            missed it.

    Examples:
        >>> job = ("job/delivery", "job/manifest.verix")
        >>> verix_anon.verify(*job, submission="job/submission").accepted
        True
    """
    began = time.perf_counter()
    trust = _trust(provider_keys)
    options = options_of(options, VerifyOptions)
    options = replace(options, skip=skip) if skip else options
    if log is not None:
        # Loaded only where a log is kept: without one, verify() writes nothing.
        from verix_anon.client.audit_log import open_log

        inputs = filter(is_path, (delivery, manifest, submission))
        log, ledger = open_log(log, ledger, inputs=inputs)
    elif ledger is not None:
        raise TableError("the ledger remembers the last line of an audit log: give log, too")
    options.progress("read", 0, 1)
    manifest = opened(manifest, Manifest, read_manifest, "manifest")
    if profile not in (None, *Profile):
        raise TableError(f"profile must be one of {', '.join(Profile)}, not {shown(profile)}")
    usual = Profile.THIN if submission is None else Profile.FULL
    chosen = usual if profile is None else Profile(profile)
    _check_memory(manifest, chosen, options, is_held=isinstance(submission, Submission))
    # A thin verification shows what the manifest alone can prove, even with a submission.
    sent = None
    if submission is not None and chosen is not Profile.THIN:
        read = partial(read_submission_by_column, most_values=KEPT_BYTES)
        sent = opened(submission, Submission, read, "submission")
    _check_own(manifest, sent, chosen, options)
    trust = trust.beside(manifest.provider_keys)
    try:
        verdict = _judge(delivery, manifest, sent, trust, chosen, options)
    except MixedUpError as error:
        if log is not None:
            log.note_mix_up(manifest.submission, str(error))
        raise
    verdict = replace(verdict, seconds=round(time.perf_counter() - began, 3))
    if log is not None:
        is_exact = chosen is Profile.FULL and options.audit is Audit.ALL
        told = log.settle(verdict, manifest.table, ledger, is_exact=is_exact)
        verdict = replace(verdict, warnings=told)
    return verdict


def _trust(given: object) -> Trust:
    if isinstance(given, Trust):
        return given
    paths = [given] if is_path(given) else given
    if not isinstance(paths, Sequence) or not all(map(is_path, paths)):
        raise TableError(f"provider_keys must be paths of keys, not {shown(given)}")
    return trust_in(paths)


def _judge(
    delivery: Delivery | Snapshot | FilePath,
    manifest: Manifest,
    submission: CaseSubmission | None,
    trust: Trust,
    profile: Profile,
    options: VerifyOptions,
) -> Verdict:
    """Return what the layers find; bytes that are not a delivery are a finding as well."""
    try:
        snapshot = _snapshot(delivery, manifest)
    except MalformedDeliveryError as error:
        findings, root, files = malformed(error, profile, trust), NO_ROOT, dict[str, str]()
    else:
        options.progress("read", 1, 1)
        options.progress("layers", 0, len(LAYERS))
        judged = snapshot.delivery
        case = Case(
            delivery=judged,
            manifest=manifest,
            submission=submission,
            options=options,
            damaged=snapshot.damaged,
            files=snapshot.files,
            receipt=snapshot.receipt,
            trust=trust,
        )
        findings, root, files = run(case, profile), judged.header.root, dict(snapshot.files)
    return Verdict(
        profile=profile,
        root=root,
        files=files,
        contract=manifest.contract.digest,
        submission=manifest.submission,
        findings=findings,
        account=account_of(manifest),
        unsafe_seed=manifest.unsafe_seed,
        version=__version__,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _check_memory(
    manifest: Manifest, profile: Profile, options: VerifyOptions, *, is_held: bool
) -> None:
    """Refuse a delivery that will not fit with its tree and, for `full`, its values by leaf.

    Nothing is read yet, so a submission that is still to be read into memory counts, too.
    """
    n_rows, n_quasi = manifest.n_rows, len(manifest.contract.quasi)
    most_leaves = n_rows // manifest.contract.min_leaf
    values = 0
    if profile is Profile.FULL:
        n_columns = columns_at_once(n_rows, n_quasi, options.threads)
        values = 8 * n_quasi if is_kept(n_rows, n_quasi) else 20 * n_columns
    if profile is not Profile.THIN and not is_held and is_kept(n_rows, n_quasi):
        values += 8 * n_quasi + 33
    check_memory(
        n_rows * (70 + values) + most_leaves * (60 + 24 * n_quasi),
        f"verifying {n_rows:,} records with {n_quasi} quasi-identifiers",
        TableError,
    )


def _check_own(
    manifest: Manifest, submission: CaseSubmission | None, profile: Profile, options: VerifyOptions
) -> None:
    """Check the owner's own files first: a verdict on the wrong submission would be worthless."""
    decides = set(options.skip) - INFORMING[profile]
    if decides:
        can = " and ".join(sorted(INFORMING[profile]))
        raise TableError(
            f"{shown(min(decides))} cannot be left out: under the profile {profile} only {can} can"
        )
    unknown = options.epsilon_per_feature.keys() - {c.name for c in manifest.quasi}
    if unknown:
        raise TableError(f"an epsilon is for {min(unknown)!r}, which is not a quasi-identifier")
    if profile is Profile.PAPER and manifest.contract.is_coded:
        raise TableError(
            "the profile 'paper' needs columns that were sent in clear, with the target:"
            " prepare with --preset paper"
        )
    if profile is Profile.FULL and submission is None:
        raise TableError(
            "the profile 'full' needs the submission: give it, or take the profile 'thin'"
        )
    if submission is None:
        return
    if not hmac.compare_digest(submission.contract.digest, manifest.contract.digest):
        raise TableError("the submission's contract is not the one this manifest was made for")
    digest = submission.digest(threads=options.threads)
    if not hmac.compare_digest(digest, manifest.submission):
        raise TableError(
            "the submission is not the one this manifest was made for, or it was altered"
        )


def _snapshot(delivery: Delivery | Snapshot | FilePath, manifest: Manifest) -> Snapshot:
    """Return the delivery, checked to be well-formed, and the digests of what will be judged."""
    if not isinstance(delivery, Delivery | Snapshot):
        read = partial(
            read_delivery,
            contract=manifest.contract,
            n_rows=manifest.n_rows,
            submission=manifest.submission,
        )
        found = opened(delivery, Snapshot, read, "delivery")
        leaves = found.delivery.leaves
        if manifest.contract.is_coded and 2 * leaves.minimum.nbytes > KEPT_BYTES:
            # A large delivery, whose bounds are as large as its records, in less memory.
            narrower = replace(found.delivery, leaves=leaves.narrowed())
            found = replace(found, delivery=narrower)
        return found
    held = delivery.delivery if isinstance(delivery, Snapshot) else delivery
    arguments.check_types(held)
    # A snapshot may have been read for another submission.
    check_answers(held.header, manifest.submission)
    held.check(manifest.contract, n_rows=manifest.n_rows)
    if isinstance(delivery, Snapshot):
        return delivery
    return Snapshot(delivery=held, files=arguments.digests(held))


Check = Callable[[], Finding]


def run(case: Case, profile: Profile) -> tuple[Finding, ...]:
    """Return what every layer finds; the steps are numbered as in the package's docstring."""
    done: dict[str, Finding] = {}

    def layer(name: str, check: Check, *, compiles: bool = True) -> None:
        began, before = time.perf_counter(), compiling.seconds
        finding = check()
        seconds = time.perf_counter() - began
        if compiles:
            # Of the first run on a machine, not of this layer.
            seconds -= compiling.seconds - before
        decides = _decides(name, profile, case.trust)
        done[name] = replace(finding, decides=decides, seconds=round(max(0.0, seconds), 4))
        case.options.progress("layers", len(done), len(LAYERS))

    # These hold on to one core each, by hashing or by training models; the others share all.
    alone: dict[str, Check] = {
        "commitment": lambda: commitment.check(case),  # 1
        "fingerprint": lambda: fingerprint.check(case, profile),  # 6
        "utility": lambda: utility.check(case),  # 7
    }
    for name in case.options.skip:
        alone[name] = partial(_skipped, name, "left out by the caller")
    # What several read is made ready before them.
    _ = case.records, case.is_complete, case.grouped
    with ThreadPoolExecutor(min(2, case.options.threads)) as pool:
        futures = {
            name: pool.submit(layer, name, check, compiles=False) for name, check in alone.items()
        }
        layer("sentinels", lambda: trap_rows.check_sentinels(case))  # 2
        layer("twins", lambda: trap_rows.check_twins(case))  # 3
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
        layer("receipt", lambda: receipt.check(case))  # 8
        # What decides is known before the models are.
        deciding = [name for name in LAYERS if _decides(name, profile, case.trust)]
        for name in futures.keys() & deciding:
            futures[name].result()
        case.options.decided([done[name] for name in deciding])
        for future in futures.values():
            future.result()
    return tuple(done[name] for name in LAYERS)


def _decides(name: str, profile: Profile, trust: Trust) -> bool:
    return name in DECIDING[profile] or (name == RECEIPT and bool(trust))


def _skipped(name: str, reason: str) -> Finding:
    return Finding(layer=name, status=Status.SKIPPED, summary=f"Not run: {reason}.")


def malformed(error: MalformedDeliveryError, profile: Profile, trust: Trust) -> tuple[Finding, ...]:
    """The findings on bytes that are not a delivery: the first layer fails, the others rest."""
    first = Finding(
        layer="commitment",
        status=Status.FAIL,
        summary=f"This is not a delivery: {error}.",
        guarantee="Malformed bytes are never accepted.",
        evidence={"malformed": str(error)},
    )
    rest = [_skipped(name, "the delivery is malformed") for name in LAYERS[1:]]
    return tuple(replace(f, decides=_decides(f.layer, profile, trust)) for f in (first, *rest))

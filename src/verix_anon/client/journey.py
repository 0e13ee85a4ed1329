"""run(): the four functions in a row, in memory; the command `run` does the same in a folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from verix_anon.client.arguments import FilePath
from verix_anon.client.audit_log import AuditLog
from verix_anon.client.ledger import Ledger
from verix_anon.client.manifest import Manifest
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import Released, ReleaseOptions, release
from verix_anon.client.release.published import OutputFiles
from verix_anon.client.verdict import Profile, Verdict
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.errors import TableError
from verix_anon.fields import shown
from verix_anon.files.trust import Trust
from verix_anon.protocol.messages import Delivery, Submission
from verix_anon.protocol.providers import Provider


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Journey:
    """What came of each step of run().

    Examples:
        >>> provider = verix_anon.LocalProvider()
        >>> done = verix_anon.run("people.csv", provider, target="income", quasi="all")
        >>> isinstance(done, verix_anon.Journey), done.manifest.contract.k
        (True, 5)
    """

    submission: Submission
    """What the provider got."""
    manifest: Manifest
    """What the owner kept."""
    delivery: Delivery
    """What the provider returned."""
    verdict: Verdict
    released: Released[Any] | None
    """The table to publish; None unless the verdict is VERIFIED."""
    warnings: tuple[str, ...]
    """The warnings of prepare(); the verdict and the release have their own."""


def run(
    table: object,
    provider: Provider,
    *,
    out: FilePath | None = None,
    sheet: FilePath | None = None,
    overwrite: bool = False,
    profile: Profile | str | None = None,
    provider_keys: Trust | Sequence[FilePath] | FilePath = (),
    prepare_options: PrepareOptions | None = None,
    verify_options: VerifyOptions | None = None,
    release_options: ReleaseOptions | None = None,
    ledger: Ledger | FilePath | None = None,
    log: AuditLog | FilePath | None = None,
    **columns: Any,
) -> Journey:
    """Prepare a table, have it anonymized, verify what comes back, and release it if it passes.

    Args:
        table: What prepare() takes: a table in memory, or its file.
        provider: Who anonymizes: LocalProvider(), RemoteProvider() or any other.
        out: Write the released table here. None: it is only returned.
        sheet: Write the privacy sheet here.
        overwrite: Replace files that are there.
        profile: Which layers decide, as for verify().
        provider_keys: The provider's public keys: a valid receipt is needed.
        prepare_options: As for prepare().
        verify_options: As for verify().
        release_options: As for release(). Its `force` overrides the ledger, but never the verdict.
        ledger: The tables prepared and released so far. None: no memory of them.
        log: The audit log. None: no memory of verdicts.
        columns: The other keywords of prepare(): roles, or target, quasi and so on; and k.

    Raises:
        Error: As the four functions do. A VIOLATION is not an error: it is in the verdict.

    Examples:
        >>> provider = verix_anon.LocalProvider()
        >>> done = verix_anon.run("people.csv", provider, roles="roles.toml", out="new.csv")
        >>> done.verdict.accepted, done.released.table.num_rows
        (True, 600)
    """
    if not isinstance(provider, Provider):
        raise TableError(f"provider must have a method anonymize, not be {shown(provider)}")
    # Asked before long work, and before anything is sent.
    OutputFiles.check(out, sheet, (table,), overwrite)
    prepared = prepare(table, options=prepare_options, ledger=ledger, **columns)
    submission, manifest = prepared.submission, prepared.manifest
    delivery = provider.anonymize(submission)
    verdict = verify(
        delivery,
        manifest,
        submission=submission,
        profile=profile,
        provider_keys=provider_keys,
        log=log,
        ledger=None if log is None else ledger,
        options=verify_options,
    )
    released = None
    if verdict:
        released = release(
            delivery,
            manifest,
            verdict,
            table=table,
            out=out,
            sheet=sheet,
            overwrite=overwrite,
            options=release_options,
            ledger=ledger,
            log=log,
        )
    return Journey(
        submission=submission,
        manifest=manifest,
        delivery=delivery,
        verdict=verdict,
        released=released,
        warnings=prepared.warnings,
    )

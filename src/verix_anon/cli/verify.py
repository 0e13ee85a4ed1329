"""The owner's judgement: verify."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.pairs import numbers_by_column
from verix_anon.cli.secrets import (
    KeyPassphraseFile,
    PassphraseFile,
    load_envelopes,
    load_key,
    load_manifest,
)
from verix_anon.cli.show import AsJson, Quiet, progress_bar, quoted, say, verdict_lines
from verix_anon.cli.writing import check_outputs, write_data
from verix_anon.errors import TableError

if TYPE_CHECKING:
    from verix_anon.client.verdict import Verdict
    from verix_anon.protocol.envelopes import SigningKey

__all__ = ["verify"]

NEXT = "Release it: verix-anon release {given} --table TABLE --out released.csv"
AFTER = (
    "Do not release it, and keep everything: delivery, submission, manifest, verdict and log.\n"
    "If it may be another job's, or damaged on the way: verix-anon inspect {delivery}\n"
    "What to do next: docs/how-to/after-a-violation.md"
)
EXIT_CODES = {"VERIFIED": 0, "VIOLATION": 1, "INCONCLUSIVE": 3}


@app.command(
    epilog="Example: [bold]verix-anon verify job/delivery --manifest job/manifest.verix"
    " --submission job/submission --out job/verdict.json[/bold]\n\n"
    "Exit codes: 0 VERIFIED, 1 VIOLATION, 3 INCONCLUSIVE, 2 a mistake of the caller's, 70 a bug."
)
def verify(
    delivery: Annotated[str, typer.Argument(help="The delivery's folder or URL.")],
    manifest: Annotated[Path, typer.Option("--manifest", "-m", help="The manifest of the job.")],
    submission: Annotated[
        str | None,
        typer.Option("--submission", "-s", help="What was sent; without it less is proved."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Which layers decide: full, thin or paper; by what is at hand if not said."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write the verdict here, for release.", rich_help_panel="Output"
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            help="Write the audit report here: one HTML page, for people.",
            rich_help_panel="Output",
        ),
    ] = None,
    skip: Annotated[
        str | None,
        typer.Option(help="Informing layers to leave out: fingerprint, utility or both."),
    ] = None,
    audit: Annotated[
        str, typer.Option(help="Check all nodes, or a sample.", rich_help_panel="Splits")
    ] = "all",
    audit_miss: Annotated[
        float,
        typer.Option(help="A sample misses with at most this chance ...", rich_help_panel="Splits"),
    ] = 0.01,
    audit_fraction: Annotated[
        float,
        typer.Option(help="... deviations that touch this share.", rich_help_panel="Splits"),
    ] = 0.01,
    epsilon: Annotated[
        float | None,
        typer.Option(help="How far SHAP values may move.", rich_help_panel="Fingerprint"),
    ] = None,
    epsilon_per_feature: Annotated[
        list[str] | None,
        typer.Option(help="The same for one column: COLUMN=NUMBER.", rich_help_panel="Fingerprint"),
    ] = None,
    provider_key: Annotated[
        list[Path] | None,
        typer.Option(
            help="The provider's public key, or a file of pinned keys: its receipt is needed.",
            rich_help_panel="Receipt",
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            help="Sign the verdict with this private key, beside --out, for others to check.",
            rich_help_panel="Receipt",
        ),
    ] = None,
    passphrase_file: PassphraseFile = None,
    key_passphrase_file: KeyPassphraseFile = None,
    log: Annotated[
        Path | None,
        typer.Option(
            help="The audit log; audit.jsonl beside the manifest if not given.",
            rich_help_panel="Output",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace a verdict or report that is there.",
            rich_help_panel="Output",
        ),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Judge a delivery: whether the agreed work was done, on all the records.

    With the submission at hand everything is checked exactly; without it (thin) what the
    manifest keeps is checked, and the findings say with what certainty.
    """
    from verix_anon.cli.report import write_report
    from verix_anon.client.audit_log import AuditLog
    from verix_anon.client.report import check_installed
    from verix_anon.client.signed import signed_path
    from verix_anon.client.verify import VerifyOptions
    from verix_anon.client.verify import verify as judge
    from verix_anon.files.aside import check_apart

    if sign is not None and out is None:
        raise TableError("--sign signs the verdict's file: say with --out where it goes")
    inputs: list[object] = [delivery, manifest, submission, sign, *(provider_key or [])]
    signed = signed_path(out) if sign and out else None
    audit_log = AuditLog(log or manifest.parent / "audit.jsonl")
    check_apart(audit_log.path, inputs)
    if report is not None:
        check_installed()
    check_outputs([out, report, signed], [*inputs, audit_log.path], overwrite=overwrite)
    options = VerifyOptions(
        audit=audit,
        audit_miss=audit_miss,
        audit_fraction=audit_fraction,
        epsilon=epsilon,
        epsilon_per_feature=numbers_by_column(epsilon_per_feature or []),
    )
    if profile is None and submission is None:
        _warn_of_thin(manifest.parent / "submission")
    kept = load_manifest(manifest, passphrase_file)
    if provider_key or kept.provider_keys:
        load_envelopes()
    key = None if sign is None else load_key(sign, key_passphrase_file)
    with progress_bar(quiet) as progress:
        verdict = judge(
            delivery,
            kept,
            submission=submission,
            profile=profile,
            provider_keys=provider_key or (),
            skip=[name.strip() for name in skip.split(",")] if skip else (),
            log=audit_log,
            options=replace(options, progress=progress),
        )
    if out is not None:
        _write(verdict, out, key, overwrite=overwrite)
    if report is not None:
        write_report(verdict, report, overwrite=overwrite)
    if as_json:
        say(verdict.to_json())
    else:
        _say(verdict, delivery, manifest, out)
    sys.exit(EXIT_CODES[verdict.outcome.value])


def _warn_of_thin(beside: Path) -> None:
    if beside.is_dir():
        print(
            f"Warning: a thin verification, though {beside} lies beside the manifest;"
            f" --submission {quoted(beside)} checks everything",
            file=sys.stderr,
        )


def _write(verdict: "Verdict", out: Path, key: "SigningKey | None", *, overwrite: bool) -> None:
    from verix_anon.client.signed import sign_verdict, signed_path
    from verix_anon.client.verdict import write_verdict

    write_verdict(verdict, out, overwrite=overwrite)
    if key is not None:
        signed = sign_verdict(verdict, out.read_bytes(), key)
        write_data(signed, signed_path(out), overwrite=overwrite)


def _say(verdict: "Verdict", delivery: str, manifest: Path, out: Path | None) -> None:
    say("\n".join(verdict_lines(verdict)))
    if verdict and out is not None:
        given = (delivery, "--manifest", manifest, "--verdict", out)
        say(NEXT.format(given=quoted(*given)))
    if verdict.outcome.value == "VIOLATION":
        say(AFTER.format(delivery=quoted(delivery)))

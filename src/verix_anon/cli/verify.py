"""The commands `verify` and `report`: judge a delivery, and tell people what was found."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app, left_out, load_kernels
from verix_anon.cli.options import (
    AsJson,
    DeliveryFolder,
    KeyPassphraseFile,
    ManifestFile,
    PageLanguage,
    PassphraseFile,
    Quiet,
    load_envelopes,
    load_key,
    load_manifest,
    numbers_by_column,
    option,
    output_option,
    overwrite_option,
    receipt_option,
)
from verix_anon.cli.output import (
    check_outputs,
    during,
    progress_bar,
    quoted,
    say,
    verdict_lines,
    write_text,
)
from verix_anon.errors import TableError
from verix_anon.fields import printable
from verix_anon.files.job_folder import AUDIT_LOG, SHEET, SUBMISSION

if TYPE_CHECKING:
    from verix_anon.client.verdict import Finding

TABLE = "--table TABLE"
AFTER = (
    "Do not release it. Keep everything: delivery, submission, manifest, verdict and log.\n"
    "To see whether the folder is another job's, or damaged: verix-anon inspect {delivery}\n"
    "What to do next: docs/how-to/after-a-violation.md"
)
EXIT_CODES = {"VERIFIED": 0, "VIOLATION": 1, "INCONCLUSIVE": 3}

splits_option = partial(option, panel="Splits")
fingerprint_option = partial(option, panel="Fingerprint")


@app.command(
    epilog="Example: [bold]verix-anon verify job/delivery --manifest job/manifest.verix"
    " --submission job/submission --out job/verdict.json[/bold]\n\n"
    "Exit codes: 0 VERIFIED, 1 VIOLATION, 3 INCONCLUSIVE, 2 a mistake in the call, 70 a bug."
)
def verify(
    delivery: DeliveryFolder,
    manifest: ManifestFile,
    submission: Annotated[
        str | None, option("The submission. Without it, less is checked.", "--submission", "-s")
    ] = None,
    profile: Annotated[
        str | None, option("The layers that decide: full, thin (without submission) or paper.")
    ] = None,
    out: Annotated[
        Path | None, output_option("Write the verdict here, for release.", "--out", "-o")
    ] = None,
    report: Annotated[
        Path | None, output_option("Write the audit report here, as one HTML page.")
    ] = None,
    language: PageLanguage = "en",
    skip: Annotated[
        str | None, option("Layers to skip: fingerprint, utility or fingerprint,utility.")
    ] = None,
    audit: Annotated[str, splits_option("Which nodes to check: all or sample.")] = "all",
    audit_miss: Annotated[
        float, splits_option("The greatest chance that a sample misses deviations ...")
    ] = 0.01,
    audit_fraction: Annotated[float, splits_option("... that touch at least this share.")] = 0.01,
    epsilon: Annotated[float | None, fingerprint_option("How far SHAP values may move.")] = None,
    epsilon_per_feature: Annotated[
        list[str] | None, fingerprint_option("The same for one column: COLUMN=NUMBER.")
    ] = None,
    provider_key: Annotated[
        list[Path] | None,
        receipt_option(
            "The provider's public key, or a file of pinned keys. The receipt is then required."
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        receipt_option("Sign the verdict with this private key, so that others can check it."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    key_passphrase_file: KeyPassphraseFile = None,
    log: Annotated[
        Path | None, output_option("The audit log. Default: audit.jsonl beside the manifest.")
    ] = None,
    overwrite: Annotated[bool, overwrite_option("a verdict or report that is there")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Judge a delivery: say whether the agreed work was done on all records.

    With the submission, everything is checked exactly. Without it, the manifest allows a smaller
    check, and each finding says how certain it is.
    """
    load_kernels()
    from verix_anon.client.audit_log import AuditLog
    from verix_anon.client.ledger import Ledger
    from verix_anon.client.owner_files import sign_verdict, signed_path, write_verdict
    from verix_anon.client.report import check_installed, render
    from verix_anon.client.verify import VerifyOptions
    from verix_anon.client.verify import verify as judge
    from verix_anon.files.atomic_write import check_apart

    if sign is not None and out is None:
        raise TableError("--sign signs the verdict's file: add --out FILE")
    inputs: list[object] = [delivery, manifest, submission, sign, *(provider_key or [])]
    signed = signed_path(out) if sign and out else None
    audit_log = AuditLog(log or manifest.parent / AUDIT_LOG)
    check_apart(audit_log.path, inputs)
    audit_log.check()
    if report is not None:
        check_installed(language)
    check_outputs([out, report, signed], [*inputs, audit_log.path], overwrite=overwrite)
    options = VerifyOptions(
        audit=audit,
        audit_miss=audit_miss,
        audit_fraction=audit_fraction,
        epsilon=epsilon,
        epsilon_per_feature=numbers_by_column(epsilon_per_feature or []),
    )
    kept = load_manifest(manifest, passphrase_file)
    if profile in (None, "full") and submission is None:
        beside = manifest.parent / SUBMISSION
        if beside.is_dir():
            print(
                "Warning: without the submission, less is checked. It lies beside the manifest: add"
                f" --submission {quoted(beside)}",
                file=sys.stderr,
            )
    if provider_key or kept.provider_keys:
        load_envelopes()
    key = None if sign is None else load_key(sign, key_passphrase_file)
    # Its models do without it, and xgboost would import it: more than a second.
    with left_out("sklearn"), progress_bar(quiet) as progress:
        verdict = judge(
            delivery,
            kept,
            submission=submission,
            profile=profile,
            provider_keys=provider_key or (),
            skip=[name.strip() for name in skip.split(",")] if skip else (),
            log=audit_log,
            ledger=Ledger.default(),
            options=replace(options, progress=progress, decided=partial(_tell, quiet)),
        )
    for warning in verdict.warnings:
        print(f"Warning: {printable(warning)}", file=sys.stderr)
    if out is not None:
        write_verdict(verdict, out, overwrite=overwrite)
        if key is not None:
            words = sign_verdict(verdict, out.read_bytes(), key)
            write_text(words, signed_path(out), overwrite=overwrite)
    if report is not None:
        write_text(render(verdict, language=language), report, overwrite=overwrite)
    if as_json:
        say(verdict.to_json())
    else:
        say("\n".join(verdict_lines(verdict)))
        if verdict and out is not None:
            given = quoted(delivery, "--manifest", manifest, "--verdict", out)
            released = f"verix-anon release {given} {TABLE} --out released.csv"
            say(f"Release it, with your table:\n  {released}")
        if verdict.outcome.value == "VIOLATION":
            say(AFTER.format(delivery=quoted(delivery)))
    sys.exit(EXIT_CODES[verdict.outcome.value])


def _tell(quiet: bool, findings: "Sequence[Finding]") -> None:
    """Tell a person who waits what the deciding layers found, while models are still trained."""
    if quiet or not sys.stderr.isatty():
        return
    others = [f"{f.layer}: {f.status.value}" for f in findings if f.status.value != "pass"]
    found = f"Not passed: {', '.join(others)}." if others else "All deciding layers passed."
    print(f"{found} The layers that only inform are still running.", file=sys.stderr)


@app.command(
    epilog="Example: [bold]verix-anon report job/verdict.json --release job/sheet.json"
    " --out job/audit.html[/bold]"
)
def report(
    verdict: Annotated[Path, typer.Argument(help="The verdict that verify --out wrote.")],
    out: Annotated[
        Path | None, option("The HTML file. Default: the verdict's name with .html.", "--out", "-o")
    ] = None,
    release: Annotated[
        Path | None,
        option(
            "The privacy sheet that release --privacy-sheet wrote. Default: sheet.json beside the"
            " verdict.",
            "--release",
            "-r",
        ),
    ] = None,
    language: PageLanguage = "en",
    overwrite: Annotated[bool, option("Replace a report that is there.")] = False,
    quiet: Quiet = False,
) -> None:
    """Turn a verdict into one HTML page for a data protection officer.

    The page holds only aggregates, loads nothing, and prints on A4. The exit code is 0, whatever
    the verdict is.
    """
    from verix_anon.client.owner_files import read_verdict
    from verix_anon.client.privacy_sheet import Sheet
    from verix_anon.client.report import check_installed, render

    check_installed()
    target = verdict.with_suffix(".html") if out is None else out
    beside = verdict.with_name(SHEET)
    check_outputs([target], [verdict, release or beside], overwrite=overwrite)
    found = read_verdict(verdict)
    sheet: Sheet | None = None
    if release is not None:
        sheet = Sheet.read(release)
    elif beside.exists():
        try:
            sheet = Sheet.read(beside)
            if sheet.root != found.root:
                raise TableError("it is of another delivery")
        except TableError as error:
            sheet = None
            print(f"Warning: {beside} is left out: {printable(str(error))}", file=sys.stderr)
    page = during("draw", quiet, lambda: render(found, sheet, language))
    write_text(page, target, overwrite=overwrite)
    is_beside = release is None and sheet is not None
    say(f"Written to {target}{f', with the privacy sheet {beside}' if is_beside else ''}.")

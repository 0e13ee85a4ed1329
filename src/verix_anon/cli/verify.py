"""The owner's judgement: verify."""

import contextlib
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verix_anon.cli.app import app
from verix_anon.cli.pairs import numbers_by_column
from verix_anon.cli.secrets import PassphraseFile, load_manifest
from verix_anon.cli.show import AsJson, say, say_compiled, verdict_lines
from verix_anon.cli.writing import check_outputs, write_text
from verix_anon.errors import NotAcceptedError, TableError

if TYPE_CHECKING:
    from verix_anon.client.verdict import Verdict

__all__ = ["verify"]

FIRST = "commitment"
BEFORE = (
    "this root was found in VIOLATION before ({time}), which is final: a provider must"
    " not play until a sample misses; verify with the submission and --audit all"
)
NEXT = (
    "Release it: verix-anon release {delivery} --manifest {manifest} --verdict {out}"
    " --table TABLE --out released.csv"
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
    passphrase_file: PassphraseFile = None,
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
) -> None:
    """Judge a delivery: whether the agreed work was done, on all the records.

    With the submission at hand everything is checked exactly; without it (thin) what the
    manifest keeps is checked, and the findings say with what certainty.
    """
    from verix_anon.cli.choices import choice
    from verix_anon.cli.report import write_report
    from verix_anon.client.report import check_installed
    from verix_anon.client.verdict import Profile
    from verix_anon.client.verify import VerifyOptions
    from verix_anon.client.verify import verify as judge
    from verix_anon.client.verify.case import Audit
    from verix_anon.files.submissions import read_submission

    if (Path(delivery) / "contract.json").is_file():
        raise TableError(f"{delivery} is a submission, not a delivery")
    inputs: list[object] = [delivery, manifest, submission]
    journal = log or manifest.parent / "audit.jsonl"
    _check_journal(journal, inputs)
    if report is not None:
        check_installed()
    check_outputs([out, report], [*inputs, journal], overwrite=overwrite)
    options = VerifyOptions(
        audit=choice(Audit, audit, "--audit"),
        audit_miss=audit_miss,
        audit_fraction=audit_fraction,
        epsilon=epsilon,
        epsilon_per_feature=numbers_by_column(epsilon_per_feature or []),
    )
    chosen = None if profile is None else choice(Profile, profile, "--profile")
    verdict = judge(
        delivery,
        load_manifest(manifest, passphrase_file),
        submission=None if submission is None else read_submission(submission),
        profile=chosen,
        options=options,
    )
    say_compiled()
    is_exact = verdict.profile is Profile.FULL and options.audit is Audit.ALL
    earlier = None if is_exact else _earlier_violation(journal, verdict)
    _append(verdict, journal)
    if verdict and earlier is not None:
        raise NotAcceptedError(BEFORE.format(time=earlier))
    if out is not None:
        write_text(verdict.to_json() + "\n", out, overwrite=overwrite)
    if report is not None:
        write_report(verdict, report, overwrite=overwrite)
    say(verdict.to_json() if as_json else "\n".join(verdict_lines(verdict)))
    if verdict and out is not None and not as_json:
        say(NEXT.format(delivery=delivery, manifest=manifest, out=out))
    sys.exit(EXIT_CODES[verdict.outcome.value])


def _earlier_violation(journal: Path, verdict: "Verdict") -> str | None:
    """When this very root was found in VIOLATION before, by the audit log; None if never."""
    try:
        lines = journal.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        # A damaged line says nothing about this root.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            # A root that did not follow from its delivery says nothing about one that does.
            is_about = entry["root"] == verdict.root.hex()
            if is_about and entry["outcome"] == "VIOLATION" and entry["layers"][FIRST] == "pass":
                return str(entry["time"])
    return None


def _check_journal(journal: Path, inputs: list[object]) -> None:
    """Raise if the audit log would be appended to something that is not one."""
    from verix_anon.files.store import check_apart

    check_apart(journal, inputs)
    try:
        with journal.open("rb") as file:
            beginning = file.read(1)
    except FileNotFoundError:
        return
    except OSError as error:
        raise TableError(f"the audit log {journal} cannot be read ({error.strerror})") from None
    if beginning not in (b"", b"{"):
        raise TableError(f"{journal} is not an audit log, so nothing is appended to it")


def _append(verdict: "Verdict", log: Path) -> None:
    """One line in the audit log: which layers fired, on what, when."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "outcome": verdict.outcome.value,
        "profile": verdict.profile.value,
        "root": verdict.root.hex(),
        "contract": verdict.contract.hex(),
        "submission": verdict.submission.hex(),
        "files": dict(verdict.files),
        "fired": [f.layer for f in verdict.findings if f.status.value == "fail"],
        "layers": {f.layer: f.status.value for f in verdict.findings},
        "unsafe_seed": verdict.unsafe_seed,
        "version": verdict.version,
        "seconds": verdict.seconds,
    }
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:
        raise TableError(f"the audit log {log} cannot be written ({error.strerror})") from None

"""The commands `run` and `demo`: the whole journey in one process, from prepare to release.

`run` does it in a job's folder. Each step is the work of its command, with its options, files,
ledger and audit log. The manifest and the table are read once. What the provider returned is read
from the disk, as hostile bytes.

`demo` does it in memory, on an embedded table, and explains it as it goes.
"""

import copy
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from verix_anon.cli.anonymize import (
    AuthoritiesFile,
    Engine,
    InsecureHttp,
    Token,
    TokenFile,
    anonymize,
    submit,
    token_of,
)
from verix_anon.cli.app import app
from verix_anon.cli.options import (
    AsJson,
    PageLanguage,
    Quiet,
    SourceTable,
    load_manifest,
    option,
    overwrite_option,
    read_once,
    service_option,
    taking,
)
from verix_anon.cli.output import (
    STEP,
    Step,
    check_outputs,
    during,
    facts,
    quoted,
    say,
    tree_line,
    verdict_lines,
    write_text,
)
from verix_anon.cli.prepare import planted_lines, prepare, prepare_options, sent_lines
from verix_anon.cli.release import release as publish
from verix_anon.cli.verify import EXIT_CODES, TABLE, verify
from verix_anon.errors import Error, TableError
from verix_anon.fields import printable, to_json
from verix_anon.files.job_folder import AUDIT_LOG, DELIVERY, MANIFEST, SHEET, SUBMISSION, VERDICT

if TYPE_CHECKING:
    import pyarrow as pa

    from verix_anon.client.manifest import Manifest
    from verix_anon.client.release import Released
    from verix_anon.client.verdict import Verdict
    from verix_anon.protocol.providers import Provider

KEYWORD = Parameter.KEYWORD_ONLY
Values = dict[str, Any]
Said = dict[str, list[str]]
STEPS: dict[str, tuple[Callable[..., Any], ...]] = {
    "1. Prepare": (prepare,),
    "2. Anonymize": (anonymize, submit),
    "3. Verify": (verify,),
    "4. Release": (publish,),
}
BY_JOB = {"submission", "delivery", "manifest", "verdict", "out", "table"}
"""Parameters that the job's folder determines, so `run` has no options for them."""
NOT_HERE = {"force", "preview"}
"""`run` never releases against a verdict or the ledger; a look is for `release`."""
HERE = ("threads", "engine", "spark", "task_rows", "sign_delivery")
BY_SERVICE = ("token_file", "token", "keep", "wait", "insecure_http", "ca_file")
"""Options of the two ways to have a submission anonymized, which exclude each other."""
OWN = {"overwrite", "as_json", "quiet"}
RENAMED = {
    (anonymize, "sign"): "sign_delivery",
    (verify, "sign"): "sign_verdict",
    (publish, "sign"): "sign_series",
    (verify, "skip"): "skip_layers",
}
"""Options of one name that mean two things; of others with one name, one value is for all."""


def _with_steps(own: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of all steps, in panels by step."""
    found = {n: p for n, p in signature(own).parameters.items() if n != "values"}
    for title, commands in STEPS.items():
        for each in commands:
            for name, parameter in signature(each).parameters.items():
                called = RENAMED.get((each, name), name)
                if name in BY_JOB | NOT_HERE | OWN or called in found:
                    continue
                info = copy.copy(parameter.annotation.__metadata__[0])
                panel = info.rich_help_panel
                info.rich_help_panel = f"{title}: {panel.lower()}" if panel else title
                kind = parameter.annotation.__origin__
                default = None if parameter.default is Parameter.empty else parameter.default
                typed = Annotated[kind | None if default is None else kind, info]  # type: ignore[valid-type]
                found[called] = Parameter(called, KEYWORD, default=default, annotation=typed)
    return taking((p.replace(kind=KEYWORD) for p in found.values()), own)


def _do(work: Callable[..., Any], values: Values, said: Said, **given: object) -> Any:
    """Do a step with its part of the options; what it says is kept."""
    wanted = {}
    for name, parameter in signature(work).parameters.items():
        usual = values.get(RENAMED.get((work, name), name), parameter.default)
        wanted[name] = given.get(name, usual)
    step = Step(f"{work.__name__}: ", said.setdefault(work.__name__, []))
    before = STEP.set(step)
    try:
        return work(**wanted)
    finally:
        STEP.reset(before)


@app.command(
    epilog="Example: [bold]verix-anon run people.csv --target income --quasi all --out job[/bold]"
    "\n\nExit codes: 0 done, 1 VIOLATION or --require not met, 3 INCONCLUSIVE, 2 a mistake in"
    " the call, 70 a bug. Nothing is released unless the verdict is VERIFIED."
)
@_with_steps
def run(
    table: SourceTable,
    out: Annotated[str, option("The job's folder, for the files of all steps.", "--out", "-o")],
    release: Annotated[
        str | None, option("The table to publish: a .csv, .parquet, .xlsx, .sav or other file.")
    ] = None,
    resume: Annotated[
        bool, option("Go on with the job in --out where it stopped.", "--resume")
    ] = False,
    overwrite: Annotated[bool, overwrite_option("a table, sheet or report that is there")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    **values: Any,
) -> None:
    """Do the whole journey: prepare, anonymize, verify and, if asked for, release.

    [bold]verix-anon run people.csv --roles roles.toml --out job --release released.csv[/bold]

    [bold]verix-anon run people.csv --roles roles.toml --out job --url https://host[/bold]

    [bold]verix-anon run people.csv --roles roles.toml --out job --resume[/bold]

    It writes the same files as the four commands, and each of these can go on with the job. The
    provider is this machine, or a service with --url, or Spark with --engine spark.
    """
    from verix_anon.client.owner_files import read_verdict

    job, said = Path(out), Said()
    sent, kept, back, found = (job / n for n in (SUBMISSION, MANIFEST, DELIVERY, VERDICT))
    sheet = values["privacy_sheet"] or job / SHEET
    own = {"overwrite": overwrite, "as_json": as_json, "quiet": quiet}
    values |= {**own, "log": values["log"] or job / AUDIT_LOG}
    _check(job, table, release, values, resume=resume)
    with read_once() as held:
        # 1. A submission and a manifest, or those that are there.
        if resume and kept.is_file():
            manifest = load_manifest(kept, values["passphrase_file"])
            _check_unchanged(kept, manifest, table, values)
        else:
            manifest = held[str(kept)] = _do(prepare, values, said, table=table, out=out)
        # 2. The provider reads what was sent, not what is in memory here.
        if not (resume and back.is_dir()):
            way = submit if values["url"] else anonymize
            _do(way, values, said, submission=str(sent), out=str(back), overwrite=False)
        # 3. A verdict that is there counts if it is on these very files.
        given = {"delivery": str(back), "manifest": kept}
        verdict = _earlier(found, back, manifest, values) if resume else None
        if verdict is None:
            again = {"out": found, "overwrite": overwrite or found.exists()}
            with suppress(SystemExit):  # Its exit code; the verdict is in its file.
                _do(verify, values, said, **given, submission=str(sent), **again)
            verdict = read_verdict(found)
        # 4. Only what was accepted is released. Its sheet gets its name before the table does.
        is_ours = resume and _is_sheet_of(sheet, verdict)
        try:
            if is_ours and release and Path(release).exists():
                print(f"{release} is there already, from this delivery.", file=sys.stderr)
            elif release and verdict:
                more = {"verdict": found, "table": table, "out": release, "privacy_sheet": sheet}
                _do(publish, values, said, **given, **more, overwrite=overwrite or is_ours)
        finally:
            # Tell what was found even if the release fails.
            _tell(verdict, said, table, is_released=release is not None, as_json=as_json)
    sys.exit(EXIT_CODES[verdict.outcome.value])


def _tell(verdict: "Verdict", said: Said, table: str, *, is_released: bool, as_json: bool) -> None:
    """Print the first words of each step; those of verify go on with what to do next."""
    from verix_anon.files.tables import shown_url

    if as_json:
        told = {name: json.loads(texts[0]) for name, texts in said.items() if texts[:1]}
        say(to_json({"verify": json.loads(verdict.to_json()), **told}))
        return
    judged = said.get("verify") or ["\n".join(verdict_lines(verdict))]
    judged = judged[:1] if is_released and verdict else judged
    said["verify"] = ["\n".join(judged).replace(TABLE, f"--table {quoted(shown_url(table))}")]
    for texts in filter(None, said.values()):
        say(texts[0])


def _check(job: Path, table: str, release: str | None, values: Values, *, resume: bool) -> None:
    """Raise before any work if a later step could not be done."""
    from verix_anon.client.report import check_installed
    from verix_anon.files.tables.table_writer import check_table_name

    if not resume and (job / MANIFEST).exists():
        raise TableError(
            f"{job} already holds a job: add --resume to go on with it, or choose another --out"
        )
    way, others = (BY_SERVICE, HERE) if values["url"] else (HERE, BY_SERVICE)
    if wrong := [name for name in others if values[name] not in (None, False, Engine.LOCAL)]:
        place = "without" if way is BY_SERVICE else "with"
        raise TableError(f"--{wrong[0].replace('_', '-')} goes {place} --url")
    if values["url"]:
        token_of(values["token"], values["token_file"])
    if values["report"]:
        check_installed()
    if release is None and values["privacy_sheet"]:
        raise TableError("--privacy-sheet goes with --release")
    if release is not None:
        check_table_name(release)
    # What goes into the job's folder is checked by its step: there is no such folder yet.
    wanted = [p for p in (release, values["privacy_sheet"], values["report"]) if p]
    outside = [p for p in wanted if job.resolve() not in Path(p).resolve().parents]
    inputs = [table, values["roles"], job]
    check_outputs(outside, inputs, overwrite=values["overwrite"] or resume)


def _check_unchanged(kept: Path, manifest: "Manifest", table: str, values: Values) -> None:
    """Raise if the job was prepared from something else than what is given now."""
    for path in map(Path, filter(None, (table, values["roles"]))):
        # `release` compares every value of the table; for a URL, nothing is compared before.
        if path.exists() and path.stat().st_mtime_ns > kept.stat().st_mtime_ns:
            raise TableError(
                f"{path} was changed after the job was prepared; start a new job with another --out"
            )
    said = {"k": manifest.contract.k, "target": manifest.target}
    for name, was in said.items():
        if values[name] not in (None, was):
            raise TableError(f"the job was prepared with --{name} {was}, not {values[name]}")
    print(f"Going on with {kept.parent}; the options of prepare are as they were.", file=sys.stderr)


def _earlier(found: Path, back: Path, manifest: "Manifest", values: Values) -> "Verdict | None":
    """The verdict that is there, if it accepts this very delivery and its other files are there."""
    from verix_anon.client.owner_files import read_verdict, signed_path
    from verix_anon.client.report import is_report_of
    from verix_anon.files.deliveries import read_delivery

    try:
        verdict = read_verdict(found)
        files = read_delivery(back, manifest.contract, n_rows=manifest.n_rows).files
    except Error:
        return None
    is_on_these = (verdict.submission, {**verdict.files}) == (manifest.submission, {**files})
    is_whole = not values["sign_verdict"] or signed_path(found).exists()
    is_told = not values["report"] or is_report_of(values["report"], verdict)
    return verdict if verdict and is_on_these and is_whole and is_told else None


def _is_sheet_of(sheet: Path, verdict: "Verdict") -> bool:
    from verix_anon.client.privacy_sheet import Sheet

    try:
        return Sheet.read(sheet).root == verdict.root
    except TableError:
        return False


@app.command(epilog="Example: [bold]verix-anon demo --adversary approximate[/bold]")
def demo(
    adversary: Annotated[
        str | None, option("A provider that misbehaves: lazy, dumb, approximate, informed, ...")
    ] = None,
    rows: Annotated[int, option("How many records the table has.", min=200)] = 20_000,
    k: Annotated[int, option("Every class holds at least this many people.", min=2)] = 5,
    preset: Annotated[
        str | None, option("A preset: paper is the VeriX-Anon paper's system.")
    ] = None,
    report: Annotated[Path | None, option("Write the audit report here, as one HTML page.")] = None,
    language: PageLanguage = "en",
    url: Annotated[str | None, service_option("Let the service at this URL anonymize.")] = None,
    token_file: TokenFile = None,
    token: Token = None,
    insecure_http: InsecureHttp = False,
    ca_file: AuthoritiesFile = None,
    quiet: Quiet = False,
) -> None:
    """Walk through prepare, anonymize, verify and release on the embedded census table.

    With an adversary the verdict is VIOLATION and the exit code 1.
    """
    from verix_anon.adversaries import ADVERSARIES, only
    from verix_anon.client.journey import run as run_in_memory
    from verix_anon.client.remote import RemoteOptions, RemoteProvider
    from verix_anon.client.report import check_installed, render
    from verix_anon.client.verify import verify as judge
    from verix_anon.datasets import census
    from verix_anon.files.atomic_write import check_free
    from verix_anon.provider.local import LocalProvider

    if report is not None:
        check_installed(language)
        check_free(report, overwrite=False)
    if adversary is not None and adversary not in ADVERSARIES:
        raise TableError(f"choose an adversary from {', '.join(ADVERSARIES)}, not {adversary!r}")
    provider: Provider = ADVERSARIES[adversary](0) if adversary else LocalProvider()
    if url is not None:
        secret = token_of(token, token_file)
        if adversary is not None:
            raise TableError(
                "--url and --adversary exclude each other: a service cannot be told to misbehave"
            )
        remote = RemoteOptions(insecure_http=insecure_http, ca_file=ca_file)
        provider = RemoteProvider(url, secret, options=remote)
    table = census(rows)
    options = prepare_options(preset, None, rule=adversary and only(adversary))
    # The paper's fingerprint accuses honest runs, too; the exact layers decide on the release.
    profile = preset if adversary else None
    journey = partial(run_in_memory, table, provider, target="income", quasi="all", k=k)
    done = during("journey", quiet, lambda: journey(profile=profile, prepare_options=options))
    manifest, header, verdict = done.manifest, done.delivery.header, done.verdict
    say(f"1. The owner has a table of {rows:,} people and prepares it, k = {k:,}.")
    _say_below([*planted_lines(manifest), *sent_lines(manifest)])
    say(f"2. A provider ({url or adversary or 'honest'}) anonymizes it.")
    say(f"   {tree_line(header.rows, header.leaves, header.root)}")
    say("3. The owner judges what came back.")
    if preset != profile:
        again = partial(judge, done.delivery, manifest, submission=done.submission)
        verdict = during("verify", quiet, lambda: again(profile=preset))
    _say_below(verdict_lines(verdict))
    if not verdict and done.verdict:
        verdict = done.verdict
        honest = "The provider was honest: the paper's fingerprint accuses honest runs, too."
        _say_below([honest, list(verdict_lines(verdict))[-1]])
    if (released := done.released) is None:
        say("4. Nothing is released.")
    else:
        say("4. The owner releases the table, traps removed and k checked again.")
        _say_below(_released_lines(released, table))
    if report is not None:
        page = render(verdict, None if released is None else released.sheet, language)
        write_text(page, report, overwrite=False)
        say(f"The audit report is {report}.")
    if preset is None:
        say("The paper's own system, as published: verix-anon demo --preset paper")
    sys.exit(EXIT_CODES[verdict.outcome.value])


def _say_below(lines: Iterable[str]) -> None:
    say("\n".join(f"   {line}" for line in lines))


def _released_lines(released: "Released[pa.Table]", table: "pa.Table") -> Iterator[str]:
    """The privacy sheet, the warnings, and what became of the first person."""
    yield from (f"Warning: {printable(warning)}" for warning in released.warnings)
    yield from facts(released.sheet.facts())
    yield "The first person, before and after:"
    at = released.rows.tolist().index(0)
    before, after = table.slice(0, 1).to_pylist()[0], released.table.slice(at, 1).to_pylist()[0]
    yield from (f"  {name}: {before[name]} -> {after[name]}" for name in after)

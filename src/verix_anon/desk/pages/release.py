"""Release: a preview of the table, the gates, and the released table to download."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

from verix_anon.client.job import Job, JourneyState, JourneyStep, released_files
from verix_anon.client.owner_files import is_sealed, read_verdict
from verix_anon.client.privacy_sheet import GATES
from verix_anon.client.release import Representation
from verix_anon.client.release.preview import Preview
from verix_anon.client.table.roles import Measure
from verix_anon.client.table.task import TableRole
from verix_anon.client.verdict import Verdict
from verix_anon.desk.gate import Form
from verix_anon.desk.pages import forms
from verix_anon.desk.rendering import page
from verix_anon.errors import TableError
from verix_anon.files.job_folder import DELIVERY, MANIFEST, PREVIEW, RELEASED, SHEET, VERDICT
from verix_anon.files.text_versions import read_version

router = forms.step_router(JourneyStep.RELEASE)
OPEN = frozenset({JourneyState.VERIFIED, JourneyState.RELEASED})
LOOKED = frozenset({0, 1})
"""The exit codes of a preview that shows something: 1 if a gate is not reached."""
FORMATS = ("csv", "parquet", "xlsx", "sav", "dta", "feather")
BY_NAME = {
    **{measure.value: f"--{measure.value}" for measure in Measure},
    "representations": "--as",
    "round_to": "--round",
    "bins": "--bins",
    "require": "--require",
}
"""Options that are given once for each name."""
UNSENT = frozenset({TableRole.KEPT, TableRole.SENSITIVE})
"""Columns of these roles are published as they are, unless a remedy is chosen."""
REMEDIES = ("leave", "auto", "drop", "hide")
SWITCHES = {"exact_ends": "--exact-ends", "keep_order": "--keep-order"}
"""Options without a value."""


@router.get("/jobs/{job}/release")
def release(request: Request, job: forms.GivenJob) -> Response:
    """Show what would be published, or what was published."""
    return _page(request, job)


def _page(request: Request, job: Job, *, changed: bool = False) -> Response:
    if job.state not in OPEN:
        raise HTTPException(404)
    verdict = read_verdict(job.path(VERDICT))
    preview, digest = _preview(job, verdict.root.hex())
    account, unsent = verdict.account, _unsent(verdict)
    view = {
        "preview": preview,
        "digest": digest,
        "given": _given({} if preview is None else preview.options, unsent),
        "unsent": unsent,
        "remedies": REMEDIES,
        "changed": changed,
        "gates": GATES,
        "measures": [measure.value for measure in Measure],
        "representations": [each.value for each in Representation],
        "formats": FORMATS,
        "tables": forms.tables_for(request, job),
        "has_target": account is None or any(c.role == "target" for c in account.columns),
        "is_sealed": is_sealed(job.path(MANIFEST)),
        "released": [path.name for path in released_files(job)],
        "is_released": job.state is JourneyState.RELEASED,
    }
    where = _look(job) if preview is None else _publish(job, FORMATS[0])
    words = _words(job, forms.table_of(request, job), where)
    if preview is not None:
        with suppress(TableError):
            words = (*words, *_options(preview.options))
    return page(
        request, "release.html", view, job=job, command=words, status=409 if changed else 200
    )


def _preview(job: Job, root: str) -> tuple[Preview | None, str]:
    """Return the preview in the job's folder, if it is of this delivery, and its digest."""
    now = read_version(job.path(PREVIEW))
    try:
        found = Preview.from_json(now.text)
    except TableError:
        return None, ""
    return (found, now.digest) if found.root == root else (None, "")


def _given(options: Mapping[str, object], unsent: Sequence[str]) -> dict[str, object]:
    """Return the options of a preview, as fields of the form."""

    def by_name(option: str) -> Mapping[str, object]:
        asked = options.get(option)
        return asked if isinstance(asked, dict) else {}

    def of_target(measure: Measure) -> object:
        return next((v for name, v in by_name(measure).items() if name not in unsent), "")

    share = options.get("suppress", 0.0)
    percent = _said(round(100 * share, 6)) if isinstance(share, float) and share else ""
    return {
        "as": options.get("representation", ""),
        **{each.value: _said(of_target(each)) for each in Measure},
        **{f"require-{name}": _said(by_name("require").get(name, "")) for name in GATES},
        **{name: by_name(name) for name in ("bins", "round_to")},
        "drop": options.get("drop", []),
        "hide": [*by_name(Measure.L)],
        "suppress": percent,
        **{name: bool(options.get(name)) for name in SWITCHES},
    }


def _unsent(verdict: Verdict) -> list[str]:
    account = verdict.account
    return [c.name for c in account.columns if c.role in UNSENT] if account else []


@router.post("/jobs/{job}/preview")
def look(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Preview the release; nothing is published."""
    if job.state is not JourneyState.VERIFIED:
        raise HTTPException(404)
    asked = [*_asked(form), *_remedies(form, _unsent(read_verdict(job.path(VERDICT))))]
    words = (*_words(job, forms.given_table(request, job, form), _look(job)), *asked)
    return forms.start(request, job, words, good=LOOKED, environment=forms.passphrase(form))


def _asked(form: Form) -> list[str]:
    words = []
    chosen = forms.one(form, "as")
    if chosen in set(Representation) and chosen != Representation.INTERVAL:
        words += ["--as", chosen]
    for measure in Measure:
        pressed = "2" if measure is Measure.L and forms.one(form, "do") == "hide" else ""
        if value := _number(form, measure.value) or pressed:
            words += [f"--{measure.value}", value]
    words += [option for name, option in SWITCHES.items() if forms.one(form, name)]
    for name in GATES:
        if value := _number(form, f"require-{name}"):
            words += ["--require", f"{name}={value}"]
    return words


def _remedies(form: Form, unsent: Sequence[str]) -> list[str]:
    """Return the options that coarsen or hide columns, use common bins, or leave people out."""
    words = []
    # A button wins over the list: `auto-2` is for the third column.
    pressed, _, at = forms.one(form, "do").partition("-")
    for i, name in enumerate(unsent):
        chosen, step = forms.one(form, f"remedy-{i}"), forms.one(form, f"round-{i}").strip()
        chosen = pressed if at == str(i) and pressed in REMEDIES else chosen
        if chosen == "drop":
            words += ["--drop", name]
        elif chosen == "hide":
            words += ["--l", f"{name}=2"]
        elif chosen == "auto":
            words += ["--bins", f"{name}=auto"]
        elif step:
            words += ["--round", f"{name}={step.replace(',', '.')}"]
    bins = [part.strip() for part in forms.one(form, "bins").split(",")]
    words += ["--bins", ",".join(bins)] if any(bins) else []
    share = _number(form, "suppress")
    return [*words, "--suppress", f"{share}%"] if share else words


def _number(form: Form, name: str) -> str:
    """Return a number as words of a command have it; empty if the field is empty."""
    found = forms.number(form, name)
    return "" if found is None else _said(found)


def _said(value: object) -> str:
    """Return a value as people type it."""
    is_whole = isinstance(value, float) and value.is_integer()
    return f"{value:.0f}" if is_whole else str(value)


@router.post("/jobs/{job}/release")
def publish(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Release the table as it was previewed, if the preview has not changed since."""
    if job.state is not JourneyState.VERIFIED:
        raise HTTPException(404)
    preview, digest = _preview(job, read_verdict(job.path(VERDICT)).root.hex())
    if preview is None or digest != forms.one(form, "digest"):
        return _page(request, job, changed=True)
    if left := released_files(job):
        raise TableError(
            f"{left[0].name} was released from another delivery; move it out of the job's folder"
        )
    ending = forms.one(form, "format")
    if ending not in FORMATS:
        raise TableError("a table is not released in this format")
    table = forms.given_table(request, job, form)
    words = (*_words(job, table, _publish(job, ending)), *_options(preview.options))
    return forms.start(request, job, words, environment=forms.passphrase(form))


@router.get("/jobs/{job}/released/{name}")
def download(job: forms.GivenJob, name: str) -> Response:
    """Send a released file."""
    found = {path.name: path for path in released_files(job)} if job.state in OPEN else {}
    if name not in found:
        raise HTTPException(404)
    return FileResponse(found[name], media_type="application/octet-stream", filename=name)


def _words(job: Job, table: str, where: list[str]) -> tuple[str, ...]:
    given = ("--manifest", forms.at(job, MANIFEST), "--verdict", forms.at(job, VERDICT))
    return ("release", forms.at(job, DELIVERY), *given, "--table", table, *where)


def _look(job: Job) -> list[str]:
    again = ["--overwrite"] if job.path(PREVIEW).exists() else []
    return ["--preview", forms.at(job, PREVIEW), *again]


def _publish(job: Job, ending: str) -> list[str]:
    name = f"{RELEASED}.{ending}"
    again = ["--overwrite"] if any(job.path(n).exists() for n in (name, SHEET)) else []
    return ["--out", forms.at(job, name), "--privacy-sheet", forms.at(job, SHEET), *again]


def _options(options: Mapping[str, object]) -> list[str]:
    """Return the options of a preview, as words of a command that releases the same."""
    words: list[str] = []
    for name, value in options.items():
        if name in BY_NAME and isinstance(value, Mapping):
            for each, wanted in value.items():
                words += [BY_NAME[name], f"{each}={_said(wanted)}"]
        elif name in ("representation", "person") and isinstance(value, str):
            words += ["--as" if name == "representation" else "--person", value]
        elif name == "drop" and isinstance(value, list):
            words += [word for each in value for word in ("--drop", each)]
        elif name == "suppress":
            words += ["--suppress", _said(value)]
        elif name in SWITCHES:
            words.append(SWITCHES[name])
        else:
            raise TableError(f"the look was taken with {name}: release it by the command")
    return words

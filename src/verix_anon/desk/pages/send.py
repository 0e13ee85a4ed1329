"""Send: prepare as a task, what the provider will see, and the ways to a delivery."""

import shlex
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from verix_anon.client.audit_subject import DROPPED, PARTED, SentForm, parted_by, seen
from verix_anon.client.job import Job, JourneyStep
from verix_anon.client.table.roles_file import read_options, read_roles
from verix_anon.client.table.task import TableRole
from verix_anon.desk.pages import forms
from verix_anon.desk.rendering import desk_of, page
from verix_anon.errors import Error, TableError
from verix_anon.files.desk_folder import zipped
from verix_anon.files.folder_facts import glimpse, read_contract
from verix_anon.files.job_folder import DELIVERY, MANIFEST, ROLES, SUBMISSION
from verix_anon.files.text_versions import read_version
from verix_anon.parent_process import SEEN
from verix_anon.protocol.contract import Rule

router = forms.step_router(JourneyStep.SEND)
WHAT = {DROPPED: "dropped"} | {said: form.value.replace(" ", "_") for form, said in PARTED.items()}
"""The key of the text that says what happens to columns."""
PARTIES = ("table_name", "controller", "processor")
"""What the report names."""


@router.get("/jobs/{job}/send")
def send(request: Request, job: forms.GivenJob) -> Response:
    """Show what the provider will see, and the ways to send it."""
    return _page(request, job)


def _page(request: Request, job: Job, *, changed: bool = False) -> Response:
    if job.is_prepared:
        view = _prepared(request, job)
        return page(request, "send.html", view, job=job, command=_anonymize(job))
    if not job.path(ROLES).is_file():
        raise HTTPException(404)
    parted, options = [], {}
    # The layout says what is wrong with the file, or prepare will.
    with suppress(Error):
        parted = [(WHAT[what], names) for what, names in foreseen(job.path(ROLES)).items()]
        options = read_options(job.path(ROLES))
    view = {
        "parted": parted,
        "parties": {name: options.get(name, "") for name in PARTIES},
        "digest": read_version(job.path(ROLES)).digest,
        "changed": changed,
        "tables": forms.tables_for(request, job),
    }
    words = _prepare(job, forms.table_of(request, job))
    status = 409 if changed else 200
    return page(request, "prepare.html", view, job=job, command=words, status=status)


def foreseen(roles: Path) -> dict[str, list[str]]:
    """Return what will happen to the columns of a table that is not prepared, by its roles file."""
    _, declared = read_roles(roles)
    options = read_options(roles)
    sent = SentForm.CLEAR if options.get("clear") else SentForm.CODED
    forms = dict.fromkeys(TableRole, SentForm.NEVER) | {TableRole.QUASI: sent}
    if options.get("rule") == Rule.VARIANCE_REDUCTION:
        forms[TableRole.TARGET] = sent
    return parted_by({name: role for role, name in declared.named()}, forms)


def _prepared(request: Request, job: Job) -> dict[str, object]:
    has_sent = job.path(SUBMISSION).is_dir()
    task = desk_of(request).tasks.of(job.name)
    return {
        "seen": seen(read_contract(job.path(SUBMISSION))) if has_sent else [],
        "glimpse": glimpse(job.path(SUBMISSION)) if has_sent else None,
        "is_delivered": job.path(DELIVERY).is_dir(),
        "submission": str(job.path(SUBMISSION)),
        "delivery": str(job.path(DELIVERY)),
        "manifest": MANIFEST,
        "by_service": shlex.join(("verix-anon", *_submit(job, "URL"))),
        "said": list(task.lines) if task and task.is_well and task.words[0] == "prepare" else [],
    }


@router.post("/jobs/{job}/prepare")
def prepare(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Make submission and manifest of the table, if the roles are still those that were shown."""
    if job.is_prepared:
        raise TableError("this job is prepared already")
    if read_version(job.path(ROLES)).digest != forms.one(form, "digest"):
        return _page(request, job, changed=True)
    options = forms.provider_key(request, form)
    table = forms.given_table(request, job, form)
    options += ["--seal"] if forms.one(form, "passphrase") else []
    said = {name: forms.one(form, name).strip() for name in PARTIES}
    # One word, so that nothing that is typed is taken for an option.
    options += [f"--{name.replace('_', '-')}={value}" for name, value in said.items() if value]
    environment = forms.passphrase(form) | {SEEN: forms.one(form, "digest")}
    return forms.start(request, job, (*_prepare(job, table), *options), environment=environment)


def _prepare(job: Job, table: str) -> tuple[str, ...]:
    return ("prepare", table, "--roles", forms.at(job, ROLES), "--out", forms.at(job, ""))


@router.get("/jobs/{job}/submission.zip")
def submission(job: forms.GivenJob) -> Response:
    """Return the submission as one file, to be handed over."""
    folder = job.path(SUBMISSION)
    if not folder.is_dir() or folder.is_symlink():
        raise HTTPException(404)
    headers = {"Content-Disposition": 'attachment; filename="submission.zip"'}
    return StreamingResponse(zipped(folder), media_type="application/zip", headers=headers)


@router.post("/jobs/{job}/anonymize")
def anonymize(request: Request, job: forms.GivenJob) -> Response:
    """Do the provider's work on this machine."""
    return forms.start(request, job, _anonymize(job), then=JourneyStep.VERDICT)


def _anonymize(job: Job) -> tuple[str, ...]:
    return ("anonymize", forms.at(job, SUBMISSION), "--out", forms.at(job, DELIVERY))


@router.post("/jobs/{job}/submit")
def submit(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Send the submission to a provider's service; the token is not part of the command line."""
    url, token = forms.one(form, "url").strip(), forms.one(form, "token").strip()
    try:
        is_address = urlsplit(url).scheme in ("http", "https") and "@" not in url
    except ValueError:
        is_address = False
    if not is_address:
        raise TableError("the service's address begins with https:// and holds no password")
    if not token:
        raise TableError("the service wants a token")
    words = (*_submit(job, url), *forms.provider_key(request, form))
    return forms.start(
        request, job, words, then=JourneyStep.VERDICT, environment={"VERIX_TOKEN": token}
    )


def _submit(job: Job, url: str) -> tuple[str, ...]:
    return ("submit", forms.at(job, SUBMISSION), "--url", url, "--out", forms.at(job, DELIVERY))

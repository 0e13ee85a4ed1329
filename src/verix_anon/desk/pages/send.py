"""Send: prepare as a task, what the provider will see, and the ways to a delivery."""

import shlex
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from verix_anon.client.journey import DELIVERY, MANIFEST, ROLES, SUBMISSION, Job
from verix_anon.client.seen import DROPPED, PARTED, foreseen, glimpse, seen
from verix_anon.desk.pages.asked import (
    GivenJob,
    Posted,
    at,
    given_file,
    given_table,
    go_to,
    one,
    passphrase,
    table_of,
    tables_for,
)
from verix_anon.desk.show import desk_of, page
from verix_anon.errors import Error, TableError
from verix_anon.files.submissions import read_contract
from verix_anon.files.versions import SEEN, read_version
from verix_anon.files.zipped import zipped

__all__ = ["router"]

router = APIRouter()
WHAT = {DROPPED: "dropped"} | {said: form.value.replace(" ", "_") for form, said in PARTED.items()}
"""The key of the text for what becomes of columns."""


@router.get("/jobs/{job}/send")
def send(request: Request, job: GivenJob) -> Response:
    """What will be seen, and where it goes."""
    return _page(request, job)


def _page(request: Request, job: Job, *, changed: bool = False) -> Response:
    status = 409 if changed else 200
    if job.is_prepared:
        view = _prepared(request, job)
        return page(request, "send.html", view, job=job, command=_anonymize(job))
    if not job.path(ROLES).is_file():
        raise HTTPException(404)
    view = {
        "parted": _named(job),
        "digest": read_version(job.path(ROLES)).digest,
        "changed": changed,
        "tables": tables_for(request, job),
    }
    words = _prepare(job, table_of(request, job), "", is_sealed=False)
    return page(request, "prepare.html", view, job=job, command=words, status=status)


def _named(job: Job) -> list[tuple[str, list[str]]]:
    try:
        return [(WHAT[what], names) for what, names in foreseen(job.path(ROLES)).items()]
    except Error:
        # The layout says what is wrong with the file, or prepare will.
        return []


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
def prepare(request: Request, job: GivenJob, form: Posted) -> Response:
    """Make submission and manifest of the table, if the roles are those that were shown."""
    if job.is_prepared:
        raise TableError("this job is prepared already")
    if read_version(job.path(ROLES)).digest != one(form, "digest"):
        return _page(request, job, changed=True)
    key = given_file(request, one(form, "provider_key"))
    table = given_table(request, job, form)
    words = _prepare(job, table, key, is_sealed=bool(one(form, "passphrase")))
    environment = passphrase(form) | {SEEN: one(form, "digest")}
    return _started(request, job, words, "send", environment)


def _prepare(job: Job, table: str, key: str, *, is_sealed: bool) -> tuple[str, ...]:
    words = ["prepare", table, "--roles", at(job, ROLES), "--out", at(job, "")]
    words += ["--provider-key", key] if key else []
    return (*words, "--seal") if is_sealed else tuple(words)


@router.get("/jobs/{job}/submission.zip")
def submission(job: GivenJob) -> Response:
    """The submission as one file, to be handed over."""
    folder = job.path(SUBMISSION)
    if not folder.is_dir() or folder.is_symlink():
        raise HTTPException(404)
    headers = {"Content-Disposition": 'attachment; filename="submission.zip"'}
    return StreamingResponse(zipped(folder), media_type="application/zip", headers=headers)


@router.post("/jobs/{job}/anonymize")
def anonymize(request: Request, job: GivenJob) -> Response:
    """Do the provider's work on this machine."""
    return _started(request, job, _anonymize(job), "verdict", {})


def _anonymize(job: Job) -> tuple[str, ...]:
    return ("anonymize", at(job, SUBMISSION), "--out", at(job, DELIVERY))


@router.post("/jobs/{job}/submit")
def submit(request: Request, job: GivenJob, form: Posted) -> Response:
    """Have it done by a provider's service; the token is no word of the command."""
    url, token = one(form, "url").strip(), one(form, "token").strip()
    if not _is_address(url):
        raise TableError("the service's address begins with https:// and holds no password")
    if not token:
        raise TableError("the service wants a token")
    key = given_file(request, one(form, "provider_key"))
    words = (*_submit(job, url), *(("--provider-key", key) if key else ()))
    return _started(request, job, words, "verdict", {"VERIX_TOKEN": token})


def _submit(job: Job, url: str) -> tuple[str, ...]:
    return ("submit", at(job, SUBMISSION), "--url", url, "--out", at(job, DELIVERY))


def _is_address(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("http", "https") and "@" not in url
    except ValueError:
        return False


def _started(
    request: Request, job: Job, words: tuple[str, ...], then: str, secrets: dict[str, str]
) -> Response:
    href = str(request.app.url_path_for(then, job=job.name))
    desk_of(request).tasks.start(job.name, words, then=href, environment=secrets)
    return go_to(request, "send", job=job.name)

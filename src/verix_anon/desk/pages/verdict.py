"""The verdict on a delivery: verify as a task, what each layer found, and the report."""

from typing import Annotated

from fastapi import Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

from verix_anon.client.job import Job, JourneyState, JourneyStep, report_of
from verix_anon.client.owner_files import is_sealed, read_verdict
from verix_anon.client.verdict import LAYERS, Outcome, Profile, Verdict
from verix_anon.desk.gate import REPORT_HEADERS
from verix_anon.desk.pages import forms
from verix_anon.desk.rendering import language_of, page
from verix_anon.errors import TableError
from verix_anon.files.job_folder import DELIVERY, MANIFEST, REPORT, SUBMISSION, VERDICT
from verix_anon.translation import RECORD

router = forms.step_router(JourneyStep.VERDICT)
JUDGED = {JourneyState.RELEASED, *(JourneyState(each.lower()) for each in Outcome)}
FOUND = frozenset({0, 1, 3})
"""The exit codes of `verify` with which it gives a verdict, good or bad."""


@router.get("/jobs/{job}/verdict")
def verdict(request: Request, job: forms.GivenJob) -> Response:
    """Show the verdict on the delivery in the job's folder, if there is one."""
    _check_delivered(job)
    found = _verdict(job)
    view = {
        "verdict": found,
        "layers": LAYERS,
        "means": "" if found is None else found.outcome.value.lower(),
        "has_report": found is not None and report_of(job, found) is not None,
        "has_other": found is None and job.path(VERDICT).exists(),
        "can_release": found is not None and found.outcome is Outcome.VERIFIED,
        "is_sealed": is_sealed(job.path(MANIFEST)),
        "is_thin": not job.path(SUBMISSION).is_dir(),
        "profiles": [profile.value for profile in Profile],
    }
    command = _words(request, job)
    return page(request, "verdict.html", view, job=job, command=command)


@router.post("/jobs/{job}/verdict")
def verify(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Judge the delivery."""
    _check_delivered(job)
    profile = forms.one(form, "profile")
    if profile and profile not in set(Profile):
        raise TableError("there is no such profile")
    chosen = ["--profile", profile] if profile else []
    words = _words(request, job, *chosen, *forms.provider_key(request, form))
    return forms.start(request, job, words, good=FOUND, environment=forms.passphrase(form))


@router.post("/jobs/{job}/report")
def make_report(request: Request, job: forms.GivenJob) -> Response:
    """Write the report again, with the privacy sheet if there is one now."""
    words = ("report", forms.at(job, VERDICT), "--out", forms.at(job, REPORT), "--overwrite")
    return forms.start(request, job, (*words, *_language(request)))


@router.get("/jobs/{job}/report")
def report(
    request: Request, job: forms.GivenJob, save: Annotated[bool, Query()] = False
) -> Response:
    """Show the report under a policy of its own, or send it as a file to save."""
    found = _verdict(job)
    path = None if found is None else report_of(job, found)
    if path is None:
        raise HTTPException(404)
    request.state.policy = REPORT_HEADERS
    name = f"{job.name}.html" if save else None
    return FileResponse(path, media_type="text/html; charset=utf-8", filename=name)


def _check_delivered(job: Job) -> None:
    if not job.path(MANIFEST).is_file() or not job.path(DELIVERY).is_dir():
        raise HTTPException(404)


def _verdict(job: Job) -> Verdict | None:
    return read_verdict(job.path(VERDICT)) if job.state in JUDGED else None


def _language(request: Request) -> tuple[str, ...]:
    """The option for a report in the language of the pages; English is usual."""
    language = language_of(request.headers)
    return () if language == RECORD else ("--language", language)


def _words(request: Request, job: Job, *chosen: str) -> tuple[str, ...]:
    """Return the command with the chosen options, and with the submission if there is one."""
    words = ["verify", forms.at(job, DELIVERY), "--manifest", forms.at(job, MANIFEST)]
    if job.path(SUBMISSION).is_dir():
        words += ["--submission", forms.at(job, SUBMISSION)]
    words += [*chosen, "--out", forms.at(job, VERDICT), "--report", forms.at(job, REPORT)]
    words += _language(request)
    is_again = any(job.path(name).exists() for name in (VERDICT, REPORT))
    return (*words, "--overwrite") if is_again else tuple(words)

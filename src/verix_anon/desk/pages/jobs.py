"""The list of jobs with their states, where a new job is started."""

import asyncio
import csv
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from verix_anon.client.job import jobs_in, new_job
from verix_anon.client.series import LOG, read_log
from verix_anon.datasets import census
from verix_anon.desk.pages.forms import GivenJob, Posted, go_to, one
from verix_anon.desk.pages.series import series_in
from verix_anon.desk.rendering import LANGUAGE_COOKIE, desk_of, href_of, page, stage_name
from verix_anon.desk.tasks import DeskTask
from verix_anon.errors import Error, TableError
from verix_anon.files.job_folder import ROLES
from verix_anon.translation import LANGUAGES

router = APIRouter()
BEGINS = f"mkdir NAME && verix-anon init TABLE --out NAME/{ROLES}"
"""The command that starts a job without the desk."""


@router.get("/")
def jobs(request: Request) -> Response:
    """Show all jobs of the folder."""
    return _list(request, "", "", 200)


@router.post("/jobs")
def begin(request: Request, form: Posted) -> Response:
    """Start a new job."""
    name = one(form, "name")
    try:
        made = new_job(desk_of(request).folder, name)
    except TableError as error:
        return _list(request, name, str(error), 400)
    return go_to(request, "job", job=made.name)


EXAMPLE, EXAMPLE_ROWS = "example", 5_000


@router.post("/example")
def try_example(request: Request) -> Response:
    """Start a job on a table of made-up people, or show the one that was started before."""
    folder = desk_of(request).folder
    table = folder / f"{EXAMPLE}.csv"
    if not table.exists():
        columns = census(EXAMPLE_ROWS).to_pydict()
        with table.open("x", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    if not (folder / EXAMPLE).is_dir():
        new_job(folder, EXAMPLE)
        return RedirectResponse(f"/jobs/{EXAMPLE}/table?table={table.name}", 303)
    return go_to(request, "job", job=EXAMPLE)


def _list(request: Request, name: str, problem: str, status: int) -> Response:
    desk = desk_of(request)
    series: dict[str, Sequence[object]] = dict.fromkeys(series_in(desk.folder), ())
    for each in series:
        # Its own page says why a log cannot be read.
        with suppress(Error):
            series[each] = read_log(desk.folder / each / LOG).entries
    found = [job for job in jobs_in(desk.folder) if job.name not in series]
    tasks = [desk.tasks.of(job.name) for job in found]
    running = {task.job for task in tasks if task is not None and task.is_running}
    view = {"jobs": found, "running": running, "series": series, "name": name, "problem": problem}
    return page(request, "jobs.html", {**view, "command": BEGINS}, status=status)


@router.get("/jobs/{job}")
def job(request: Request, job: GivenJob) -> Response:
    """Show the page of the job's next step."""
    for step in (job.step, *reversed(job.open_steps)):
        if href := href_of(request, step, job):
            return RedirectResponse(href, 303)
    return go_to(request, "jobs")


@router.get("/language/{language}")
def choose_language(language: str, back: Annotated[str, Query()] = "/") -> Response:
    """Use this language from now on."""
    if language not in LANGUAGES:
        raise HTTPException(404)
    is_ours = back.startswith("/") and not back.startswith("//") and back.isprintable()
    answer = RedirectResponse(back if is_ours and "\\" not in back else "/", 303)
    answer.set_cookie(LANGUAGE_COOKIE, language, httponly=True, samesite="strict", path="/")
    return answer


LOOK_SECONDS = 0.2


def _task(request: Request, job: GivenJob) -> DeskTask:
    task = desk_of(request).tasks.of(job.name)
    if task is None:
        raise HTTPException(404)
    return task


GivenTask = Annotated[DeskTask, Depends(_task)]


@router.get("/jobs/{job}/task/events", response_class=EventSourceResponse)
async def events(request: Request, task: GivenTask) -> AsyncIterator[ServerSentEvent]:
    """Send `progress` whenever there is some, and at last `end` with the page to show."""
    told: tuple[str, int, int] | None = None
    while task.is_running:
        if task.stage != told:
            told = _, done, total = task.stage
            found = {"stage": stage_name(request.headers, task), "done": done, "total": total}
            yield ServerSentEvent(data=found, event="progress")
        await asyncio.sleep(LOOK_SECONDS)
    then = task.then if task.is_well else ""
    yield ServerSentEvent(data={"code": task.code, "then": then}, event="end")


@router.post("/jobs/{job}/task/cancel")
def cancel(request: Request, job: GivenJob, task: GivenTask) -> Response:
    """Cancel the task; its page shows the result."""
    task.cancel()
    return go_to(request, "job", job=job.name)

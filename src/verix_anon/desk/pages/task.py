"""A job's task: how far it is, as events, and its cancelling."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException

from verix_anon.desk.pages.asked import GivenJob, go_to
from verix_anon.desk.show import desk_of
from verix_anon.desk.tasks import Task

__all__ = ["router"]

router = APIRouter()
LOOK_SECONDS = 0.2


def _task(request: Request, job: GivenJob) -> Task:
    task = desk_of(request).tasks.of(job.name)
    if task is None:
        raise HTTPException(404)
    return task


GivenTask = Annotated[Task, Depends(_task)]


@router.get("/jobs/{job}/task/events", response_class=EventSourceResponse)
async def events(task: GivenTask) -> AsyncIterator[ServerSentEvent]:
    """`progress` whenever there is some, and `end` with the page to show."""
    told: tuple[str, int, int] | None = None
    while task.is_running:
        if task.stage != told:
            told = stage, done, total = task.stage
            found = {"stage": stage, "done": done, "total": total}
            yield ServerSentEvent(data=found, event="progress")
        await asyncio.sleep(LOOK_SECONDS)
    then = task.then if task.is_well else ""
    yield ServerSentEvent(data={"code": task.code, "then": then}, event="end")


@router.post("/jobs/{job}/task/cancel")
def cancel(request: Request, job: GivenJob, task: GivenTask) -> Response:
    """End the task; its page shows how that went."""
    task.cancel()
    return go_to(request, "job", job=job.name)

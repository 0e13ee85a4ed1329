"""The operator's page: jobs of all tenants, their states and how long they took; no data of theirs.

It is one answer without a script, an image or anything from elsewhere, and its policy says so.
"""

import base64
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Security
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from verix_anon import __version__
from verix_anon.html_templates import templates_of
from verix_anon.protocol.providers import JobState
from verix_anon.service import jobs
from verix_anon.service.api.bodies import time_of
from verix_anon.service.api.context import AS_OPERATOR, OperatorRoute, context_of
from verix_anon.service.api.job_routes import AFTER
from verix_anon.service.api.problems import described
from verix_anon.service.database import JobRow

router = APIRouter(
    route_class=OperatorRoute, tags=["operation"], dependencies=[Security(AS_OPERATOR)]
)
REFRESH_SECONDS = 10
SHOWN = 100
# Ours, and without a character that HTML would read: the policy names the digest of these bytes.
STYLE = (files("verix_anon.service") / "templates" / "operator.css").read_text("utf-8")
STYLE_DIGEST = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{STYLE_DIGEST}';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
PAGE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The page", "content": {"text/html": {"schema": {"type": "string"}}}}
}
TEMPLATES = templates_of("verix_anon.service")


@router.get("/operator", response_class=HTMLResponse, responses=PAGE | described("invalid-request"))
def page(
    request: Request, after: Annotated[str | None, Query(max_length=80, pattern=AFTER)] = None
) -> HTMLResponse:
    """Jobs, states, durations."""
    database = context_of(request).database
    shown = jobs.page(database, None, limit=SHOWN, after=after)
    with database.read() as session:
        at = jobs.database_time(session)
    text = TEMPLATES.get_template("operator.html").render(
        version=__version__,
        style=Markup(STYLE),  # noqa: S704, a file of this package
        refresh=REFRESH_SECONDS,
        at=_time(at),
        counts=[(state.value, count) for state, count in jobs.counts(database).items()],
        jobs=[_line(job, at) for job in shown.jobs],
        next=shown.next,
    )
    return HTMLResponse(text, headers=HEADERS)


def _line(job: JobRow, at: float) -> dict[str, object]:
    """A job as the page shows it."""
    stage, done, total = job.progress or ("", 0, 0)
    is_running = bool(stage) and job.state is JobState.RUNNING
    return {
        "id": job.id,
        "tenant": job.tenant,
        "state": job.state.value,
        "progress": f", {stage} {done}/{total}" if is_running else "",
        "rows": f"{job.rows:,}",
        "created": _time(job.created),
        "waited": _span(job.queued, job.started or at),
        "worked": _span(job.started, job.finished or at),
        "attempts": job.fence,
        "reason": job.reason.code if job.reason else "",
    }


def _time(seconds: float) -> str:
    return time_of(seconds)[:19].replace("T", " ")


def _span(since: float | None, until: float) -> str:
    return "" if since is None else f"{max(0.0, until - since):.1f} s"

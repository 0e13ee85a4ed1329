"""The operator's page: recent events, the machine's state, and all tenants' jobs, but no data.

The page loads no script, no image and nothing from other addresses, and its policy enforces this.
"""

import base64
import platform
from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Query, Request, Security
from fastapi.responses import HTMLResponse
from markupsafe import Markup
from sqlalchemy import case, func, select

from verix_anon import __version__
from verix_anon.html_templates import templates_of
from verix_anon.protocol.providers import JobState
from verix_anon.service import daily_counts as daily
from verix_anon.service import jobs
from verix_anon.service.api.bodies import time_of
from verix_anon.service.api.context import AS_OPERATOR, context_of, workers
from verix_anon.service.api.job_routes import AFTER
from verix_anon.service.api.problems import answers_of
from verix_anon.service.database import DailyRow, Database, JobRow, TenantRow, database_time
from verix_anon.service.settings import ServiceSettings

router = APIRouter(tags=["operation"], dependencies=[Security(AS_OPERATOR)])
SHOWN = 100
TEMPLATES = templates_of("verix_anon.service")
# The style is ours and has no character that ends it; the policy names its digest.
STYLE = TEMPLATES.get_template("operator.css").render()
STYLE_DIGEST = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{STYLE_DIGEST}';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
EVENTS = {
    daily.CREATED: "Jobs created",
    daily.DELIVERED: "Jobs delivered",
    daily.DELETED: "Jobs deleted by their owners",
    daily.EXPIRED: "Jobs deleted after their time",
}
"""Events that are shown even if they never happened"""


@router.get("/operator", response_class=HTMLResponse, responses=answers_of("page"))
def page(
    request: Request, after: Annotated[str | None, Query(max_length=80, pattern=AFTER)] = None
) -> HTMLResponse:
    """What happened today and in a week, the machine, the tenants, and their jobs."""
    context = context_of(request)
    database, settings = context.database, context.settings
    shown, next_page = jobs.page(database, None, limit=SHOWN, after=after)
    with database.read() as session:
        at = database_time(session)
    text = TEMPLATES.get_template("operator.html").render(
        version=__version__,
        style=Markup(STYLE),  # noqa: S704, a file of this package
        at=_time(at),
        events=list(_events(database)),
        facts=_facts(database, settings),
        tenants=list(_tenants(database)),
        most=_size(settings.limits.tenant_bytes),
        counts=[(state.value, count) for state, count in jobs.counts(database).items()],
        jobs=[_line(job, at) for job in shown],
        next=next_page,
    )
    return HTMLResponse(text, headers=HEADERS)


def _events(database: Database) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a table: an event, and its number today and in a week."""
    today, week = (daily.totals(database, n_days) for n_days in (1, daily.WEEK))
    none = daily.Total(0, 0, 0.0)
    counted = [event for event in week if event.startswith((daily.FAILED, daily.REFUSED))]
    for event in (*EVENTS, *counted):
        text = EVENTS.get(event) or f"Jobs {event}"
        yield text, *(f"{each.get(event, none).number:,}" for each in (today, week))
    for text, event in (("Bytes received", daily.RECEIVED), ("Bytes delivered", daily.DELIVERED)):
        yield text, *(_size(each.get(event, none).bytes) for each in (today, week))
    done = [each.get(daily.DELIVERED, none) for each in (today, week)]
    means = (f"{each.seconds / each.number:,.1f} s" if each.number else "" for each in done)
    yield "Mean time of work", *means


def _facts(database: Database, settings: ServiceSettings) -> list[tuple[str, str]]:
    """Return the state of the machine, and the versions that run on it."""
    servers, (free, reserve) = workers(database), settings.disk()
    alive = sum(each for _, each in servers)
    with database.read() as session:
        version = session.connection().dialect.server_version_info or ()
    named = f"{'SQLite' if database.is_sqlite else 'PostgreSQL'} {'.'.join(map(str, version))}"
    return [
        ("Workers alive", f"{alive} on {len(servers)} server{'s' * (len(servers) != 1)}"),
        ("Disk", f"{_size(free)} free, including the reserve of {_size(reserve)}"),
        ("Versions", f"verix-anon {__version__}, Python {platform.python_version()}, {named}"),
    ]


def _tenants(database: Database) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a table: a tenant's jobs, their size, and the results of a week."""
    # A failed job has no files, and does not count for the tenant's share either.
    size = case((JobRow.state != JobState.FAILED, JobRow.bytes), else_=0)
    uses = select(TenantRow.name, func.count(JobRow.id), func.sum(size))
    uses = uses.join(JobRow, isouter=True).group_by(TenantRow.name).order_by(TenantRow.name)
    with database.read() as session:
        found = session.execute(uses).all()
    done, failed, refused = (
        daily.totals(database, daily.WEEK, DailyRow.tenant, only=event)
        for event in (daily.DELIVERED, daily.FAILED, daily.REFUSED)
    )
    for name, kept, used in found:
        weekly = (each[name].number if name in each else 0 for each in (done, failed, refused))
        yield name, f"{kept:,}", _size(int(used or 0)), *(f"{each:,}" for each in weekly)


def _line(job: JobRow, at: float) -> dict[str, object]:
    """Return a job as the page shows it."""
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


def _size(n_bytes: int) -> str:
    """Return a size in the largest unit that gives at least 1."""
    units = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
    unit = next(((unit, n) for unit, n in units if n_bytes >= n), None)
    return f"{n_bytes:,} B" if unit is None else f"{n_bytes / unit[1]:.1f} {unit[0]}"


def _time(seconds: float) -> str:
    return time_of(seconds)[:19].replace("T", " ")


def _span(since: float | None, until: float) -> str:
    return "" if since is None else f"{max(0.0, until - since):.1f} s"

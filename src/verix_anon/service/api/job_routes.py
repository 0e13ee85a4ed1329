"""Jobs over HTTP: asked for, looked at, listed, deleted."""

import re
from contextlib import nullcontext, suppress
from typing import Annotated

import rfc8785
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Header, Query, Request, Response, Security
from pydantic import ValidationError

from verix_anon.errors import ContractError, TableError
from verix_anon.fields import Fields
from verix_anon.files.job_folder import CONTRACT, RECORDS, SUBMISSION_HEADER
from verix_anon.protocol.contract import Contract, Rule
from verix_anon.protocol.providers import File, JobState
from verix_anon.service import blobs, daily_counts, engines, jobs
from verix_anon.service.api import bodies
from verix_anon.service.api.bodies import delivered, seen, uploaded
from verix_anon.service.api.context import AS_TENANT, LARGE_BYTES, Context, context_of, tenant_of
from verix_anon.service.api.problems import Problem, answers_of, body_of, from_validation
from verix_anon.service.database import DatabaseError, JobRow
from verix_anon.service.uploads import remove_uploads

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], dependencies=[Security(AS_TENANT)])
ID = re.compile(r"[0-9a-f]{32}\Z", re.ASCII)
AFTER = r"^0x1\.[0-9a-f]{13}p\+[0-9]{1,2}_[0-9a-f]{32}$"
AfterFile = Annotated[
    str, Query(max_length=200, pattern="^[ -~]*$", description="The `next` of the page before")
]
POLL_SECONDS = {JobState.UPLOADING: 5, JobState.QUEUED: 2, JobState.RUNNING: 1}
OPEN_SECONDS = 30
NAMED = (SUBMISSION_HEADER, CONTRACT)

FILE_FIELDS = len(bodies.FileOrder.model_fields)
# JSON unfolds to some twenty times its size: no more than so many orders are read at a time.
PARSING = CapacityLimiter(2)
LARGE_BODIES = CapacityLimiter(4)
"""Held in this process, until the job is made: others are not read before it is their turn."""
MOST_VALUES = 300_000
"""Of JSON; ten thousand files have fifty thousand"""
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern="^[ -~]+$",
        description="The same key with the same files gives the same job again",
    ),
]


def found(job: str, request: Request) -> JobRow:
    """The tenant's job of this id, with the file that the path names; others' are not there."""
    database, tenant = context_of(request).database, tenant_of(request)
    # No file is named "/": where the path ends before a name, none is found.
    file = (request.path_params["name"] or "/") if "name" in request.path_params else ""
    known = jobs.find(database, tenant, job, file=file) if ID.match(job) else None
    if known is None:
        raise Problem("not-found", "There is no such job.")
    request.state.job = known.id
    return known


Found = Annotated[JobRow, Depends(found)]


@router.post(
    "",
    status_code=201,
    response_model=bodies.JobBody,
    openapi_extra=body_of("create"),
    responses=answers_of("create"),
)
async def create(request: Request, response: Response, key: Key = None) -> bodies.JobBody:
    """Ask for a job: the contract, and the files that will be uploaded."""
    context, tenant = context_of(request), tenant_of(request)
    async with LARGE_BODIES if request.state.body_bytes > LARGE_BYTES else nullcontext():
        body = await request.body()
        job = await run_sync(_create_counted, context, tenant, body, key, limiter=PARSING)
    request.state.job = job.id
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return job


def _create_counted(context: Context, tenant: str, body: bytes, key: str | None) -> bodies.JobBody:
    try:
        return _create(context, tenant, body, key)
    except Problem as problem:
        # The owner is told why, even if the database cannot count it.
        with suppress(DatabaseError), context.database.write() as session:
            daily_counts.count(session, tenant, daily_counts.REFUSED + problem.code)
        raise


def _create(context: Context, tenant: str, body: bytes, key: str | None) -> bodies.JobBody:
    order = _order(body)
    _check_files(context, order)
    contract = _contract(context, order)
    settings = context.settings
    new = jobs.NewJob(
        tenant=tenant,
        rows=order.rows,
        columns=len(contract.quasi),
        min_leaf=contract.min_leaf,
        files=tuple(File(**file.model_dump()) for file in order.files),
        key=key,
    )
    try:
        engine = engines.choose(settings, new)
        job = jobs.create(
            context.database,
            new,
            engine=engine,
            most=settings.limits.concurrent_jobs,
            retention_seconds=settings.retention_seconds,
            tenant_bytes=settings.limits.tenant_bytes,
            room=settings.room(),
        )
    except jobs.RequestRefusedError as error:
        # Room comes when another job of the tenant ends.
        is_passing = error.code in ("too-many-jobs", "too-many-bytes")
        wait = {"Retry-After": str(OPEN_SECONDS)} if is_passing else {}
        raise Problem(error.code, str(error), wait) from None
    return seen(context.database, job, settings.staging)


def _order(body: bytes) -> bodies.JobOrder:
    """What the body asks for, read in memory that its own size bounds."""
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > MOST_VALUES:
        # All other requests wait while a body is parsed, for seconds if it is made for that.
        raise Problem("request-too-large", f"A request has at most {MOST_VALUES:,} values.")
    try:
        given = Fields.parse(body, "order", TableError).values
    except TableError:
        raise Problem(
            "invalid-request", "The body is not a JSON object, or a field occurs in it twice."
        ) from None
    files = given.get("files")
    listed = files if isinstance(files, list) else []
    sizes = [len(file) for file in listed if isinstance(file, dict)]
    if given.keys() - bodies.JobOrder.model_fields or max(sizes, default=0) > FILE_FIELDS:
        # A report on each of a million unknown fields would take gigabytes: measured.
        raise Problem("invalid-request", "The body or one of its files has an unknown field.")
    try:
        return bodies.JobOrder.model_validate(given)
    except ValidationError as error:
        raise from_validation(error) from None


def _check_files(context: Context, order: bodies.JobOrder) -> None:
    """The files of a submission's folder and no other, each once, and not too large."""
    names = [file.name for file in order.files]
    records = [name for name in names if name not in NAMED]
    if len(set(names)) != len(names) or len(records) != len(names) - len(NAMED):
        raise Problem(
            "invalid-request", f"The files are {', '.join(NAMED)} and {RECORDS}, each once."
        )
    if RECORDS in records and len(records) > 1:
        raise Problem("invalid-request", f"{RECORDS} is either a file or a folder of parts.")
    limits = context.settings.limits
    if max(file.size for file in order.files) > limits.file_bytes:
        raise Problem("upload-too-large", f"A file has at most {limits.file_bytes:,} bytes.")
    most = min(limits.upload_bytes, limits.tenant_bytes)
    if sum(file.size for file in order.files) > most:
        raise Problem("upload-too-large", f"All files together have at most {most:,} bytes.")


def _contract(context: Context, order: bodies.JobOrder) -> Contract:
    """The contract, if it is one that is served here, and the one that will be uploaded."""
    limits = context.settings.limits
    columns = order.contract.get("columns")
    if isinstance(columns, list) and len(columns) > limits.columns:
        raise Problem("too-many-columns", f"A contract has at most {limits.columns:,} columns.")
    if order.rows > limits.rows:
        raise Problem("too-many-rows", f"A submission has at most {limits.rows:,} rows.")
    rule = order.contract.get("rule")
    if isinstance(rule, str) and rule not in set(Rule):
        raise Problem("unknown-rule", f"The rules are {', '.join(Rule)}.")
    try:
        data = rfc8785.dumps(order.contract)
        contract = Contract.from_bytes(data)
    except (ContractError, ValueError, RecursionError):
        # Which field is wrong would be told with the name of a column, or its value.
        raise Problem(
            "invalid-contract", "This is not a contract; `verix-anon inspect` says why."
        ) from None
    stated = next(file for file in order.files if file.name == CONTRACT)
    if (stated.size, stated.sha256) != (len(data), contract.digest.hex()):
        raise Problem(
            "invalid-contract", "The contract is not the contract.json that the files name."
        )
    return contract


@router.get("", responses=answers_of("listed"))
def listed(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    after: Annotated[str | None, Query(max_length=80, pattern=AFTER)] = None,
) -> bodies.Jobs:
    """The tenant's jobs, newest first, without their files."""
    database = context_of(request).database
    found, next_page = jobs.page(database, tenant_of(request), limit=limit, after=after)
    return bodies.Jobs(jobs=[bodies.JobLine.model_validate(job) for job in found], next=next_page)


@router.get("/{job}", responses=answers_of("show"))
def show(request: Request, response: Response, job: Found) -> bodies.JobBody:
    """The state of a job."""
    if wait := POLL_SECONDS.get(job.state):
        response.headers["Retry-After"] = str(wait)
    context = context_of(request)
    return seen(context.database, job, context.settings.staging)


@router.get("/{job}/files", responses=answers_of("list_files"))
def list_files(request: Request, job: Found, after: AfterFile = "") -> bodies.UploadedFiles:
    """The files of a job, in pages."""
    context = context_of(request)
    return uploaded(context.database, job, context.settings.staging, after)


@router.get("/{job}/delivery", responses=answers_of("list_delivery"))
def list_delivery(request: Request, job: Found, after: AfterFile = "") -> bodies.DeliveredFiles:
    """The files of a job's delivery, in pages; none until it is done."""
    return delivered(context_of(request).database, job, after)


@router.delete("/{job}", status_code=204, responses=answers_of("delete"))
def delete(request: Request, job: Found) -> None:
    """Delete a job with all its files. If it is running, it is given up."""
    context = context_of(request)
    # Files first: a full disk takes no row, and gains room by this. Until all files are gone the
    # row is there, so that the same request can be made again.
    _delete_files(context, job.id)
    if not jobs.delete(context.database, tenant_of(request), job.id):
        raise Problem("not-found", "There is no such job.")
    with suppress(OSError):
        # What came in between; the sweep finds the rest.
        _delete_files(context, job.id)


def _delete_files(context: Context, job_id: str) -> None:
    remove_uploads(context.settings.staging, job_id)
    context.blobs.delete(blobs.job(job_id))

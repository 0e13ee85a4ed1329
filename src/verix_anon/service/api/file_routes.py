"""A job's files over HTTP: uploads by tus 1.0, the core protocol, and downloads of the delivery.

Both go on where a client stopped. Files and digests are worked on in threads.
"""

import re
from pathlib import Path
from typing import Annotated

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Request, Response, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BeforeValidator
from starlette.requests import ClientDisconnect

from verix_anon.service import blobs, jobs
from verix_anon.service.api.bodies import upload_of
from verix_anon.service.api.context import AS_TENANT, Context, context_of, token_of
from verix_anon.service.api.job_routes import Found
from verix_anon.service.api.problems import Problem, answers_of, body_of
from verix_anon.service.database import FileRow, JobRow
from verix_anon.service.jobs import RequestRefusedError
from verix_anon.service.tenants import TokenRole
from verix_anon.service.uploads import Upload, too_large

FOR_TENANTS = [Security(AS_TENANT)]
uploads = APIRouter(
    prefix="/v1/jobs/{job}/files/{name:path}", tags=["uploads"], dependencies=FOR_TENANTS
)
deliveries = APIRouter(
    prefix="/v1/jobs/{job}/delivery", tags=["deliveries"], dependencies=FOR_TENANTS
)
VERSION = "1.0.0"
UPLOAD_TYPE = "application/offset+octet-stream"
UPLOAD_CHUNK = 1 << 20
"""How many bytes are gathered before they are written"""
FINISHING = CapacityLimiter(4)
"""Digests take a while, and must not take the threads that all other requests need"""

Version = Annotated[
    str, Header(alias="Tus-Resumable", description=f"{VERSION}; any other is refused")
]


def _digits(text: object) -> object:
    """Digits and nothing else: int() would take signs, blanks and underscores too."""
    if not (isinstance(text, str) and text.isascii() and text.isdigit()):
        raise ValueError("not a number")
    return text


Offset = Annotated[int, BeforeValidator(_digits), Header(alias="Upload-Offset", ge=0, le=2**63 - 1)]
ONE_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})\Z", re.ASCII)
DOWNLOAD_TYPE = "application/octet-stream"


@uploads.options("", status_code=204, responses=answers_of("spoken"))
def spoken(request: Request, job: Found, name: str) -> Response:
    """The version of tus, and the greatest size of a file."""
    _file(job, name)
    return Response(
        status_code=204,
        headers={
            "Tus-Resumable": VERSION,
            "Tus-Version": VERSION,
            "Tus-Max-Size": str(context_of(request).settings.limits.file_bytes),
        },
    )


@uploads.head("", responses=answers_of("offset"))
async def offset(request: Request, job: Found, name: str, version: Version = "") -> Response:
    """How many bytes of a file have arrived. If all have, the file is stored at the latest now."""
    _check_version(version)
    context, file = context_of(request), _file(job, name)
    upload = upload_of(context.settings.staging, job, file)
    at = file.size if file.is_complete else await run_in_threadpool(upload.offset)
    if at == file.size and not file.is_complete:
        try:
            await run_sync(_finish, context, upload, limiter=FINISHING)
        except RequestRefusedError as error:
            if error.code != "digest-mismatch":
                raise Problem(error.code, str(error)) from None
            at = 0
    return _answer(200, at, {"Upload-Length": str(file.size)})


@uploads.patch("", status_code=204, openapi_extra=body_of("append"), responses=answers_of("append"))
async def append(
    request: Request, job: Found, name: str, at: Offset, version: Version = ""
) -> Response:
    """Add bytes to a file at an offset. After the last byte its SHA-256 is compared."""
    _check_version(version)
    if request.headers.get("content-type") != UPLOAD_TYPE:
        raise Problem("unsupported-media-type", f"Uploads are {UPLOAD_TYPE}.")
    context, file = context_of(request), _file(job, name)
    upload = upload_of(context.settings.staging, job, file)
    if file.is_complete and at != file.size:
        raise _mismatch(file.size)
    stated = request.headers.get("content-length", "")
    try:
        if stated.isdecimal() and int(stated) > max(0, file.size - at):
            # Refused before any of it is read.
            raise too_large()
        if file.is_complete:
            return _answer(204, file.size)
        reached = await _received(request, context, upload, at)
        # The upload may have taken long, and the token may have been revoked meanwhile.
        await token_of(request, TokenRole.TENANT)
        if reached == upload.file.size:
            await run_sync(_finish, context, upload, limiter=FINISHING)
    except RequestRefusedError as error:
        if error.code == "offset-mismatch":
            raise _mismatch(upload.offset()) from None
        raise Problem(error.code, str(error)) from None
    return _answer(204, reached)


async def _received(request: Request, context: Context, upload: Upload, at: int) -> int:
    """Write what arrives, in pieces; if the client leaves, the bytes that arrived are kept."""
    writer = await run_in_threadpool(upload.begin, at)
    gathered = bytearray()

    def append(data: bytes) -> int:
        context.settings.check_room(len(data))
        return writer.append(data)

    try:
        async for chunk in request.stream():
            gathered += chunk
            if len(gathered) >= UPLOAD_CHUNK:
                at = await run_in_threadpool(append, bytes(gathered))
                gathered.clear()
    except (ClientDisconnect, Problem):
        await run_in_threadpool(append, bytes(gathered))
        raise
    return await run_in_threadpool(append, bytes(gathered))


def _finish(context: Context, upload: Upload) -> None:
    def keep(path: Path) -> None:
        context.settings.check_room(upload.file.size)
        context.blobs.put(blobs.upload(upload.job, upload.file.name), path)
        if jobs.complete_file(context.database, upload.job, upload.file.name) is None:
            context.blobs.delete(blobs.job(upload.job))
            raise Problem("not-found", "There is no such job.")

    upload.finish(keep)


def _file(job: JobRow, name: str) -> FileRow:
    for file in job.files:
        if file.name == name:
            return file
    raise Problem("not-found", "The job has no such file.")


def _check_version(version: str) -> None:
    if version != VERSION:
        raise Problem(
            "unsupported-tus-version", f"tus {VERSION} is spoken here.", {"Tus-Version": VERSION}
        )


def _mismatch(offset: int) -> Problem:
    return Problem("offset-mismatch", f"The upload is at {offset}.", {"Upload-Offset": str(offset)})


def _answer(status: int, offset: int, more: dict[str, str] | None = None) -> Response:
    headers = {"Tus-Resumable": VERSION, "Upload-Offset": str(offset)}
    return Response(status_code=status, headers=headers | (more or {}))


def wanted(
    size: int, etag: str, range_header: str | None, if_range: str | None
) -> tuple[int, int] | None:
    """Which bytes are asked for, the end not included; None for the whole file.

    With `If-Range` the range counts only if the file is still the one it was begun with.
    """
    found = ONE_RANGE.match(range_header or "")
    if found is None or (if_range is not None and if_range != etag):
        return None
    first, last = found[1], found[2]
    if not (first or last) or (first and last and int(last) < int(first)):
        return None
    if first:
        start, end = int(first), min(size, int(last) + 1) if last else size
    else:
        start, end = max(0, size - int(last)), size
    if start >= end:
        raise Problem(
            "range-not-satisfiable",
            f"The file has {size:,} bytes.",
            {"Content-Range": f"bytes */{size}"},
        )
    return start, end


@deliveries.get("/{name:path}", response_class=Response, responses=answers_of("download"))
def download(
    request: Request,
    job: Found,
    name: str,
    range_: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Annotated[str | None, Header(alias="If-Range")] = None,
) -> Response:
    """A file of the delivery; its ETag is its SHA-256."""
    if job.delivery is None:
        raise Problem("wrong-state", "The job has no delivery, because it is not done.")
    file = next((each for each in job.delivery if each.name == name), None)
    if file is None:
        raise Problem("not-found", "The delivery has no such file.")
    etag = f'"{file.sha256}"'
    span = wanted(file.size, etag, range_, if_range)
    start, end = span or (0, file.size)
    headers = {"ETag": etag, "Accept-Ranges": "bytes", "Cache-Control": "private, no-transform"}
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
    headers["Content-Length"] = str(end - start)
    try:
        # Before the answer begins: of a job that was deleted meanwhile nothing is sent.
        name = blobs.attempt(job.id, job.fence, file.name)
        pieces = context_of(request).blobs.pieces(name, start, end)
    except FileNotFoundError:
        raise Problem("not-found", "There is no such job.") from None
    status = 200 if span is None else 206
    return StreamingResponse(pieces, status, headers, DOWNLOAD_TYPE)

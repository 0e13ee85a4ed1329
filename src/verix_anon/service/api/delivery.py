"""Deliveries over HTTP: files streamed from the blobs, whole or from where a client stopped."""

from collections.abc import Iterator
from typing import IO, Annotated, Any

from fastapi import APIRouter, Header, Request, Response, Security
from fastapi.responses import StreamingResponse

from verix_anon.service.api.auth import AS_TENANT, TenantRoute
from verix_anon.service.api.context import context_of
from verix_anon.service.api.jobs import FoundWithFile
from verix_anon.service.api.problems import Problem, described
from verix_anon.service.api.ranges import Span, wanted
from verix_anon.service.blobs import attempt

__all__ = ["router"]

router = APIRouter(
    prefix="/v1/jobs/{job}/delivery",
    route_class=TenantRoute,
    tags=["deliveries"],
    dependencies=[Security(AS_TENANT)],
)
CHUNK = 1 << 18
MEDIA_TYPE = "application/octet-stream"
CONTENT = {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
TEXT = {"schema": {"type": "string"}}
SENT: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file", "content": CONTENT, "headers": {"ETag": TEXT}},
    206: {
        "description": "A range of the file",
        "content": CONTENT,
        "headers": {"ETag": TEXT, "Content-Range": TEXT},
    },
}


@router.get(
    "/{name:path}",
    response_class=Response,
    responses=SENT | described("not-found", "wrong-state", "range-not-satisfiable"),
)
def download(
    request: Request,
    job: FoundWithFile,
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
    headers = {"ETag": etag, "Accept-Ranges": "bytes", "Cache-Control": "private, no-transform"}
    if span is not None:
        headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{file.size}"
    part = span or Span(0, file.size)
    headers["Content-Length"] = str(part.end - part.start)
    try:
        # Before the answer begins: of a job that was deleted meanwhile nothing is sent.
        opened = context_of(request).blobs.open(attempt(job.id, job.fence, file.name))
    except FileNotFoundError:
        raise Problem("not-found", "There is no such job.") from None
    status = 200 if span is None else 206
    return StreamingResponse(_pieces(opened, part), status, headers, MEDIA_TYPE)


def _pieces(opened: IO[bytes], span: Span) -> Iterator[bytes]:
    with opened as file:
        file.seek(span.start)
        left = span.end - span.start
        while left:
            piece = file.read(min(CHUNK, left))
            if not piece:
                raise OSError("a blob is shorter than its row says")
            left -= len(piece)
            yield piece

"""A file that is dropped on the page, copied into the folder as it comes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from verix_anon.desk.pages.asked import GivenJob
from verix_anon.desk.show import desk_of
from verix_anon.errors import TableError
from verix_anon.files.receiving import receiving

__all__ = ["router"]

router = APIRouter()
PIECE = 1 << 20
"""Bytes that are held at once."""


@router.put("/jobs/{job}/upload")
async def upload(request: Request, job: GivenJob, name: Annotated[str, Query()]) -> Response:
    """The body is the file; the answer is what it is called here, or why it was not taken."""
    length = request.headers.get("content-length", "")
    size = int(length) if length.isdecimal() else None
    try:
        with receiving(desk_of(request).folder, name, size) as received:
            async for piece in _pieces(request):
                await asyncio.to_thread(received.write, piece)
            await asyncio.to_thread(received.done)
    except TableError as error:
        return JSONResponse({"problem": str(error)}, 400)
    except ClientDisconnect:
        return Response(status_code=400)
    return JSONResponse({"table": received.name})


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    held = bytearray()
    async for chunk in request.stream():
        held += chunk
        if len(held) >= PIECE:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)

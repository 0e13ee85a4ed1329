"""The style, the script and the icon: ours, and small enough to be read."""

from importlib.resources import files

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

__all__ = ["router"]

router = APIRouter()
KINDS = {"desk.css": "text/css", "desk.js": "text/javascript", "desk.svg": "image/svg+xml"}


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A file by its name."""
    if name not in KINDS:
        raise HTTPException(404)
    data = (files("verix_anon.desk") / "static" / name).read_bytes()
    return Response(data, media_type=KINDS[name])

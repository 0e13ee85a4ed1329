"""A series: what was published so far, and what all of it tells together."""

from pathlib import Path
from shlex import quote

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from verix_anon.client.privacy_sheet import OverTime
from verix_anon.client.series import LOG, MEMORY, Series, read_log
from verix_anon.client.series.memory import is_sealed
from verix_anon.desk.pages import forms
from verix_anon.desk.rendering import desk_of, page
from verix_anon.errors import TableError
from verix_anon.files.desk_folder import is_text

router = APIRouter()


def series_in(folder: Path) -> list[str]:
    """Return the names of the series in a folder; as of jobs, without links and hidden ones."""
    places = (log.parent for log in folder.glob(f"[!.]*/{LOG}") if log.is_file())
    return sorted(each.name for each in places if is_text(each.name) and not each.is_symlink())


@router.get("/series/{name}")
def series(request: Request, name: str) -> Response:
    """Show the releases that the public log lists."""
    return _page(request, name)


@router.post("/series/{name}")
def measure(request: Request, name: str, form: forms.Posted) -> Response:
    """Show what all releases tell together; a sealed memory needs its passphrase."""
    secret = forms.one(form, "passphrase") or None
    try:
        return _page(request, name, Series(_folder(request, name), passphrase=secret).risk())
    except TableError as error:
        return _page(request, name, problem=str(error))


def _folder(request: Request, name: str) -> Path:
    folder = desk_of(request).folder
    if name not in series_in(folder):
        raise HTTPException(404)
    return folder / name


def _page(
    request: Request, name: str, found: OverTime | None = None, problem: str = ""
) -> Response:
    folder = _folder(request, name)
    log = read_log(folder / LOG)
    view = {
        "name": name,
        "here": request.url.path,
        "entries": log.entries,
        "head": str(log.head()),
        "found": found,
        "is_sealed": is_sealed(folder / MEMORY),
        "problem": problem,
        "next": f"verix-anon run TABLE --series {quote(f'./{name}')} --out JOB --release RELEASED",
    }
    words = ("series", "risk", f"./{name}")
    return page(request, "series.html", view, command=words, status=400 if problem else 200)

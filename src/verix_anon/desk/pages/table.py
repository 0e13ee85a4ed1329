"""Table: which file it is, how it is read, its first rows; then the columns are drafted."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from verix_anon.client.journey import ROLES, Job, State, Step
from verix_anon.client.table.choices import reading_changes, table_changes
from verix_anon.client.table.draft import parse_reading
from verix_anon.client.table.edited import edited
from verix_anon.client.table.first_rows import FirstRows, first_rows
from verix_anon.desk.gate import Form
from verix_anon.desk.pages.asked import GivenJob, Posted, at, check_open, go_to, one
from verix_anon.desk.pages.conflict import conflict
from verix_anon.desk.show import desk_of, href_of, page
from verix_anon.errors import Error, TableError
from verix_anon.files.inside import inside, tables_in
from verix_anon.files.tables import Reading
from verix_anon.files.versions import SEEN, Version, read_version, replace_version

__all__ = ["router"]

router = APIRouter()
FIELDS = {
    "delimiter": ("", ",", ";", "tab", "|"),
    "encoding": ("", "UTF-8", "windows-1252", "ISO-8859-15", "UTF-16"),
    "decimal": ("", ".", ","),
    "date_format": ("", "yyyy-mm-dd", "dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "yyyymmdd"),
}
"""What may be said of a table, and what is proposed; empty: as recognised."""


@router.get("/jobs/{job}/table")
def table(request: Request, job: GivenJob) -> Response:
    """The table as it is read now, or would be with what the query says."""
    asked = {name: request.query_params.get(name, "") for name in ("table", *FIELDS)}
    roles = read_version(job.path(ROLES))
    if not asked["table"] and job.table is not None:
        asked |= {"table": _relative(request, job.table), **_said(parse_reading(roles.text))}
    return _page(request, job, asked, roles.digest)


def _page(
    request: Request, job: Job, asked: dict[str, str], digest: str, problem: str = ""
) -> Response:
    view = {
        "tables": tables_in(desk_of(request).folder),
        "asked": asked,
        "fields": FIELDS,
        "digest": digest,
        "is_drafted": job.state is not State.NEW and bool(digest),
        "problem": problem,
        **_rows(request, asked),
    }
    status = 400 if problem else 200
    words = _init(job, asked) if asked["table"] else ()
    return page(request, "table.html", view, job=job, command=words, status=status)


def _rows(request: Request, asked: dict[str, str]) -> dict[str, object]:
    """The first rows, or why there are none."""
    found: FirstRows | None = None
    trouble, is_large = "", False
    if asked["table"]:
        try:
            path = inside(desk_of(request).folder, asked["table"])
            found = first_rows(path, _reading(asked))
            is_large = found is None
        except Error as error:
            trouble = str(error)
    return {"rows": found, "trouble": trouble, "is_large": is_large}


@router.post("/jobs/{job}/table")
def choose_table(request: Request, job: GivenJob, form: Posted) -> Response:
    """Show it read so, draft the columns, or only read it otherwise from now on."""
    asked = {name: one(form, name) for name in ("table", *FIELDS)}
    was = one(form, "digest")
    if one(form, "do") == "show":
        query = urlencode({name: value for name, value in asked.items() if value})
        return RedirectResponse(f"{href_of(request, Step.TABLE, job)}?{query}", 303)
    check_open(request, job)
    try:
        path = inside(desk_of(request).folder, asked["table"])
        reading = _reading(asked)
    except TableError as error:
        return _page(request, job, asked, was, str(error))
    now = read_version(job.path(ROLES))
    if one(form, "do") == "keep":
        return _keep(request, job, path, reading, Version(now.text, was), form)
    if now.digest != was:
        return conflict(request, job, now, now.text, form, "table")
    words = _init(job, asked, overwrite=bool(now.digest))
    then = href_of(request, Step.COLUMNS, job)
    desk_of(request).tasks.start(job.name, words, then=then, environment={SEEN: was})
    return go_to(request, "table", job=job.name)


def _keep(
    request: Request, job: Job, table: Path, reading: Reading, was: Version, form: Form
) -> Response:
    """Write which table it is and how it is read, and leave the columns as they are."""
    known = parse_reading(was.text)
    if reading.date_format:
        # What was recognised of each column is what the owner says otherwise.
        known = replace(known, dates={})
    # A field that is left empty is to be recognised, whatever was said of it before.
    wanted = replace(known, **{name: getattr(reading, name) for name in FIELDS})
    named = table_changes(table, job.folder) if table != job.table else {}
    text = edited(was.text, {**reading_changes(was.text, wanted), **named})
    changed = replace_version(job.path(ROLES), text, was.digest)
    if changed is not None:
        return conflict(request, job, changed, text, form, "table")
    return go_to(request, "table", job=job.name)


def _reading(asked: dict[str, str]) -> Reading:
    given = {name: asked[name].strip() for name in FIELDS if asked[name].strip()}
    if given.get("delimiter") == "tab":
        given["delimiter"] = "\t"
    return Reading(**given)  # type: ignore[arg-type]


def _said(reading: Reading) -> dict[str, str]:
    """What the roles file says, in the form's fields."""
    found = {name: str(getattr(reading, name) or "") for name in FIELDS}
    return found | {"delimiter": "tab" if reading.delimiter == "\t" else found["delimiter"]}


def _relative(request: Request, path: Path) -> str:
    """From the desk's folder; a table elsewhere is not the desk's to read."""
    folder = desk_of(request).folder
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else ""


def _init(job: Job, asked: dict[str, str], *, overwrite: bool = False) -> tuple[str, ...]:
    """The command that drafts the columns."""
    given = [(f"--{name.replace('_', '-')}", asked[name].strip()) for name in FIELDS]
    options = [word for name, value in given if value for word in (name, value)]
    # A file may be called like an option or a URL.
    path = asked["table"]
    path = f"./{path}" if path.startswith("-") or ":" in path else path
    more = ["--overwrite"] if overwrite else []
    return ("init", path, "--out", at(job, ROLES), *options, *more)

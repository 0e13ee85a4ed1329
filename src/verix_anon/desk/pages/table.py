"""Table: which file it is, how it is read, its first rows; then the columns are drafted."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse

from verix_anon.client.job import Job, JourneyState, JourneyStep
from verix_anon.client.table.encode import kind_of
from verix_anon.client.table.roles_editor import apply_reading
from verix_anon.client.table.roles_file import parse_reading, place_from
from verix_anon.desk.gate import Form
from verix_anon.desk.pages import forms
from verix_anon.desk.rendering import desk_of, href_of, language_of, page
from verix_anon.errors import Error, TableError
from verix_anon.files.desk_folder import inside, receiving
from verix_anon.files.job_folder import OVERVIEW, ROLES
from verix_anon.files.table_form import from_typed, to_typed
from verix_anon.files.tables import NULL_TOKENS, FirstRows, Reading, first_rows
from verix_anon.files.text_versions import Version, read_version, replace_version
from verix_anon.parent_process import SEEN
from verix_anon.translation import translated

router = forms.step_router(JourneyStep.TABLE)
FIELDS = {
    "delimiter": ("", ",", ";", "tab", "|"),
    "encoding": ("", "UTF-8", "windows-1252", "ISO-8859-15", "UTF-16"),
    "decimal": ("", ".", ","),
    "date_format": ("", "yyyy-mm-dd", "dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "yyyy/mm/dd"),
}
"""The options for reading a table, and the values to choose from; empty means: as recognised."""
ASKED = ("table", *FIELDS, "null")
BETWEEN = " | "
"""Stands between words that mean missing."""


@router.get("/jobs/{job}/table")
def table(request: Request, job: forms.GivenJob) -> Response:
    """Show the table as it is read now, or as it would be read with the query's options."""
    asked = {name: request.query_params.get(name, "") for name in ASKED}
    roles = read_version(job.path(ROLES))
    if not asked["table"] and job.table is not None:
        said, folder = parse_reading(roles.text), desk_of(request).folder
        asked |= {name: to_typed(name, getattr(said, name) or "") for name in FIELDS}
        if tuple(said.null_tokens) != NULL_TOKENS:
            asked["null"] = BETWEEN.join(filter(None, said.null_tokens))
        # Only from the desk's folder: the desk must not read tables elsewhere.
        is_ours = job.table.is_relative_to(folder)
        asked["table"] = job.table.relative_to(folder).as_posix() if is_ours else ""
    return _page(request, job, asked, roles.digest)


def _page(
    request: Request, job: Job, asked: dict[str, str], digest: str, problem: str = ""
) -> Response:
    view = {
        "tables": forms.tables_here(request),
        "asked": asked,
        "fields": FIELDS,
        "digest": digest,
        "is_drafted": job.state is not JourneyState.NEW and bool(digest),
        "problem": problem,
        **_rows(request, asked),
    }
    status = 400 if problem else 200
    words = _init(job, asked) if asked["table"] else ()
    return page(request, "table.html", view, job=job, command=words, status=status)


def _rows(request: Request, asked: dict[str, str]) -> dict[str, object]:
    """Return the first rows, or why they cannot be shown."""
    found: FirstRows | None = None
    trouble, is_large = "", False
    if asked["table"]:
        try:
            path = inside(desk_of(request).folder, asked["table"])
            found = first_rows(path, _reading(asked))
            is_large = found is None
        except Error as error:
            trouble = str(error)
    kinds = [] if found is None else [kind_of(each) or "" for each in found.types]
    return {"rows": found, "kinds": kinds, "trouble": trouble, "is_large": is_large}


@router.post("/jobs/{job}/table")
def choose_table(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Show the table read this way, draft the columns, or only change how it is read."""
    asked = {name: forms.one(form, name) for name in ASKED}
    was = forms.one(form, "digest")
    if forms.one(form, "do") == "show":
        query = urlencode({name: value for name, value in asked.items() if value})
        return RedirectResponse(f"{href_of(request, JourneyStep.TABLE, job)}?{query}", 303)
    forms.check_open(request, job)
    try:
        path = inside(desk_of(request).folder, asked["table"])
        reading = _reading(asked)
    except TableError as error:
        return _page(request, job, asked, was, str(error))
    now = read_version(job.path(ROLES))
    if forms.one(form, "do") == "keep":
        return _keep(request, job, path, reading, Version(now.text, was), form)
    if now.digest != was:
        return forms.conflict(request, job, now, now.text, form)
    words = _init(job, asked, overwrite=bool(now.digest))
    return forms.start(request, job, words, then=JourneyStep.COLUMNS, environment={SEEN: was})


def _keep(
    request: Request, job: Job, table: Path, reading: Reading, was: Version, form: Form
) -> Response:
    """Save which table it is and how it is read; the columns stay as they are."""
    known = parse_reading(was.text)
    if reading.date_format:
        # The owner's format replaces the formats that were recognised for single columns.
        known = replace(known, dates={})
    # An empty field means that its option is recognised, even if it was set before.
    names = (*FIELDS, "null_tokens")
    wanted = replace(known, **{name: getattr(reading, name) for name in names})
    place = place_from(table, job.folder) if table != job.table else None
    text = apply_reading(was.text, wanted, place)
    changed = replace_version(job.path(ROLES), text, was.digest)
    if changed is not None:
        return forms.conflict(request, job, changed, text, form)
    return forms.go_to(request, "table", job=job.name)


def _reading(asked: dict[str, str]) -> Reading:
    given = {name: from_typed(name, asked[name].strip()) for name in FIELDS if asked[name].strip()}
    if words := _words(asked):
        given["null_tokens"] = ("", *words)  # type: ignore[assignment]
    return Reading(**given)  # type: ignore[arg-type]


def _words(asked: dict[str, str]) -> list[str]:
    return [word.strip() for word in asked["null"].split(BETWEEN.strip()) if word.strip()]


def _init(job: Job, asked: dict[str, str], *, overwrite: bool = False) -> tuple[str, ...]:
    """Return the command that drafts the columns."""
    given = [(f"--{name.replace('_', '-')}", asked[name].strip()) for name in FIELDS]
    options = [word for name, value in given if value for word in (name, value)]
    if words := _words(asked):
        options += [option for word in ("", *words) for option in ("--null", word)]
    # A file may be called like an option or a URL.
    path = asked["table"]
    path = f"./{path}" if path.startswith("-") or ":" in path else path
    more = ["--overwrite"] if overwrite or job.path(OVERVIEW).exists() else []
    more += ["--overview", forms.at(job, OVERVIEW)]
    return ("init", path, "--out", forms.at(job, ROLES), *options, *more)


@router.put("/jobs/{job}/upload")
async def upload(request: Request, job: forms.GivenJob, name: Annotated[str, Query()]) -> Response:
    """Save the body as a file; answer with its name here, or why it was not accepted."""
    length = request.headers.get("content-length", "")
    size = int(length) if length.isdecimal() else None
    try:
        with receiving(desk_of(request).folder, name, size) as received:
            async for piece in request.stream():
                await asyncio.to_thread(received.write, piece)
            await asyncio.to_thread(received.done)
    except TableError as error:
        said = translated(str(error), language_of(request.headers))
        return JSONResponse({"problem": said}, 400)
    except ClientDisconnect:
        return Response(status_code=400)
    return JSONResponse({"table": received.name})

"""What the pages share: the job and form of a request, words of commands, and where to go next."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from verix_anon.client.job import Job, JourneyStep, find_job
from verix_anon.desk.gate import CSRF_FIELD, Form
from verix_anon.desk.rendering import desk_of, href_of, page
from verix_anon.errors import TableError
from verix_anon.files.desk_folder import inside, tables_in
from verix_anon.files.job_folder import OVERVIEW, SAMPLE
from verix_anon.files.table_form import to_typed
from verix_anon.files.tables import NULL_TOKENS, Reading
from verix_anon.files.text_versions import Version, differences, seen_version

MOST_DIGITS = 18
SAID = (
    *("delimiter", "quote", "encoding", "decimal", "thousands", "date_format"),
    *("skip", "footer", "sheet", "query"),
)
"""The options that say how a table is read, and that can be given once."""
UNNAMED = "TABLE"
"""Stands for the table in a command that is shown, if no table was chosen yet."""


def step_router(step: JourneyStep) -> APIRouter:
    """Return a router for the pages of one step; the navigation marks this step."""

    async def mark(request: Request) -> None:
        request.state.step = step

    return APIRouter(dependencies=[Depends(mark)])


def _job(request: Request, job: str) -> Job:
    try:
        return find_job(desk_of(request).folder, job)
    except TableError:
        raise HTTPException(404) from None


def _form(request: Request) -> Form:
    form: Form = request.state.form
    return form


GivenJob = Annotated[Job, Depends(_job)]
"""The job that a path names."""
Posted = Annotated[Form, Depends(_form)]
"""The fields of a form, which the gate has read."""


def one(form: Form, name: str) -> str:
    """Return the value of a field, or an empty text."""
    return form.get(name, [""])[0]


def columns_of(form: Form) -> dict[str, str]:
    """Return the columns that a form is about, each with its number in the form.

    Forms hold their names percent-encoded, because browsers change line breaks.
    """
    return {unquote(name): str(i) for i, name in enumerate(form.get("column", []))}


def check_known(names: Iterable[str], known: Container[str]) -> None:
    """Raise unless all columns that a form names exist, so that no choice is silently ignored."""
    for name in names:
        if name not in known:
            raise TableError(
                f"the form names the column {name!r}, which does not exist; load the page again"
            )


def whole(given: str) -> int | None:
    """Return the whole number, or None if the text is not one or has too many digits."""
    return int(given) if given.isdecimal() and len(given) <= MOST_DIGITS else None


def number(form: Form, name: str) -> float | None:
    """Return a number that was typed with a comma or a point, or None if the field is empty."""
    text = one(form, name).strip().replace(",", ".")
    try:
        return float(text) if text else None
    except ValueError:
        raise TableError(f"{one(form, name)!r} is not a number") from None


def at(job: Job, name: str) -> str:
    """Return the path of a job's file, as a word of a command that runs in the desk's folder."""
    found = f"{job.name}/{name}" if name else job.name
    return f"./{found}" if found.startswith("-") else found


def check_open(request: Request, job: Job) -> None:
    """Raise unless the roles file may still change: once a job is prepared, it may not."""
    if job.is_prepared:
        raise TableError("this job is prepared already; begin another one")
    desk_of(request).tasks.check_still(job.name)


def _given_file(request: Request, given: str) -> str:
    """Return a file in the desk's folder as a word of a command; empty if no file is named."""
    if not given.strip():
        return ""
    folder = desk_of(request).folder
    found = inside(folder, given.strip())
    if not found.is_file():
        raise TableError(f"{given!r} is not a file")
    return f"./{found.relative_to(folder.resolve()).as_posix()}"


def provider_key(request: Request, form: Form) -> list[str]:
    """Return the option that names the provider's key; empty if the form names no file."""
    key = _given_file(request, one(form, "provider_key"))
    return ["--provider-key", key] if key else []


def table_of(request: Request, job: Job) -> str:
    """Return the job's table, as a word of a command that is shown."""
    folder = desk_of(request).folder.resolve()
    if job.table is None:
        return UNNAMED
    is_ours = job.table.is_relative_to(folder)
    found = str(job.table.relative_to(folder) if is_ours else job.table)
    return f"./{found}" if found.startswith("-") else found


def given_table(request: Request, job: Job, form: Form) -> str:
    """Return the job's table, or the one that a form names, as a word of a command to start."""
    if job.table is not None:
        return table_of(request, job)
    if found := _given_file(request, one(form, "table")):
        return found
    raise TableError("nothing in the job's folder says which table it is: choose one")


def tables_here(request: Request) -> list[str]:
    """Return the tables in the desk's folder, without the samples that lie beside overviews."""
    folder = desk_of(request).folder
    samples = {f"{path.parent.name}/{SAMPLE}" for path in folder.glob(f"*/{OVERVIEW}")}
    return [name for name in tables_in(folder) if name not in samples]


def tables_for(request: Request, job: Job) -> list[str]:
    """Return the tables to choose from, if the job does not name its table."""
    return tables_here(request) if job.table is None else []


def reading_words(reading: Reading) -> list[str]:
    """Return how a table is read, as options of a command."""
    given = {name: getattr(reading, name) for name in SAID}
    found = [(name, to_typed(name, value)) for name, value in given.items() if value is not None]
    found += [("date_format", f"{column}={form}") for column, form in reading.dates.items()]
    if tuple(reading.null_tokens) != NULL_TOKENS:
        found += [("null", word) for word in reading.null_tokens]
    words = [word for name, value in found for word in (f"--{name.replace('_', '-')}", value)]
    return words if reading.leading_zeros_are_text else [*words, "--no-leading-zeros"]


def passphrase(form: Form) -> dict[str, str]:
    """Return the variable that gives commands the manifest's passphrase; empty without one."""
    given = one(form, "passphrase")
    return {"VERIX_PASSPHRASE": given} if given else {}


def go_to(request: Request, name: str, **path: str) -> RedirectResponse:
    """Redirect to another page, so that a reload does not post again."""
    return RedirectResponse(str(request.app.url_path_for(name, **path)), 303)


def start(
    request: Request,
    job: Job,
    words: Sequence[str],
    *,
    then: JourneyStep | None = None,
    good: frozenset[int] = frozenset({0}),
    environment: Mapping[str, str] | None = None,
) -> RedirectResponse:
    """Start a command for a job, and show this step while it runs.

    When it has ended with one of the `good` codes, show the step `then`, by default this one.
    """
    here: JourneyStep = request.state.step
    href = href_of(request, then or here, job)
    desk_of(request).tasks.start(job.name, words, then=href, good=good, environment=environment)
    return go_to(request, here, job=job.name)


def conflict(request: Request, job: Job, now: Version, wanted: str, form: Form) -> Response:
    """Say that nothing was written, and compare the file with what this form would make of it."""
    fields = [
        (name, value)
        for name, values in form.items()
        for value in values
        if name not in (CSRF_FIELD, "digest")
    ]
    before = seen_version(one(form, "digest"))
    view = {
        "changed": [] if before is None else list(differences(before, now.text)),
        "lines": list(differences(now.text, wanted)),
        "fields": [*fields, ("digest", now.digest)],
        "back": href_of(request, request.state.step, job),
        "step": request.state.step,
    }
    return page(request, "conflict.html", view, job=job, status=409)

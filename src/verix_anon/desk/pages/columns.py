"""Columns: for each the guess and its reason, and what the owner says it is."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from verix_anon.client.journey import ROLES, Job, Step
from verix_anon.client.table.advice import Advice, advice
from verix_anon.client.table.choices import Choices, Column, choices, chosen
from verix_anon.client.table.draft import parse_reading
from verix_anon.client.table.hierarchies import DATE, PREFIX
from verix_anon.client.table.person import RECORD
from verix_anon.client.table.roles import TableRole
from verix_anon.desk.gate import Form
from verix_anon.desk.pages.asked import (
    GivenJob,
    Posted,
    check_known,
    check_open,
    columns_of,
    go_to,
    one,
    reading_words,
    table_of,
)
from verix_anon.desk.pages.conflict import conflict
from verix_anon.desk.show import desk_of, fragment, href_of, page
from verix_anon.files.versions import Version, read_version, replace_version
from verix_anon.protocol.contract import Kind

__all__ = ["router"]

router = APIRouter()
ROLE_NAMES = tuple(role.value for role in TableRole)
KIND_NAMES = tuple(kind.value for kind in (Kind.NUMERIC, Kind.CATEGORICAL, Kind.DATETIME))


@router.get("/jobs/{job}/columns")
def columns(request: Request, job: GivenJob) -> Response:
    """What the roles file says now."""
    now = read_version(job.path(ROLES))
    if not now.digest:
        return go_to(request, "table", job=job.name)
    return _page(request, job, choices(now.text), now)


def _page(
    request: Request, job: Job, wanted: Choices, now: Version, *, refused: bool = False
) -> Response:
    view = {
        "wanted": wanted,
        "roles": ROLE_NAMES,
        "kinds": KIND_NAMES,
        "hierarchies": (PREFIX, DATE),
        "record": RECORD,
        "digest": now.digest,
        "advice": _advice(request, job, now, wanted),
        "refused": refused,
    }
    reading = reading_words(parse_reading(now.text))
    command = ("init", table_of(request, job), "--explain", *reading)
    status = 400 if refused else 200
    return page(request, "columns.html", view, job=job, command=command, status=status)


def _advice(request: Request, job: Job, now: Version, wanted: Choices) -> Advice:
    return advice(now.text, wanted, job.folder, desk_of(request).folder)


@router.post("/jobs/{job}/columns/advice")
def advise(request: Request, job: GivenJob, form: Posted) -> Response:
    """Mistakes and warnings of what is chosen; nothing is written."""
    now = read_version(job.path(ROLES))
    found = _advice(request, job, now, _wanted(form, choices(now.text)))
    return fragment(request, "advice.html", {"advice": found})


@router.post("/jobs/{job}/columns")
def choose_columns(request: Request, job: GivenJob, form: Posted) -> Response:
    """Write what is chosen, unless it is a mistake or somebody else wrote since."""
    check_open(request, job)
    now = read_version(job.path(ROLES))
    before = choices(now.text)
    wanted = _wanted(form, before)
    was = one(form, "digest")
    if now.digest == was:
        names = {column.name for column in before.columns}
        check_known(columns_of(form), names)
        check_known([wanted.person], {"", RECORD, before.person, *names})
        if _advice(request, job, now, wanted).mistakes:
            return _page(request, job, wanted, now, refused=True)
    text = chosen(now.text, wanted)
    changed = replace_version(job.path(ROLES), text, was)
    if changed is not None:
        return conflict(request, job, changed, chosen(changed.text, wanted), form, "columns")
    on = href_of(request, Step.PRIVACY, job) if one(form, "do") == "on" else ""
    return RedirectResponse(on or href_of(request, Step.COLUMNS, job), 303)


def _wanted(form: Form, before: Choices) -> Choices:
    """What a form says; a column that it does not name stays as it is."""
    return Choices(
        columns=tuple(_columns(form, before)),
        person=unquote(one(form, "person")),
        positive=_typed(one(form, "positive"), before.positive),
    )


def _columns(form: Form, before: Choices) -> Iterator[Column]:
    at = columns_of(form)
    for column in before.columns:
        i = at.get(column.name)
        if i is None:
            yield column
            continue
        role, kind = one(form, f"role-{i}"), one(form, f"kind-{i}")
        hierarchy = _typed(one(form, f"hierarchy-{i}"), column.hierarchy)
        yield replace(
            column,
            role=role if role in ROLE_NAMES else column.role,
            kind=kind if kind in KIND_NAMES else "",
            order=_listed(one(form, f"order-{i}"), column.order),
            hierarchy=hierarchy if hierarchy == column.hierarchy else hierarchy.strip(),
        )


def _typed(given: str, before: str) -> str:
    """A line as it was typed, blanks too; browsers leave line breaks out of what they show."""
    shown = before.replace("\r", "").replace("\n", "")
    return before if given == shown else given


def _listed(given: str, before: tuple[str, ...]) -> tuple[str, ...]:
    """The lines of a text, blanks at their ends too; what has a line break in it is no two."""
    lines = _lines(given)
    return before if lines == _lines("\n".join(before)) else tuple(filter(None, lines))


def _lines(text: str) -> list[str]:
    """Not by splitlines, which knows ends of lines that browsers do not."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

"""Columns: for each the guess and its reason, and what the owner says it is."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from fastapi import Request, Response
from starlette.responses import RedirectResponse

from verix_anon.client.job import Job, JourneyStep
from verix_anon.client.prepare.options import PRIORITIES
from verix_anon.client.table import roles_editor
from verix_anon.client.table.hierarchies import DATE, PREFIX
from verix_anon.client.table.owner_table import RECORD
from verix_anon.client.table.roles_file import parse_reading
from verix_anon.client.table.task import TableRole
from verix_anon.desk.gate import Form
from verix_anon.desk.pages import forms
from verix_anon.desk.rendering import desk_of, fragment, href_of, page
from verix_anon.files.job_folder import ROLES
from verix_anon.files.text_versions import Version, read_version, replace_version
from verix_anon.protocol.contract import Kind

router = forms.step_router(JourneyStep.COLUMNS)
ROLE_NAMES = tuple(role.value for role in TableRole)
NORMAL = "normal"
KIND_NAMES = tuple(kind.value for kind in (Kind.NUMERIC, Kind.CATEGORICAL, Kind.DATETIME))


@router.get("/jobs/{job}/columns")
def columns(request: Request, job: forms.GivenJob) -> Response:
    """What the roles file says now."""
    now = read_version(job.path(ROLES))
    if not now.digest:
        return forms.go_to(request, "table", job=job.name)
    return _page(request, job, roles_editor.read_choices(now.text), now)


def _page(
    request: Request, job: Job, wanted: roles_editor.Choices, now: Version, *, refused: bool = False
) -> Response:
    view = {
        "wanted": wanted,
        "roles": ROLE_NAMES,
        "kinds": KIND_NAMES,
        "hierarchies": (PREFIX, DATE),
        "priorities": tuple(PRIORITIES),
        "record": RECORD,
        "digest": now.digest,
        "advice": _advice(request, job, now, wanted),
        "refused": refused,
    }
    reading = forms.reading_words(parse_reading(now.text))
    command = ("init", forms.table_of(request, job), "--explain", *reading)
    status = 400 if refused else 200
    return page(request, "columns.html", view, job=job, command=command, status=status)


def _advice(
    request: Request, job: Job, now: Version, wanted: roles_editor.Choices
) -> roles_editor.Advice:
    return roles_editor.advice(now.text, wanted, job.folder, desk_of(request).folder)


@router.post("/jobs/{job}/columns/advice")
def advise(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Mistakes and warnings of what is chosen; nothing is written."""
    now = read_version(job.path(ROLES))
    found = _advice(request, job, now, _wanted(form, roles_editor.read_choices(now.text)))
    return fragment(request, "advice.html", {"advice": found})


@router.post("/jobs/{job}/columns")
def choose_columns(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Write what is chosen, unless it is a mistake or somebody else wrote since."""
    forms.check_open(request, job)
    now = read_version(job.path(ROLES))
    before = roles_editor.read_choices(now.text)
    wanted = _wanted(form, before)
    was = forms.one(form, "digest")
    if now.digest == was:
        names = {column.name for column in before.columns}
        forms.check_known(forms.columns_of(form), names)
        forms.check_known([wanted.person], {"", RECORD, before.person, *names})
        if _advice(request, job, now, wanted).mistakes:
            return _page(request, job, wanted, now, refused=True)
    text = roles_editor.apply_choices(now.text, wanted)
    changed = replace_version(job.path(ROLES), text, was)
    if changed is not None:
        text = roles_editor.apply_choices(changed.text, wanted)
        return forms.conflict(request, job, changed, text, form)
    on = href_of(request, JourneyStep.PRIVACY, job) if forms.one(form, "do") == "on" else ""
    return RedirectResponse(on or href_of(request, JourneyStep.COLUMNS, job), 303)


def _wanted(form: Form, before: roles_editor.Choices) -> roles_editor.Choices:
    """What a form says; a column that it does not name stays as it is."""
    return roles_editor.Choices(
        columns=tuple(_columns(form, before)),
        person=unquote(forms.one(form, "person")),
        positive=_typed(forms.one(form, "positive"), before.positive),
    )


def _columns(form: Form, before: roles_editor.Choices) -> Iterator[roles_editor.ColumnChoice]:
    at = forms.columns_of(form)
    for column in before.columns:
        i = at.get(column.name)
        if i is None:
            yield column
            continue
        role, kind = forms.one(form, f"role-{i}"), forms.one(form, f"kind-{i}")
        hierarchy = _typed(forms.one(form, f"hierarchy-{i}"), column.hierarchy)
        yield replace(
            column,
            role=role if role in ROLE_NAMES else column.role,
            kind=kind if kind in KIND_NAMES else "",
            order=_listed(forms.one(form, f"order-{i}"), column.order),
            hierarchy=hierarchy if hierarchy == column.hierarchy else hierarchy.strip(),
            priority=_priority(forms.one(form, f"priority-{i}"), column.priority),
        )


def _priority(given: str, before: str | float) -> str | float:
    """A word; what the roles file has stays as it is written, a number too."""
    if given not in PRIORITIES or given == (before or NORMAL):
        return before
    return "" if given == NORMAL else given


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

"""Columns: for each column the proposed role with its reason, and the owner's choice.

The owner may put values of a column into groups, which become a hierarchy beside the roles file.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from urllib.parse import unquote

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from starlette.responses import RedirectResponse

from verix_anon.client.job import Job, JourneyStep
from verix_anon.client.prepare.options import PRIORITIES
from verix_anon.client.table import roles_editor
from verix_anon.client.table.categories import positions
from verix_anon.client.table.columns import columns_of, owned
from verix_anon.client.table.hierarchies import DATE, PREFIX, Hierarchy
from verix_anon.client.table.overview import (
    MANY_ONCE,
    ColumnOverview,
    Overview,
    coarser,
    read_sample,
)
from verix_anon.client.table.owner_table import RECORD
from verix_anon.client.table.roles_file import parse_reading
from verix_anon.client.table.task import TableRole
from verix_anon.desk.gate import Form
from verix_anon.desk.pages import forms
from verix_anon.desk.rendering import desk_of, fragment, href_of, page
from verix_anon.errors import TableError
from verix_anon.files.desk_folder import inside
from verix_anon.files.job_folder import HIERARCHY, OVERVIEW, ROLES, SAMPLE
from verix_anon.files.text_versions import Version, read_version, replace_version
from verix_anon.protocol.contract import Kind

router = forms.step_router(JourneyStep.COLUMNS)
ROLE_NAMES = tuple(role.value for role in TableRole)
NORMAL = "normal"
BINS = {
    Kind.NUMERIC: ("auto", "5", "10", "20", "50", "100", "1000"),
    Kind.DATETIME: ("auto", "1y", "5y", "10y"),
    Kind.CATEGORICAL: ("auto", "1", "2", "3"),
}
"""The proposed common bins: widths, years, or the first characters."""
MOST_GROUPED = 200
"""More values than these cannot be put together by hand."""
"""How files of groups end: not like tables, which the desk would offer to anonymize."""
KIND_NAMES = tuple(kind.value for kind in (Kind.NUMERIC, Kind.CATEGORICAL, Kind.DATETIME))


@router.get("/jobs/{job}/columns")
def columns(request: Request, job: forms.GivenJob) -> Response:
    """Show what the roles file says now."""
    now = read_version(job.path(ROLES))
    if not now.digest:
        return forms.go_to(request, "table", job=job.name)
    return _page(request, job, roles_editor.read_choices(now.text), now)


def _page(
    request: Request, job: Job, wanted: roles_editor.Choices, now: Version, *, refused: bool = False
) -> Response:
    reading = parse_reading(now.text)
    view = {
        **_rows(request, job, now, wanted),
        "words": reading.missing,
        "roles": ROLE_NAMES,
        "kinds": KIND_NAMES,
        "hierarchies": (PREFIX, DATE),
        "bins": {kind.value: bins for kind, bins in BINS.items()},
        "coarser": coarser,
        "grouped": {c.name: _first_level(request, job, c.hierarchy) for c in wanted.columns},
        "ending": HIERARCHY,
        "most_grouped": MOST_GROUPED,
        "priorities": tuple(PRIORITIES),
        "record": RECORD,
        "digest": now.digest,
        "tables": forms.tables_for(request, job),
        "refused": refused,
    }
    said = forms.reading_words(reading)
    command = ("init", forms.table_of(request, job), "--explain", *said)
    status = 400 if refused else 200
    return page(request, "columns.html", view, job=job, command=command, status=status)


def overview_of(job: Job) -> Overview | None:
    """Return what was found about the table's values when they were last read."""
    with suppress(TableError):
        return Overview.from_json(read_version(job.path(OVERVIEW)).text)
    return None


def _rows(
    request: Request, job: Job, now: Version, wanted: roles_editor.Choices
) -> dict[str, object]:
    """Return what the table of columns and the advice on it show."""
    looked = overview_of(job)
    seen: Mapping[str, ColumnOverview] = {} if looked is None else looked.columns
    rows, home = None, desk_of(request).folder
    with suppress(TableError):
        rows = read_sample(job.path(SAMPLE))
        # The rest of a large table may have values that a choice is about.
        rows = rows if looked is not None and looked.n_rows == rows.num_rows else None
    found = roles_editor.advice(now.text, wanted, job.folder, home, rows)
    return {
        "wanted": wanted,
        "seen": seen,
        "fates": [_fate(column, seen.get(column.name)) for column in wanted.columns],
        "advice": found,
        "general": [s for s in (*found.mistakes, *found.warnings) if s not in found.about],
    }


def _fate(column: roles_editor.ColumnChoice, seen: ColumnOverview | None) -> str:
    """Return what happens to a column; dangers to people come first."""
    if column.role == TableRole.IDENTIFIER:
        return column.role
    if seen is not None and seen.prose:
        return "prose"
    if column.guess == TableRole.IDENTIFIER:
        return "named"
    is_exact = column.role in (TableRole.KEPT, TableRole.SENSITIVE) and not column.is_derived
    return "singles" if is_exact and seen is not None and seen.once >= MANY_ONCE else column.role


@router.post("/jobs/{job}/columns/advice")
def advise(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Show mistakes and warnings about the choices; nothing is saved."""
    now = read_version(job.path(ROLES))
    wanted = _wanted(form, roles_editor.read_choices(now.text))
    return fragment(request, "advice.html", _rows(request, job, now, wanted))


@router.post("/jobs/{job}/overview")
def look_at_values(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Read the table's values again; the roles stay as they are."""
    reading = parse_reading(read_version(job.path(ROLES)).text)
    table = forms.given_table(request, job, form)
    where = ("--overview", forms.at(job, OVERVIEW), "--overwrite")
    return forms.start(request, job, ("init", table, *where, *forms.reading_words(reading)))


@router.post("/jobs/{job}/columns")
def choose_columns(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Save the choices, unless they hold a mistake or the roles file has changed meanwhile."""
    forms.check_open(request, job)
    now = read_version(job.path(ROLES))
    before = roles_editor.read_choices(now.text)
    wanted = _wanted(form, before)
    was = forms.one(form, "digest")
    if now.digest == was:
        names = {column.name for column in before.columns}
        forms.check_known(forms.columns_of(form), names)
        forms.check_known([wanted.person], {"", RECORD, before.person, *names})
        home = desk_of(request).folder
        if roles_editor.advice(now.text, wanted, job.folder, home).mistakes:
            return _page(request, job, wanted, now, refused=True)
    text = _applied(now.text, wanted, form)
    changed = replace_version(job.path(ROLES), text, was)
    if changed is not None:
        text = _applied(changed.text, wanted, form)
        return forms.conflict(request, job, changed, text, form)
    on = href_of(request, JourneyStep.PRIVACY, job) if forms.one(form, "do") == "on" else ""
    return RedirectResponse(on or href_of(request, JourneyStep.COLUMNS, job), 303)


@router.get("/jobs/{job}/columns/groups")
def groups(request: Request, job: forms.GivenJob, column: str, hierarchy: str = "") -> Response:
    """Return a column's values, the share of each, and the group in which a hierarchy puts it."""
    roles, looked = read_version(job.path(ROLES)).text, overview_of(job)
    seen = None if looked is None else looked.columns.get(column)
    order = {c.name: c.order or None for c in roles_editor.read_choices(roles).columns}.get(column)
    if seen is None or not 0 < seen.n_distinct <= MOST_GROUPED:
        raise TableError(f"column {column!r} has no values, or too many to put them together")
    array = read_sample(job.path(SAMPLE))[column].combine_chunks()
    labels, at = positions(column, array, order)
    if len(labels) < seen.n_distinct:
        # The sample of a large table lacks some. The desk must not read tables elsewhere.
        table = inside(desk_of(request).folder, str(job.table))
        array = columns_of(owned(table, parse_reading(roles)).table)[column]
        labels, at = positions(column, array, order)
    counts, group_of = Counter(at.tolist()), _first_level(request, job, hierarchy)
    return JSONResponse(
        [[each, counts[i] / len(at), group_of.get(each, each)] for i, each in enumerate(labels)]
    )


def _first_level(request: Request, job: Job, hierarchy: str) -> Mapping[str, str]:
    """Return the lowest name above each value, if the hierarchy is a file in the desk's folder."""
    if hierarchy not in ("", PREFIX, DATE):
        with suppress(TableError):
            path = inside(desk_of(request).folder, str(job.path(hierarchy)))
            return {value: names[0] for value, names in Hierarchy.of(str(path)).levels.items()}
    return {}


@router.post("/jobs/{job}/columns/groups")
def save_groups(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Write the groups as a hierarchy beside the roles file, and return its name."""
    forms.check_open(request, job)
    column, values = forms.one(form, "column"), form.get("value", [])
    out = io.StringIO()
    rows = zip(values, form.get("group", []), strict=False)
    csv.writer(out, delimiter=";", lineterminator="\n").writerows(rows)
    if len(out.getvalue().splitlines()) != len(values):
        raise TableError(
            f"column {column!r} has a value with a line break, which no group can hold"
        )
    # Two columns may differ only in signs that no file name can hold.
    digest = sha256(column.encode()).hexdigest()
    path = job.path(f"{re.sub(r'[^0-9A-Za-z]+', '-', column)[:30]}-{digest[:6]}{HIERARCHY}")
    replace_version(path, out.getvalue(), read_version(path).digest)
    return JSONResponse({"hierarchy": path.name})


def _applied(text: str, wanted: roles_editor.Choices, form: Form) -> str:
    """Return the roles file with the choices and with each column's words for missing values."""
    reading = parse_reading(text)
    words = {
        name: tuple(word.strip() for word in forms.one(form, f"missing-{i}").split("|"))
        for name, i in forms.columns_of(form).items()
        if f"missing-{i}" in form
    }
    missing = {**reading.missing, **words}
    missing = {name: kept for name, given in missing.items() if (kept := [*filter(None, given)])}
    if missing != {name: [*given] for name, given in reading.missing.items()}:
        text = roles_editor.apply_reading(text, replace(reading, missing=missing))
    return roles_editor.apply_choices(text, wanted)


def _wanted(form: Form, before: roles_editor.Choices) -> roles_editor.Choices:
    """Return the posted choices; a column that the form does not name stays as it is."""
    return roles_editor.Choices(
        columns=tuple(_columns(form, before)),
        person=unquote(forms.one(form, "person")),
        positive=_typed(forms.one(form, "positive"), before.positive),
    )


def _columns(form: Form, before: roles_editor.Choices) -> Iterator[roles_editor.ColumnChoice]:
    at = forms.columns_of(form)
    # For several columns at once, the common fields that are filled in replace the column's own.
    picked = form.get("pick", []) if forms.one(form, "do") == "several" else []
    for column in before.columns:
        i = at.get(column.name)
        if i is None:
            yield column
            continue
        role, kind = forms.one(form, f"role-{i}"), forms.one(form, f"kind-{i}")
        role = (forms.one(form, "role-all") or role) if i in picked else role
        priority = forms.one(form, f"priority-{i}")
        priority = (forms.one(form, "priority-all") or priority) if i in picked else priority
        hierarchy = _typed(forms.one(form, f"hierarchy-{i}"), column.hierarchy)
        yield replace(
            column,
            role=role if role in ROLE_NAMES else column.role,
            kind=kind if kind in KIND_NAMES else "",
            order=_listed(forms.one(form, f"order-{i}"), column.order),
            hierarchy=hierarchy if hierarchy == column.hierarchy else hierarchy.strip(),
            bins=forms.one(form, f"bins-{i}").strip() if f"bins-{i}" in form else column.bins,
            priority=_priority(priority, column.priority),
        )


def _priority(given: str, before: str | float) -> str | float:
    """Return the chosen priority; an unchanged one stays as in the roles file, even a number."""
    if given not in PRIORITIES or given == (before or NORMAL):
        return before
    return "" if given == NORMAL else given


def _typed(given: str, before: str) -> str:
    """Return the line as typed, with its blanks, or the old one if it was not changed.

    Browsers leave line breaks out of the lines that they show.
    """
    shown = before.replace("\r", "").replace("\n", "")
    return before if given == shown else given


def _listed(given: str, before: tuple[str, ...]) -> tuple[str, ...]:
    """Return the lines of a text with their blanks, or the old entries if they were not changed.

    So an old entry with a line break in it stays one entry.
    """
    lines = _lines(given)
    return before if lines == _lines("\n".join(before)) else tuple(filter(None, lines))


def _lines(text: str) -> list[str]:
    """Split at the ends of lines that browsers know; `splitlines` knows more."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

"""Privacy: choose a purpose, or k, l, t, rule and traps, and test here what they cost."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

from fastapi import Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from verix_anon.client.explore import Exploration, basis_of
from verix_anon.client.job import Job, JourneyStep
from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.release.preview import preview_sample
from verix_anon.client.table import roles_editor
from verix_anon.client.table.overview import read_sample
from verix_anon.client.table.roles import Measure
from verix_anon.client.table.roles_editor import Protection
from verix_anon.client.table.task import TableRole
from verix_anon.desk.gate import Form
from verix_anon.desk.pages import forms
from verix_anon.desk.pages.columns import overview_of
from verix_anon.desk.rendering import desk_of, fragment, href_of, page
from verix_anon.errors import Error, TableError
from verix_anon.files.job_folder import EXPLORED, ROLES, SAMPLE
from verix_anon.files.text_versions import Version, read_version, replace_version
from verix_anon.protocol.contract import Rule

router = forms.step_router(JourneyStep.PRIVACY)


class Purpose(NamedTuple):
    """The protection that one use of the released table needs."""

    k: int
    l: int  # noqa: E741
    cap: float | None = None
    has_bins: bool = False
    """Whether all cells of a column end at the same bounds, so that readers can count rows."""


PURPOSES = {
    "internal": Purpose(5, 1),
    "research": Purpose(10, 2),
    "public": Purpose(25, 3, 0.9, has_bins=True),
}
USUAL = ",".join(str(purpose.k) for purpose in PURPOSES.values())
_LOOKING = Lock()
ROOM = 0.1
"""A cap is required only if the share of the most common value is lower by at least this."""


@router.get("/jobs/{job}/privacy")
def privacy(request: Request, job: forms.GivenJob) -> Response:
    """Show what the roles file asks for, and the settings that were tested."""
    now = read_version(job.path(ROLES))
    if not now.digest:
        raise HTTPException(404)
    wanted = roles_editor.read_protection(now.text, job.folder)
    filled = {"contract": {"k": wanted.k, **wanted.contract}, "hidden": wanted.hidden}
    return _page(request, job, now, wanted, filled)


def _page(
    request: Request,
    job: Job,
    now: Version,
    wanted: Protection,
    filled: Mapping[str, object],
    problem: str = "",
) -> Response:
    """Show the page; `filled` are the values in the fields, from the roles file or as typed."""
    point, found, tried = None, None, read_version(job.path(EXPLORED))
    # There may be none, or one that is to be tried again.
    with suppress(TableError):
        found = Exploration.from_json(tried.text)
    if found is not None:
        # Nothing is marked on the curves of other columns or of another table.
        if found.is_on(basis_of(job.path(ROLES), job.table)):
            point = wanted.point
        found = found.marked(point)
    asked = {
        name: replace(wanted, k=purpose.k, hidden=_hidden(job, purpose, wanted.hidden))
        for name, purpose in PURPOSES.items()
    }
    rows = {} if found is None or point is None else {(r.k, r.rule, r.l): r for r in found.rows}
    view = {
        "filled": filled,
        "problem": problem,
        "rules": [rule.value for rule in Rule],
        "traps": [each.value for each in Traps],
        "measures": [measure.value for measure in Measure],
        "digest": now.digest,
        "found": found,
        "rows": [] if found is None else list(zip(found.rows, found.cells(), strict=True)),
        "is_other": point is None,
        "purposes": PURPOSES,
        "current": next((name for name, each in asked.items() if each == wanted), ""),
        "by_purpose": {name: rows.get(each.point) for name, each in asked.items()},
        "tables": forms.tables_for(request, job),
    }
    words, status = _words(job, forms.table_of(request, job), "", ""), 400 if problem else 200
    return page(request, "privacy.html", view, job=job, command=words, status=status)


def _hidden(job: Job, purpose: Purpose, names: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return what classes must hide of each column, as far as its values allow it."""
    found, looked = {}, overview_of(job)
    for name in names:
        seen = None if looked is None else looked.columns.get(name)
        asked: dict[str, float] = {"l": min(purpose.l, 2 if seen is None else seen.n_distinct)}
        commonest = 1.0 if seen is None else max(seen.shares, default=1.0)
        if purpose.cap is not None and commonest <= purpose.cap - ROOM:
            asked["cap"] = purpose.cap
        found[name] = asked if asked["l"] > 1 else {}
    return found


@router.post("/jobs/{job}/purpose")
def choose_purpose(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Choose the protection that a purpose needs, and test what it costs."""
    forms.check_open(request, job)
    if (purpose := PURPOSES.get(forms.one(form, "do"))) is None:
        raise TableError("there is no such purpose")
    now = read_version(job.path(ROLES))
    before, was = roles_editor.read_protection(now.text, job.folder), forms.one(form, "digest")
    wanted = replace(before, k=purpose.k, hidden=_hidden(job, purpose, before.hidden))
    text = roles_editor.apply_protection(now.text, wanted, job.folder)
    bins = "auto" if purpose.has_bins else ""
    choices = roles_editor.read_choices(text)
    columns = (
        replace(c, bins=bins) if c.role == TableRole.QUASI and c.bins in ("", "auto") else c
        for c in choices.columns
    )
    text = roles_editor.apply_choices(text, replace(choices, columns=tuple(columns)))
    changed = replace_version(job.path(ROLES), text, was)
    if changed is not None:
        return forms.conflict(request, job, changed, text, form)
    if job.table is None:
        return forms.go_to(request, "privacy", job=job.name)
    return forms.start(request, job, _words(job, forms.table_of(request, job), USUAL, ""))


@router.post("/jobs/{job}/privacy/preview")
def look_ahead(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Show what the choices would make of a sample of the table; nothing is saved."""
    sheet, preview, problem = None, None, ""
    try:
        sample = read_sample(job.path(SAMPLE))
        roles = read_version(job.path(ROLES)).text
        wanted = _wanted(form, roles_editor.read_protection(roles, job.folder))
        text = roles_editor.apply_protection(roles, wanted, job.folder)
        # One at a time, so that several quick changes do not compete for the machine.
        with _LOOKING:
            provider = desk_of(request).provider
            sheet, preview = preview_sample(sample, text, job.folder, provider)
    except Error as error:
        problem = str(error)
    view = {"sheet": sheet, "preview": preview, "problem": problem, "looked": overview_of(job)}
    return fragment(request, "ahead.html", view)


@router.post("/jobs/{job}/privacy")
def choose_privacy(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Save the choices, unless they hold a mistake or the roles file has changed meanwhile."""
    forms.check_open(request, job)
    now = read_version(job.path(ROLES))
    before, was = roles_editor.read_protection(now.text, job.folder), forms.one(form, "digest")
    try:
        if now.digest == was:
            forms.check_known(forms.columns_of(form), before.hidden)
        text = roles_editor.apply_protection(now.text, _wanted(form, before), job.folder)
    except TableError as error:
        filled = _filled(form, before)
        return _page(request, job, Version(now.text, was), before, filled, str(error))
    changed = replace_version(job.path(ROLES), text, was)
    if changed is not None:
        return forms.conflict(request, job, changed, text, form)
    step = JourneyStep.SEND if forms.one(form, "do") == "on" else JourneyStep.PRIVACY
    return RedirectResponse(href_of(request, step, job), 303)


def _filled(form: Form, before: Protection) -> dict[str, object]:
    """Return the posted values unchecked; a column that the form does not name stays as it is."""
    hidden: dict[str, Mapping[str, float | str]] = {**before.hidden}
    for name, i in forms.columns_of(form).items():
        if name in hidden:
            hidden[name] = {m.value: forms.one(form, f"{m.value}-{i}") for m in Measure}
    contract = {name: forms.one(form, name) for name in ("k", *before.contract)}
    return {"contract": contract, "hidden": hidden}


def _wanted(form: Form, before: Protection) -> Protection:
    """Return the posted choices, checked; a column that the form does not name stays as it is."""
    contract = {name: forms.one(form, name).strip() for name in before.contract}
    k = forms.whole(forms.one(form, "k").strip())
    if k is None:
        raise TableError("k must be a whole number, 2 or more")
    min_leaf = contract["min_leaf"]
    least = forms.whole(min_leaf)
    given = contract | {"min_leaf": min_leaf if least is None else least}
    if contract["rule"] not in set(Rule) or contract["traps"] not in set(Traps):
        raise TableError("there is no such rule, or there are no such traps")
    PrepareOptions(**given)  # type: ignore[arg-type]
    hidden = {name: dict(measures) for name, measures in before.hidden.items()}
    for name, i in forms.columns_of(form).items():
        if name in hidden:
            asked = {m.value: forms.number(form, f"{m.value}-{i}") for m in Measure}
            hidden[name] = {m: value for m, value in asked.items() if value is not None}
    return replace(before, k=k, contract=contract, hidden=hidden)


@router.post("/jobs/{job}/explore")
def explore(request: Request, job: forms.GivenJob, form: forms.Posted) -> Response:
    """Test settings on the table, on this machine."""
    if not job.path(ROLES).is_file():
        raise HTTPException(404)
    tries = forms.one(form, "try-k").replace(" ", "")
    if tries and not tries.replace(",", "").isdecimal():
        raise TableError(f"{tries!r} are not whole numbers such as 5,10")
    rules = ",".join(Rule) if forms.one(form, "try-rules") else ""
    words = _words(job, forms.given_table(request, job, form), tries, rules)
    return forms.start(request, job, words)


def _words(job: Job, table: str, tries: str, rules: str) -> tuple[str, ...]:
    words = ["explore", table, "--roles", forms.at(job, ROLES)]
    words += ["--k", tries] if tries else []
    words += ["--rule", rules] if rules else []
    again = ["--overwrite"] if job.path(EXPLORED).exists() else []
    return (*words, "--out", forms.at(job, EXPLORED), *again)

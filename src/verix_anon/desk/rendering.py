"""Render pages: texts, the navigation, and templates that escape everything."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse
from starlette.routing import NoMatchFound

from verix_anon.client.job import Job, JourneyStep
from verix_anon.desk.tasks import DeskTask, Tasks
from verix_anon.fields import printable
from verix_anon.html_templates import templates_of
from verix_anon.protocol.providers import Provider
from verix_anon.translation import LANGUAGES, RECORD, PageTexts, text, texts

LANGUAGE_COOKIE = "verix-desk-language"


def language_of(headers: Headers) -> str:
    """Return the chosen language, or the first one that the browser asks for and we have."""
    chosen = cookie_parser(headers.get("cookie", "")).get(LANGUAGE_COOKIE)
    if chosen in LANGUAGES:
        return chosen
    wanted = []
    for part in headers.get("accept-language", "").split(","):
        name, _, weight = part.strip().partition(";q=")
        try:
            wanted.append((-float(weight or 1), name.strip().lower().partition("-")[0]))
        except ValueError:
            continue
    able = [name for _, name in sorted(wanted, key=lambda one: one[0]) if name in LANGUAGES]
    return able[0] if able else RECORD


TEMPLATES = templates_of("verix_anon.desk", "verix_anon.client.report")
TEMPLATES.filters["printable"] = printable


@dataclass(frozen=True, slots=True)
class Desk:
    """The state that all pages share."""

    folder: Path
    tasks: Tasks
    provider: Provider
    """Who grows the trees of previews, on this machine"""


def desk_of(request: Request) -> Desk:
    """Return the desk that a request came to."""
    found = request.app.state.desk
    assert isinstance(found, Desk)
    return found


def plain(headers: Headers, name: str) -> str:
    """Return a page for browsers that are not let in; it shows nothing of the folder."""
    return TEMPLATES.get_template("plain.html").render(_shared(headers), name=name)


def fragment(request: Request, template: str, view: Mapping[str, object]) -> HTMLResponse:
    """Return a part of a page; a script replaces the old part with it."""
    return HTMLResponse(TEMPLATES.get_template(template).render(_shared(request.headers), **view))


def page(
    request: Request,
    template: str,
    view: Mapping[str, object],
    *,
    job: Job | None = None,
    status: int = 200,
    command: Sequence[str] = (),
) -> HTMLResponse:
    """Return a page: its template in the layout, between the navigation and the command."""
    desk, here = desk_of(request), _here(request)
    task = desk.tasks.of(job.name) if job else None
    shared = _shared(request.headers)
    shown = shared | {
        "languages": {each: text("form.language", each) for each in LANGUAGES},
        "here": here,
        "csrf": request.state.csrf,
        "folder": str(desk.folder),
        "job": job,
        "stops": _stops(request, job, here) if job else (),
        # Shown while the task runs, or if it did not end well.
        "task": task if task is not None and not task.is_well else None,
        "stage": stage_name(request.headers, task) if task is not None else "",
        "command": shlex.join(["verix-anon", *command]) if command else "",
    }
    return HTMLResponse(TEMPLATES.get_template(template).render(shown | {**view}), status)


def stage_name(headers: Headers, task: DeskTask) -> str:
    """Return what the task is doing, in the reader's language."""
    name = task.stage[0]
    return texts(language_of(headers)).get(f"desk.stages.{name}", name)


def _shared(headers: Headers) -> dict[str, object]:
    """Return what every template is given: the language, its texts, and its numbers.

    A text is one of the desk's own, or else one that the report has too.
    """
    t = PageTexts(language_of(headers))

    def say(key: str, **values: object) -> str:
        own = f"desk.{key}"
        return t(own if own in texts(t.language) else key, **values)

    return {"language": t.language, "t": say, "number": t.number, "date": t.date}


def href_of(request: Request, step: JourneyStep, job: Job) -> str:
    """Return the path of a job's page; empty if there is none."""
    try:
        return str(request.app.url_path_for(step.value, job=job.name))
    except NoMatchFound:
        return ""


def _here(request: Request) -> str:
    """Return the path of the page; an answer to a form counts as the step that has the form."""
    if request.method in ("GET", "HEAD"):
        return request.url.path
    step = getattr(request.state, "step", None)
    if step is None:
        return "/"
    return str(request.app.url_path_for(step, job=request.path_params["job"]))


def _stops(request: Request, job: Job, here: str) -> Iterator[dict[str, object]]:
    """Yield the pages of the journey; those that cannot be opened yet have no `href`."""
    for step in JourneyStep:
        href = href_of(request, step, job)
        is_open = href and step in job.open_steps
        is_here = bool(href) and f"{here}/".startswith(f"{href}/")
        yield {"step": step, "href": href if is_open else None, "is_here": is_here}

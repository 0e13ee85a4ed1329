"""What routes ask of a request: which job, and the fields of a form."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from verix_anon.client.journey import Job, find_job
from verix_anon.desk.gate import Form
from verix_anon.desk.show import desk_of
from verix_anon.errors import TableError

__all__ = ["GivenJob", "Posted", "go_to", "one"]


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
    """The value of a field, or nothing."""
    return form.get(name, [""])[0]


def go_to(request: Request, name: str, **path: str) -> RedirectResponse:
    """Show another page, by a request of its own, so that a reload does not post again."""
    return RedirectResponse(str(request.app.url_path_for(name, **path)), 303)

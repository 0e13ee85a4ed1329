"""Two writers: what changed since a form was made, and the way to have either."""

from fastapi import Request, Response

from verix_anon.client.journey import Job
from verix_anon.desk.gate import CSRF_FIELD, Form
from verix_anon.desk.pages.asked import one
from verix_anon.desk.show import page
from verix_anon.files.versions import Version, differences, seen_version

__all__ = ["conflict"]


def conflict(
    request: Request, job: Job, now: Version, wanted: str, form: Form, step: str
) -> Response:
    """Nothing was written: the file as it is against what this form would make of it."""
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
        "back": str(request.app.url_path_for(step, job=job.name)),
        "step": step,
    }
    return page(request, "conflict.html", view, job=job, status=409)

"""A service as a provider: every case goes there as it is, the damaged ones too."""

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

from verix_anon.client.remote.answers import Offer, one_line
from verix_anon.client.remote.connection import GREETING, Connection, RefusedError
from verix_anon.client.remote.options import RemoteOptions
from verix_anon.client.remote.submitting import FailedError, forget_job, run_job, submit_folder
from verix_anon.conform.providers import Answer, Asked, Outcome
from verix_anon.errors import Error, ProviderError
from verix_anon.files.listing import list_as_is, list_submission

__all__ = ["service_provider"]

OF_THE_SERVICE = frozenset({"internal", "worker-killed", "job-too-large"})
"""Codes of jobs that failed by the service's own fault, or for lack of room there"""
REFUSALS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Others from 400 to 499 are no word on a submission: a token, a limit, a job that is gone."""


def service_provider(url: str, token: str, options: RemoteOptions) -> Asked:
    """A provider behind HTTP; it refuses by the status 400 or 422, or by a job that fails.

    Raises:
        Error: The service cannot be asked at all, such as with that token.
    """
    with Connection(url, token, options) as connection:
        Offer.parse(connection.get("/v1", GREETING).body)

    def ask(submission: Path, delivery: Path) -> Answer:
        with Connection(url, token, options) as connection:
            return _answer(connection, submission, delivery)

    return ask


def _answer(connection: Connection, submission: Path, delivery: Path) -> Answer:
    begun: list[str] = []
    try:
        _submit(connection, submission, delivery, begun.append)
        return Answer(Outcome.DELIVERED, "delivered")
    except ProviderError as error:
        for job in begun:
            forget_job(connection, job)
        outcome = Outcome.REFUSED if _is_refusal(error) else Outcome.BROKEN
        return Answer(outcome, one_line(str(error)))


def _is_refusal(error: ProviderError) -> bool:
    if isinstance(error, RefusedError):
        return error.problem.status in REFUSALS
    reason = error.job.reason if isinstance(error, FailedError) else None
    return reason is not None and reason.code not in OF_THE_SERVICE


def _submit(
    connection: Connection, submission: Path, delivery: Path, began: Callable[[str], None]
) -> None:
    try:
        listed = list_submission(submission)
    except Error:
        # Our client would not send it; what the service does with it is the question.
        offer = Offer.parse(connection.get("/v1", GREETING).body)
        job = run_job(connection, list_as_is(submission), offer, began)
        forget_job(connection, job.id)
        return
    submit_folder(connection, listed, delivery, began=began)

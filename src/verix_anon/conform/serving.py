"""A service as a provider: every case goes there as it is, the damaged ones too."""

from pathlib import Path

from verix_anon.client.remote.answers import Offer, one_line
from verix_anon.client.remote.connection import GREETING, Connection, RefusedError
from verix_anon.client.remote.options import RemoteOptions
from verix_anon.client.remote.submitting import FailedError, forget_job, run_job, submit_folder
from verix_anon.conform.providers import Answer, Asked, Outcome
from verix_anon.errors import Error, ProviderError
from verix_anon.files.listing import list_as_is, list_submission

__all__ = ["service_provider"]

INTERNAL = "internal"
"""The code of a job that failed by the service's own fault"""


def service_provider(url: str, token: str, options: RemoteOptions) -> Asked:
    """A provider behind HTTP; it refuses by a status of 400 to 499, or by a job that fails.

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
    try:
        _submit(connection, submission, delivery)
        return Answer(Outcome.DELIVERED, "delivered")
    except RefusedError as refused:
        is_refusal = 400 <= refused.problem.status < 500
        return Answer(Outcome.REFUSED if is_refusal else Outcome.BROKEN, str(refused))
    except FailedError as failed:
        forget_job(connection, failed.job.id)
        reason = failed.job.reason
        is_refusal = reason is not None and reason.code != INTERNAL
        return Answer(Outcome.REFUSED if is_refusal else Outcome.BROKEN, str(failed))
    except ProviderError as error:
        return Answer(Outcome.BROKEN, one_line(str(error), 300))


def _submit(connection: Connection, submission: Path, delivery: Path) -> None:
    try:
        listed = list_submission(submission)
    except Error:
        # Our client would not send it; what the service does with it is the question.
        offer = Offer.parse(connection.get("/v1", GREETING).body)
        job = run_job(connection, list_as_is(submission), offer)
        forget_job(connection, job.id)
        return
    submit_folder(connection, listed, delivery)

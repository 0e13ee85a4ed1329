"""One submission through a service: offer, job, upload, wait, download.

Every step can be made again: the job is found by a key that follows from the submission, the
service says what it has of each file, and the delivery lies aside until it is complete.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus

from verix_anon.client.remote import waiting
from verix_anon.client.remote.answers import Job, Offer
from verix_anon.client.remote.connection import GREETING, Answer, Connection, RefusedError
from verix_anon.client.remote.download import check_announced, download
from verix_anon.client.remote.upload import CHUNK_BYTES, upload
from verix_anon.errors import ProviderError
from verix_anon.fields import to_json
from verix_anon.files.aside import check_apart, check_free, check_replaces, written_aside
from verix_anon.files.listing import Listed, Parcel
from verix_anon.protocol.wire import State

__all__ = ["FailedError", "Submitted", "forget_job", "run_job", "submit_folder"]

JOBS = "/v1/jobs"
FIRST_POLL, MOST_POLL, LONGER = 0.1, 10.0, 1.6
"""Seconds between questions how far a job is, at first and at the most, and how they grow."""


class FailedError(ProviderError):
    """The service could not do a job, or would not."""

    def __init__(self, job: Job) -> None:
        why = "" if job.reason is None else f": {job.reason}"
        super().__init__(f"the job {job.id} failed at the service{why}")
        self.job = job


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A job that is done, its delivery here."""

    job: str
    kept: bool
    """Whether it still lies at the service"""


def submit_folder(
    connection: Connection,
    sent: Listed,
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    began: Callable[[str], None] = lambda job: None,
) -> Submitted:
    """Have a submission anonymized; the delivery appears at `out`, complete or not at all.

    `began` is told the job's id as soon as there is one.
    """
    check_apart(out, [sent.folder.path])
    check_free(out, overwrite=overwrite)
    if overwrite:
        check_replaces(out, "delivery.json")
    offer = _offer(connection)
    check_offer(offer, sent, connection.keyids)
    job = run_job(connection, sent, offer, began)
    check_announced(job.delivery, sent)
    path = f"{JOBS}/{job.id}"
    _download_all(connection, path, job, out, overwrite=overwrite)
    return Submitted(job=job.id, kept=not _is_deleted(connection, path))


def run_job(
    connection: Connection,
    sent: Parcel,
    offer: Offer,
    began: Callable[[str], None] = lambda job: None,
) -> Job:
    """The job of what is sent when it is done; FailedError if it fails."""
    job = _open_job(connection, sent)
    began(job.id)
    path = f"{JOBS}/{job.id}"
    if job.state is State.UPLOADING:
        _upload_all(connection, path, sent, min(CHUNK_BYTES, offer.limits.request_bytes))
    return _await(connection, path)


def _offer(connection: Connection) -> Offer:
    """What the service says about itself, if there is one."""
    try:
        return Offer.parse(connection.get("/v1", GREETING).body)
    except RefusedError as error:
        if error.problem.code or error.problem.status != HTTPStatus.NOT_FOUND:
            raise
        raise ProviderError(
            f"there is no verix-anon service at {connection.base}; give its address as the provider"
            " gave it, such as https://host, without /v1"
        ) from None


def check_offer(offer: Offer, sent: Listed, pinned: frozenset[str]) -> None:
    """Raise ProviderError if the service would refuse what is to be sent, before it is."""
    limits = offer.limits
    sizes = {file.name: file.size for file in sent.files}
    name = max(sizes, key=lambda name: sizes[name])
    for what, has, most in (
        ("rows", sent.n_rows, limits.rows),
        ("columns", len(sent.contract.columns), limits.columns),
        ("bytes", sum(sizes.values()), limits.upload_bytes),
        (f"bytes of {name}", sizes[name], limits.file_bytes),
    ):
        if has > most:
            raise ProviderError(
                f"the service takes at most {most:,} {what}, and the submission has {has:,};"
                " nothing was uploaded"
            )
    if sent.contract.rule.value not in offer.rules:
        raise ProviderError(
            f"the service does not know the rule {sent.contract.rule.value}; nothing was uploaded"
        )
    if pinned and not pinned & set(offer.keys):
        raise ProviderError(
            "the service shows none of the keys that are pinned as the provider's; nothing was"
            " uploaded"
        )


def _open_job(connection: Connection, sent: Parcel) -> Job:
    """The job of this submission, made unless there is one that did not fail."""
    job = _post(connection, sent)
    if job.state is State.FAILED:
        # It failed in an earlier run. Who asks again wants it tried again.
        _is_deleted(connection, f"{JOBS}/{job.id}", keep=False)
        job = _post(connection, sent)
    return job


def _post(connection: Connection, sent: Parcel) -> Job:
    files = [{"name": f.name, "size": f.size, "sha256": f.sha256} for f in sent.files]
    listed = to_json(files).encode()
    # The contract as it stands in its file: it is JSON already.
    body = b'{"contract":%b,"rows":%d,"files":%b}' % (sent.terms, sent.n_rows, listed)
    key = sha256(b"verix/idempotency/1\0" + sent.digest.encode() + b"\0" + listed).hexdigest()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    answer = connection.insist(lambda: connection.ask("POST", JOBS, headers=headers, content=body))
    return Job.parse(answer.body)


def _upload_all(connection: Connection, path: str, sent: Parcel, chunk_bytes: int) -> None:
    total, before = sum(file.size for file in sent.files), 0
    for file in sent.files:

        def report(done: int, before: int = before) -> None:
            connection.options.progress("upload", before + done, total)

        upload(connection, path, sent.folder, file, report, chunk_bytes)
        before += file.size


def _await(connection: Connection, path: str) -> Job:
    """The job when it is done, asked for less and less often."""
    options, began, delay = connection.options, waiting.now(), FIRST_POLL
    while True:
        answer = connection.get(path)
        job = Job.parse(answer.body)
        if job.state is State.DONE:
            return job
        if job.state is State.FAILED:
            raise FailedError(job)
        if job.state is State.QUEUED:
            options.progress("queue", 0, 1)
        if job.state is State.RUNNING:
            options.progress("work", job.done, job.total)
        if waiting.now() - began > options.wait:
            raise ProviderError(
                f"the job {job.id} is not done after {options.wait:,.0f} s; it stays at the"
                " service, and the same submission finds it again"
            )
        waiting.sleep(_pause(answer, delay))
        delay = min(MOST_POLL, LONGER * delay)


def _pause(answer: Answer, delay: float) -> float:
    return max(delay, min(answer.asked or 0.0, MOST_POLL))


def _download_all(
    connection: Connection, path: str, job: Job, out: str | os.PathLike[str], *, overwrite: bool
) -> None:
    total, before = sum(file.size for file in job.delivery), 0
    with written_aside(out, overwrite=overwrite, folder=True, private=True) as folder:
        for file in job.delivery:

            def report(done: int, before: int = before) -> None:
                connection.options.progress("download", before + done, total)

            download(connection, path, file, folder, report)
            before += file.size


def forget_job(connection: Connection, job: str) -> None:
    """Delete a job of which nothing more is wanted."""
    _is_deleted(connection, f"{JOBS}/{job}", keep=False)


def _is_deleted(connection: Connection, path: str, *, keep: bool | None = None) -> bool:
    """Delete a job unless it is to be kept; what cannot be deleted expires by itself."""
    if connection.options.keep if keep is None else keep:
        return False
    try:
        connection.insist(lambda: connection.ask("DELETE", path), connection.waiting(GREETING))
    except RefusedError as refused:
        return refused.problem.status == 404
    except ProviderError:
        return False
    return True

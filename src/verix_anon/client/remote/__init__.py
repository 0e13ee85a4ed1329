"""Have a provider's service anonymize a submission: the owner's side of `verix-anon serve`.

Only `connection` speaks HTTP. `answers` checks what comes back, because it may be hostile.
`transfer` uploads and downloads files, and continues where it was interrupted. This module calls
them in order.

Every step can be repeated: the job is found by a key that follows from the submission, the service
says how much of each file it has, and the delivery is kept aside until it is complete.
"""

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from verix_anon.client.arguments import options_of
from verix_anon.client.remote import connection as http
from verix_anon.client.remote.answers import Offer, RemoteJob, parse_page
from verix_anon.client.remote.connection import GREETING, Connection, RefusedError, RemoteOptions
from verix_anon.client.remote.transfer import (
    CHUNK_BYTES,
    check_announced,
    check_receipt,
    download,
    upload,
)
from verix_anon.errors import ProviderError
from verix_anon.fields import to_json
from verix_anon.files.atomic_write import check_apart, check_replaces, check_writable, written_aside
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_facts import read_header
from verix_anon.files.folder_writer import write_submission
from verix_anon.files.job_folder import DELIVERY_HEADER, RECEIPT_FILE
from verix_anon.files.store import MAX_PARTS, FilePath
from verix_anon.files.submission_listing import Listed, Parcel, list_submission
from verix_anon.progress import Progress
from verix_anon.protocol.messages import Delivery, Header, Submission
from verix_anon.protocol.providers import File, JobState

__all__ = ["RemoteDelivery", "RemoteOptions", "RemoteProvider", "Submitted"]

JOBS = "/v1/jobs"
MOST_FILES = MAX_PARTS + 5
MOST_JOBS = 3
"""How often a job is made for a submission, if it is gone before its delivery came."""
FIRST_POLL, MOST_POLL, LONGER = 0.1, 10.0, 1.6
"""Seconds between questions about a job: at first, at most, and the factor by which they grow."""


class FailedError(ProviderError):
    """The service could not do a job, or would not."""

    def __init__(self, job: RemoteJob) -> None:
        why = "" if job.reason is None else f": {job.reason}"
        super().__init__(f"the job {job.id} failed at the service{why}")
        self.job = job


def submit_folder(
    connection: Connection,
    sent: Listed,
    out: FilePath,
    *,
    overwrite: bool = False,
    began: Callable[[str], None] = lambda job: None,
) -> tuple[str, bool]:
    """Have a submission anonymized; the delivery appears at `out`, complete or not at all.

    `began` is told the job's id as soon as there is one.

    Returns:
        The job's id, and whether the job is still at the service.

    Raises:
        ProviderError: The service cannot be reached, or refuses. Or keys are pinned, and this
            delivery has no signature by one of them: then the job stays at the service.
    """
    check_apart(out, [sent.folder.path])
    check_writable(out, overwrite=overwrite)
    if overwrite:
        check_replaces(out, DELIVERY_HEADER)
    offer = _offer(connection)
    _check_offer(offer, sent, frozenset(key.keyid for key in connection.keys))
    for left in reversed(range(MOST_JOBS)):
        job = None
        try:
            job = run_job(connection, sent, offer, began)
            _fetch(connection, job, sent, out, overwrite=overwrite)
            break
        except RefusedError as refused:
            # An interrupted deletion leaves a job without files, and one that still runs at the
            # service removes the job later. So begin a new job.
            if refused.problem.status != HTTPStatus.NOT_FOUND or not left:
                raise
        if job is not None:
            _delete(connection, job.id)
    assert job is not None
    return job.id, connection.options.keep or not forget_job(connection, job.id)


def _fetch(
    connection: Connection, job: RemoteJob, sent: Listed, out: FilePath, *, overwrite: bool
) -> None:
    """Download a delivery, and check its receipt if keys are pinned."""
    check_announced(job.delivery, sent)
    total, before = sum(file.size for file in job.delivery), 0
    with written_aside(out, overwrite=overwrite, folder=True, private=True) as folder:
        for file in job.delivery:
            report = _reporting(connection.options.progress, "download", before, total)
            download(connection, f"{JOBS}/{job.id}", file, folder, report)
            before += file.size
        if connection.keys:
            # Check it before the job is deleted: afterwards no file can be fetched.
            check_receipt(folder, sent, connection.keys)


def run_job(
    connection: Connection,
    sent: Parcel,
    offer: Offer,
    began: Callable[[str], None] = lambda job: None,
) -> RemoteJob:
    """Send a submission, and return its job when it is done; FailedError if it fails."""
    job = _post(connection, sent)
    if job.state is JobState.FAILED:
        # It failed in an earlier run, so try it again.
        _delete(connection, job.id)
        job = _post(connection, sent)
    began(job.id)
    path = f"{JOBS}/{job.id}"
    waits, total = connection.waiting(), sum(file.size for file in sent.files)
    while True:
        chunk_bytes, before = min(CHUNK_BYTES, offer.limits.request_bytes), 0
        for file in sent.files if job.state is JobState.UPLOADING else ():
            report = _reporting(connection.options.progress, "upload", before, total)
            upload(connection, path, sent.folder, file, report, chunk_bytes)
            before += file.size
        job = _await(connection, path)
        if job.state is not JobState.UPLOADING:
            return job
        # It could not store a file that came whole, and tries again when it is asked for it.
        connection.pause(http.Lost("it does not store what it was sent"), waits)


def _reporting(told: Progress, stage: str, before: int, total: int) -> Callable[[int], None]:
    """Report how far a stage is, by the bytes of its current file."""
    return lambda done: told(stage, before + done, total)


def _offer(connection: Connection) -> Offer:
    """What the service says about itself, if there is one."""
    waits = connection.waiting()
    waits.silence = GREETING
    try:
        return Offer.parse(connection.insist("GET", "/v1", waits).body)
    except RefusedError as error:
        if error.problem.code or error.problem.status != HTTPStatus.NOT_FOUND:
            raise
        raise ProviderError(
            f"there is no verix-anon service at {connection.base}; give its address as the provider"
            " gave it, such as https://host, without /v1"
        ) from None


def _check_offer(offer: Offer, sent: Listed, pinned: frozenset[str]) -> None:
    """Raise ProviderError, before anything is sent, if the service would refuse it."""
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


def _post(connection: Connection, sent: Parcel) -> RemoteJob:
    """Return the job of this submission, and make it if there is none yet."""
    files = [{"name": f.name, "size": f.size, "sha256": f.sha256} for f in sent.files]
    listed = to_json(files).encode()
    # The contract as it stands in its file: it is JSON already.
    body = b'{"contract":%b,"rows":%d,"files":%b}' % (sent.terms, sent.n_rows, listed)
    key = sha256(b"verix/idempotency/1\0" + sent.digest.encode() + b"\0" + listed).hexdigest()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    answer = connection.insist("POST", JOBS, headers=headers, content=body)
    return RemoteJob.parse(answer.body)


def _await(connection: Connection, path: str) -> RemoteJob:
    """Ask about the job, less and less often, and return it when it is done or lacks files."""
    options, began, delay = connection.options, http.now(), FIRST_POLL
    while True:
        left = options.wait - (http.now() - began)
        answer = connection.get(path, max(GREETING, left))
        job = RemoteJob.parse(answer.body)
        if job.state is JobState.DONE:
            return replace(job, delivery=_all_files(connection, path, job), next_delivered="")
        if job.state is JobState.FAILED:
            raise FailedError(job)
        if job.state is JobState.UPLOADING:
            return job
        if job.state is JobState.QUEUED:
            options.progress("queue", 0, 1)
        if job.state is JobState.RUNNING:
            options.progress("work", job.done, job.total)
        if http.now() - began > options.wait:
            raise ProviderError(
                f"the job {job.id} is not done after {options.wait:,.0f} s; it stays at the"
                " service, and the same submission finds it again"
            )
        http.sleep(max(delay, min(http.asked_seconds(answer.headers) or 0.0, MOST_POLL)))
        delay = min(MOST_POLL, LONGER * delay)


def _all_files(connection: Connection, path: str, job: RemoteJob) -> tuple[File, ...]:
    """Return the files of a delivery, which the service lists page by page."""
    found, after = list(job.delivery), job.next_delivered
    while after:
        page, after = parse_page(connection.get(f"{path}/delivery?after={quote(after)}").body)
        found += page
        if not page or len(found) > MOST_FILES:
            raise ProviderError("the service lists more files than a delivery has")
    return tuple(found)


def forget_job(connection: Connection, job: str) -> bool:
    """Delete a job, and return whether it is gone; otherwise it expires by itself."""
    try:
        _delete(connection, job, GREETING)
    except ProviderError:
        return False
    return True


def _delete(connection: Connection, job: str, patience: float | None = None) -> None:
    """Delete a job, or find that it is gone; ProviderError if it is still there."""
    try:
        connection.insist("DELETE", f"{JOBS}/{job}", connection.waiting(patience))
    except RefusedError as refused:
        if refused.problem.status != HTTPStatus.NOT_FOUND:
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted(Header):
    """The header of a delivery that a service made, and the job that made it.

    Examples:
        >>> provider = verix_anon.RemoteProvider("https://provider.example", "token")
        >>> done = provider.anonymize_folder("job/submission", "new/delivery")  # doctest: +SKIP
        >>> done.job  # doctest: +SKIP
    """

    job: str
    kept: bool
    """Whether the job is still at the service"""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class RemoteDelivery(Delivery):
    """A delivery that came from a service, with the receipt that came along.

    Examples:
        >>> provider = verix_anon.RemoteProvider("https://provider.example", "token")
        >>> provider.anonymize("job/submission").receipt  # doctest: +SKIP
    """

    receipt: bytes | None
    """The file receipt.dsse.json as it came, or None if the service signed none"""


class RemoteProvider:
    """A provider's service, by its URL and a token: both a Provider and a FolderProvider.

    Examples:
        >>> provider = verix_anon.RemoteProvider("https://provider.example", "token")
        >>> provider.anonymize("job/submission")  # doctest: +SKIP
    """

    def __init__(self, url: str, token: str, *, options: RemoteOptions | None = None) -> None:
        self._options = options_of(options, RemoteOptions)
        self.url, self._token = url, token
        # Find mistakes in these arguments now, and not after the table was prepared.
        self._connect()

    def __repr__(self) -> str:
        return f"<RemoteProvider {self.url}>"

    def anonymize(self, submission: Submission | FilePath) -> RemoteDelivery:
        """Have the submission, or the one in a folder, anonymized as its contract says.

        If the options have `provider_keys`, one of them has signed the files that came.

        Raises:
            ProviderError: The service cannot be reached, refuses, or delivers without the receipt.
            MalformedDeliveryError: What it delivered is not a delivery.
        """
        with tempfile.TemporaryDirectory(prefix="verix-") as scratch:
            folder: FilePath = Path(scratch) / "submission"
            if isinstance(submission, Submission):
                write_submission(submission, folder)
            else:
                folder = submission
            sent, out = list_submission(folder), Path(scratch) / "delivery"
            with self._connect() as connection:
                submit_folder(connection, sent, out)
            found, receipt = read_delivery(out, sent.contract, n_rows=sent.n_rows).delivery, None
            if (out / RECEIPT_FILE).is_file():
                receipt = (out / RECEIPT_FILE).read_bytes()
        parts = {each.name: getattr(found, each.name) for each in fields(found)}
        return RemoteDelivery(**parts, receipt=receipt)

    def anonymize_folder(
        self,
        submission: FilePath,
        out: FilePath,
        *,
        overwrite: bool = False,
        began: Callable[[str], None] = lambda job: None,
    ) -> Submitted:
        """Have a submission's folder anonymized, without holding its files in memory.

        The delivery appears at `out` complete or not at all. If a run was interrupted, the next
        one continues the same job. `began` is called with the job's id as soon as there is one.

        Raises:
            ProviderError: The service cannot be reached, refuses, or delivers without the receipt.
            MalformedDeliveryError: The delivery, which is at `out`, has no readable header.
        """
        with self._connect() as connection:
            sent = list_submission(submission)
            job, kept = submit_folder(connection, sent, out, overwrite=overwrite, began=began)
        return Submitted(**asdict(read_header(out)), job=job, kept=kept)

    def _connect(self) -> Connection:
        return Connection(self.url, self._token, self._options)

"""Clients that submit while everything fails, and judge each delivery as an owner would."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock

import httpx2

from tools.bench.tables import submission, table_of
from verix_anon.client.manifest import Manifest
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.remote import FailedError, RemoteProvider, run_job
from verix_anon.client.remote import _offer as offer_of
from verix_anon.client.remote.connection import RefusedError, RemoteOptions
from verix_anon.client.verdict import RECEIPT, Status
from verix_anon.client.verify import verify
from verix_anon.errors import Error, ProviderError
from verix_anon.files.folder_writer import write_submission
from verix_anon.files.job_folder import RECORDS
from verix_anon.files.submission_listing import list_as_is

SIZES = (300, 1_000, 3_000, 10_000, 60_000)
COLUMNS = 6
SPOILED_EVERY = 7
"""One order in so many has records that nobody can read: the service has to say so"""
PATIENCE = 20.0
REFUSED_SECONDS = 1.0
"""Until a client that was refused makes another order"""
BY_STATUS = {507: "storage-full"}
REASONS = frozenset(
    {"damaged-submission", "storage-full", "too-many-jobs", "too-many-bytes", "worker-killed"}
)
"""What a service may say to an order that asks for nothing it forbids"""


@dataclass
class Tally:
    """What became of all orders."""

    submitted: int = 0
    delivered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    false_receipts: list[str] = field(default_factory=list)
    wrong_bytes: list[str] = field(default_factory=list)
    again: int = 0
    """How often a client gave up and came again with the same order"""
    seconds: list[float] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True)
class Prepared:
    """What an owner has: a submission's folder, the same with spoiled records, and the manifest."""

    sent: Path
    spoiled: Path
    manifest: Manifest


def prepared(folder: Path, number: int) -> Prepared:
    """A small job of a client's own."""
    made = submission(SIZES[number % len(SIZES)], COLUMNS)
    options = PrepareOptions(unsafe_seed=number, witnesses=0)
    done = prepare(table_of(made), target="y", quasi="all", k=5, options=options)
    sent, spoiled = folder / f"sent{number}", folder / f"spoiled{number}"
    write_submission(done.submission, sent)
    shutil.copytree(sent, spoiled)
    records = spoiled / RECORDS
    records.write_bytes(b"PAR1" + bytes(records.stat().st_size - 4))
    return Prepared(sent, spoiled, done.manifest)


@dataclass
class Client:
    """One client: an order after the other, each until it is delivered or refused."""

    url: str
    token: str
    mine: Prepared
    key: Path
    tally: Tally
    is_over: Event
    until: list[float]
    """One moment, known when no more orders are made: what has not ended by then is lost"""

    def run(self) -> None:
        """Submit until it is over."""
        number = 0
        while not self.is_over.is_set():
            number += 1
            with self.tally.lock:
                self.tally.submitted += 1
            began = time.monotonic()
            self._order(is_spoiled=number % SPOILED_EVERY == 0)
            with self.tally.lock:
                self.tally.seconds.append(time.monotonic() - began)

    def _order(self, *, is_spoiled: bool) -> None:
        while True:
            try:
                why = self._spoiled() if is_spoiled else self._honest()
            except ProviderError as error:
                if self.until and time.monotonic() > self.until[0]:
                    return self._lost(f"not done when all was well again: {error}")
                with self.tally.lock:
                    self.tally.again += 1
                continue
            except Exception as error:
                return self._lost(f"{type(error).__name__}: {error}")
            with self.tally.lock:
                if not why:
                    self.tally.delivered += 1
                elif why in REASONS:
                    self.tally.refused[why] += 1
                else:
                    self.tally.lost.append(why)
            if why:
                time.sleep(REFUSED_SECONDS)
            return None

    def _lost(self, why: str) -> None:
        with self.tally.lock:
            self.tally.lost.append(why)

    def _options(self) -> RemoteOptions:
        return RemoteOptions(patience=PATIENCE)

    def _honest(self) -> str:
        """Why an order was refused; empty if it was delivered."""
        out = self.mine.sent.with_name(f"{self.mine.sent.name}.delivery")
        provider = RemoteProvider(self.url, self.token, options=self._options())
        try:
            provider.anonymize_folder(self.mine.sent, out)
        except (FailedError, RefusedError) as error:
            return code_of(error)
        try:
            self._judge(out)
        finally:
            shutil.rmtree(out)
        return ""

    def _spoiled(self) -> str:
        provider = RemoteProvider(self.url, self.token, options=self._options())
        with provider._connect() as connection:
            try:
                job = run_job(connection, list_as_is(self.mine.spoiled), offer_of(connection))
            except (FailedError, RefusedError) as error:
                return code_of(error)
        with self.tally.lock:
            self.tally.wrong_bytes.append(f"spoiled records gave a delivery: {job.id}")
        return ""

    def _judge(self, out: Path) -> None:
        """Everything that decides, and the receipt of the pinned key."""
        skip = ("fingerprint", "utility")
        keys = [self.key]
        try:
            verdict = verify(
                out, self.mine.manifest, submission=self.mine.sent, skip=skip, provider_keys=keys
            )
        except Error as error:
            with self.tally.lock:
                self.tally.wrong_bytes.append(str(error))
            return
        for finding in verdict.findings:
            if finding.status is not Status.PASS and finding.layer not in skip:
                is_receipt = finding.layer == RECEIPT
                found = self.tally.false_receipts if is_receipt else self.tally.wrong_bytes
                with self.tally.lock:
                    found.append(f"{finding.layer}: {finding.summary}")


def code_of(error: FailedError | RefusedError) -> str:
    """The code of a reason that a service gave; a sentence if it gave none."""
    problem = error.problem if isinstance(error, RefusedError) else error.job.reason
    if problem is None:
        return f"no reason: {error}"
    # The answer to HEAD has no body, and so no code.
    return problem.code or BY_STATUS.get(problem.status, f"no reason: {error}")


def stuck(url: str, tokens: Sequence[str]) -> list[str]:
    """Jobs of the tenants that wait or run although nobody asks for anything any more."""
    found = []
    for token in tokens:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=url, headers=headers, timeout=60) as client:
            page = json.loads(client.get("/v1/jobs").content)
            found += [
                f"{job['state']} for ever: {job['id']}"
                for job in page["jobs"]
                if job["state"] in ("queued", "running")
            ]
    return found

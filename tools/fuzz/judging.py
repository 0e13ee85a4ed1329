"""What may become of a spoiled folder, and nothing else may (spec §11)."""

import random
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tools.fuzz.contents import false
from tools.fuzz.folders import Folder, restated, spoiled, write
from tools.fuzz.jobs import TRUST, Job, jobs
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.errors import ContractError, Error, MixedUpError, TableError
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_facts import inspect_folder
from verix_anon.files.job_folder import RECEIPT_FILE
from verix_anon.files.submissions import read_submission
from verix_anon.files.trust import NO_TRUST
from verix_anon.protocol.messages import Delivery

SECONDS_UNTIL_IT_HANGS = 60
MOST_MEGABYTES = 300
LONGEST_SENTENCE = 1000
SKIPPED = ("fingerprint", "utility")
"""They only inform, and a model takes longer than all the rest."""
OURS = "memory"
"""A lack of memory is an error of the right kind, but no small folder may cause it."""


@contextmanager
def watched() -> Iterator[None]:
    """No more memory than a small job needs, and an end: what hangs must not stall the run."""

    def stop(signum: int, frame: object) -> None:
        raise TimeoutError(f"it took more than {SECONDS_UNTIL_IT_HANGS} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_UNTIL_IT_HANGS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        yield
    finally:
        signal.alarm(0)
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert megabytes < MOST_MEGABYTES, f"it took {megabytes} megabytes"


def case(seed: int, number: int, path: Path) -> str:
    """Make one folder, and say what became of it; raises if it may not."""
    rng = random.Random(f"{seed}/{number}")
    job, other = rng.sample(jobs(), 2)
    is_delivery = rng.random() < 0.6
    at = rng.randrange(len(job.returned))
    folders = [each.returned if is_delivery else each.sent for each in (job, other)]
    if is_delivery and rng.random() < 0.12:
        folder: Folder = dict(false(rng, job))
    else:
        folder = spoiled(rng, folders[0][at], folders[1][at])
    # Else no spoiled file of a submission would ever be decoded.
    if rng.random() < 0.8:
        folder = restated(folder)
    write(folder, path)
    with watched():
        if rng.random() < 0.1:
            return f"inspect: {_inspected(path)}"
        if is_delivery:
            return f"delivery: {_judged(path, job, rng)}"
        return f"submission: {_read(path, job)}"


def _judged(path: Path, job: Job, rng: random.Random) -> str:
    """Every delivery gets a verdict, and none that is not the honest one a full pass."""
    is_thin, is_pinned = rng.random() < 0.1, rng.random() < 0.3
    try:
        verdict = verify(
            path,
            job.manifest,
            submission=None if is_thin else job.submission,
            skip=SKIPPED,
            provider_keys=TRUST if is_pinned else NO_TRUST,
            options=VerifyOptions(threads=1),
        )
    except TableError as error:
        return _mistaken(error)
    # Nothing that a terminal would obey.
    assert verdict.to_json().replace("\n", "").isprintable()
    for finding in verdict.findings:
        assert len(finding.summary) < LONGEST_SENTENCE, finding.summary
    if verdict and is_pinned:
        signed = {name: data for name, data in job.returned[0].items() if name != RECEIPT_FILE}
        found = {name: (path / name).read_bytes() for name in signed}
        assert found == signed, "accepted, and not what was signed"
    if verdict and not is_thin:
        contract, n_rows = job.manifest.contract, job.manifest.n_rows
        read = read_delivery(path, contract, n_rows=n_rows).delivery
        assert is_same(read, job.delivery), "accepted, and not what was honestly delivered"
    return f"{'thin ' if is_thin else ''}{verdict.outcome.value}"


def _mistaken(error: TableError) -> str:
    """The mistakes of a caller's that a folder can make up: a mix-up of folders."""
    said = _sentence(error)
    assert "is a submission, not a delivery" in said or isinstance(error, MixedUpError), error
    return "TableError"


def is_same(one: Delivery, other: Delivery) -> bool:
    """Whether two deliveries say the same of the records, in whatever order."""
    if one.records.row.size != other.records.row.size:
        return False
    orders = [np.argsort(each.records.row, kind="stable") for each in (one, other)]
    names = ("row", "tracker", "leaf", "target")
    pairs = [
        *((getattr(one.tree, n), getattr(other.tree, n)) for n in one.tree.__slots__),
        *((getattr(one.leaves, n), getattr(other.leaves, n)) for n in one.leaves.__slots__),
        *(
            (getattr(one.records, n)[orders[0]], getattr(other.records, n)[orders[1]])
            for n in names
        ),
    ]
    heads = [
        (each.header.contract, each.header.submission, each.header.root) for each in (one, other)
    ]
    return heads[0] == heads[1] and all(np.array_equal(a, b) for a, b in pairs)


def _read(path: Path, job: Job) -> str:
    """A submission is refused, or it is the one that was sent."""
    try:
        submission = read_submission(path)
    except (TableError, ContractError) as error:
        _sentence(error)
        return type(error).__name__
    sent = {each.submission.digest() for each in jobs()}
    assert submission.digest() in sent, "read, and not what was sent"
    return "read"


def _inspected(path: Path) -> str:
    try:
        inspect_folder(path)
    except Error as error:
        _sentence(error)
        return type(error).__name__
    return "shown"


def _sentence(error: Error) -> str:
    """What is said is one line, not too long, and not about our own lack of memory."""
    text = str(error)
    assert len(text) < LONGEST_SENTENCE, text[:LONGEST_SENTENCE]
    assert text.isprintable(), ascii(text)
    assert OURS not in text, text
    return text

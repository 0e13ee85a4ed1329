"""Show every case to somebody's provider, verifier or checker, and judge what it does.

A provider is a command that is given two folders, or a service behind HTTP. Its delivery is
compared with the one that it must give. A verifier is a command whose exit code says how it judged
a delivery (spec §10). A checker is a command with the words of `prove check`, `receipt check` and
`series check`, and answers by its exit code too.

All answers are read as hostile (spec §11). A difference is reported with its first place.
"""

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path

import numpy as np

from verix_anon.client.remote import FailedError, forget_job, run_job, submit_folder
from verix_anon.client.remote.answers import MOST_SHOWN, Offer
from verix_anon.client.remote.connection import GREETING, Connection, RefusedError, RemoteOptions
from verix_anon.conform.foreign_command import Ended, end_all, filled, run
from verix_anon.conform.kit import CaseKind, Kit, KitCase
from verix_anon.conform.results import Check, Result
from verix_anon.errors import Error, ProviderError, TableError
from verix_anon.fields import printable
from verix_anon.files.deliveries import NAMED, Snapshot, damage, read_delivery
from verix_anon.files.folder_writer import header_to_bytes
from verix_anon.files.submission_listing import list_as_is, list_submission
from verix_anon.files.submissions import open_submission
from verix_anon.protocol.messages import Delivered, Header
from verix_anon.protocol.tree import Leaves, Tree


def compared(submission: Path, expected: Path, found: Path) -> list[Check]:
    """Compare a delivery with the expected one; return a check for each part."""
    stated = open_submission(submission)
    wanted = read_delivery(expected, stated.contract, n_rows=stated.n_rows).delivery
    try:
        snapshot = read_delivery(found, stated.contract, n_rows=stated.n_rows)
    except Error as error:
        return [Check("files", False, str(error))]
    shown = snapshot.delivery
    differences = {
        "files": _files(snapshot),
        "header": _header(wanted.header, shown.header),
        "tree": _tree(wanted.tree, shown.tree),
        "bounds": _bounds(wanted.leaves, shown.leaves),
        "records": _records(wanted.records, shown.records),
        "root": _digest(wanted.header.root, shown.header.root),
    }
    return [Check(name, not each, each or "as it must be") for name, each in differences.items()]


def _files(snapshot: Snapshot) -> str:
    """Find damaged files, and forms that readers accept but writers must not use (spec §8.2)."""
    if snapshot.damaged:
        return damage(snapshot.damaged)
    found = snapshot.delivery
    header = header_to_bytes(found.header, {name: snapshot.files[name] for name in NAMED})
    if sha256(header).hexdigest() != snapshot.files["delivery.json"]:
        return "delivery.json is not in the form of RFC 8785"
    return ""


def _digest(wanted: bytes, found: bytes) -> str:
    return "" if wanted == found else f"{found.hex()}, and not {wanted.hex()}"


def _header(wanted: Header, found: Header) -> str:
    for name in ("contract", "submission"):
        if different := _digest(getattr(wanted, name), getattr(found, name)):
            return f"{name} {different}"
    for name in ("rows", "leaves", "nodes"):
        if getattr(wanted, name) != getattr(found, name):
            return f"{getattr(found, name):,} {name}, and not {getattr(wanted, name):,}"
    return ""


def _tree(wanted: Tree, found: Tree) -> str:
    both = min(wanted.n_nodes, found.n_nodes)
    # In preorder the first node of another split, or none, is where the trees part. Numbers of
    # sides differ above it already.
    for names in (("column", "threshold"), ("left", "right", "leaf")):
        pairs = [(getattr(wanted, name)[:both], getattr(found, name)[:both]) for name in names]
        differs = np.any([a != b for a, b in pairs], axis=0)
        if differs.any():
            i = int(np.argmax(differs))
            return f"node {i} is {_node(found, i)}, and not {_node(wanted, i)}"
    return ""


def _node(tree: Tree, i: int) -> str:
    if tree.column[i] < 0:
        return f"leaf {tree.leaf[i]}"
    split = f"a split of column {tree.column[i]} at {float(tree.threshold[i])!r}"
    return f"{split} with the sides {tree.left[i]} and {tree.right[i]}"


def _bounds(wanted: Leaves, found: Leaves) -> str:
    both = min(wanted.n_leaves, found.n_leaves)
    low = wanted.minimum[:both] != found.minimum[:both]
    cells = low | (wanted.maximum[:both] != found.maximum[:both])
    differs = cells.any(axis=1) | (wanted.count[:both] != found.count[:both])
    if not differs.any():
        return ""
    i = int(np.argmax(differs))
    if wanted.count[i] != found.count[i]:
        return f"leaf {i} has {found.count[i]:,} records, and not {wanted.count[i]:,}"
    j = int(np.argmax(cells[i]))
    return f"leaf {i}, column {j}: {_ends(found, i, j)}, and not {_ends(wanted, i, j)}"


def _ends(leaves: Leaves, i: int, j: int) -> str:
    return f"{float(leaves.minimum[i, j])!r} to {float(leaves.maximum[i, j])!r}"


def _records(wanted: Delivered, found: Delivered) -> str:
    """Compare the records by row; their order does not matter."""
    n = wanted.row.size
    times = np.bincount(found.row, minlength=n)
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        return f"row {row} is there {times[row]} times, and not once"
    here, there = np.argsort(wanted.row), np.argsort(found.row)
    for name in ("tracker", "leaf", "target"):
        a, b = getattr(wanted, name)[here], getattr(found, name)[there]
        differs = (a != b).any(axis=1) if a.ndim == 2 else a != b
        if differs.any():
            row = int(np.argmax(differs))
            ours, theirs = (bytes(v[row]).hex() if v.ndim == 2 else v[row] for v in (a, b))
            return f"row {row} has the {name} {theirs}, and not {ours}"
    return ""


LAST_REFUSAL, INTERNAL = 125, 70
"""Exit codes up to this refuse, except for that of an internal error (sysexits.h)."""
OF_THE_SERVICE = frozenset({"internal", "worker-killed", "job-too-large"})
"""Codes of jobs that failed by the service's own fault, or because it had no room"""
REFUSALS = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Other codes from 400 to 499 do not judge the submission, but a token, a limit or a lost job."""
PLACES = ("delivery", "manifest", "submission", "profile")
APPENDED = (
    "{delivery}",
    *("--manifest", "{manifest}"),
    *("--submission", "{submission}"),
    *("--profile", "{profile}"),
)
WORDS = {
    0: "accepted",
    1: "rejected",
    2: "not judged: a mistake of the caller's",
    3: "neither accepted nor rejected",
}
CHECKER_WORDS = {0: "it holds", 1: "it does not hold", 2: "no answer: a mistake of the caller's"}
BETWEEN = 0.1
"""Seconds between checks whether everything has stopped"""


class ProviderOutcome(StrEnum):
    """What a provider did with a submission."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    BROKEN = "broken"
    """It neither delivered nor refused: it crashed, took too long, or did half of each."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider did, and its words."""

    outcome: ProviderOutcome
    said: str


Asked = Callable[[Path, Path], Answer]
"""A provider: the folder of a submission, and where the delivery goes."""
Judge = Callable[[Mapping[str, object]], Ended]
"""A verifier: where the delivery, the manifest and the submission lie, and the profile."""
Checker = Callable[[Sequence[str]], Ended]
"""A checker: the words that ask it."""
Told = Callable[[Result], object]
"""Gets each result, in the order of the cases."""


def command_provider(command: Sequence[str], *, limit: float) -> Asked:
    """A command that takes a submission's folder and writes a delivery's."""
    places = _places(command, ("submission", "delivery"))
    if len(places) == 1:
        raise TableError(
            f"the command has a place for {{{places[0]}}} alone; it needs {{submission}} and"
            " {delivery}, or neither, and then both are appended"
        )

    def ask(submission: Path, delivery: Path) -> Answer:
        where = {"submission": submission, "delivery": delivery}
        words = filled(command, where, ["{submission}", "{delivery}"])
        return _answer_of_command(
            run(words, limit=limit), has_delivery=os.path.lexists(delivery), limit=limit
        )

    return ask


def _answer_of_command(ended: Ended, *, has_delivery: bool, limit: float) -> Answer:
    said = f": {ended.said}" if ended.said else ""
    if ended.code is None:
        return Answer(ProviderOutcome.BROKEN, f"no answer in {limit:g} s, so it was ended{said}")
    if ended.code == 0:
        if has_delivery:
            return Answer(ProviderOutcome.DELIVERED, "delivered")
        return Answer(ProviderOutcome.BROKEN, f"exit code 0, and no delivery{said}")
    if ended.code < 0:
        return Answer(ProviderOutcome.BROKEN, f"ended by signal {-ended.code}{said}")
    if ended.code == INTERNAL or ended.code > LAST_REFUSAL or ended.crashed:
        crash = " after a crash" if ended.crashed else ""
        return Answer(
            ProviderOutcome.BROKEN, f"exit code {ended.code}{crash}, which is not a refusal{said}"
        )
    if has_delivery:
        return Answer(
            ProviderOutcome.BROKEN,
            f"exit code {ended.code}, and something lies at the delivery's place",
        )
    return Answer(ProviderOutcome.REFUSED, f"refused with exit code {ended.code}{said}")


def service_provider(url: str, token: str, options: RemoteOptions) -> Asked:
    """A provider behind HTTP; it refuses by the status 400 or 422, or by a job that fails.

    Raises:
        Error: The service cannot be asked at all, such as with that token.
    """
    with Connection(url, token, options) as connection:
        Offer.parse(connection.get("/v1", GREETING).body)

    def ask(submission: Path, delivery: Path) -> Answer:
        begun: list[str] = []
        with Connection(url, token, options) as connection:
            try:
                _submit(connection, submission, delivery, begun.append)
                return Answer(ProviderOutcome.DELIVERED, "delivered")
            except ProviderError as error:
                for job in begun:
                    forget_job(connection, job)
                outcome = ProviderOutcome.REFUSED if _is_refusal(error) else ProviderOutcome.BROKEN
                return Answer(outcome, printable(str(error), MOST_SHOWN))

    return ask


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
        # Our client would not send it, but the test is what the service does with it.
        offer = Offer.parse(connection.get("/v1", GREETING).body)
        job = run_job(connection, list_as_is(submission), offer, began)
        forget_job(connection, job.id)
        return
    submit_folder(connection, listed, delivery, began=began)


def try_provider(
    kit: Kit,
    cases: Sequence[KitCase],
    ask: Asked,
    *,
    jobs: int = 1,
    told: Told = lambda result: None,
) -> list[Result]:
    """Show cases to a provider, so many at a time."""
    return _try_each(cases, partial(_tried_provider, kit, ask), jobs=jobs, told=told)


def _tried_provider(kit: Kit, ask: Asked, case: KitCase, folder: Path) -> Result:
    delivery = folder / "delivery"
    began = time.monotonic()
    answer = ask(kit.copy(case, "submission", folder), delivery)
    seconds = time.monotonic() - began
    if case.kind is CaseKind.REFUSED:
        checks = [Check("refusal", answer.outcome is ProviderOutcome.REFUSED, answer.said)]
    else:
        is_there = answer.outcome is ProviderOutcome.DELIVERED
        checks = [Check("answer", is_there, answer.said)]
        if is_there:
            sent, wanted = kit.path(case, "submission"), kit.path(case, "delivery")
            checks += compared(sent, wanted, delivery)
    return Result(case=case, checks=tuple(checks), seconds=seconds)


def command_verifier(command: Sequence[str], *, limit: float) -> Judge:
    """A command that judges a delivery and says by its exit code what it found."""
    named = _places(command, PLACES)
    if named and len(named) < len(PLACES):
        lacking = ", ".join(f"{{{name}}}" for name in PLACES if name not in named)
        raise TableError(f"the command lacks a place for {lacking}; it names all, or none")
    return lambda shown: run(filled(command, shown, APPENDED), limit=limit)


def try_verifier(
    kit: Kit,
    cases: Sequence[KitCase],
    judge: Judge,
    *,
    jobs: int = 1,
    told: Told = lambda result: None,
) -> list[Result]:
    """Show cases to a verifier, so many at a time."""
    return _try_each(cases, partial(_tried_verifier, kit, judge), jobs=jobs, told=told)


def _places(command: Sequence[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if any(f"{{{name}}}" in word for word in command)]


def _tried_verifier(kit: Kit, judge: Judge, case: KitCase, folder: Path) -> Result:
    shown = {name: kit.copy(case, name, folder) for name in case.kind.needs}
    ended = judge({**shown, "profile": case.expected["profile"]})
    return _judged(case, ended, WORDS)


def _judged(case: KitCase, ended: Ended, words: Mapping[int, str]) -> Result:
    """Compare the exit code with the one that is expected."""
    code, wanted = ended.code, case.expected["exit"]
    # The exit code of a program that crashed is not a verdict.
    has_crashed = ended.crashed and code != 0
    if code is None:
        found = "no answer in time, so it was ended"
    elif code < 0:
        found = f"ended by signal {-code}"
    elif has_crashed:
        found = f"{code} after a crash"
    else:
        found = f"{code}, {words.get(code, 'which means nothing here')}"
    passed = code is not None and code == wanted and not has_crashed
    if not passed:
        layers = case.expected.get("layers")
        seen = f" (layer {' or '.join(map(str, layers))})" if isinstance(layers, list) else ""
        said = f": {ended.said}" if ended.said else ""
        found += f" instead of {wanted}{seen}{said}"
    return Result(case=case, checks=(Check("exit code", passed, found),), seconds=ended.seconds)


def command_checker(command: Sequence[str], *, limit: float) -> Checker:
    """A command that takes the words of `prove check` and others, and answers by its exit code."""
    return lambda words: run([*command, *words], limit=limit)


def try_checker(
    kit: Kit,
    cases: Sequence[KitCase],
    check: Checker,
    *,
    jobs: int = 1,
    told: Told = lambda result: None,
) -> list[Result]:
    """Show cases to a checker, so many at a time."""
    return _try_each(cases, partial(_tried_checker, kit, check), jobs=jobs, told=told)


def _tried_checker(kit: Kit, check: Checker, case: KitCase, folder: Path) -> Result:
    shown = {name: kit.copy(case, name, folder) for name in case.paths}
    words = case.expected["words"]
    assert isinstance(words, Sequence)
    return _judged(case, check(filled(list(words), shown, ())), CHECKER_WORDS)


def _try_each(
    cases: Sequence[KitCase], tried: Callable[[KitCase, Path], Result], *, jobs: int, told: Told
) -> list[Result]:
    """Try cases, so many at a time; each gets its own folder, whose name does not tell the case."""

    def tried_in(folder: Path, case: KitCase) -> Result:
        folder.mkdir()
        return tried(case, folder)

    results, waiting = [], list[Future[Result]]()
    # A process that a foreign program started may still write there.
    own = tempfile.TemporaryDirectory(prefix="verix-conform-", ignore_cleanup_errors=True)
    with own as place, ThreadPoolExecutor(jobs) as pool:
        try:
            for case in cases:
                # Not a number either, because the cases to answer come first.
                folder = Path(place) / secrets.token_hex(8)
                waiting.append(pool.submit(tried_in, folder, case))
            for each in waiting:
                results.append(each.result())
                told(results[-1])
        finally:
            # After an interruption or a mistake of the caller, no case goes on or begins.
            begun = [each for each in waiting if not each.cancel()]
            # Some may be about to start a command, so it is not enough to end those that run now.
            while wait(begun, timeout=BETWEEN).not_done:
                end_all()
    return results

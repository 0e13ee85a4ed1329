"""A line of the audit log that was removed, changed or cut off is told, and nobody else accused."""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from client.release import releases
from verix_anon.client.audit_log import NO_LINE, AuditLog
from verix_anon.client.ledger import Ledger, LookedAt
from verix_anon.client.release import Released, ReleaseOptions, release
from verix_anon.client.verdict import Profile, Status, Verdict
from verix_anon.client.verify import verify
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.files import json_lines
from verix_anon.protocol.contract import Digest

pytestmark = pytest.mark.usefixtures("quick_models")

OTHER = Digest(b"s" * 32)
Lines = list[bytes]


@pytest.fixture(scope="module")
def case(quick_models: None) -> releases.Job:
    return releases.job(pa.table(releases.columns()))


@dataclass
class Kept:
    """A log and a ledger, with verdicts on one delivery."""

    log: AuditLog
    ledger: Ledger
    case: releases.Job

    @property
    def passed(self) -> Verdict:
        return self.case.verdict

    @property
    def violated(self) -> Verdict:
        first, *others = self.passed.findings
        return replace(self.passed, findings=(replace(first, status=Status.FAIL), *others))

    @property
    def thin(self) -> Verdict:
        return replace(self.passed, profile=Profile.THIN)

    @property
    def table(self) -> Digest:
        return self.case.manifest.table

    def add(self, verdict: Verdict, *, is_exact: bool = True, forget: bool = False) -> list[str]:
        ledger = None if forget else self.ledger
        return [*self.log.settle(verdict, self.table, ledger, is_exact=is_exact)]

    def fill(self) -> Lines:
        """Five lines: those at 1, 3 and 4 are a VIOLATION of the submission."""
        other = replace(self.passed, submission=OTHER)
        for verdict in (other, self.violated, other, self.violated, self.violated):
            assert self.add(verdict) == []
        return self.lines()

    def lines(self) -> Lines:
        return json_lines.lines(self.log.path)

    def write(self, lines: Lines) -> None:
        self.log.path.write_bytes(b"".join(line + b"\n" for line in lines))

    def told(self, *, alone: bool = False) -> list[str]:
        remembered = () if alone else self.ledger.audited(self.table)
        return [*self.log.read(self.passed.submission, remembered).warnings()]

    def problems(self, *, alone: bool = False) -> list[str]:
        remembered = () if alone else self.ledger.audited(self.table)
        found = self.log.read(self.passed.submission, remembered)
        return found.problems(self.passed.root)


@pytest.fixture
def kept(tmp_path: Path, case: releases.Job) -> Kept:
    return Kept(AuditLog(tmp_path / "audit.jsonl"), Ledger(tmp_path / "ledger.jsonl"), case)


def digest(line: bytes) -> str:
    return sha256(line).hexdigest()


def changed(line: bytes, /, **fields: object) -> bytes:
    return json.dumps(json.loads(line) | fields).encode()


def passing(line: bytes) -> bytes:
    """The line as an exact pass of the same root."""
    return changed(line, outcome="VERIFIED", exact=True, fired=[])


def without_digest(line: bytes) -> bytes:
    return json.dumps({k: v for k, v in json.loads(line).items() if k != "previous"}).encode()


def chained(lines: Lines) -> Lines:
    """The lines with digests that fit."""
    found: Lines = []
    for line in lines:
        found.append(changed(line, previous=digest(found[-1]) if found else NO_LINE))
    return found


def innocent(lines: Lines) -> Lines:
    return [passing(line) for line in lines]


IN_THE_MIDDLE: dict[str, Callable[[Lines], Lines]] = {
    "first removed": lambda lines: lines[1:],
    "removed": lambda lines: [lines[0], *lines[2:]],
    "two removed": lambda lines: [lines[0], *lines[3:]],
    "changed": lambda lines: [lines[0], passing(lines[1]), *lines[2:]],
    "of another submission": lambda lines: [
        lines[0],
        changed(lines[1], submission=OTHER.hex()),
        *lines[2:],
    ],
    "only spaces changed": lambda lines: [lines[0], lines[1].replace(b": ", b":"), *lines[2:]],
    "moved": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "moved to the end": lambda lines: [lines[0], *lines[2:], lines[1]],
    "twice": lambda lines: [*lines[:2], lines[1], *lines[2:]],
    "cut short": lambda lines: [lines[0], lines[1][:50], *lines[2:]],
    "void": lambda lines: [lines[0], lines[1] + json_lines.VOID, *lines[2:]],
    "empty": lambda lines: [lines[0], b"", *lines[2:]],
    "garbage": lambda lines: [lines[0], b"garbage", *lines[2:]],
    "without its digest": lambda lines: [lines[0], without_digest(lines[1]), *lines[2:]],
    "the first without its digest": lambda lines: [without_digest(lines[0]), *lines[1:]],
    "another digest": lambda lines: [lines[0], changed(lines[1], previous=NO_LINE), *lines[2:]],
    "a digest that is none": lambda lines: [lines[0], changed(lines[1], previous=7), *lines[2:]],
    "an older line in between": lambda lines: [*lines[:2], without_digest(lines[0]), *lines[2:]],
    "an older line at the end": lambda lines: [*lines, without_digest(lines[0])],
    "garbage at the end": lambda lines: [*lines, b"garbage"],
    "backwards": lambda lines: lines[::-1],
}
AT_THE_END: dict[str, Callable[[Lines], Lines]] = {
    "last removed": lambda lines: lines[:-1],
    "last changed": lambda lines: [*lines[:-1], passing(lines[-1])],
    "last void": lambda lines: [*lines[:-1], lines[-1] + json_lines.VOID],
    "an older copy": lambda lines: lines[:2],
    "nothing left": lambda lines: [],
    "all digests gone": lambda lines: [without_digest(line) for line in lines],
    "digests that fit": lambda lines: chained(innocent(lines)),
    "a removed line, digests that fit": lambda lines: chained([lines[0], *lines[2:]]),
    "another log": lambda lines: chained([lines[0], lines[2]]),
}
MUTATIONS = IN_THE_MIDDLE | AT_THE_END


@pytest.mark.parametrize("how", MUTATIONS)
def test_a_lost_line_is_told_and_only_an_exact_pass_answers_it(kept: Kept, how: str) -> None:
    before = kept.fill()
    assert kept.told() == []
    kept.write(MUTATIONS[how](before))
    told = kept.told()
    assert told
    assert any("among them" in problem for problem in kept.problems())
    # Neither a weaker pass nor the pass of another delivery takes it back.
    for verdict, is_exact in ((kept.thin, False), (replace(kept.passed, root=OTHER), True)):
        # Where a VIOLATION is left, it refuses the weaker pass.
        with suppress(NotAcceptedError):
            assert kept.add(verdict, is_exact=is_exact) == told
        assert any("among them" in problem for problem in kept.problems())
    assert kept.add(kept.passed)
    assert kept.problems() == []
    # It is told of as long as the log is there, and nothing that was written since is.
    assert kept.told()
    kept.write(kept.lines()[:-1])
    assert kept.problems()


@pytest.mark.parametrize("how", MUTATIONS)
def test_without_a_ledger_only_the_end_can_be_lost_unseen(kept: Kept, how: str) -> None:
    kept.write(MUTATIONS[how](kept.fill()))
    assert bool(kept.told(alone=True)) == (how in IN_THE_MIDDLE)
    assert any("among them" in p for p in kept.problems(alone=True)) == (how in IN_THE_MIDDLE)


def test_a_log_that_is_gone(kept: Kept) -> None:
    kept.fill()
    kept.log.path.unlink()
    (told,) = kept.told()
    assert "lacks 3 lines that the ledger remembers for this submission" in told
    assert kept.add(kept.thin, is_exact=False) == [told]
    assert kept.problems()
    assert kept.told(alone=True) == []


@pytest.mark.parametrize("size", [1, 30, -2])
def test_a_last_line_that_was_cut_off_is_told_if_the_ledger_has_it(kept: Kept, size: int) -> None:
    before = kept.fill()
    kept.log.path.write_bytes(b"\n".join([*before[:-1], before[-1][:size]]))
    assert kept.told()
    assert any("among them" in problem for problem in kept.problems())


@pytest.mark.parametrize("size", [1, 30, -2])
def test_a_line_that_never_was_whole_accuses_nobody(kept: Kept, size: int) -> None:
    before = kept.fill()
    kept.log.path.write_bytes(b"\n".join([*before, before[-1][:size]]))
    assert kept.told() == []
    assert kept.add(kept.passed) == []
    assert kept.log.path.read_bytes().count(json_lines.VOID) == 1
    assert (kept.told(), kept.problems()) == ([], [])
    assert len(kept.lines()) == 6
    # A line without its end is whole.
    kept.log.path.write_bytes(kept.log.path.read_bytes()[:-1])
    assert kept.add(kept.passed) == []
    assert kept.told() == []


def test_an_end_between_the_log_and_the_ledger_accuses_nobody(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.fill()

    def end(*_: object, **__: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record", end)
        with pytest.raises(SystemExit):
            kept.add(kept.violated)
    assert len(kept.lines()) == 6
    assert kept.told() == []
    assert kept.add(kept.passed) == []
    assert (kept.told(), kept.problems()) == ([], [])


def test_lines_that_no_ledger_saw_are_no_loss(kept: Kept) -> None:
    """The log may be used on another machine, and come back."""
    kept.fill()
    for _ in range(2):
        kept.add(kept.violated, forget=True)
    assert kept.add(kept.passed) == []
    assert (kept.told(), kept.problems()) == ([], [])
    # What was written there is bound by what was written since.
    kept.write([*kept.lines()[:5], *kept.lines()[6:]])
    assert len(kept.told()) == 2


def test_old_logs_are_taken_as_they_are(kept: Kept) -> None:
    old = [without_digest(line) for line in kept.fill()]
    kept.ledger.path.unlink()
    kept.write(old)
    assert kept.told() == []
    assert kept.add(kept.passed) == []
    assert kept.told() == []
    assert json.loads(kept.lines()[-1])["previous"] == digest(old[-1])
    # The first line with a digest binds the last old one, the ledger the number of all of them.
    new = kept.lines()
    kept.write([*old[:-1], passing(old[-1]), new[-1]])
    assert kept.told(alone=True)
    kept.write(new[1:])
    assert kept.told(alone=True) == []
    assert kept.told()
    kept.write([without_digest(line) for line in new])
    assert kept.told(alone=True) == []
    assert kept.told()


def test_a_second_log_does_not_know_what_is_in_the_first(kept: Kept, tmp_path: Path) -> None:
    kept.fill()
    second = replace(kept, log=AuditLog(tmp_path / "second.jsonl"))
    (told,) = second.add(kept.thin, is_exact=False)
    assert "or stand in another log (--log)" in told
    assert second.problems()
    assert second.add(kept.passed)
    assert second.problems() == []
    # A copy is as good as the log, until one of them gets a line.
    copy = replace(kept, log=AuditLog(tmp_path / "copy.jsonl"))
    copy.log.path.write_bytes(second.log.path.read_bytes())
    assert copy.problems() == []
    second.add(kept.violated)
    assert copy.problems()


def test_jobs_share_a_log(kept: Kept) -> None:
    """What is lost of another submission is told there, and breaks the chain for all."""
    kept.fill()
    kept.add(replace(kept.passed, submission=OTHER))
    kept.write(kept.lines()[:-1])
    assert kept.told() == []
    assert kept.log.read(OTHER, kept.ledger.audited(kept.table)).warnings()


def test_verdicts_at_once(kept: Kept) -> None:
    other = replace(kept.passed, submission=OTHER)

    def judged(i: int) -> list[str]:
        return [*kept.add(other if i % 3 else kept.passed), *kept.told()]

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(judged, range(40))] == [[]] * 40
    assert len(kept.lines()) == 40
    assert kept.told() == []
    places = [entry.n_lines for entry in kept.ledger.audited(kept.table)]
    assert places == [*range(1, 41)]


def children(n: int, work: Callable[[], None]) -> Iterator[int]:
    """The exit codes of so many processes that do the same at once."""
    numbers = []
    for _ in range(n):
        if (child := os.fork()) == 0:
            try:
                work()
                os._exit(0)
            except BaseException:
                os._exit(1)
        numbers.append(child)
    for number in numbers:
        yield os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def test_processes_at_once(kept: Kept) -> None:
    def work() -> None:
        for _ in range(5):
            assert kept.add(kept.passed) == []
            assert kept.told() == []

    assert [*children(4, work)] == [0] * 4
    assert len(kept.lines()) == 20
    assert kept.told() == []


def test_a_ledger_that_fails_does_not_cost_the_verdict(kept: Kept, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    spoiled = replace(kept, ledger=Ledger(tmp_path / "file" / "ledger.jsonl"))
    (told,) = spoiled.add(kept.violated)
    assert "cannot be used" in told
    assert "does not remember the audit log's last line" in told
    assert len(kept.lines()) == 1


def test_a_damaged_ledger_is_told_of(kept: Kept) -> None:
    kept.fill()
    lines = kept.ledger.path.read_bytes().splitlines()
    for wrong in ({"lines": -1}, {"lines": "5"}, {"line": "5"}, {"line": None}):
        kept.ledger.path.write_bytes(b"\n".join([*lines[:-1], changed(lines[-1], **wrong), b""]))
        (told,) = kept.add(kept.passed)
        assert "1 line of the ledger" in told
    # One that names no line of any log is missing.
    kept.ledger.path.write_bytes(b"\n".join([*lines[:-1], changed(lines[-1], lines=0), b""]))
    assert kept.told()


def test_release_refuses_until_it_is_answered_or_forced(kept: Kept) -> None:
    case = kept.case

    def publish(*, force: bool = False) -> Released[pa.Table]:
        options = ReleaseOptions(force=force)
        given = (case.delivery, case.manifest, case.verdict)
        return release(
            *given,
            table=case.table,
            options=options,
            ledger=LookedAt(kept.ledger.path),
            log=kept.log,
        )

    kept.add(kept.passed)
    assert publish().warnings == publish(force=True).warnings
    before = publish().warnings
    kept.add(kept.violated)
    with pytest.raises(NotAcceptedError, match="found in VIOLATION"):
        publish()
    kept.write(kept.lines()[:-1])
    with pytest.raises(NotAcceptedError, match="a VIOLATION may be among them"):
        publish()
    forced = publish(force=True)
    (problem,) = forced.overridden
    assert "a VIOLATION may be among them" in problem
    kept.add(kept.passed)
    assert publish().overridden == ()
    assert {*publish().warnings} - {*before} == {*kept.told()} != set()


def test_a_ledger_needs_a_log_of_its_own(kept: Kept) -> None:
    given = (kept.case.delivery, kept.case.manifest)
    with pytest.raises(TableError, match="give log, too"):
        verify(*given, ledger=kept.ledger)
    with pytest.raises(TableError, match="is, or holds, the input"):
        verify(*given, log=kept.log, ledger=kept.log.path)
    with pytest.raises(TableError, match="ledger must be a Ledger"):
        verify(*given, log=kept.log, ledger=7)  # type: ignore[arg-type]

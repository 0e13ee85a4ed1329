"""The audit log: a line of JSON for every verdict, only ever appended to (spec §10).

A VIOLATION is final for its submission: a check that may miss, passed later by this delivery
or another, does not take it back.

So a line must not disappear unseen. Each line names the SHA-256 of the line before it, and the
ledger remembers the last line for each submission. A line that was removed or changed may have been
a VIOLATION, and only an exact pass that was written later answers that. The log gets its line
before the ledger does, so a process that ends between the two accuses no one.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from verix_anon.client.arguments import FilePath, opened
from verix_anon.client.ledger import Event, Ledger, LedgerEntry
from verix_anon.client.verdict import Outcome, Status, Verdict
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.fields import counted
from verix_anon.files import json_lines
from verix_anon.files.atomic_write import check_apart, check_writable
from verix_anon.files.store import path_text
from verix_anon.protocol.contract import Digest

NO_LINE = "0" * 64
"""What the first line of a log has in place of the digest of the line before."""


class LogLines:
    """The lines of an audit log, read for one submission, and what is missing of them."""

    def __init__(
        self, log: Path, of: Digest, lines: Sequence[bytes], remembered: Sequence[LedgerEntry]
    ) -> None:
        remembered = [entry for entry in remembered if entry.made == of]
        parsed = [json_lines.parse(line) for line in lines]
        self.log, self.submission = log, of
        self.entries = [None if fields is None else fields.values for fields in parsed]
        self.digests = [sha256(line).hexdigest() for line in lines]
        self.broken = [*self._broken()]
        """Which lines do not name the line before them."""
        self.missing = [entry for entry in remembered if not self._has(entry)]
        """What the ledger remembers, and the log does not have in its place."""
        after = len(lines)
        for entry in reversed(remembered):
            if not self._has(entry):
                break
            after = entry.n_lines - 1
        self.whole_from = max([*self.broken, after if self.missing else 0])
        """From this line on nothing is missing; it is the end if the last line may be."""

    def about(self, start: int = 0) -> list[Mapping[str, object]]:
        """Return the lines about the submission, oldest first; damaged lines are skipped."""
        found = (entry for entry in self.entries[start:] if entry is not None)
        return [entry for entry in found if entry.get("submission") == self.submission.hex()]

    def problems(self, root: Digest) -> list[str]:
        """Return what speaks against a release, if no exact pass of its root came later."""
        found, standing = [], None
        for entry in self.about():
            if entry.get("outcome") == Outcome.VIOLATION:
                standing = str(entry.get("time"))
            elif _is_exact_pass(entry, root):
                standing = None
        if standing is not None:
            found.append(
                f"a delivery for this submission was found in VIOLATION ({standing}), which stands"
                " above an older or weaker pass; verify this one with the submission and audit all"
            )
        if not any(_is_exact_pass(entry, root) for entry in self.about(self.whole_from)):
            how = "a VIOLATION may be among them; verify with the submission and audit all"
            found += [f"{loss}; {how}" for loss in self.losses()]
        return found

    def warnings(self) -> tuple[str, ...]:
        """Return what the log cannot vouch for: such a line may have been of this submission."""
        n_damaged = self.entries.count(None)
        found = f"{counted(n_damaged, 'line')} of the audit log {self.log} cannot be read"
        return (*[found] * bool(n_damaged), *self.losses())

    def losses(self) -> Iterator[str]:
        """Say which lines were removed or changed."""
        if self.broken:
            yield (
                f"lines of the audit log {self.log} before line {self.broken[-1] + 1:,} were"
                " removed, changed or moved"
            )
        if self.missing:
            yield (
                f"the audit log {self.log} lacks {counted(len(self.missing), 'line')} that the"
                f" ledger remembers for this submission, the last of {self.missing[-1].time}. Lines"
                " were removed, changed or moved, or stand in another log (--log)"
            )

    def _broken(self) -> Iterator[int]:
        # Lines of earlier versions name none. After the first line that does, all must.
        is_chained = False
        for i, entry in enumerate(self.entries):
            named = None if entry is None else entry.get("previous")
            is_chained = is_chained or named is not None
            if is_chained and named != (self.digests[i - 1] if i else NO_LINE):
                yield i

    def _has(self, entry: LedgerEntry) -> bool:
        there = self.digests[entry.n_lines - 1 : entry.n_lines]
        return entry.line is not None and there == [entry.line.hex()]


@dataclass(frozen=True, slots=True, init=False)
class AuditLog:
    """The audit log at a path; the file is made when first written to.

    Examples:
        >>> log = verix_anon.AuditLog("job/audit.jsonl")
        >>> verdict = verix_anon.verify("job/delivery", "job/manifest.verix", log=log)
    """

    path: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", Path(path_text(path)))

    def check(self) -> None:
        """Raise if lines cannot be appended, or not to an audit log."""
        try:
            with self.path.open("r+b") as file:
                beginning = file.read(1)
        except FileNotFoundError:
            check_writable(self.path, overwrite=False)
            return
        except OSError as error:
            raise self._unusable("read", error) from None
        if beginning not in (b"", b"{"):
            raise TableError(f"{self.path} is not an audit log, so nothing is appended to it")

    def read(self, submission: Digest, remembered: Sequence[LedgerEntry] = ()) -> LogLines:
        """Return the lines, compared with what the ledger remembered before."""
        try:
            return LogLines(self.path, submission, json_lines.lines(self.path), remembered)
        except OSError as error:
            raise self._unusable("read", error) from None

    def note_mix_up(self, submission: Digest, told: str) -> None:
        """Append a line about a delivery that names another submission; it is not a verdict."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = {"time": now, "mix_up": told, "submission": submission.hex()}
        try:
            with json_lines.locked(self.path) as held:
                held.append({**line, **_after(held.lines())})
        except OSError as error:
            raise self._unusable("written", error) from None

    def settle(
        self, verdict: Verdict, table: Digest, ledger: Ledger | None = None, *, is_exact: bool
    ) -> tuple[str, ...]:
        """Append a verdict, and return what the log and the ledger cannot vouch for.

        Raises NotAcceptedError if the verdict would take back what was found for its submission.
        """
        of, told, remembered = verdict.submission, tuple[str, ...](), tuple[LedgerEntry, ...]()
        try:
            # Under one lock: of two verdicts at once, one knows of the other.
            with json_lines.locked(self.path) as held:
                before = held.lines()
                line = held.append({**_line(verdict, is_exact=is_exact), **_after(before)})
                if ledger is not None:
                    more = {"line": sha256(line).hexdigest(), "lines": len(before) + 1}
                    try:
                        told = ledger.warnings()
                        remembered = ledger.record(Event.AUDIT, table, of, **more)
                    except TableError as error:
                        # A ledger that fails must not cost the owner the verdict.
                        told = (f"{error}; it does not remember the audit log's last line",)
        except OSError as error:
            raise self._unusable("written", error) from None
        lines = LogLines(self.path, of, before, remembered)
        found = (e for e in lines.about() if e.get("outcome") == Outcome.VIOLATION)
        earlier = None if is_exact else next((str(e.get("time")) for e in found), None)
        if verdict and earlier is not None:
            raise NotAcceptedError(
                f"a delivery for this submission was found in VIOLATION before ({earlier}), which"
                " is final: a provider could otherwise try until a sample misses; verify with the"
                " submission and audit all (--submission, --audit all)"
            )
        return (*lines.warnings(), *told)

    def _unusable(self, done: str, error: OSError) -> TableError:
        reason = error.strerror or error
        return TableError(f"the audit log {self.path} cannot be {done} ({reason})")


def open_log(
    given: AuditLog | FilePath, ledger: Ledger | FilePath | None, *, inputs: Iterable[object]
) -> tuple[AuditLog, Ledger | None]:
    """The log, or the one at a path, if lines can be appended to it and it is not an input."""
    log = opened(given, AuditLog, AuditLog, "log")
    ledger = None if ledger is None else opened(ledger, Ledger, Ledger, "ledger")
    check_apart(log.path, [*inputs, *([] if ledger is None else [ledger.path])])
    log.check()
    return log, ledger


def _is_exact_pass(entry: Mapping[str, object], root: Digest) -> bool:
    is_pass = entry.get("outcome") == Outcome.VERIFIED and entry.get("exact") is True
    return is_pass and entry.get("root") == root.hex()


def _after(before: Sequence[bytes]) -> dict[str, str]:
    """The field by which a line names the line before it."""
    return {"previous": sha256(before[-1]).hexdigest() if before else NO_LINE}


def _line(verdict: Verdict, *, is_exact: bool) -> dict[str, object]:
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "outcome": verdict.outcome.value,
        "profile": verdict.profile.value,
        "exact": is_exact,
        "root": verdict.root.hex(),
        "contract": verdict.contract.hex(),
        "submission": verdict.submission.hex(),
        "files": dict(verdict.files),
        "fired": [f.layer for f in verdict.findings if f.status is Status.FAIL],
        "layers": {f.layer: f.status.value for f in verdict.findings},
        "unsafe_seed": verdict.unsafe_seed,
        "version": verdict.version,
        "seconds": verdict.seconds,
    }

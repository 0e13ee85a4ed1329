"""The audit log: a line of JSON for every verdict, only ever appended to (spec §10).

A VIOLATION is final for its submission: a check that may miss, passed later by this delivery
or another, does not take it back.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from verix_anon.client.arguments import FilePath, opened
from verix_anon.client.verdict import Outcome, Status, Verdict
from verix_anon.errors import NotAcceptedError, TableError
from verix_anon.fields import Fields
from verix_anon.files import json_lines
from verix_anon.files.atomic_write import check_apart
from verix_anon.files.store import path_text
from verix_anon.protocol.contract import Digest


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
        """Raise if lines would be appended to something that is not an audit log."""
        try:
            with self.path.open("rb") as file:
                beginning = file.read(1)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable("read", error) from None
        if beginning not in (b"", b"{"):
            raise TableError(f"{self.path} is not an audit log, so nothing is appended to it")

    def standing_violation(self, submission: Digest, root: Digest) -> str | None:
        """When a VIOLATION was found that no exact pass of this root has answered since."""
        try:
            entries = _about(submission, json_lines.read(self.path))
        except OSError as error:
            raise self._unusable("read", error) from None
        found = None
        for entry in entries:
            is_exact_pass = entry.get("outcome") == Outcome.VERIFIED and entry.get("exact") is True
            if entry.get("outcome") == Outcome.VIOLATION:
                found = str(entry.get("time"))
            elif is_exact_pass and entry.get("root") == root.hex():
                found = None
        return found

    def warnings(self) -> tuple[str, ...]:
        """What the log cannot vouch for: a damaged line may have been of this submission."""
        try:
            n_damaged = sum(fields is None for fields in json_lines.read(self.path))
        except OSError as error:
            raise self._unusable("read", error) from None
        found = f"{n_damaged:,} line(s) of the audit log {self.path} cannot be read"
        return (found,) if n_damaged else ()

    def append(self, verdict: Verdict, *, is_exact: bool) -> None:
        """Add a line: which layers fired, on what, when, and whether everything was looked at."""
        try:
            json_lines.append(self.path, _line(verdict, is_exact=is_exact))
        except OSError as error:
            raise self._unusable("written", error) from None

    def settle(self, verdict: Verdict, *, is_exact: bool) -> None:
        """Append a verdict; raise if it would take back what was found for its submission."""
        try:
            # Under one lock: of two verdicts at once, one knows of the other.
            with json_lines.locked(self.path) as held:
                found = _violation(_about(verdict.submission, held.read()))
                held.append(_line(verdict, is_exact=is_exact))
        except OSError as error:
            raise self._unusable("written", error) from None
        earlier = None if is_exact else found
        if verdict and earlier is not None:
            raise NotAcceptedError(
                f"a delivery for this submission was found in VIOLATION before ({earlier}), which"
                " is final: a provider must not play until a sample misses; verify with the"
                " submission and audit all (--submission, --audit all)"
            )

    def _unusable(self, done: str, error: OSError) -> TableError:
        reason = error.strerror or error
        return TableError(f"the audit log {self.path} cannot be {done} ({reason})")


def open_log(given: AuditLog | FilePath, *, inputs: Iterable[object]) -> AuditLog:
    """The log, or the one at a path, if lines can be appended to it and it is not an input."""
    log = opened(given, AuditLog, AuditLog, "log")
    check_apart(log.path, inputs)
    log.check()
    return log


def _about(submission: Digest, entries: Sequence[Fields | None]) -> list[Mapping[str, object]]:
    """The lines about a submission, oldest first; one that is damaged says nothing."""
    found = (fields.values for fields in entries if fields is not None)
    return [entry for entry in found if entry.get("submission") == submission.hex()]


def _violation(entries: Sequence[Mapping[str, object]]) -> str | None:
    found = (entry for entry in entries if entry.get("outcome") == Outcome.VIOLATION)
    return next((str(entry.get("time")) for entry in found), None)


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

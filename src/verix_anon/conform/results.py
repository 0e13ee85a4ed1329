"""The results of a trial: the checks of each case, and a report for people and for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from verix_anon import __version__
from verix_anon.conform.kit import Kit, KitCase

FORMAT = "verix/conformance/1"
MOST_NAMED = 5
"""Cases that failed, in a sentence"""


@dataclass(frozen=True, slots=True)
class Check:
    """One question about what a program did with a case."""

    name: str
    passed: bool
    detail: str
    """What was found; for a failure, what differs, and the first place"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one case."""

    case: KitCase
    checks: tuple[Check, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether there were questions, and all answers are what the specification demands."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The questions with a wrong answer."""
        return tuple(check for check in self.checks if not check.passed)

    def line(self) -> str:
        """The case in one line."""
        status = "pass" if self.passed else "fail"
        return f"{status}  {self.case.id:<28} §{self.case.section:<4} {self.seconds:.2f} s"

    def reasons(self) -> Iterator[str]:
        """A line for each question with a wrong answer."""
        return (f"      {check.name}: {check.detail}" for check in self.failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of all cases that were run."""

    side: str
    """`provider`, `verifier` or `checker`"""
    subject: str
    """What was tried: a command, or a service's address"""
    kit: Kit
    results: Sequence[Result]
    time: str

    @property
    def failed(self) -> list[Result]:
        """The cases that did not pass."""
        return [result for result in self.results if not result.passed]

    @property
    def passed(self) -> bool:
        """Whether some cases were run, and all passed."""
        return bool(self.results) and not self.failed

    def summary(self) -> str:
        """All in one sentence."""
        n, failed = len(self.results), len(self.failed)
        kit = f"Kit {self.kit.version}, {self.kit.size.value}, SHA-256 {self.kit.digest}."
        if failed:
            names = ", ".join(result.case.id for result in self.failed[:MOST_NAMED])
            more = "" if failed <= MOST_NAMED else " and others"
            return f"{failed} of {n} cases failed: {names}{more}. {kit}"
        return f"{'1 case' if n == 1 else f'All {n} cases'} passed. {kit}"

    def to_json(self) -> dict[str, object]:
        """The report as an object of JSON."""
        return {
            "format": FORMAT,
            "version": __version__,
            "time": self.time,
            "side": self.side,
            "subject": self.subject,
            "kit": {
                "version": self.kit.version,
                "size": self.kit.size.value,
                "digest": self.kit.digest,
            },
            "passed": self.passed,
            "cases": [
                {
                    "id": result.case.id,
                    "title": result.case.title,
                    "section": result.case.section,
                    "kind": result.case.kind.value,
                    "passed": result.passed,
                    "seconds": round(result.seconds, 3),
                    "checks": [asdict(check) for check in result.checks],
                }
                for result in self.results
            ],
        }

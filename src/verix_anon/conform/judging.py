"""A verifier is shown every delivery, and its exit code says what it made of it (spec §10)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from verix_anon.conform.kit import Case, Kit
from verix_anon.conform.results import Check, Result
from verix_anon.conform.running import Ended, filled, run
from verix_anon.conform.trying import Told, try_each
from verix_anon.errors import TableError

__all__ = ["Judge", "command_verifier", "try_verifier"]

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

Judge = Callable[[Mapping[str, object]], Ended]
"""A verifier: where the delivery, the manifest and the submission lie, and the profile."""


def command_verifier(command: Sequence[str], *, limit: float) -> Judge:
    """A command that judges a delivery and says by its exit code what it found."""
    named = [name for name in PLACES if any(f"{{{name}}}" in word for word in command)]
    if named and len(named) < len(PLACES):
        lacking = ", ".join(f"{{{name}}}" for name in PLACES if name not in named)
        raise TableError(f"the command lacks a place for {lacking}; it names all, or none")
    return lambda shown: run(filled(command, shown, APPENDED), limit=limit)


def try_verifier(
    kit: Kit,
    cases: Sequence[Case],
    judge: Judge,
    *,
    jobs: int = 1,
    told: Told = lambda result: None,
) -> list[Result]:
    """Show cases to a verifier, so many at a time."""
    return try_each(cases, partial(_tried, kit, judge), jobs=jobs, told=told)


def _tried(kit: Kit, judge: Judge, case: Case, folder: Path) -> Result:
    shown = {name: kit.copy(case, name, folder) for name in case.kind.needs}
    ended = judge({**shown, "profile": case.expected["profile"]})
    return Result(case=case, checks=(_check(case, ended),), seconds=ended.seconds)


def _check(case: Case, ended: Ended) -> Check:
    wanted = case.expected["exit"]
    passed = ended.code is not None and ended.code == wanted and not _has_crashed(ended)
    said = f": {ended.said}" if ended.said and not passed else ""
    return Check("exit code", passed, f"{_found(ended)}{_missed(case, passed)}{said}")


def _has_crashed(ended: Ended) -> bool:
    """Whether its exit code is that of a program that broke, and so no verdict."""
    return ended.crashed and ended.code != 0


def _found(ended: Ended) -> str:
    code = ended.code
    if code is None:
        return "no answer in time, so it was ended"
    if code < 0:
        return f"ended by signal {-code}"
    if _has_crashed(ended):
        return f"{code} after a crash"
    return f"{code}, {WORDS.get(code, 'which means nothing here')}"


def _missed(case: Case, passed: bool) -> str:
    """What should have been found, and the layers that see it."""
    if passed:
        return ""
    layers = case.expected.get("layers")
    seen = f", which {' or '.join(map(str, layers))} sees" if isinstance(layers, list) else ""
    return f" in place of {case.expected['exit']}{seen}"

"""Every case is shown, some at a time; a provider's answer is compared with what it must be."""

import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

from verix_anon.conform.compare import compared
from verix_anon.conform.kit import Case, Kind, Kit
from verix_anon.conform.providers import Answer, Asked, Outcome
from verix_anon.conform.results import Check, Result
from verix_anon.conform.running import end_all

__all__ = ["Told", "try_each", "try_provider"]

Told = Callable[[Result], object]
"""Gets each result, in the order of the cases."""
BETWEEN = 0.1
"""Seconds between looks whether all has stopped"""


def try_provider(
    kit: Kit,
    cases: Sequence[Case],
    ask: Asked,
    *,
    jobs: int = 1,
    told: Told = lambda result: None,
) -> list[Result]:
    """Show cases to a provider, so many at a time."""
    return try_each(cases, partial(_tried, kit, ask), jobs=jobs, told=told)


def try_each(
    cases: Sequence[Case], tried: Callable[[Case, Path], Result], *, jobs: int, told: Told
) -> list[Result]:
    """Try cases, so many at a time; each is given a folder of its own, which does not name it."""
    results, waiting = [], list[Future[Result]]()
    # What a stranger started may write there still.
    own = tempfile.TemporaryDirectory(prefix="verix-conform-", ignore_cleanup_errors=True)
    with own as place, ThreadPoolExecutor(jobs) as pool:
        try:
            for case in cases:
                # No number, either: what must be answered comes first.
                folder = Path(place) / secrets.token_hex(8)
                waiting.append(pool.submit(_in_folder, tried, case, folder))
            for each in waiting:
                results.append(each.result())
                told(results[-1])
        finally:
            _stop(waiting)
    return results


def _stop(waiting: Sequence[Future[Result]]) -> None:
    """After an interruption, or a mistake of the caller's: nothing goes on, and nothing begins."""
    begun = [each for each in waiting if not each.cancel()]
    # Some may be about to start a command, so it is not done with ending those that run now.
    while wait(begun, timeout=BETWEEN).not_done:
        end_all()


def _in_folder(tried: Callable[[Case, Path], Result], case: Case, folder: Path) -> Result:
    folder.mkdir()
    return tried(case, folder)


def _tried(kit: Kit, ask: Asked, case: Case, folder: Path) -> Result:
    delivery = folder / "delivery"
    began = time.monotonic()
    answer = ask(kit.copy(case, "submission", folder), delivery)
    seconds = time.monotonic() - began
    judge = _refusal if case.kind is Kind.REFUSED else _delivery
    return Result(case=case, checks=tuple(judge(kit, case, answer, delivery)), seconds=seconds)


def _refusal(kit: Kit, case: Case, answer: Answer, delivery: Path) -> list[Check]:
    return [Check("refusal", answer.outcome is Outcome.REFUSED, answer.said)]


def _delivery(kit: Kit, case: Case, answer: Answer, delivery: Path) -> list[Check]:
    is_there = answer.outcome is Outcome.DELIVERED
    first = Check("answer", is_there, answer.said)
    if not is_there:
        return [first]
    return [first, *compared(kit.path(case, "submission"), kit.path(case, "delivery"), delivery)]

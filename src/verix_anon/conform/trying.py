"""A provider is shown every case, and what it did is compared with what it must do."""

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from verix_anon.conform.compare import compared
from verix_anon.conform.kit import Case, Kind, Kit
from verix_anon.conform.providers import Answer, Asked, Outcome
from verix_anon.conform.results import Check, Result

__all__ = ["try_provider"]


def try_provider(
    kit: Kit,
    cases: Sequence[Case],
    ask: Asked,
    *,
    jobs: int = 1,
    told: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Show cases to a provider, so many at a time; `told` gets each result in order."""
    results = []
    with tempfile.TemporaryDirectory(prefix="verix-conform-") as place:
        folder = Path(place)
        with ThreadPoolExecutor(jobs) as pool:
            waiting = [pool.submit(_tried, kit, case, ask, folder) for case in cases]
            try:
                for each in waiting:
                    results.append(each.result())
                    told(results[-1])
            finally:
                # After a mistake of the caller's, nothing more is begun.
                for each in waiting:
                    each.cancel()
    return results


def _tried(kit: Kit, case: Case, ask: Asked, folder: Path) -> Result:
    delivery = folder / case.id / "delivery"
    delivery.parent.mkdir()
    began = time.monotonic()
    answer = ask(kit.path(case, "submission"), delivery)
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

"""Providers of any make: a command that is given two folders, or a service behind HTTP."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from verix_anon.conform.running import Ended, filled, run
from verix_anon.errors import TableError

__all__ = ["Answer", "Asked", "Outcome", "command_provider"]

LAST_REFUSAL, INTERNAL = 125, 70
"""Exit codes up to this refuse, but for that of an internal error (sysexits.h)."""


class Outcome(StrEnum):
    """What a provider did with a submission."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    BROKEN = "broken"
    """Neither: it crashed, took too long, or did half of each."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a provider did, and its words."""

    outcome: Outcome
    said: str


Asked = Callable[[Path, Path], Answer]
"""A provider: the folder of a submission, and where the delivery goes."""


def command_provider(command: Sequence[str], *, limit: float) -> Asked:
    """A command that takes a submission's folder and writes a delivery's."""
    places = [name for name in ("submission", "delivery") if _names(command, name)]
    if len(places) == 1:
        raise TableError(
            f"the command has a place for {{{places[0]}}} alone; it needs {{submission}} and"
            " {delivery}, or neither, and then both are appended"
        )

    def ask(submission: Path, delivery: Path) -> Answer:
        where = {"submission": submission, "delivery": delivery}
        words = filled(command, where, ["{submission}", "{delivery}"])
        return _answer(run(words, limit=limit), has_delivery=os.path.lexists(delivery), limit=limit)

    return ask


def _names(command: Sequence[str], place: str) -> bool:
    return any(f"{{{place}}}" in word for word in command)


def _answer(ended: Ended, *, has_delivery: bool, limit: float) -> Answer:
    said = f": {ended.said}" if ended.said else ""
    if ended.code is None:
        return Answer(Outcome.BROKEN, f"no answer in {limit:g} s, so it was ended{said}")
    if ended.code == 0:
        if has_delivery:
            return Answer(Outcome.DELIVERED, "delivered")
        return Answer(Outcome.BROKEN, f"exit code 0, and no delivery{said}")
    if ended.code < 0:
        return Answer(Outcome.BROKEN, f"ended by signal {-ended.code}{said}")
    if ended.code == INTERNAL or ended.code > LAST_REFUSAL or ended.crashed:
        crash = " after a crash" if ended.crashed else ""
        return Answer(Outcome.BROKEN, f"exit code {ended.code}{crash}, which is no refusal{said}")
    if has_delivery:
        return Answer(
            Outcome.BROKEN, f"exit code {ended.code}, and something lies at the delivery's place"
        )
    return Answer(Outcome.REFUSED, f"refused with exit code {ended.code}{said}")

"""Every case of a kit, as it is made."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeVar

from verix_anon.conform import Size, folders, independent, large
from verix_anon.conform.answered import ANSWERED, LARGE, Answered
from verix_anon.conform.contracts import CONTRACTS
from verix_anon.conform.damaged import DAMAGED
from verix_anon.conform.kit import Case, Kind, Made, Recipe
from verix_anon.errors import TableError

__all__ = ["chosen", "for_providers", "for_verifiers"]

MANY = 100_000
"""Records from which on the plain implementation would take minutes."""

Named = TypeVar("Named", Recipe, Case)


def for_providers(size: Size = Size.SMALL) -> list[Recipe]:
    """What a provider is shown: what it must answer, and, in small, what it must refuse."""
    answered = [
        _recipe(Kind.ANSWERED, name, case, partial(_answered, name, case))
        for name, case in (ANSWERED if size is Size.SMALL else LARGE).items()
    ]
    refused = [
        _recipe(Kind.REFUSED, name, case, partial(_refused, name, case))
        for name, case in (CONTRACTS | DAMAGED).items()
    ]
    return answered + refused if size is Size.SMALL else answered


def _recipe(
    kind: Kind, name: str, case: Answered | folders.Refused, make: Callable[[Path], Made]
) -> Recipe:
    return Recipe(id=name, title=case.title, section=case.section, kind=kind, make=make)


def for_verifiers() -> list[Recipe]:
    """What a verifier is shown: deliveries that it must tell apart."""
    # Imported where it is used: who asks a provider needs neither models nor adversaries.
    from verix_anon.conform import judged

    return judged.for_verifiers()


def _answered(name: str, case: Answered, kit: Path) -> Made:
    sent = case.make()
    by = large.grow if len(sent.trackers) > MANY else None
    result = independent.anonymize(sent.contract, sent.trackers, sent.columns, by)
    paths = {"submission": f"submissions/{name}", "delivery": f"deliveries/{name}"}
    honest = folders.draft(sent, folders.job_of(folders.described(sent), sent))
    written = replace(honest, write=case.write, header_bytes=case.header_bytes)
    folders.write_submission(written, kit / paths["submission"])
    folders.write_delivery(sent, result, kit / paths["delivery"])
    grown = "verix_anon.conform.large" if by else "verix_anon.conform.independent"
    return Made(paths, {"root": result.root, "grown_by": grown})


def _refused(name: str, case: folders.Refused, kit: Path) -> Made:
    paths = {"submission": f"refused/{name}"}
    folders.write_submission(case.make(), kit / paths["submission"])
    return Made(paths, {})


def chosen(cases: Sequence[Named], only: Sequence[str]) -> list[Named]:
    """Those whose id is one of these, or fits one as a pattern; all of them without any."""
    for pattern in only:
        if not any(fnmatchcase(case.id, pattern) for case in cases):
            raise TableError(f"--only {pattern!r} fits no case of the kit")
    return [c for c in cases if not only or any(fnmatchcase(c.id, p) for p in only)]

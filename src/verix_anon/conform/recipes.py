"""Every case of a kit, as it is made."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from verix_anon.conform import folders, independent
from verix_anon.conform.answered import ANSWERED, Answered
from verix_anon.conform.kit import Kind, Made, Recipe
from verix_anon.errors import TableError

__all__ = ["chosen", "for_providers"]


def for_providers() -> list[Recipe]:
    """What a provider is shown: what it must answer, and what it must refuse."""
    return [
        Recipe(
            id=name,
            title=case.title,
            section=case.section,
            kind=Kind.ANSWERED,
            make=partial(_answered, name, case),
        )
        for name, case in ANSWERED.items()
    ]


def _answered(name: str, case: Answered, kit: Path) -> Made:
    sent = case.make()
    result = independent.anonymize(sent.contract, sent.trackers, sent.columns)
    job = independent.read_records(
        independent.read_contract(sent.contract), sent.trackers, sent.columns
    )
    paths = {"submission": f"submissions/{name}", "delivery": f"deliveries/{name}"}
    folders.write_submission(folders.draft(sent, job), kit / paths["submission"])
    folders.write_delivery(sent, result, kit / paths["delivery"])
    return Made(paths, {"root": result.root})


def chosen(recipes: Sequence[Recipe], only: Sequence[str]) -> list[Recipe]:
    """Those whose id is one of these, or fits one as a pattern; all of them without any."""
    for pattern in only:
        if not any(fnmatchcase(recipe.id, pattern) for recipe in recipes):
            raise TableError(f"--only {pattern!r} fits no case of the kit")
    return [r for r in recipes if not only or any(fnmatchcase(r.id, p) for p in only)]

"""Providers as the kit asks one, without a process for each case."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

from verix_anon.conform.kit import CaseKind, Kit, KitCase
from verix_anon.conform.trials import Answer, Asked, ProviderOutcome
from verix_anon.errors import Error
from verix_anon.files.folder_writer import write_delivery
from verix_anon.files.submissions import read_submission
from verix_anon.protocol.providers import Provider


def asked(provider: Provider) -> Asked:
    def ask(submission: Path, delivery: Path) -> Answer:
        try:
            write_delivery(provider.anonymize(read_submission(submission)), delivery)
        except Error as error:
            return Answer(ProviderOutcome.REFUSED, str(error))
        return Answer(ProviderOutcome.DELIVERED, "delivered")

    return ask


def asked_example(module: ModuleType) -> Asked:
    """The provider of examples/, or one made from it; what it refuses leaves nothing."""

    def ask(submission: Path, delivery: Path) -> Answer:
        try:
            module.main(str(submission), str(delivery))
        except SystemExit as left:
            said = str(left)
            assert said.startswith("refused: ")
            assert [path.name for path in submission.parent.iterdir()] == ["submission"]
            return Answer(ProviderOutcome.REFUSED, said)
        return Answer(ProviderOutcome.DELIVERED, "delivered")

    return ask


def some_of_each_kind(kit: Kit) -> list[KitCase]:
    """Return four cases of each kind, from the whole length of the kit."""
    kinds = (CaseKind.ANSWERED, CaseKind.REFUSED)
    by_kind = [[case for case in kit.cases if case.kind is kind] for kind in kinds]
    return [case for cases in by_kind for case in cases[:: len(cases) // 4][:4]]


def of_side(kit: Kit, side: str) -> Kit:
    """The kit with the cases of one side alone; its files are all there."""
    return replace(kit, cases=tuple(case for case in kit.cases if case.kind.side == side))

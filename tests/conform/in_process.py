"""Providers as the kit asks one, without a process for each case."""

from pathlib import Path
from types import ModuleType

from verix_anon.conform.providers import Answer, Asked, Outcome
from verix_anon.errors import Error
from verix_anon.files.deliveries import write_delivery
from verix_anon.files.submissions import read_submission
from verix_anon.protocol.messages import Provider


def asked(provider: Provider) -> Asked:
    def ask(submission: Path, delivery: Path) -> Answer:
        try:
            write_delivery(provider.anonymize(read_submission(submission)), delivery)
        except Error as error:
            return Answer(Outcome.REFUSED, str(error))
        return Answer(Outcome.DELIVERED, "delivered")

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
            return Answer(Outcome.REFUSED, said)
        return Answer(Outcome.DELIVERED, "delivered")

    return ask

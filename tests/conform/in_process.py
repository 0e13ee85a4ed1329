"""Providers of this package as the kit asks one, without a process for each case."""

from pathlib import Path

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

"""An engine on a cluster: the same tree and root as the local one's, wherever the records lie.

`submission_reader` reads records and `delivery_writer` writes the delivery. `top` grows the top of
the tree level by level, from passes over all records; `subtrees` is what a task finishes, and the
tree made of it all. None of these knows Spark. `session`, `tasks` and `driver` do.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from verix_anon import __version__
from verix_anon.errors import ProviderError
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.folder_writer import without_scheme, write_submission
from verix_anon.files.store import is_url
from verix_anon.files.submissions import open_submission
from verix_anon.progress import Progress, ignore
from verix_anon.protocol import merkle
from verix_anon.protocol.messages import Delivery, Header, Submission
from verix_anon.provider.spark.delivery_writer import check_place, written_delivery
from verix_anon.provider.spark.driver import SparkJob
from verix_anon.provider.spark.session import limits_of, session
from verix_anon.provider.spark.top import Top, grow_top

__all__ = ["SparkProvider"]

FOLDER = str | os.PathLike[str]
CALLING = "An error occurred while calling"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkProvider:
    """The honest engine on Spark: on the session in use, or on one that is configured so.

    Nothing here changes a delivery's root.

    Examples:
        >>> provider = verix_anon.SparkProvider(configuration={"spark.master": "local[2]"})
        >>> provider.anonymize("job/submission")  # doctest: +SKIP
    """

    configuration: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings, such as spark.master"""
    task_rows: int | None = None
    """How many records a task finishes at most; by the executors' memory, if not given"""
    progress: Progress = ignore

    def anonymize(self, submission: Submission | FOLDER) -> Delivery:
        """Anonymize a submission, or the one in a folder, and hold the delivery in memory.

        For a master on one machine: its files lie in a folder that no other machine sees.
        """
        with (
            session(self.configuration) as spark,
            tempfile.TemporaryDirectory(prefix="verix-spark-") as folder,
        ):
            if not spark.sparkContext.master.startswith("local"):
                raise ProviderError(
                    "executors on other machines do not see what is held here: give"
                    " anonymize_folder folders or URLs that all of them see"
                )
            if isinstance(submission, Submission):
                write_submission(submission, Path(folder) / "submission")
                submission = Path(folder) / "submission"
            made, stated = Path(folder) / "delivery", open_submission(submission)
            self.anonymize_folder(submission, made)
            return read_delivery(made, stated.contract, n_rows=stated.n_rows).delivery

    def anonymize_folder(
        self,
        submission: FOLDER,
        out: FOLDER,
        *,
        overwrite: bool = False,
        finish: Callable[[Path], object] | None = None,
    ) -> Header:
        """Anonymize the submission in a folder or behind a URL; the delivery appears likewise.

        Both must be where every executor finds them under the same name. `finish` is called with
        the folder before it takes its name, such as to put a receipt there.
        """
        submission, out = without_scheme(submission), without_scheme(out)
        check_place(out, submission, overwrite=overwrite)
        if finish is not None and is_url(out):
            raise ProviderError(f"a receipt needs the files of a local folder, and {out} is a URL")
        if not is_url(submission):
            # Executors are in other folders.
            submission = Path(submission).absolute()
        stated = open_submission(submission)
        contract = stated.contract
        with (
            session(self.configuration) as spark,
            _told(),
            written_delivery(out, contract, overwrite=overwrite) as delivery,
        ):
            began = time.perf_counter()
            job = SparkJob(spark, stated)
            self.progress("check", 0, 1)
            digest = job.check(delivery.place)
            self.progress("check", 1, 1)
            limits = limits_of(spark, len(contract.quasi), self.task_rows)
            top = Top(contract, stated.n_rows, limits)
            for level, n_left in enumerate(grow_top(top, job.run)):
                self.progress("split", level, level + n_left)
            self.progress("grow", 0, 1)
            joined = job.finish(top, delivery.place)
            self.progress("grow", 1, 1)
            self.progress("write", 0, 1)
            records = job.write_records(joined, delivery.place, delivery.prefix)
            delivery.write_tree(joined.pieces(job.subtrees(joined, delivery.place)))
            n_leaves = int(joined.first_leaves()[-1])
            header = Header(
                contract=contract.digest,
                submission=digest,
                root=merkle.root_over(contract, digest, joined.digest()),
                engine="verix-spark",
                version=__version__,
                rows=stated.n_rows,
                leaves=n_leaves,
                nodes=2 * n_leaves - 1,
                seconds=round(time.perf_counter() - began, 3),
            )
            delivery.complete(header, records)
            if finish is not None:
                finish(delivery.folder)
            self.progress("write", 1, 1)
        return header


@contextmanager
def _told() -> Iterator[None]:
    """What Spark says of its failures, in a sentence.

    None is the submission's fault: what is wrong with that, tasks return.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise ProviderError(f"Spark has failed: {_reason(str(error))[:300]}") from error


def _reason(said: str) -> str:
    """Say why a task failed: the last line of its Python traceback, or the first of Java's."""
    _, is_python, traceback = said.rpartition("Traceback (most recent call last):\n")
    lines = [line for line in traceback.splitlines() if line.strip()]
    if is_python:
        last = next((line for line in lines if not line.startswith(" ")), "?")
        kind, _, sentence = last.partition(": ")
        return sentence if kind.startswith("verix_anon.") else last
    # Java's name for the call stands before what happened.
    return next((line.lstrip(": ") for line in lines if not line.startswith(CALLING)), "?")

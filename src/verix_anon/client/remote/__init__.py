"""A provider at the other end of a wire: the owner's side of `verix-anon serve`.

`connection` alone speaks HTTP; `answers` reads what comes back as a stranger's word; `upload` and
`download` go on where they were cut off; `submitting` puts them in order.
"""

import os
import tempfile
from pathlib import Path

from verix_anon.client.given import options_of
from verix_anon.client.remote.connection import Connection
from verix_anon.client.remote.options import RemoteOptions
from verix_anon.client.remote.submitting import Submitted, submit_folder
from verix_anon.files.deliveries import read_delivery
from verix_anon.files.listing import list_submission
from verix_anon.files.submissions import write_submission
from verix_anon.protocol.messages import Delivery, Submission

__all__ = ["RemoteOptions", "RemoteProvider", "Submitted"]


class RemoteProvider:
    """A provider's service, by its URL and a token of it."""

    def __init__(self, url: str, token: str, *, options: RemoteOptions | None = None) -> None:
        self._options = options_of(options, RemoteOptions)
        self.url, self._token = url, token
        # What is wrong with them is said here, and not after the table was prepared.
        self._connect()

    def __repr__(self) -> str:
        return f"<RemoteProvider {self.url}>"

    def anonymize(self, submission: Submission | str | os.PathLike[str]) -> Delivery:
        """Have the submission, or the one in a folder, anonymized as its contract says.

        Raises:
            ProviderError: The service cannot be reached, or refuses.
            MalformedDeliveryError: What it delivered is no delivery.
        """
        with tempfile.TemporaryDirectory(prefix="verix-") as scratch:
            folder: str | os.PathLike[str] = Path(scratch) / "submission"
            if isinstance(submission, Submission):
                write_submission(submission, folder)
            else:
                folder = submission
            sent, out = list_submission(folder), Path(scratch) / "delivery"
            with self._connect() as connection:
                submit_folder(connection, sent, out)
            return read_delivery(out, sent.contract, n_rows=sent.n_rows).delivery

    def submit(
        self,
        submission: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        overwrite: bool = False,
    ) -> Submitted:
        """Have a submission's folder anonymized, no file of which is held in memory.

        The delivery appears at `out` complete or not at all. A run that was interrupted goes on
        with the same job when it is started again.
        """
        with self._connect() as connection:
            return submit_folder(connection, list_submission(submission), out, overwrite=overwrite)

    def _connect(self) -> Connection:
        return Connection(self.url, self._token, self._options)

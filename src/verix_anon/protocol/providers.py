"""The interface of a provider: in memory, on disk, and the names on the wire (spec §1, §8.5)."""

import ipaddress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from verix_anon.protocol.messages import Delivery, Header, Submission

if TYPE_CHECKING:
    from _typeshed import StrPath


@runtime_checkable
class Provider(Protocol):
    """Anything that anonymizes: the local engine, a cluster, a service, an adversary.

    Examples:
        >>> provider: verix_anon.Provider = verix_anon.LocalProvider()
        >>> delivery = provider.anonymize(verix_anon.read_submission("job/submission"))
    """

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize the submission as its contract says, or raise ProviderError."""
        ...


@runtime_checkable
class FolderProvider(Protocol):
    """A provider on disk: from a submission's folder to a delivery's folder.

    Examples:
        >>> provider: verix_anon.FolderProvider = verix_anon.LocalProvider()
        >>> header = provider.anonymize_folder("job/submission", "new/delivery")
    """

    def anonymize_folder(
        self, submission: "StrPath", out: "StrPath", *, overwrite: bool = False
    ) -> Header:
        """Anonymize the submission in a folder, or raise ProviderError.

        The delivery appears at `out`, complete or not at all.
        """
        ...


SERVICE_FORMAT: Final = "verix/service/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of a submission or a delivery, as one party announces it to the other."""

    name: str
    """Path in its folder, such as records.parquet/part-00000.parquet"""
    size: int
    sha256: str
    """Of its bytes, in hexadecimal"""


class JobState(StrEnum):
    """The states of a job. A deleted job has no state."""

    UPLOADING = "uploading"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine, for which plain HTTP is safe enough."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

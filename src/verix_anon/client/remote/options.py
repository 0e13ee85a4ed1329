"""How a remote provider is spoken to."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from verix_anon.client.given import check_fields
from verix_anon.errors import TableError
from verix_anon.files.trust import trust_in
from verix_anon.progress import Progress, ignore

__all__ = ["RemoteOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteOptions:
    """What the caller may choose about the way to a service."""

    provider_keys: Sequence[str | os.PathLike[str]] = ()
    """Files of the provider's keys, or of what was pinned; a service with none is refused"""
    keep: bool = False
    """Whether the job stays at the service after its delivery came"""
    insecure_http: bool = False
    """Whether a token may go unencrypted to another machine"""
    ca_file: str | os.PathLike[str] | None = None
    """Certificates of the authorities that are trusted, in place of the system's"""
    patience: float = 600.0
    """Seconds after which a service that does not answer is given up"""
    wait: float = math.inf
    """Seconds after which a job that is not done is given up; it stays there"""
    seed: int | None = None
    """Of the waits' jitter, for tests"""
    progress: Progress = ignore

    def __post_init__(self) -> None:
        check_fields(self)
        if not (self.patience >= 0 and self.wait >= 0):
            raise TableError("patience and wait must be numbers of seconds, 0 or more")

    def keyids(self) -> frozenset[str]:
        """The names of the provider's keys that count now."""
        found = trust_in(self.provider_keys).counting(datetime.now(UTC))
        if self.provider_keys and not found:
            raise TableError("none of the provider's keys counts: all are revoked or out of time")
        return frozenset(key.keyid for key in found)

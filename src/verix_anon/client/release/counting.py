"""A release counts: what the ledger has of the table, and the line of this release in it."""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256

from verix_anon import __version__
from verix_anon.client.ledger import Claim, Entry, Ledger
from verix_anon.client.manifest import Manifest
from verix_anon.client.release.accept import Followed
from verix_anon.files.aside import Aside
from verix_anon.protocol.contract import Digest

__all__ = ["Counted", "count"]


@dataclass(frozen=True, slots=True)
class Counted:
    """A release, and the earlier ones of its table; without a ledger nobody counts."""

    ledger: Ledger | None
    claim: Claim | None = None
    earlier: tuple[Entry, ...] = ()

    @property
    def n_earlier(self) -> int | None:
        """How often the table was released before; None if nobody knows."""
        return None if self.ledger is None else len(self.earlier)

    @property
    def problems(self) -> list[str]:
        """What speaks against releasing the table; nothing if it is the first time."""
        if self.ledger is None or not self.earlier:
            return []
        before = (
            f"this table was released before ({self.earlier[-1].time}, by the ledger"
            f" {self.ledger.path}); two releases of one table laid over each other single people"
            " out; if it has to be, release it once more with force (--force)"
        )
        return [before]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the ledger cannot vouch for."""
        return () if self.ledger is None else self.ledger.warnings()

    def name(self, *written: Aside | None) -> None:
        """Give files their names, in this order, after the line of the release."""
        counts: AbstractContextManager[None] = nullcontext()
        if self.ledger is not None and self.claim is not None:
            counts = self.ledger.releasing(self.claim, self.earlier)
        with counts:
            for aside in filter(None, written):
                aside.take_name()


def count(
    ledger: Ledger | None,
    delivery: Followed,
    manifest: Manifest,
    decides: Mapping[str, object],
) -> Counted:
    """Look a release up; `decides` is what else decides which rows it publishes."""
    if ledger is None:
        return Counted(None)
    told = {
        "version": __version__,
        "submission": manifest.submission.hex(),
        "files": sorted(delivery.digests.items()),
        **decides,
    }
    release = sha256(json.dumps(told, sort_keys=True, default=str).encode()).digest()
    claim = Claim(manifest.table, delivery.header.root, Digest(release))
    return Counted(ledger, claim, ledger.others(claim))

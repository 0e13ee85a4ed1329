"""Providers that deliver a root, or a part, that does not fit the rest."""

from dataclasses import dataclass, replace
from hashlib import sha256

from verix.protocol.contract import Digest
from verix.protocol.messages import Delivery, Provider, Submission

__all__ = ["ForgesRoot"]


@dataclass(frozen=True, slots=True)
class ForgesRoot:
    """Delivers what another provider made, under a root that fits nothing (paper: dumb).

    Saves: the hashing. Risks: one recomputation of the root.
    """

    inner: Provider

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize with the inner provider and replace the root."""
        delivery = self.inner.anonymize(submission)
        forged = Digest(sha256(b"forged" + delivery.header.root).digest())
        return replace(delivery, header=replace(delivery.header, root=forged))

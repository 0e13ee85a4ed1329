"""Providers that leave out work by leaving out records."""

from dataclasses import dataclass

import numpy as np

from verix.protocol.messages import Delivery, Submission
from verix.protocol.table import Records
from verix.provider import engine, local

__all__ = ["DropsRows"]


@dataclass(frozen=True, slots=True)
class DropsRows:
    """Drops a share of the records blindly, and is honest about the rest (paper: lazy).

    Saves: that share of the work. Risks: sentinels and twins are missed with near certainty,
    and any check that counts records sees it at once.
    """

    fraction: float = 0.05
    seed: int = 0

    def anonymize(self, submission: Submission) -> Delivery:
        """Anonymize what is left."""
        n_rows = submission.records.n_rows
        n_kept = n_rows - round(self.fraction * n_rows)
        rng = np.random.default_rng(self.seed)
        kept = np.sort(rng.choice(n_rows, n_kept, replace=False)).astype(np.int64)
        records = submission.records
        reduced = Submission(
            contract=submission.contract,
            records=Records(
                tracker=records.tracker[kept],
                values=np.ascontiguousarray(records.values[:, kept]),
                target=records.target[kept],
            ),
        )
        settings = engine.Settings.of()
        return engine.pack(submission, local.grow(reduced, settings), kept, settings)

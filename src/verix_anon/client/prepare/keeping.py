"""What the owner works out and keeps: watch records, witnesses, fingerprint (spec §7)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Floats, Ints
from verix_anon.client import models
from verix_anon.client.manifest import Manifest, Witness
from verix_anon.client.prepare.assemble import Assembled
from verix_anon.client.prepare.calibrate import honest_distances
from verix_anon.client.prepare.options import WATCH_RECORDS, PrepareOptions
from verix_anon.client.prepare.parts import Values
from verix_anon.client.prepare.sentinels import Planted, evasion_probability
from verix_anon.client.prepare.taking import Taken
from verix_anon.client.prepare.trackers import Secret
from verix_anon.client.table.roles import Declared, Missing
from verix_anon.client.table.task import Labels, Task
from verix_anon.protocol.messages import Submission

__all__ = ["Keeping", "Watch"]

DROPS = (0.01, 0.05, 0.2)


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """The watch records."""

    rows: Ints
    """In the owner's table"""
    values: Floats
    """As they are sent, (n_quasi, n_watch)"""
    labels: Labels

    @classmethod
    def of(cls, values: Sequence[Values], labels: Labels, secret: Secret) -> "Watch":
        """Drawn from the genuine records."""
        # In the order drawn, so that the first few of them are a random choice as well.
        drawn = secret.generator("watch").permutation(labels.values.size)[:WATCH_RECORDS].copy()
        own = np.array([column[drawn] for column in values], np.float64)
        return cls(drawn, own, labels.of(drawn))

    def fingerprint(self) -> tuple[list[int], Floats]:
        """The top features, and their SHAP values; none without a target."""
        if self.labels.task is Task.NONE:
            return [], np.empty((self.rows.size, self.labels.n_outputs, 0))
        shap = models.shap_values(self.values.T, self.labels)
        top = models.top_features(shap)
        return top, shap[:, :, top]


@dataclass(frozen=True, slots=True, eq=False)
class Keeping:
    """What is known when all is assembled."""

    submission: Submission
    assembled: Assembled
    taken: Taken
    watch: Watch
    secret: Secret
    options: PrepareOptions

    def manifest(
        self,
        fingerprint: tuple[list[int], Floats],
        declared: Declared,
        twins: Ints,
        planted: Planted,
    ) -> Manifest:
        """Everything the owner keeps, but how the file was read."""
        options, assembled, encoded = self.options, self.assembled, self.taken.encoded
        records, labels, watch = self.submission.records, encoded.labels, self.watch
        watch_row = assembled.genuine_row[watch.rows]
        paired, apart = self._calibrated(labels)
        pairs = np.column_stack([assembled.genuine_row[twins], assembled.twin_row])
        return Manifest(
            contract=self.submission.contract,
            submission=self.submission.digest(threads=options.threads),
            table=self.taken.table,
            salt=self.secret.salt,
            unsafe_seed=options.unsafe_seed is not None,
            roles={name: role.value for name, role in encoded.roles.items()},
            quasi=encoded.quasi,
            missing=Missing(declared.missing).value,
            imputed=encoded.imputed,
            planted=_described(planted, assembled),
            tracker_column=assembled.tracker_column,
            target_column=assembled.target_column,
            owner_row=assembled.owner_row,
            sentinel_row=assembled.sentinel_row,
            sentinel_tracker=records.tracker[assembled.sentinel_row],
            twin_row=pairs,
            twin_tracker=records.tracker[pairs],
            watch_row=watch_row,
            watch_values=watch.values,
            task=labels.task,
            classes=labels.classes,
            watch_target=watch.labels.values,
            witnesses=self._witnesses(watch_row),
            top_features=fingerprint[0],
            baseline=fingerprint[1],
            calibration=paired,
            paper_calibration=apart,
            diversity=declared.diversity,
            ordered=tuple(declared.orders),
            hierarchies=encoded.hierarchies,
            person=declared.person,
            parties=options.parties,
            provider_keys=options.pinned,
        )

    def _witnesses(self, watch_row: Ints) -> tuple[Witness, ...]:
        # Compiled code comes with it, which is loaded beside the work before.
        from verix_anon.client.prepare.witnesses import find_witnesses

        options = self.options
        options.progress("witnesses", 0, 1)
        some = watch_row[: options.witnesses]
        found = find_witnesses(self.submission, some, threads=options.threads)
        options.progress("witnesses", 1, 1)
        return found

    def _calibrated(self, labels: Labels) -> tuple[Floats, Floats]:
        return honest_distances(
            self.submission.records,
            self.assembled.genuine_row,
            labels,
            self.submission.contract,
            secret=self.secret,
            options=self.options,
        )


def _described(planted: Planted, assembled: Assembled) -> dict[str, object]:
    """What was planted and what it buys, for the manifest and for people."""
    n_sent, n_sentinels = assembled.records.n_rows, assembled.sentinel_row.size
    return {
        "sentinels": int(n_sentinels),
        "twins": int(assembled.twin_row.size),
        "boundary": planted.n_boundary,
        "band": None if planted.band is None else list(planted.band),
        "evasion_before": planted.evasion_before,
        "evasion_after": planted.evasion_after,
        "evasion_at_drop": {
            str(drop): evasion_probability(n_sentinels, n_sent, drop) for drop in DROPS
        },
    }

"""What a model is worth that is trained on a release: tested on raw records it has not seen."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from verix_anon.arrays import Floats, Ints
from verix_anon.client import models
from verix_anon.client.release.grouping import Grouped
from verix_anon.client.release.ranges import means
from verix_anon.client.table.task import Labels, Task
from verix_anon.client.verify.utility import measure

__all__ = ["Judge"]

SAMPLE_ROWS = 20_000
"""Of how many records models are made and tested: more would take longer than growing the tree."""
TEST_EVERY = 4


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Some records of the table, most to train on and the rest to test on."""

    values: Floats
    """(n_quasi, n_rows), of the whole table"""
    labels: Labels
    trained: Ints
    tested: Ints

    @classmethod
    def of(cls, values: Floats, labels: Labels) -> "Judge":
        """Records at random, the same ones each time."""
        some = np.random.default_rng(0).permutation(values.shape[1])[:SAMPLE_ROWS]
        is_test = np.arange(some.size) % TEST_EVERY == TEST_EVERY - 1
        return cls(values, labels, some[~is_test], some[is_test])

    @property
    def n_tested(self) -> int:
        """On how many records models are tested; 0 if there are none to make."""
        return self.tested.size if self._can_score else 0

    @property
    def _can_score(self) -> bool:
        if self.labels.task is Task.NONE:
            return False
        parts = (self.labels.values[rows] for rows in (self.trained, self.tested))
        return all(np.unique(part).size > 1 for part in parts)

    def raw(self) -> Mapping[str, float]:
        """What a model of the raw records reaches; nothing where none can be made."""
        return self._scored(self.values[:, self.trained].T)

    def score(self, classes: Grouped) -> Mapping[str, float]:
        """The same of the released ones: each value is the mean of its class."""
        class_of_row = np.empty(classes.order.size, np.int64)
        class_of_row[classes.order] = np.repeat(np.arange(classes.count.size), classes.count)
        own = class_of_row[self.trained]
        released = np.empty((own.size, self.values.shape[0]))
        for j, values in enumerate(self.values):
            laid = values[classes.order]
            missing = np.add.reduceat(np.isnan(laid).astype(np.int64), classes.start[:-1])
            of_class = means(laid, classes, missing)
            of_class[missing == classes.count] = np.nan
            released[:, j] = of_class[own]
        return self._scored(released)

    def _scored(self, rows: Floats) -> Mapping[str, float]:
        if not self._can_score:
            return {}
        unseen = self.values[:, self.tested].T
        said = models.predict(rows, self.labels.of(self.trained), unseen)
        return measure(self.labels.of(self.tested), said)

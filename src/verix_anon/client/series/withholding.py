"""Choose who has to wait, so that no one falls below l over all releases of a series (spec §15).

The deduction runs over all releases, including the new one. It finds people below l. Those of them
who were published before have to wait, and the others if this is not enough. The classes are made
again without them. This is repeated until no one is below l, which ends because people get fewer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from verix_anon.arrays import Flags, Ids, Ints
from verix_anon.client.series.deduction import SeenRecords
from verix_anon.errors import NotAcceptedError

AT_ONCE = 0.5
"""This share of the people below l waits before the deduction runs again, those with the fewest
values first. Without them, others may be safe."""
FEW = 20
"""At least this many wait at once, whatever their share is."""


@dataclass(frozen=True, slots=True, eq=False)
class Withholding:
    """Chooses the rows of a new release."""

    past: Sequence[SeenRecords]
    person: Ints
    """The person of each of the owner's rows, numbered as in the past."""
    values: Mapping[str, Ints]
    least: Mapping[str, int]
    """How many values must stay possible, by column."""
    excused: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """People whom the earlier releases already leave below l."""

    def is_returning(self) -> Flags:
        """Whether each row's person was published before."""
        before = [each.person for each in self.past]
        return np.isin(self.person, np.concatenate(before)) if before else self.person < 0

    def kept(self, rows: Ints, of_class: Ids | Ints) -> Flags:
        """Return which of these rows may be published in these classes; all if no one is below l.

        Raises:
            NotAcceptedError: People fall below l, and no one can be found who would have to wait.
        """
        is_returning = self.is_returning()[rows]
        new = self.seen(rows, of_class)
        seen = SeenRecords.of([*self.past, new])
        is_new = seen.release == len(self.past)
        if not (short := self._short(seen, is_quick=True)).any():
            short = self._short(seen)
        if not short.any():
            return np.ones(rows.size, np.bool_)
        waiting = short[is_new] * is_returning
        near = short > 0
        while not waiting.any():
            # Returning people expose them, in the same classes or in classes that share people.
            wider = np.isin(seen.person, seen.person[np.isin(seen.of_class, seen.of_class[near])])
            waiting = np.where(wider[is_new] & is_returning, 1, 0)
            if not waiting.any() and (wider == near).all():
                # A person with several records in a class can fall short in one release.
                waiting = short[is_new]
                if not waiting.any():
                    raise NotAcceptedError(
                        "people would fall below l over all releases, although none of them is"
                        " published again; ask for a smaller l in a new series"
                    )
            near = wider
        people = np.unique(new.person[waiting > 0])
        most = np.zeros(int(people.max()) + 1, np.int64)
        np.maximum.at(most, new.person[waiting > 0], waiting[waiting > 0])
        first = people[np.argsort(-most[people], kind="stable")]
        first = first[: max(FEW, int(AT_ONCE * first.size))]
        return ~np.isin(new.person, first)

    def _short(self, seen: SeenRecords, *, is_quick: bool = False) -> Ints:
        """How many values are missing for each record, in the column where most are."""
        short = np.zeros(seen.person.size, np.int64)
        for name, least in self.least.items():
            np.maximum(short, least - seen.left(name, is_quick=is_quick), out=short)
        short[np.isin(seen.person, self.excused)] = 0
        return short

    def seen(self, rows: Ints, of_class: Ids | Ints) -> SeenRecords:
        """The new release as the intruder would see it."""
        values = {name: codes[rows] for name, codes in self.values.items()}
        of_row = of_class.astype(np.int64)
        return SeenRecords(self.person[rows], of_row, np.zeros_like(of_row), values)

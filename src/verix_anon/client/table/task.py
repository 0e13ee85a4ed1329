"""What the columns of the owner's table are for: their roles, and the target's task (spec §2).

The target has classes, is a quantity, or there is none (spec §2.4).
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from verix_anon.arrays import Floats, Ints

MAX_CLASSES = 256


class TableRole(StrEnum):
    """What a column of the owner's table is; only `quasi` and `target` are ever sent."""

    IDENTIFIER = "identifier"
    KEPT = "kept"
    SENSITIVE = "sensitive"
    QUASI = "quasi"
    TARGET = "target"


class Task(StrEnum):
    """What a model of the target would do.

    Examples:
        >>> roles = verix_anon.Declared(target="age", quasi="all", task=verix_anon.Task.QUANTITY)
    """

    CLASSES = "classes"
    QUANTITY = "quantity"
    NONE = "none"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Labels:
    """The owner's labels of some records; they stay with the owner unless the rule needs them."""

    task: Task
    values: Floats
    """Positions among the classes, or quantities; 0 throughout where there is no target"""
    classes: tuple[str, ...] = ()
    """The names of the classes, the positive one last of two"""

    def __post_init__(self) -> None:
        assert (self.task is Task.CLASSES) is bool(self.classes)
        self.values.setflags(write=False)

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, as the rule `variance-reduction` needs."""
        return len(self.classes) == 2

    @property
    def n_outputs(self) -> int:
        """How many numbers a model gives for each record: one, or one for each class."""
        return len(self.classes) if len(self.classes) > 2 else 1

    def of(self, rows: Ints) -> "Labels":
        """The labels of some of the records."""
        return Labels(task=self.task, values=self.values[rows], classes=self.classes)

    @classmethod
    def none(cls, n_rows: int) -> "Labels":
        """No target at all."""
        return cls(task=Task.NONE, values=np.zeros(n_rows))

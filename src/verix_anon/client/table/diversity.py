"""What the owner asks of every class beyond k: l, cap and t, column by column (spec §12)."""

from collections.abc import Mapping
from enum import StrEnum

from verix_anon.errors import TableError

__all__ = ["Asked", "Measure", "check_asked"]

Asked = Mapping[str, Mapping[str, float]]
"""For each column its measures, and how much of each."""


class Measure(StrEnum):
    """What can be asked of how a class hides a column."""

    L = "l"
    """At least so many distinct values."""
    CAP = "cap"
    """At most this share of one value."""
    T = "t"
    """At most this distance to the whole table."""


def check_asked(asked: Asked, roles: Mapping[str, str]) -> None:
    """Raise TableError unless it is asked of the target and sensitive columns, within reason."""
    for name, measures in asked.items():
        if name not in roles:
            raise TableError(f"there is no column {name!r} to ask l, cap or t of")
        if roles[name] not in ("target", "sensitive"):
            raise TableError(
                f"column {name!r} is declared as {roles[name]}; l, cap and t are for the target and"
                " for sensitive columns"
            )
        for measure, value in measures.items():
            if measure not in set(Measure):
                raise TableError(f"column {name!r} is asked for {measure!r}, not l, cap or t")
            if problem := _problem(measure, value):
                raise TableError(f"{measure} of column {name!r} must be {problem}, not {value!r}")


def _problem(measure: str, value: float) -> str | None:
    match measure:
        case Measure.L if not (value >= 1 and float(value).is_integer()):
            return "a whole number of values, 1 or more"
        case Measure.CAP if not 0 < value <= 1:
            return "a share above 0, at most 1"
        case Measure.T if not 0 <= value <= 1:
            return "a distance from 0 to 1"
    return None

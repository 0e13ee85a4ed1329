"""Options of the form COLUMN=VALUE."""

from collections.abc import Mapping, Sequence
from datetime import date

from verix_anon.errors import TableError

__all__ = ["numbers_by_column", "pairs", "ranges_by_column", "steps_by_column"]


def pairs(options: Sequence[str]) -> dict[str, str]:
    """COLUMN=VALUE, split at the last equals sign: a name may hold one, a value does not."""
    found = {}
    for option in options:
        name, equals, value = option.rpartition("=")
        if not equals:
            raise TableError(f"{option!r} is not of the form COLUMN=VALUE")
        found[name] = value
    return found


def numbers_by_column(options: Sequence[str]) -> dict[str, float]:
    """COLUMN=NUMBER."""
    return {name: _number(name, value) for name, value in pairs(options).items()}


def steps_by_column(options: Sequence[str]) -> dict[str, float | str]:
    """COLUMN=NUMBER, or COLUMN=NAME of a period."""
    return {
        name: value if value.isalpha() else _number(name, value)
        for name, value in pairs(options).items()
    }


def ranges_by_column(
    options: Sequence[str], moments: Mapping[str, str]
) -> dict[str, tuple[float | None, float | None]]:
    """COLUMN=LOW:HIGH, either of which may be left out; dates where the column has them.

    `moments` names the datetime columns and the unit that each counts in.
    """
    found = {}
    for name, value in pairs(options).items():
        low, colon, high = value.partition(":")
        if not colon:
            raise TableError(f"{name}={value} is not of the form COLUMN=LOW:HIGH")
        ends = [_end(name, end, moments.get(name)) if end else None for end in (low, high)]
        found[name] = (ends[0], ends[1])
    return found


def _end(name: str, text: str, unit: str | None) -> float:
    return _number(name, text) if unit is None else _date(name, text, unit)


def _date(name: str, text: str, unit: str) -> float:
    """A date as the number of units since 1970."""
    import numpy as np

    try:
        days = date.fromisoformat(text)
    except ValueError:
        raise TableError(f"{text!r} for column {name!r} is not a date like 2024-01-31") from None
    return float(np.datetime64(days).astype(f"M8[{unit}]").astype(np.int64))


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TableError(f"{text!r} for column {name!r} is not a number") from None

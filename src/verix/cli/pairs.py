"""Options of the form COLUMN=VALUE."""

from collections.abc import Sequence

from verix.errors import TableError

__all__ = ["numbers_by_column", "pairs", "ranges_by_column"]


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


def ranges_by_column(options: Sequence[str]) -> dict[str, tuple[float | None, float | None]]:
    """COLUMN=LOW:HIGH, either of which may be left out."""
    found = {}
    for name, value in pairs(options).items():
        low, colon, high = value.partition(":")
        if not colon:
            raise TableError(f"{name}={value} is not of the form COLUMN=LOW:HIGH")
        found[name] = (
            _number(name, low) if low else None,
            _number(name, high) if high else None,
        )
    return found


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise TableError(f"{text!r} for column {name!r} is not a number") from None

"""Options that take one of a few words."""

from enum import StrEnum
from typing import TypeVar

from verix_anon.errors import TableError

__all__ = ["choice"]

Choice = TypeVar("Choice", bound=StrEnum)


def choice(of: type[Choice], text: str, option: str) -> Choice:
    """The choice that a word names, or an error that lists them."""
    try:
        return of(text)
    except ValueError:
        raise TableError(f"{option} is one of {', '.join(of)}, not {text!r}") from None

"""How an owner's table is read: what cannot be told from the file itself (spec §2)."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["NULL_TOKENS", "Reading"]

NULL_TOKENS = ("", "NA", "N/A", "null", "NULL", "NaN")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the owner says of a table's form; the same for `prepare` and `release`."""

    null_tokens: Sequence[str] = NULL_TOKENS
    """Words of a text table that mean missing."""
    leading_zeros_are_text: bool = True
    """Whether a leading zero keeps a column of a text table text."""

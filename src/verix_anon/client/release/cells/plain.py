"""Text that spreadsheets leave as it is: no date, no formula, no number made of a code.

Excel and its kin read `10-12` and `Mar-12` as dates, `-3..2` as a formula, and `01067` as 1067.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["in_braces", "is_plain", "joined"]

# A letter first, but no month with a number, in whatever language, and no truth value.
WORD = re.compile(r"[^\W\d_]")
DATE_LIKE = re.compile(r"[^\W\d_]{3,10}[ .,/-]*\d{1,4}")
TRUTH = frozenset({"true", "false", "wahr", "falsch", "vrai", "faux"})
ENDS = "\t\r\n "


def is_plain(text: str) -> bool:
    """Whether a cell with this text is read as this text."""
    if not text or text[0] in ENDS or text[-1] in ENDS or "\n" in text or "\r" in text:
        return False
    if text[-1] == "*":
        return text[0].isalnum() or text == "*"
    return bool(WORD.match(text)) and not (
        DATE_LIKE.match(text) or text.casefold() in TRUTH or text == "missing"
    )


def in_braces(text: str) -> str:
    """A label by itself, in braces where it needs them."""
    return text if is_plain(text) else f"{{{text}}}"


def joined(first: pa.Array | str, second: pa.Array | str, between: str) -> pa.Array:
    """Texts put together, one by one."""
    parts = (
        pa.scalar(part, pa.large_string()) if isinstance(part, str) else part
        for part in (first, second, between)
    )
    return pc.binary_join_element_wise(*parts)

"""Text that spreadsheets and readers leave as it is: no date, no formula, no number, not missing.

Excel and its kin read `10-12` and `Mar-12` as dates, `-3..2` as a formula, and `01067` as 1067; to
R and pandas `NA` is missing.
"""

import json
import re

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["alone", "joined", "quoted"]

# A letter first, but no month with a number, in whatever language, and none of the words below.
WORD = re.compile(r"[^\W\d_]")
DATE_LIKE = re.compile(r"[^\W\d_]{3,10}[ .,/-]*\d{1,4}")
OTHER = frozenset(
    {
        *("true", "false", "wahr", "falsch", "vrai", "faux"),
        *("na", "n/a", "nan", "null", "none", "inf", "infinity"),
    }
)
"""Words that are read as truth, as missing or as a number."""
# What is part of how sets and ranges are written.
MARKS = re.compile(r"""[,{}"\\\n\r\t]|\.\.|^\s|\s$| or missing$| more$|^$|^\*$|^missing$""")


def quoted(label: str) -> str:
    """A label in a set or a range, in JSON's quotes if it could be taken for more than that."""
    return json.dumps(label, ensure_ascii=False) if MARKS.search(label) else label


def is_plain(text: str) -> bool:
    """Whether a cell with this text, without quotes, is read as this text."""
    if text[-1] == "*":
        return text[0].isalnum()
    return bool(WORD.match(text)) and not (DATE_LIKE.match(text) or text.casefold() in OTHER)


def alone(label: str) -> str:
    """A label by itself, in braces where it needs them."""
    text = quoted(label)
    return text if text == label and is_plain(text) else f"{{{text}}}"


def joined(first: pa.Array | str, second: pa.Array | str, between: str) -> pa.Array:
    """Texts put together, one by one."""
    parts = (
        pa.scalar(part, pa.large_string()) if isinstance(part, str) else part
        for part in (first, second, between)
    )
    return pc.binary_join_element_wise(*parts)

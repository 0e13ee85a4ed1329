"""What the values of a column are, whatever its type: text may be numbers, dates or codes."""

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.client.table.categories import is_text
from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.numbers import is_number
from verix_anon.files.tables.dates import dates_in, iso_dates
from verix_anon.files.tables.numbers import marks_in, numbers_in, starts_with_zero
from verix_anon.protocol.contract import Kind

__all__ = ["Look", "kind_of", "look"]

DIGITS = r"^[0-9]{4,6}$"
DIAGNOSIS = r"^[A-TV-Z][0-9][0-9A-Z](\.?[0-9A-Z]{1,4})?[+*!]?$"
"""A code of ICD-10, such as I21.0; U is for special purposes, and rare."""
FEWEST_CODES = 5
"""Fewer values are not taken for codes: A10 and B20 may be anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One column, looked at over all its rows."""

    n_rows: int
    n_distinct: int
    kind: Kind | None
    """None: it can be no quasi-identifier."""
    is_text: bool = False
    """Text that is neither numbers nor dates."""
    is_whole: bool = False
    is_label: bool = False
    """Values of a list, such as the labels of an SPSS file."""
    written: str = ""
    """What text is written as, if it is numbers or dates."""
    codes: str = ""
    """`digits` of one length, or `diagnoses`, if text is such codes."""

    @property
    def is_spread(self) -> bool:
        """Whether there are more values than half the rows, and not just two."""
        return 2 * self.n_distinct > self.n_rows and self.n_distinct > 2


def look(array: pa.Array) -> Look:
    """Look at a column that has values."""
    n_distinct = _n_distinct(array)
    kind = kind_of(array.type)
    if n_distinct is None or kind is None:
        return Look(n_rows=len(array), n_distinct=n_distinct or 0, kind=None)
    is_label = pa.types.is_dictionary(array.type)
    if is_text(array.type) and not (is_label and array.type.ordered):
        return _text(array, n_distinct)
    return Look(
        n_rows=len(array),
        n_distinct=n_distinct,
        kind=kind,
        is_whole=kind is Kind.NUMERIC and _is_whole(array),
        is_label=is_label,
    )


def _n_distinct(array: pa.Array) -> int | None:
    """How many values a column has; None for a type whose values are not told apart."""
    try:
        return len(pc.unique(array.drop_null()))
    except pa.ArrowNotImplementedError:
        return None


def kind_of(given: pa.DataType) -> Kind | None:
    """What values of a type are unless something else is declared."""
    if is_text(given) or pa.types.is_boolean(given) or pa.types.is_dictionary(given):
        return Kind.CATEGORICAL
    if is_number(given):
        return Kind.NUMERIC
    is_moment = pa.types.is_date(given) or pa.types.is_timestamp(given)
    return Kind.DATETIME if is_moment else None


def _is_whole(array: pa.Array) -> bool:
    """Whether all are whole numbers; a column with gaps may hold those as floats."""
    if pa.types.is_integer(array.type):
        return True
    if not pa.types.is_floating(array.type):
        return False
    present = plain_column(array)
    return bool(pc.all(pc.equal(present, pc.floor(present)), min_count=0).as_py())


def _text(array: pa.Array, n_distinct: int) -> Look:
    texts = pc.unique(plain_column(array).cast(pa.string()).drop_null())
    column = pa.chunked_array([texts])
    found = Look(n_rows=len(array), n_distinct=n_distinct, kind=Kind.CATEGORICAL)
    marks = marks_in(column)
    if not marks.others and len(texts):
        if iso_dates(column) is not None:
            return replace(found, kind=Kind.DATETIME, written="dates as yyyy-mm-dd")
        if forms := dates_in(column, None):
            shown = " or ".join(str(dates.form) for dates in forms)
            return replace(found, kind=Kind.DATETIME, written=f"dates as {shown}")
        if (ways := numbers_in(column, marks)) and not starts_with_zero(column):
            is_whole = not marks.found & {".", ",", "e", "E"}
            has_comma = any(one.form.decimal == "," for one in ways)
            written = "numbers with a decimal comma" if has_comma else "numbers"
            return replace(found, kind=Kind.NUMERIC, is_whole=is_whole, written=written)
    return replace(found, is_text=True, codes=_codes(texts))


def _codes(texts: pa.Array) -> str:
    """What codes these are, if all are of one form."""
    if len(texts) < FEWEST_CODES:
        return ""
    lengths = pc.min_max(pc.binary_length(texts))
    if lengths["min"] == lengths["max"] and _all_match(texts, DIGITS):
        return "digits"
    return "diagnoses" if _all_match(texts, DIAGNOSIS) else ""


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())

"""Categorical columns: labels, their order, and each value's position in it (spec §2)."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa

from verix_anon.arrays import Floats
from verix_anon.errors import TableError
from verix_anon.protocol.contract import EXACT

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# By name: older Arrow has no test for string views.
TEXT_TYPES = frozenset({"string", "large_string", "string_view"})
TESTS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
"""Of the types beside text that a categorical column may have."""
ADVICE = "declare it numeric"
TARGET_ADVICE = "the two classes of a target are text, booleans or whole numbers up to 2^53"


def positions(
    name: str, array: pa.Array, order: Sequence[str] | None = None, *, is_target: bool = False
) -> tuple[tuple[str, ...], Floats]:
    """The categories, and each value's position among them, NaN where it is missing.

    A type or an order may know labels of people who are not in the table. They are left out.
    """
    advice = TARGET_ADVICE if is_target else ADVICE
    kind = value_type(array.type)
    is_whole = pa.types.is_decimal(kind) and kind.scale == 0
    if not (is_whole or is_text(kind) or any(test(kind) for test in TESTS)):
        raise TableError(f"column {name!r} has type {array.type} and cannot be categorical")
    is_dictionary = pa.types.is_dictionary(array.type)
    encoded = array if is_dictionary else array.dictionary_encode()
    n_entries = len(encoded.dictionary)
    # A missing value is read as one more entry, past the last.
    codes = encoded.indices.cast(pa.int64()).fill_null(n_entries).to_numpy(zero_copy_only=False)
    used = np.flatnonzero(np.bincount(codes, minlength=n_entries + 1)[:n_entries])
    texts = _labels(name, encoded.dictionary.take(pa.array(used)), advice)
    if order is None and is_dictionary and array.type.ordered:
        # An ordered dtype is the owner's own order.
        order = [text for text in texts if text is not None]
    present = dict.fromkeys(text for text in texts if text is not None)
    labels = tuple(label for label in _ordered(name, list(present), order) if label in present)
    position = {label: i for i, label in enumerate(labels)}
    lookup = np.full(n_entries + 1, np.nan)
    lookup[used] = [np.nan if text is None else position[text] for text in texts]
    return labels, lookup[codes]


def default_order(labels: Sequence[str]) -> list[str]:
    """By value if all are numbers, else by code point; equal values by code point."""
    try:
        if all(NUMBER.fullmatch(label) for label in labels):
            return sorted(labels, key=lambda label: (Decimal(label), label))
    except InvalidOperation:
        # An exponent past what Decimal holds: not a number anyone orders by.
        pass
    return sorted(labels)


def as_label(value: object) -> str:
    """One value as its label: text as it is, `false` and `true`, whole numbers in decimal."""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    return str(value)


def is_text(arrow_type: pa.DataType) -> bool:
    """Whether values of this type, or the entries of such a dictionary, are text."""
    return str(value_type(arrow_type)) in TEXT_TYPES


def _ordered(name: str, present: list[str], order: Sequence[str] | None) -> tuple[str, ...]:
    """The labels in the order given, which must have all that are present."""
    if order is None:
        return tuple(default_order(present))
    labels = list(order)
    known = set(labels)
    if len(known) != len(labels):
        raise TableError(f"the order given for column {name!r} names a category twice")
    for label in present:
        if label not in known:
            raise TableError(f"column {name!r} has {label!r}, which its given order lacks")
    return tuple(labels)


def _labels(name: str, array: pa.Array, advice: str) -> list[str | None]:
    """Values as labels, None where one is missing."""
    if pa.types.is_floating(array.type):
        array = _whole(name, array, advice)
    try:
        labels: list[str | None] = array.cast(pa.large_string()).to_pylist()
    except UnicodeDecodeError:
        raise TableError(f"column {name!r} has text that is not UTF-8") from None
    return labels


def _whole(name: str, array: pa.Array, advice: str) -> pa.Array:
    """Floats as integers, which they must be; NaN is missing."""
    values = array.to_numpy(zero_copy_only=False).astype(np.float64)
    problem = None
    if np.isinf(values).any():
        problem = "an infinite value"
    elif (values != np.floor(values))[~np.isnan(values)].any():
        problem = "fractions"
    elif (np.abs(values) > EXACT).any():
        problem = "a float beyond 2^53"
    if problem:
        raise TableError(f"column {name!r} has {problem} and cannot be categorical; {advice}")
    return pa.array(values, from_pandas=True).cast(pa.int64())


def value_type(arrow_type: pa.DataType) -> pa.DataType:
    """The type itself; of a dictionary that of its values."""
    return arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type

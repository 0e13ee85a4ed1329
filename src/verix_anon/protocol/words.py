"""Values as people write them (spec §2, §5)."""

import math

from verix_anon.protocol.contract import EXACT, Column

__all__ = ["show_value"]


def show_value(column: Column, value: float) -> str:
    """One value as people write it: a date, a whole number without a point, a label, a place.

    A value between two, such as a midpoint, is shown as the date or label below it; one that
    the column cannot have, such as a provider may send, as the bare number.
    """
    if column.size is not None and 0 <= value < column.size:
        return f"place {math.floor(value) + 1} of {column.size}"
    if column.categories is not None and 0 <= value < len(column.categories):
        return column.categories[math.floor(value)]
    if column.unit is not None and abs(value) <= EXACT:
        # What a proof is checked with needs numpy only where there are dates.
        import numpy as np

        from verix_anon.protocol.generalize import NUMPY_UNITS

        return str(np.int64(math.floor(value)).astype(f"M8[{NUMPY_UNITS[column.unit]}]"))
    # Past 2**53 a float no longer names one integer, so its own notation is the honest one.
    return str(int(value)) if abs(value) <= EXACT and value == int(value) else repr(value)

"""Who is a person: a record, or all records with one value of a column (spec §2, §12).

k counts people. Where an identifier repeats, rows are not people, and only the owner knows.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from verix_anon.client.table.digest import plain_column
from verix_anon.client.table.roles import TableRole, unknown_column
from verix_anon.errors import TableError

__all__ = ["RECORD", "person_column", "repeats"]

RECORD = "record"
"""What is said in place of a column where each record is a person."""


def repeats(array: pa.Array) -> bool:
    """Whether a column has fewer values than records; missing ones are nobody's."""
    present = plain_column(array).drop_null()
    return len(pc.unique(present)) < len(present)


def person_column(
    arrays: Mapping[str, pa.Array], roles: Mapping[str, str], said: str | None
) -> str | None:
    """The column that tells people apart, None if each record is a person.

    Raises:
        TableError: There is no such column; or nothing is said, and an identifier repeats.
    """
    if said == RECORD:
        return None
    if said is not None:
        if said not in arrays:
            raise unknown_column(said, list(arrays))
        return said
    for name in arrays:
        if roles[name] == TableRole.IDENTIFIER and repeats(array := arrays[name]):
            n_values, n_rows = len(pc.unique(plain_column(array).drop_null())), len(array)
            raise TableError(
                f"identifier {name!r} has {n_values:,} values in {n_rows:,} rows, so a person may"
                " have several rows, and a class of k rows may be one person: say who a person"
                f" is, person={name!r} (--person {name}), or person={RECORD!r} if each row is one"
            )
    return None

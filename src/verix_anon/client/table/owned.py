"""The owner's table, from memory or from a file, and how that was read."""

from typing import NamedTuple

from verix_anon.client.given import is_path
from verix_anon.files.tables import Read, Reading, read_table_as
from verix_anon.files.tables.memory import held

__all__ = ["Owned", "owned"]


class Owned(NamedTuple):
    """A table that can be read more than once."""

    table: object
    """In memory; of a Parquet file what reads its columns as they are asked for."""
    reading: Reading | None
    """How its file was read; None if it came from memory."""
    notes: tuple[str, ...]
    """What was said of it then; nothing if the caller has read it, and so has seen that."""


def owned(table: object, reading: Reading | None) -> Owned:
    """The table itself; a file is read as `reading` says."""
    if is_path(table):
        read = read_table_as(table, reading, whole=False).settled()
        return Owned(read.table, read.reading, read.notes)
    if isinstance(table, Read):
        return Owned(table.settled().table, table.reading, ())
    return Owned(held(table), None, ())

"""The published table: the owner's own, with what is published of each class (spec §12)."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from verix_anon.arrays import Ids
from verix_anon.client.release.bare import bare_array, bare_frame
from verix_anon.client.release.classes import Classes
from verix_anon.client.release.source import Source
from verix_anon.client.table.columns import columns_of
from verix_anon.client.table.roles import TableRole
from verix_anon.errors import TableError
from verix_anon.files.tables import Parts, Stored

__all__ = ["MOST_TEXTS", "Published", "assemble"]

MOST_TEXTS = 1 << 20
"""Parquet repeats a dictionary for every so many rows: a longer one saves nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The owner's table with identifiers out and quasi-identifiers as published."""

    kept: nw.DataFrame[Any] | None
    """The owner's columns that are published as they are, in the order of the release."""
    library: Any
    """Of the owner's table."""
    names: Sequence[str]
    class_of_row: Ids
    columns: Mapping[str, pa.Array]
    """With one value per class."""
    of_quasi: Mapping[str, Sequence[str]]
    """Which of these are published of each quasi-identifier."""

    def native(self) -> object:
        """As a table of the owner's kind."""
        rows = pa.array(self.class_of_row)
        with ThreadPoolExecutor() as pool:
            new = pool.map(lambda array: _plain(array).take(rows), self.columns.values())
            # By number: Polars gives a column whose name is empty another.
            published = pa.table({str(i): array for i, array in enumerate(new)})
        columns = nw.from_arrow(published, backend=self.library)
        named = [columns[str(i)].alias(name) for i, name in enumerate(self.columns)]
        frame = columns.select(*named) if self.kept is None else self.kept.with_columns(*named)
        return bare_frame(frame.select(self.names))

    @property
    def texts(self) -> list[str]:
        """The columns that are written as dictionaries."""
        return [
            name
            for name, array in self.columns.items()
            if pa.types.is_dictionary(array.type) and len(array.dictionary) <= MOST_TEXTS
        ]

    def parts(self) -> Parts:
        """As Arrow tables to be written, some rows at a time, each text in them once."""
        texts = {*self.texts}
        kept = {}
        if self.kept is not None:
            held = columns_of(self.kept.to_native())
            kept = {name: bare_array(held[name]) for name in held}

        def column(name: str, begin: int, end: int) -> pa.Array:
            if name in kept:
                return kept[name].slice(begin, end - begin)
            found = self.columns[name].take(pa.array(self.class_of_row[begin:end]))
            return found if name in texts else _plain(found)

        def part(begin: int, end: int) -> pa.Table:
            return pa.table([column(name, begin, end) for name in self.names], list(self.names))

        return Parts(self.class_of_row.size, part)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def assemble(
    table: object, source: Source, roles: Mapping[str, str], classes: Classes, *, shuffle: bool
) -> Published:
    """Put what is published of each class beside what is kept, in the table's order or none."""
    names: list[str] = []
    for name in source.types:
        if roles[name] != TableRole.IDENTIFIER:
            names.extend(classes.columns.get(name, [name]))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"the release would have two columns {twice!r}; rename the one there is")
    library, kept, of_row = *_kept(table, source), classes.of_row
    if shuffle:
        keys = np.frombuffer(os.urandom(8 * of_row.size), np.uint64)
        order = np.argsort(keys)
        of_row = of_row[order]
        if kept is not None:
            # Not every type that Arrow holds can be put in another order; those that are left can.
            bare: Any = bare_frame(kept)
            kept = nw.from_native(bare, eager_only=True)[order]
    # A pandas index is no column, and would tell the old order.
    kept = None if kept is None else nw.maybe_reset_index(kept)
    of_quasi = {name: tuple(found) for name, found in classes.columns.items()}
    return Published(kept, library, names, of_row, classes.arrays, of_quasi)


def _kept(table: object, source: Source) -> tuple[Any, nw.DataFrame[Any] | None]:
    """The library of the table, and its columns that are published as they are, if any."""
    held = pa.table(dict(source.kept)) if isinstance(table, Stored) else table
    frame: nw.DataFrame[Any] = nw.from_native(held, eager_only=True)
    return frame.implementation, frame.select(list(source.kept)) if source.kept else None

"""Parquet from and to arrays: the schema, the rows and the size are checked, then decoded."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.arrays import Bytes
from verix_anon.errors import Error
from verix_anon.files.hostile import footers, pages
from verix_anon.protocol.table import MAX_ROWS

__all__ = ["TRACKER", "Expected", "Reader", "trackers", "write"]

TRACKER = pa.binary(32)
# What a file may take beyond its values: dictionaries, levels, page headers.
SLACK_BYTES = 1 << 20
MAX_ROW_GROUPS = 100_000
GROUP_ROWS = 1 << 20
"""How many rows we write as one group."""
# What a page counts for at the least: one without content still takes time to read.
PAGE_BYTES = 256
# What a footer may take: something, more per column, and a byte per row for row groups.
# Decoded, a footer made for it takes 240 times its size (measured).
FOOTER_BYTES = 1 << 18
FOOTER_BYTES_PER_COLUMN = 1 << 10

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file must hold: these columns with these types, and no nulls."""

    columns: Mapping[str, pa.DataType]

    def bytes_for(self, n_rows: int) -> int:
        """How many bytes so many rows may decode to: twice their values, for dictionaries."""
        width = sum(int(t.bit_width) // 8 for t in self.columns.values())
        return SLACK_BYTES + 2 * n_rows * width


class Reader:
    """One Parquet file; opening it checks everything that can be checked without decoding.

    A file that is not trusted is given as its bytes, with `most_rows` and `most_bytes`, which
    bound the rows and what their pages unfold to.
    """

    def __init__(
        self,
        name: str,
        source: bytes | IO[bytes],
        expected: Expected,
        fail: type[Error],
        *,
        most_rows: int = MAX_ROWS,
        most_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.fail = fail
        self.columns = list(expected.columns)
        self.n_bytes = 0
        """What the pages of a file given as bytes unfold to."""
        with self._decoding():
            footer = None
            if isinstance(source, bytes):
                most = FOOTER_BYTES + FOOTER_BYTES_PER_COLUMN * len(self.columns) + most_rows
                footer = footers.read_footer(source, most=most)
            self.file = pq.ParquetFile(pa.BufferReader(footer.clean) if footer else source)
            metadata = self.file.metadata
            self.n_rows = int(metadata.num_rows)
            self.group_rows = [
                int(metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups)
            ]
            self._check_schema(self.file.schema_arrow, expected)
            self._check_rows(most_rows)
            if footer is not None:
                most = expected.bytes_for(self.n_rows) if most_bytes is None else most_bytes
                self._check_size(memoryview(footer.clean), footer.groups, most)

    def row_groups(self) -> Iterator[dict[str, Array]]:
        """The columns of each row group with rows as arrays; binary columns as rows of bytes."""
        for i, n_rows in enumerate(self.group_rows):
            if n_rows == 0:
                continue
            with self._decoding():
                # A thread of Arrow's that lets go of our bytes while Python ends aborts the
                # process (twice in 1,200 runs), and takes the exit code with it.
                table = self.file.read_row_group(i, use_threads=False)
                arrays = {name: _to_numpy(table.column(name)) for name in self.columns}
            for name, array in arrays.items():
                if table.column(name).null_count:
                    raise self.fail(f"{self.name}: column {name!r} has missing values")
                if len(array) != n_rows:
                    raise self.fail(f"{self.name}: column {name!r} does not have {n_rows} rows")
            yield arrays

    def read(self) -> dict[str, Array]:
        """All columns as whole arrays."""
        groups = list(self.row_groups())
        if len(groups) == 1:
            return groups[0]
        if not groups:
            raise self.fail(f"{self.name} has no rows")
        return {name: np.concatenate([g[name] for g in groups]) for name in self.columns}

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Where bytes are decoded, whatever goes wrong is their fault: Arrow raises many types."""
        try:
            yield
        except Error:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise self.fail(f"{self.name} is not a readable Parquet file ({reason})") from None

    def _check_schema(self, schema: pa.Schema, expected: Expected) -> None:
        if schema.names != self.columns:
            missing = [name for name in self.columns if name not in schema.names]
            extra = [name for name in schema.names if name not in expected.columns]
            what = (
                f"column {missing[0]!r} is missing"
                if missing
                else f"column {extra[0][:64]!r} does not belong there"
                if extra
                else "its columns are not in the agreed order"
            )
            raise self.fail(f"{self.name}: {what}")
        for name, wanted in expected.columns.items():
            if schema.field(name).type != wanted:
                raise self.fail(
                    f"{self.name}: column {name!r} has type {schema.field(name).type}, not {wanted}"
                )

    def _check_rows(self, most_rows: int) -> None:
        if len(self.group_rows) > MAX_ROW_GROUPS:
            raise self.fail(f"{self.name} has {len(self.group_rows)} row groups")
        if not 0 <= self.n_rows <= most_rows:
            raise self.fail(f"{self.name} has {self.n_rows} rows, more than {most_rows}")
        if any(n < 0 for n in self.group_rows) or sum(self.group_rows) != self.n_rows:
            raise self.fail(f"{self.name}: its row groups do not add up to {self.n_rows} rows")

    def _check_size(
        self, data: memoryview, groups: Sequence[footers.Group], most_bytes: int
    ) -> None:
        for group in groups:
            # A group without rows is not decoded, and some writers give it odd positions.
            for chunk in group.chunks if group.n_rows else ():
                if chunk.n_values != group.n_rows:
                    raise self.fail(f"{self.name}: its columns do not have as many values as rows")
                self.n_bytes += pages.uncompressed_size(
                    data, *chunk, least=PAGE_BYTES, most=most_bytes - self.n_bytes
                )
                if self.n_bytes > most_bytes:
                    raise self.fail(
                        f"{self.name} unfolds to more than the {most_bytes} bytes that"
                        " its rows may take"
                    )


def _to_numpy(column: pa.ChunkedArray) -> Array:
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        flat = np.frombuffer(array.buffers()[1] or b"", np.uint8)
        return flat[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)
    return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def trackers(tracker: Bytes) -> pa.Array:
    """Trackers, (n_rows, 32), as an Arrow array over the same memory."""
    data = pa.py_buffer(np.ascontiguousarray(tracker))
    return pa.FixedSizeBinaryArray.from_buffers(TRACKER, len(tracker), [None, data])


def write(path: Path, table: pa.Table, encodings: Mapping[str, str]) -> None:
    """Write a table with zstd; columns without an encoding get a dictionary."""
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=1,
        use_dictionary=[name for name in table.column_names if name not in encodings],
        column_encoding=dict(encodings) or None,
        # Fewer than what is encoded at a time costs size, more costs the reader memory.
        row_group_size=GROUP_ROWS,
        write_statistics=False,
        store_schema=False,
    )

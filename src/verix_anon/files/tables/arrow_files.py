"""Read Parquet, Feather, and Arrow's files and streams, whose columns have types.

A few bytes of such a file may unpack to gigabytes, so the sizes that it states are checked first.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verix_anon.errors import TableError
from verix_anon.files.table_form import Reading
from verix_anon.files.tables import table_sources

MAGIC = b"ARROW1"
LARGEST_SCHEMA = 64 << 20
"""How many bytes may describe the columns; 16,384 columns take a few megabytes."""
USUAL, TIMES = 1 << 30, 64
"""A table may take `USUAL` bytes of memory, plus `TIMES` times the size of its file."""
USUAL_PAGES = 256 << 20
"""How many bytes of unpacked Parquet pages are always allowed."""


class Stored:
    """The table of a Parquet file, which reads each column when it is asked for."""

    def __init__(self, name: str) -> None:
        """`name` is its path or URL."""
        self.name = name
        with table_sources.opened(name) as file:
            self.size = file.seek(0, 2)
            _check_schema(_footer_size(file, self.size, b"PAR1"))
            # pq.read_table would import the reader of folders, and with it pandas.
            self._metadata = pq.ParquetFile(file).metadata
        self.schema = self._metadata.schema.to_arrow_schema()
        self.num_rows: int = self._metadata.num_rows
        table_sources.check_names(self.schema.names)
        self._repeated = sorted(_repeated(self._metadata, self.size))
        self._needed: dict[str, int] = {}

    @property
    def column_names(self) -> list[str]:
        """The names of all columns, as a table in memory gives them."""
        return list(self.schema.names)

    def column(self, name: str) -> pa.ChunkedArray:
        """Read one column.

        Raises:
            TableError: It cannot be read.
        """
        # Parquet may take a name with a point in it for other columns, too.
        return self.table([name])[name]

    def table(self, names: list[str] | None = None) -> pa.Table:
        """Read some columns, or all; raises TableError."""
        with self._reading(self._repeated) as file:
            return self._expanded(file.read(names, use_threads=False))

    def first(self, most: int) -> pa.Table:
        """Read the first rows of all columns; raises TableError."""
        with self._reading([]) as file:
            batches = islice(file.iter_batches(most, use_threads=False), 1)
            return pa.Table.from_batches(batches, self.schema)

    @contextmanager
    def _reading(self, repeated: list[str]) -> Iterator[pq.ParquetFile]:
        try:
            # A file of its own for each reading: there may be several at once.
            # And no threads of Arrow's: one that lets go of Python's bytes while Python ends aborts
            # the process, and takes the exit code with it.
            with table_sources.opened(self.name) as file:
                yield pq.ParquetFile(file, metadata=self._metadata, read_dictionary=repeated)
        except TableError as error:
            raise TableError(f"{table_sources.shown_url(self.name)} {error}") from None
        except table_sources.ARROW_ERRORS as error:
            said = table_sources.without_secrets(
                f"cannot be read ({table_sources.reason(error)})", self.name
            )
            raise TableError(f"{table_sources.shown_url(self.name)} {said}") from None

    def _expanded(self, table: pa.Table) -> pa.Table:
        """Write out the columns that were read as dictionaries, if there is room."""
        wanted = self.schema
        held = [n for n in table.column_names if table[n].type != wanted.field(n).type]
        for name in held:
            self._needed[name] = sum(map(_text_bytes, table[name].chunks))
        if sum(self._needed.values()) > USUAL + TIMES * self.size:
            raise _too_large(self.size)
        for name in held:
            at, field = table.column_names.index(name), wanted.field(name)
            table = table.set_column(at, field, table[name].cast(field.type))
        return table


def _repeated(metadata: pq.FileMetaData, size: int) -> set[str]:
    """Return the columns whose texts are once in the file, and may be in millions of rows."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(j) for group in groups for j in range(group.num_columns)]
    unpacked = sum(chunk.total_uncompressed_size for chunk in chunks)
    n_values = sum(chunk.num_values for chunk in chunks)
    if unpacked > USUAL_PAGES + TIMES * size or 8 * n_values > USUAL + TIMES * size:
        raise _too_large(size)
    return {
        chunk.path_in_schema
        for chunk in chunks
        if chunk.has_dictionary_page
        and chunk.physical_type == "BYTE_ARRAY"
        and chunk.num_values * chunk.total_uncompressed_size > USUAL_PAGES
    }


def _footer_size(file: IO[bytes], size: int, magic: bytes) -> int:
    """Return the footer's size, which is before the mark at the end; 0 without the mark."""
    file.seek(max(0, size - 4 - len(magic)))
    tail = file.read()
    file.seek(0)
    return int.from_bytes(tail[:4], "little") if tail[4:] == magic else 0


def _check_schema(size: int) -> None:
    if size > LARGEST_SCHEMA:
        raise TableError(
            f"describes its columns in {size:,} bytes, as no table does; leave out what is not"
            " needed, or write it in fewer row groups"
        )


def _text_bytes(chunk: pa.DictionaryArray) -> int:
    """Return how many bytes all texts have when written out."""
    lengths = pc.take(pc.binary_length(chunk.dictionary), chunk.indices)
    return pc.sum(lengths.cast(pa.int64())).as_py() or 0


def _too_large(size: int) -> TableError:
    return TableError(
        f"unpacks to far more than its {size:,} bytes make likely; save it again without"
        " compression and dictionaries, if that is right"
    )


def read_ipc(path: str, _: Reading) -> tuple[pa.Table, list[str]]:
    """Read a Feather file, or an Arrow file or stream, whichever it is.

    Run in a process of its own, with a limit to its memory: buffers may be compressed.
    """
    with open(path, "rb") as file:  # noqa: PTH123, because it may be a descriptor's name
        head = file.read(8)
        if head[:4] == b"FEA1":
            raise TableError(
                "is of the first version of Feather; write it again with a newer program"
            )
        is_file = head.startswith(MAGIC)
        # A stream begins with a mark of four bytes, followed by the length of its schema.
        first = int.from_bytes(head[4:8], "little") if head[:4] == b"\xff" * 4 else 0
        _check_schema(_footer_size(file, file.seek(0, 2), MAGIC) if is_file else first)
        file.seek(0)
        try:
            source = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            table_sources.check_names(source.schema.names)
            table = source.read_all()
            # Check offsets now: later code would follow them out of their buffers.
            table.validate(full=True)
        except (pa.ArrowMemoryError, MemoryError):
            raise
        except table_sources.ARROW_ERRORS as error:
            raise TableError(f"cannot be read ({table_sources.reason(error)})") from None
    return table, []

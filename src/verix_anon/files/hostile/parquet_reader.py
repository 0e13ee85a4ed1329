"""Parquet from and to arrays: the schema, the rows and the size are checked, then decoded."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from verix_anon.arrays import Bytes, Ids, Ints
from verix_anon.errors import Error, TableError
from verix_anon.files.hostile import parquet_footer, parquet_pages
from verix_anon.files.hostile.thrift import Data
from verix_anon.files.scratch import Held
from verix_anon.machine import give_back, lacking

TRACKER = pa.binary(32)
# What a file may take beyond its values: dictionaries, levels, page headers.
SLACK_BYTES = 1 << 20
MAX_ROW_GROUPS = 100_000
# Rows from which on threads share the columns: handing them round costs about 0.1 ms.
LARGE_GROUP = 65_536
# What a page counts for at the least: one without content still takes time to read.
PAGE_BYTES = 256
# What a footer may take: something, more per column, and a byte per row for row groups.
# Decoded, a footer made for it takes 240 times its size (measured).
FOOTER_BYTES = 1 << 18
FOOTER_BYTES_PER_COLUMN = 1 << 10
# What a part may take besides, for its pages and its footer.
PART_BYTES = PART_BYTES_PER_COLUMN = 1 << 10

# What clusters cannot write, and write in its place.
IN_PARTS = {TRACKER: pa.binary(), pa.uint8(): pa.int16()}

Array = npt.NDArray[np.generic]


class ValuesError(ValueError):
    """What was decoded is not what a column holds."""


# Arrow raises a plain OSError for most of what is wrong with pages.
DECODERS = (
    parquet_footer.FooterError,
    parquet_pages.PageError,
    ValuesError,
    pa.ArrowException,
    OSError,
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file must hold: these columns with these types, and no nulls."""

    columns: Mapping[str, pa.DataType]
    parts: int = 0
    """Into how many files a folder is divided; 0: it is one file, and no folder."""

    def bytes_for(self, n_rows: int) -> int:
        """How many bytes so many rows may decode to: twice their values, for dictionaries."""
        width = sum(int(t.bit_width) // 8 for t in self.columns.values())
        beside = self.parts * (PART_BYTES + PART_BYTES_PER_COLUMN * len(self.columns))
        return SLACK_BYTES + beside + 2 * n_rows * width


class Reader:
    """One Parquet file; opening it checks everything that can be checked without decoding.

    `most_rows` and `most_bytes` bound the rows and what their pages unfold to.
    """

    def __init__(
        self,
        name: str,
        data: Held,
        expected: Expected,
        fail: type[Error],
        *,
        most_rows: int,
        most_bytes: int | None = None,
    ) -> None:
        self.name, self.data, self.expected, self.fail = name, data, expected, fail
        self.local = threading.local()
        self.numbers = {column: str(i) for i, column in enumerate(expected.columns)}
        self.n_rows = 0
        self.n_bytes = 0
        """What the pages unfold to."""
        with self._decoding():
            most = FOOTER_BYTES + FOOTER_BYTES_PER_COLUMN * len(self.numbers) + most_rows
            before = max(0, data.size - most - 8)
            end = data.part(before, data.size)
            footer = parquet_footer.read_footer(end, most=most, before=before)
            self.metadata = pq.read_metadata(pa.BufferReader(footer.clean))
            self.n_rows = int(self.metadata.num_rows)
            self.group_rows = [group.n_rows for group in footer.groups]
            schema = pq.read_metadata(pa.BufferReader(footer.schema)).schema
            types = schema.to_arrow_schema().types
            self._check_schema(footer.names, types)
            if len(self.group_rows) > MAX_ROW_GROUPS:
                raise fail(f"{name} has {len(self.group_rows)} row groups")
            if not 0 <= self.n_rows <= most_rows:
                raise fail(f"{name} has {self.n_rows} rows, more than {most_rows}")
            if any(n < 0 for n in self.group_rows) or sum(self.group_rows) != self.n_rows:
                raise fail(f"{name}: its row groups do not add up to {self.n_rows} rows")
            most = expected.bytes_for(self.n_rows) if most_bytes is None else most_bytes
            self._check_size(data.window(footer.body), footer.groups, most)
        # Read as they are stored: a dictionary with one long entry would unfold without limit.
        self.packed = [str(i) for i, found in enumerate(types) if found == pa.binary()]

    def groups(self) -> list[int]:
        """The row groups with rows."""
        return [i for i, n_rows in enumerate(self.group_rows) if n_rows]

    def read_group(self, group: int, names: Iterable[str]) -> dict[str, Array]:
        """Some columns of a row group as arrays; binary columns as rows of bytes.

        Threads may call it side by side.
        """
        numbers = [self.numbers[name] for name in names]
        with self._decoding():
            # A thread of Arrow's that lets go of our bytes while Python ends aborts the
            # process (twice in 1,200 runs), and takes the exit code with it.
            table = self._file().read_row_group(group, columns=numbers, use_threads=False)
        found = {}
        for name in names:
            column = table.column(self.numbers[name])
            if column.null_count:
                raise self.fail(f"{self.name}: column {name!r} has missing values")
            if len(column) != (n_rows := self.group_rows[group]):
                raise self.fail(f"{self.name}: column {name!r} does not have {n_rows} rows")
            with self._decoding():
                found[name] = _to_numpy(column, self.expected.columns[name])
        return found

    def batches(self, group: int, name: str, n_rows: int) -> Iterator[Array]:
        """A column of numbers of a row group, so many rows at a time."""
        with self._decoding():
            for batch in self._file().iter_batches(
                n_rows, row_groups=[group], columns=[self.numbers[name]], use_threads=False
            ):
                if batch.column(0).null_count:
                    raise self.fail(f"{self.name}: column {name!r} has missing values")
                yield _numbers(batch.column(0))

    def _file(self) -> pq.ParquetFile:
        """One for each thread: Arrow's readers are not made to be shared."""
        if not hasattr(self.local, "file"):
            self.local.file = pq.ParquetFile(
                self.data.open(), metadata=self.metadata, read_dictionary=self.packed
            )
        return self.local.file

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Where bytes are decoded: what the decoders say is the bytes' fault, and nothing else."""
        try:
            yield
        except MemoryError:
            # Arrow's own is one of the decoder's errors as well.
            work = f"decoding {self.name} ({self.data.size:,} bytes, {self.n_rows:,} rows)"
            raise TableError(lacking(work)) from None
        except DECODERS as error:
            if isinstance(error, OSError) and error.errno is not None:
                # The system's, not Arrow's: it reads from memory.
                raise
            reason = " ".join(str(error).split())[:200]
            raise self.fail(f"{self.name} is not a readable Parquet file ({reason})") from None

    def _check_schema(self, names: list[str], types: list[pa.DataType]) -> None:
        if names != list(self.numbers):
            missing = [name for name in self.numbers if name not in names]
            extra = [name for name in names if name not in self.numbers]
            what = (
                f"column {missing[0]!r} is missing"
                if missing
                else f"column {extra[0][:64]!r} does not belong there"
                if extra
                else "its columns are not in the agreed order"
            )
            raise self.fail(f"{self.name}: {what}")
        for (name, wanted), found in zip(self.expected.columns.items(), types, strict=True):
            in_parts = IN_PARTS.get(wanted) if self.expected.parts else None
            if found not in (wanted, in_parts):
                raise self.fail(f"{self.name}: column {name!r} has type {found}, not {wanted}")

    def _check_size(
        self, data: Data, groups: Sequence[parquet_footer.Group], most_bytes: int
    ) -> None:
        for group in groups:
            # A group without rows is not decoded, and some writers give it odd positions.
            for chunk in group.chunks if group.n_rows else ():
                if chunk.n_values != group.n_rows:
                    raise self.fail(f"{self.name}: its columns do not have as many values as rows")
                self.n_bytes += parquet_pages.uncompressed_size(
                    data, *chunk, least=PAGE_BYTES, most=most_bytes - self.n_bytes
                )
                if self.n_bytes > most_bytes:
                    raise self.fail(
                        f"{self.name} unfolds to more than {most_bytes} bytes, the limit for its"
                        f" rows, where a page counts as {PAGE_BYTES} at least: write larger pages"
                    )


def open_parts(
    parts: Mapping[str, Held],
    expected: Expected,
    fail: type[Error],
    *,
    n_rows: int,
    most_bytes: int,
) -> list[Reader]:
    """Open the parts of one table; together they may hold no more than one file could."""
    readers: list[Reader] = []
    for name, data in parts.items():
        reader = Reader(name, data, expected, fail, most_rows=n_rows, most_bytes=most_bytes)
        n_rows, most_bytes = n_rows - reader.n_rows, most_bytes - reader.n_bytes
        readers.append(reader)
    return readers


def copy_group(
    reader: Reader, group: int, into: Mapping[str, Array], where: slice | Ints | Ids, pool: Executor
) -> None:
    """Copy columns of a row group to where its rows belong; of a large one column by column."""

    def copy(names: Iterable[str]) -> None:
        for name, array in reader.read_group(group, names).items():
            into[name][where] = array

    is_large = reader.group_rows[group] >= LARGE_GROUP
    for _ in pool.map(copy, [[name] for name in into]) if is_large else map(copy, [into]):
        pass


def copy_all(
    readers: Iterable[Reader], into: Mapping[str, Array], threads: int, places: Ids | None = None
) -> None:
    """Copy columns of all row groups, one group after the other, or each row to its place."""
    at = 0
    with ThreadPoolExecutor(threads) as pool:
        for reader in readers:
            for group in reader.groups():
                rows = slice(at, at + reader.group_rows[group])
                where = rows if places is None else places[rows]
                copy_group(reader, group, into, where, pool)
                at = rows.stop
    give_back()


def unsign_zeros(values: npt.NDArray[np.floating]) -> None:
    """Turn -0.0 into 0.0 and change nothing else, by adding 0.0; a signalling NaN would warn."""
    with np.errstate(invalid="ignore"):
        np.add(values, 0.0, out=values)


def _to_numpy(column: pa.ChunkedArray, wanted: pa.DataType) -> Array:
    if pa.types.is_dictionary(column.type):
        return np.concatenate([_unpacked(chunk) for chunk in column.chunks])
    chunks = column.chunks or [pa.array([], column.type)]
    array = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        flat = np.frombuffer(array.buffers()[1] or b"", np.uint8)
        return flat[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)
    # It refuses what does not fit, where numpy would make 0 of 256.
    return _numbers(array.cast(wanted))


def _numbers(array: pa.Array) -> Array:
    """Numbers over the same memory, without nulls; Arrow's own way imports pandas first."""
    if array.null_count:
        return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    flat = np.frombuffer(array.buffers()[1] or b"", array.type.to_pandas_dtype())
    return flat[array.offset : array.offset + len(array)]


def _unpacked(chunk: pa.DictionaryArray) -> Bytes:
    """Trackers that are entries of a dictionary; their lengths are looked at first."""
    entries = chunk.dictionary
    _, offsets, data = entries.buffers()
    ends = np.frombuffer(offsets or bytes(4), np.int32)[entries.offset :][: len(entries) + 1]
    if (np.diff(ends) != TRACKER.byte_width).any():
        raise ValuesError("a tracker does not have 32 bytes")
    flat = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    indices = _numbers(chunk.indices)
    if indices.size and not 0 <= indices.min() <= indices.max() < len(entries):
        raise ValuesError("a tracker is not in its dictionary")
    found: Bytes = flat.reshape(-1, TRACKER.byte_width)[indices]
    return found

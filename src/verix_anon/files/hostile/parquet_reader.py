"""Reads Parquet into arrays: schema, rows and size are checked first, then Arrow decodes.

The footer states the size of a column, but a hostile footer lies. A page of a few hundred bytes can
unfold to two gigabytes. The decoder follows the page headers, so their sizes are what counts: they
are summed up before anything is decoded.
"""

import sys
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
from verix_anon.files.hostile import parquet_footer, thrift
from verix_anon.files.hostile.thrift import I32, Data
from verix_anon.files.scratch import Held
from verix_anon.machine import give_back, lacking

TRACKER = pa.binary(32)
# What a file may need besides its values, for dictionaries, levels and page headers.
SLACK_BYTES = 1 << 20
MAX_ROW_GROUPS = 100_000
# From this many rows on, threads share the columns. Passing them around costs about 0.1 ms.
LARGE_GROUP = 65_536
# Every page counts as at least this many bytes, because even an empty page takes time to read.
PAGE_BYTES = 256
# The limit of a footer: a base, more for each column, and a byte per row for row groups. Decoded,
# a hostile footer takes 240 times its size (measured).
FOOTER_BYTES = 1 << 18
FOOTER_BYTES_PER_COLUMN = 1 << 10
# What each part may need besides, for its pages and its footer.
PART_BYTES = PART_BYTES_PER_COLUMN = 1 << 10

# The types that clusters cannot write, and the types that they write instead.
IN_PARTS = {TRACKER: pa.binary(), pa.uint8(): pa.int16()}

# Fields of PageHeader.
TYPE, UNCOMPRESSED, COMPRESSED = 1, 2, 3
# For each type of page: the field that describes its content, and therein the field of the
# encoding. The number of values is always the first field.
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
CONTENT = {DATA: (5, 2), DICTIONARY: (7, 2), DATA_V2: (8, 4)}
N_VALUES = 1
# PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY and BYTE_STREAM_SPLIT: a page
# decodes to no more than its values. DELTA_BYTE_ARRAY is left out, because each of its values may
# repeat the one before and add to it: 400 bytes of file took 900 MB to decode.
ENCODINGS = frozenset({0, 2, 3, 5, 8, 9})

Array = npt.NDArray[np.generic]


class PageError(ValueError):
    """The bytes are not a sequence of pages, or are not safe to decode."""


class ValuesError(ValueError):
    """The decoded values are not what the column may hold."""


# Arrow raises a plain OSError for most faults in pages.
DECODERS = (parquet_footer.FooterError, PageError, ValuesError, pa.ArrowException, OSError)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file must hold: these columns with these types, and no nulls."""

    columns: Mapping[str, pa.DataType]
    parts: int = 0
    """How many files a folder is divided into; 0 means one file instead of a folder."""

    def bytes_for(self, n_rows: int) -> int:
        """Return how many bytes the rows may decode to: twice their values, for dictionaries."""
        width = sum(int(t.bit_width) // 8 for t in self.columns.values())
        beside = self.parts * (PART_BYTES + PART_BYTES_PER_COLUMN * len(self.columns))
        return SLACK_BYTES + beside + 2 * n_rows * width


class Reader:
    """One Parquet file. Opening it checks everything that needs no decoding.

    `most_rows` limits the rows, and `most_bytes` limits what their pages unfold to.
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
        # Keep them packed: a dictionary with one long entry would unfold without limit.
        self.packed = [str(i) for i, found in enumerate(types) if found == pa.binary()]

    def groups(self) -> list[int]:
        """Return the row groups that have rows."""
        return [i for i, n_rows in enumerate(self.group_rows) if n_rows]

    def read_group(self, group: int, names: Iterable[str]) -> dict[str, Array]:
        """Return some columns of a row group as arrays; binary columns as rows of bytes.

        Several threads may call it at the same time.
        """
        numbers = [self.numbers[name] for name in names]
        with self._decoding():
            # A thread of Arrow that releases our bytes while Python exits aborts the process
            # (twice in 1,200 runs), and then the exit code is wrong.
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
        """Yield a numeric column of a row group, `n_rows` rows at a time."""
        with self._decoding():
            for batch in self._file().iter_batches(
                n_rows, row_groups=[group], columns=[self.numbers[name]], use_threads=False
            ):
                if batch.column(0).null_count:
                    raise self.fail(f"{self.name}: column {name!r} has missing values")
                yield _numbers(batch.column(0))

    def _file(self) -> pq.ParquetFile:
        """Return this thread's reader, because Arrow's readers cannot be shared."""
        if not hasattr(self.local, "file"):
            self.local.file = pq.ParquetFile(
                self.data.open(), metadata=self.metadata, read_dictionary=self.packed
            )
        return self.local.file

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Turn a decoder's error into one about the bytes, and let all others pass."""
        try:
            yield
        except MemoryError:
            # Arrow's memory error is also one of the decoder's errors, so this comes first.
            work = f"decoding {self.name} ({self.data.size:,} bytes, {self.n_rows:,} rows)"
            raise TableError(lacking(work)) from None
        except DECODERS as error:
            if isinstance(error, OSError) and error.errno is not None:
                # This error is the system's, not Arrow's, which has no errno.
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
            # A group without rows is not decoded, and some writers give it strange offsets.
            for chunk in group.chunks if group.n_rows else ():
                if chunk.n_values != group.n_rows:
                    raise self.fail(f"{self.name}: its columns do not have as many values as rows")
                self.n_bytes += uncompressed_size(
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
    """Open the parts of one table. Together they may hold no more than one file could."""
    readers: list[Reader] = []
    for name, data in parts.items():
        reader = Reader(name, data, expected, fail, most_rows=n_rows, most_bytes=most_bytes)
        n_rows, most_bytes = n_rows - reader.n_rows, most_bytes - reader.n_bytes
        readers.append(reader)
    return readers


def uncompressed_size(
    data: Data, start: int, length: int, n_values: int, *, least: int = 0, most: int = sys.maxsize
) -> int:
    """Return the sum of a chunk's uncompressed page sizes, headers included.

    A page counts as at least `least` bytes. The sum may stop early once it is above `most`.
    """
    if start < 0 or length < 0 or start + length > len(data):
        raise PageError("a column lies outside the file")
    at, end, total, values_left = start, start + length, 0, n_values
    while at < end and total <= most:
        body, uncompressed, compressed, n_read = _page(data, at)
        total += max(least, body - at + uncompressed)
        values_left -= n_read
        at = body + compressed
    if total > most:
        return total
    if at != end:
        raise PageError("a page reaches beyond its column")
    # A decoder that misses values looks for more pages, and some versions look beyond the chunk.
    if values_left != 0:
        raise PageError(f"the pages of a column do not hold its {n_values} values")
    return total


def _page(data: Data, at: int) -> tuple[int, int, int, int]:
    """Return where a page's body begins, its two sizes, and how many column values it holds."""
    try:
        header, start = thrift.decode(data, at)
        kind = thrift.number(header, TYPE, I32)
        uncompressed = thrift.number(header, UNCOMPRESSED, I32)
        compressed = thrift.number(header, COMPRESSED, I32)
        if kind not in CONTENT:
            raise PageError("a page is of an unknown type")
        field, encoding_field = CONTENT[kind]
        _, content = header.get(field, (0, None))
        if not isinstance(content, dict):
            raise PageError("a page does not say what it holds")
        n_values = thrift.number(content, N_VALUES, I32)
        encoding = thrift.number(content, encoding_field, I32)
    except thrift.ThriftError as error:
        raise PageError(f"a page header is damaged: {error}") from None
    if encoding not in ENCODINGS:
        raise PageError(f"a page has encoding {encoding}, which is not read here")
    if kind == DICTIONARY and n_values > uncompressed:
        raise PageError("a dictionary is larger than its page")
    return start, uncompressed, compressed, 0 if kind == DICTIONARY else n_values


def copy_group(
    reader: Reader, group: int, into: Mapping[str, Array], where: slice | Ints | Ids, pool: Executor
) -> None:
    """Copy columns of a row group to their rows; threads share the columns of a large one."""

    def copy(names: Iterable[str]) -> None:
        for name, array in reader.read_group(group, names).items():
            into[name][where] = array

    is_large = reader.group_rows[group] >= LARGE_GROUP
    for _ in pool.map(copy, [[name] for name in into]) if is_large else map(copy, [into]):
        pass


def copy_all(
    readers: Iterable[Reader], into: Mapping[str, Array], threads: int, places: Ids | None = None
) -> None:
    """Copy columns of all row groups, one after the other, or each row to its place."""
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
    """Turn -0.0 into 0.0 by adding 0.0, which changes nothing else; no warning for NaN."""
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
    # The cast refuses values that do not fit. numpy would turn 256 into 0.
    return _numbers(array.cast(wanted))


def _numbers(array: pa.Array) -> Array:
    """Return numbers over the same memory. Arrow's own way would import pandas first."""
    if array.null_count:
        return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    flat = np.frombuffer(array.buffers()[1] or b"", array.type.to_pandas_dtype())
    return flat[array.offset : array.offset + len(array)]


def _unpacked(chunk: pa.DictionaryArray) -> Bytes:
    """Return trackers from a dictionary. Their lengths are checked before they unfold."""
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

"""The first rows of a table, read as all of it would be, however large it is."""

import codecs
import gzip
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

from verix_anon.errors import TableError
from verix_anon.files.tables import read_table_as
from verix_anon.files.tables.content import check_content
from verix_anon.files.tables.endings import PARQUET_SUFFIXES, TEXT_SUFFIXES
from verix_anon.files.tables.loading import wide_encoding
from verix_anon.files.tables.opening import reason
from verix_anon.files.tables.reading import Read, Reading
from verix_anon.files.tables.rows import RowEnds

__all__ = ["read_beginning"]

TEXT_BYTES = 1 << 17
"""Of a text table so much is read, and the rows that end in it."""
WHOLE_BYTES = 1 << 21
"""Other kinds of files are read as a whole, or not at all."""


def read_beginning(path: Path, reading: Reading, most: int) -> Read | None:
    """At most so many rows; None if they cannot be had without reading a large file.

    Raises:
        TableError: There is no such file, or it cannot be read as its name says.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        # Who opens a pipe waits for whoever writes to it.
        raise TableError(f"{path.name} is no file")
    lower = path.name.lower()
    if lower.endswith(TEXT_SUFFIXES):
        read = _of_text(path, reading)
    elif lower.endswith(PARQUET_SUFFIXES):
        read = read_table_as(path, reading, whole=False)
        return replace(read, table=read.table.first(most))
    elif path.is_file() and path.stat().st_size > WHOLE_BYTES:
        return None
    else:
        read = read_table_as(path, reading)
    return replace(read, table=read.table.slice(0, most))


def _of_text(path: Path, reading: Reading) -> Read:
    """Read a copy of the first rows, under the same name."""
    try:
        check_content(str(path))
        head, is_all = _head(path)
    except (OSError, EOFError) as error:
        raise TableError(f"{path.name} cannot be read ({reason(error)})") from None
    wide = None if is_all else _wide(head, reading)
    given = reading
    if not is_all:
        # What stands below the last row is not among the first.
        given = replace(reading, footer=0, encoding=None if wide else reading.encoding)
        head = _whole_rows(path.name, _plain(head, wide), given)
    with tempfile.TemporaryDirectory() as folder:
        name = path.name.removesuffix(".gz").removesuffix(".GZ")
        (Path(folder) / name).write_bytes(head)
        try:
            read = read_table_as(Path(folder) / name, given)
        except TableError as error:
            raise TableError(str(error).replace(f"{folder}/", "")) from None
    said = read.reading if is_all else replace(read.reading, footer=reading.footer)
    return replace(read, reading=replace(said, encoding=wide or said.encoding))


def _head(path: Path) -> tuple[bytes, bool]:
    """The first bytes, unpacked, and whether these are all."""
    with path.open("rb") as file:
        packed = path.name.lower().endswith(".gz")
        plain = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file
        head = plain.read(TEXT_BYTES + 1)
    return head[:TEXT_BYTES], len(head) <= TEXT_BYTES


def _wide(head: bytes, reading: Reading) -> str | None:
    """An encoding in which a letter is more than a byte, so that bytes cannot be cut anywhere."""
    if reading.encoding is None:
        return wide_encoding(head)
    return reading.encoding if "16" in reading.encoding or "32" in reading.encoding else None


def _plain(head: bytes, wide: str | None) -> bytes:
    if wide is None:
        return head
    try:
        return codecs.getincrementaldecoder(wide)("replace").decode(head).encode()
    except LookupError:
        raise TableError(f"encoding: there is none called {wide[:40]!r}") from None


def _whole_rows(name: str, head: bytes, reading: Reading) -> bytes:
    """Up to the last end of a row; all of it if there is none, which the reading then says."""
    rows = RowEnds(name, head, reading)
    rows.feed(head)
    return head[: len(head) - rows.since] or head

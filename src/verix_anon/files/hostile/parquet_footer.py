"""Reads a Parquet footer that a stranger wrote, and writes a clean one for Arrow.

Arrow believes a footer. A hostile one makes it fill gigabytes, nest until the stack ends, or load
extension types. It can also end the process with an exception that Python cannot catch. So this
module reads only the few numbers that decoding needs, and Arrow gets a footer with just these.
"""

from typing import NamedTuple

from verix_anon.files.hostile import thrift
from verix_anon.files.hostile.thrift import BINARY, I32, I64, LIST, STRUCT, Fields, List

MAGIC = b"PAR1"
# Field numbers of parquet.thrift.
VERSION, SCHEMA, N_ROWS, GROUPS = 1, 2, 3, 4  # FileMetaData
COLUMNS, GROUP_BYTES, GROUP_ROWS = 1, 2, 3  # RowGroup
FILE_OFFSET, META = 2, 3  # ColumnChunk
PHYSICAL, ENCODINGS, PATH, CODEC, N_VALUES, UNCOMPRESSED, COMPRESSED = range(1, 8)
DATA_OFFSET, DICTIONARY_OFFSET = 9, 11  # ColumnMetaData
NAME, N_CHILDREN = 4, 5  # SchemaElement
# What says how to read a column: its physical type and width, whether values may be missing, its
# name, and the two forms of a logical type with scale and precision.
COLUMN_FIELDS = (1, 2, 3, 4, 6, 7, 8, 10)
# Without the logical type, because Arrow reads a 257 that is stored for an 8-bit number as 1.
STORED_FIELDS = COLUMN_FIELDS[:4]


class FooterError(ValueError):
    """The bytes do not end in a footer, or the footer is not that of a flat table."""


class Chunk(NamedTuple):
    """Where the pages of one column in one row group lie."""

    start: int
    length: int
    n_values: int


class Group(NamedTuple):
    """One row group."""

    n_rows: int
    chunks: list[Chunk]


class Footer(NamedTuple):
    """What a footer says, and clean files without pages that say only that.

    In these files columns are named by number, because Arrow splits a name at its dots.
    """

    names: list[str]
    groups: list[Group]
    schema: bytes
    """A file without rows whose columns have the types that the footer gives them."""
    clean: bytes
    """A file whose columns have the types in which values are stored, which may be wider."""
    body: int
    """Where the footer begins and the pages end."""


def read_footer(data: bytes | memoryview, *, most: int, before: int = 0) -> Footer:
    """Read a footer of at most `most` bytes; `data` starts at `before` in the file."""
    size = int.from_bytes(data[-8:-4], "little")
    if data[-4:] != MAGIC or size > before + len(data) - 8:
        raise FooterError("it does not end as one")
    if size > most:
        raise FooterError(f"its footer is larger than the {most} bytes it may have")
    body = len(data) - 8 - size
    try:
        fields, _ = thrift.decode(memoryview(data)[body:-8], 0)
        names, columns = _columns(fields)
        n_rows = thrift.number(fields, N_ROWS, I64)
        groups = [_group(group, columns) for group in thrift.structs(fields, GROUPS)]
    except thrift.ThriftError as error:
        raise FooterError(f"its footer is damaged: {error}") from None
    stored = [{i: column[i] for i in STORED_FIELDS if i in column} for column in columns]
    clean = _file(stored, n_rows, [written for _, written in groups])
    only = [group for group, _ in groups]
    return Footer(names, only, _file(columns, 0, []), clean, before + body)


def _file(columns: list[Fields], n_rows: int, groups: list[Fields]) -> bytes:
    """Return a file that holds only this footer."""
    root: Fields = {NAME: (BINARY, b"schema"), N_CHILDREN: (I32, len(columns))}
    footer = thrift.encode(
        {
            VERSION: (I32, 2),
            SCHEMA: (LIST, List(STRUCT, [root, *columns])),
            N_ROWS: (I64, n_rows),
            GROUPS: (LIST, List(STRUCT, [*groups])),
        }
    )
    return MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC


def _columns(fields: Fields) -> tuple[list[str], list[Fields]]:
    """Return the names of a flat schema's columns, and the columns named by number."""
    root, *columns = thrift.structs(fields, SCHEMA) or [{}]
    is_nested = any(column.get(N_CHILDREN, (I32, 0))[1] != 0 for column in columns)
    if thrift.number(root, N_CHILDREN, I32) != len(columns) or is_nested:
        raise FooterError("its columns are nested")
    found = [column.get(NAME, (0, b"")) for column in columns]
    try:
        names = [n.decode() for kind, n in found if kind == BINARY and isinstance(n, bytes)]
    except UnicodeDecodeError:
        raise FooterError("a column's name is not text") from None
    if len(names) != len(columns):
        raise FooterError("a column has no name")
    kept = [{i: column[i] for i in COLUMN_FIELDS if i in column} for column in columns]
    return names, [{**c, NAME: (BINARY, str(i).encode())} for i, c in enumerate(kept)]


def _group(fields: Fields, columns: list[Fields]) -> tuple[Group, Fields]:
    n_rows = thrift.number(fields, GROUP_ROWS, I64)
    found = thrift.structs(fields, COLUMNS)
    if len(found) != len(columns):
        raise FooterError("a row group does not have all columns")
    chunks, written = [], []
    for chunk, column in zip(found, columns, strict=True):
        _, meta = chunk.get(META, (0, None))
        if not isinstance(meta, dict):
            raise FooterError("a column of a row group is not described")
        start = thrift.number(meta, DATA_OFFSET, I64)
        # Some writers say 0 if there is no dictionary.
        if DICTIONARY_OFFSET in meta:
            dictionary = thrift.number(meta, DICTIONARY_OFFSET, I64)
            start = dictionary if 0 < dictionary < start else start
        length = thrift.number(meta, COMPRESSED, I64)
        chunks.append(Chunk(start, length, thrift.number(meta, N_VALUES, I64)))
        written.append(_written(chunks[-1], thrift.number(meta, CODEC, I32), column))
    members: Fields = {
        COLUMNS: (LIST, List(STRUCT, list(written))),
        GROUP_BYTES: (I64, 0),
        GROUP_ROWS: (I64, n_rows),
    }
    return Group(n_rows, chunks), members


def _written(chunk: Chunk, codec: int, column: Fields) -> Fields:
    meta: Fields = {
        PHYSICAL: (I32, thrift.number(column, PHYSICAL, I32)),
        ENCODINGS: (LIST, List(I32, [])),
        PATH: (LIST, List(BINARY, [column[NAME][1]])),
        CODEC: (I32, codec),
        N_VALUES: (I64, chunk.n_values),
        UNCOMPRESSED: (I64, chunk.length),
        COMPRESSED: (I64, chunk.length),
        DATA_OFFSET: (I64, chunk.start),
    }
    return {FILE_OFFSET: (I64, 0), META: (STRUCT, meta)}

"""The way from a public origin to a table: fetch bytes, unpack them, read the file format.

The bytes are hostile until the caller has compared the table with the catalogue: sizes are bounded
before anything is unpacked, and whatever does not read raises a TableError.
"""

import io
import time
import zipfile
import zlib
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from pathlib import PurePosixPath
from typing import IO, TypeAlias
from urllib.request import HTTPRedirectHandler, Request, build_opener

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from experiments.data.catalog import DataSet, Layout, Origin
from verix_anon.errors import TableError

Fetch = Callable[[str], bytes]
Strings: TypeAlias = "pa.ChunkedArray[pa.StringScalar]"
Column: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]] | pa.ChunkedArray[pa.Scalar[pa.DataType]]"

# The largest public files are about 20 MB of text.
_MAX_BYTES = 100_000_000
_SILENCE_SECONDS = 30
_TOTAL_SECONDS = 600
# All that zipfile is known to raise for bytes that are no archive, or one it cannot open.
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, OSError)


class _HttpsOnly(HTTPRedirectHandler):
    """Follows a redirection only to another https address."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        _demand_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _demand_https(url: str) -> None:
    """Raise unless an address is https."""
    if not url.startswith("https://"):
        raise TableError(f"Tables are downloaded over https only, not from {url}.")


def fetch_https(url: str) -> bytes:
    """Return the bytes behind an https address, within bounds of size and time."""
    _demand_https(url)
    request = Request(url, headers={"User-Agent": "verix-anon"})  # noqa: S310 - the line above
    try:
        with build_opener(_HttpsOnly).open(request, timeout=_SILENCE_SECONDS) as response:
            return _read_bounded(response, url)
    except (OSError, HTTPException) as error:
        raise TableError(f"Cannot download {url}: {error}") from error


def _read_bounded(stream: IO[bytes], url: str) -> bytes:
    """Read all of a stream, unless it is too long or too slow."""
    # The timeout of a socket bounds each silence; only a deadline bounds a trickle.
    deadline = time.monotonic() + _TOTAL_SECONDS
    blob = bytearray()
    while chunk := stream.read(1 << 16):
        blob += chunk
        if len(blob) > _MAX_BYTES:
            raise TableError(f"{url} sends more than {_MAX_BYTES:,} bytes.")
        if time.monotonic() > deadline:
            raise TableError(f"{url} took more than {_TOTAL_SECONDS} seconds.")
    return bytes(blob)


def unpack(blob: bytes, origin: Origin) -> list[bytes]:
    """Return the files of an origin that hold the table, in the order of its rows."""
    if not origin.members:
        return [blob]
    try:
        texts = [_find(blob, member, depth=1) for member in origin.members]
    except _ZIP_ERRORS as error:
        raise TableError(f"What {origin.url} sends is not a zip archive: {error}") from error
    found = [text for text in texts if text is not None]
    if len(found) < len(texts):
        raise TableError(f"The archive {origin.url} lacks {' or '.join(origin.members)}.")
    return found


def _find(blob: bytes, member: str, depth: int) -> bytes | None:
    """Look for a file in an archive, and in the archives it holds down to a depth."""
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        for info in archive.infolist():
            path = PurePosixPath(info.filename)
            if path.name == member:
                return _inflate(archive, info)
            if path.suffix == ".zip" and depth > 0:
                inner = _find(_inflate(archive, info), member, depth - 1)
                if inner is not None:
                    return inner
    return None


def _inflate(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Read one file of an archive, unless it is too long."""
    # The directory of an archive may lie about sizes; the read is bounded by what it claims.
    if info.file_size > _MAX_BYTES:
        raise TableError(f"{info.filename} in the archive is over {_MAX_BYTES:,} bytes.")
    return archive.read(info)


def parse(text: bytes, dataset: DataSet) -> pa.Table:
    """Read the rows of one public file, with the columns and types of the catalogue."""
    try:
        return _convert(_read_text(text, dataset), dataset)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise TableError(f"The public file of {dataset.name!r} does not read: {error}") from error


def _read_text(text: bytes, dataset: DataSet) -> pa.Table:
    """Read a public file as a table of strings whose last column is the label."""
    names, body = _split(text, dataset)
    return csv.read_csv(
        io.BytesIO(body),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter=dataset.origin.delimiter),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
    )


def _split(text: bytes, dataset: DataSet) -> tuple[list[str], bytes]:
    """Part the column names of a public file from its rows."""
    lines = text.splitlines()
    match dataset.origin.layout:
        case Layout.BARE:
            # The test part of adult opens with a remark.
            return dataset.schema.names, b"\n".join(x for x in lines if not x.startswith(b"|"))
        case Layout.HEADER:
            header = b"".join(lines[:1]).decode().split(dataset.origin.delimiter)
            return [name.strip(' "') for name in header], b"\n".join(lines[1:])
        case Layout.ARFF:
            return _split_arff(lines, dataset.name)


def _split_arff(lines: list[bytes], name: str) -> tuple[list[str], bytes]:
    """Part the attributes that an ARFF file declares from the rows after its data line."""
    names: list[str] = []
    for at, line in enumerate(lines):
        match line.split(None, 2):
            case [key, attribute, _] if key.lower() == b"@attribute":
                names.append(attribute.decode().strip("'\""))
            case [key] if key.lower() == b"@data":
                return names, b"\n".join(lines[at + 1 :])
    raise TableError(f"The public file of {name!r} has no ARFF data section.")


def _convert(raw: pa.Table, dataset: DataSet) -> pa.Table:
    """Give strings the types of the catalogue; columns it does not know are left out."""
    schema = dataset.schema
    features = schema.names[:-1]
    if wrong := [name for name in features if raw.column_names.count(name) != 1]:
        raise TableError(f"The public file of {dataset.name!r} lacks {', '.join(wrong)}.")
    columns = [_typed(raw[name], schema.field(name).type) for name in features]
    target = _target(raw.column(raw.num_columns - 1), dataset)
    return pa.table([*columns, target], schema=schema)


def _typed(strings: Strings, kind: pa.DataType) -> Column:
    """Give one column its type, with `?` as null."""
    trimmed = pc.utf8_trim_whitespace(strings)
    is_missing = pc.equal(trimmed, pa.scalar("?"))
    known: Column = pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)
    # Some publishers write integers as 20000.0; the last cast refuses what is not whole.
    return known if kind == pa.string() else known.cast(pa.float64()).cast(kind)


def _target(strings: Strings, dataset: DataSet) -> Column:
    """Turn the labels into 0 and 1."""
    origin = dataset.origin
    # The test part of adult ends its labels with a dot.
    labels = pc.utf8_rtrim(pc.utf8_trim_whitespace(strings), ".")
    strange = {str(label) for label in labels.unique().to_pylist()}
    strange -= {*origin.negative, origin.positive}
    if strange:
        few = ", ".join(sorted(strange)[:5])
        raise TableError(f"The public file of {dataset.name!r} has unknown labels: {few}.")
    return pc.equal(labels, pa.scalar(origin.positive)).cast(pa.int8())

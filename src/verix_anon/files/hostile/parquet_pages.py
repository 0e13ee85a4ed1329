"""Sums up from the page headers how much a Parquet column chunk decodes to, before decoding.

The footer states the size of a column, but a hostile footer lies. A page of a few hundred bytes can
unfold to two gigabytes. The decoder follows the page headers, so their sizes are what counts.
"""

import sys

from verix_anon.files.hostile import thrift
from verix_anon.files.hostile.thrift import I32, Data

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


class PageError(ValueError):
    """The bytes are not a sequence of pages, or are not safe to decode."""


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

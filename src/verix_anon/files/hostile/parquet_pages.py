"""How much a Parquet column chunk decodes to, read off its page headers before decoding.

The footer says how large a column is; a hostile one says it wrongly, and a page of a few
hundred bytes can then unfold to two gigabytes. Page headers are what the decoder goes by,
so their sizes are summed first.
"""

import sys

from verix_anon.files.hostile import thrift
from verix_anon.files.hostile.thrift import I32, Data

# Fields of PageHeader.
TYPE, UNCOMPRESSED, COMPRESSED = 1, 2, 3
# By the type of a page: the field that describes its content, and the field of the encoding
# in that; the number of values is the first field of each.
DATA, DICTIONARY, DATA_V2 = 0, 2, 3
CONTENT = {DATA: (5, 2), DICTIONARY: (7, 2), DATA_V2: (8, 4)}
N_VALUES = 1
# PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY and BYTE_STREAM_SPLIT: they
# cannot make more of a page than its values. DELTA_BYTE_ARRAY can: each of its values may
# repeat the one before and add to it, so that 400 bytes of file took 900 MB to decode.
ENCODINGS = frozenset({0, 2, 3, 5, 8, 9})


class PageError(ValueError):
    """These bytes are not a sequence of pages, or not one that is safe to decode."""


def uncompressed_size(
    data: Data, start: int, length: int, n_values: int, *, least: int = 0, most: int = sys.maxsize
) -> int:
    """The sum of the uncompressed page sizes, headers included, of a chunk of `n_values`.

    A page counts as at least `least` bytes; a sum beyond `most` is returned as it stands.
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
    # A decoder that misses values looks for more pages, in some versions beyond the chunk.
    if values_left != 0:
        raise PageError(f"the pages of a column do not hold its {n_values} values")
    return total


def _page(data: Data, at: int) -> tuple[int, int, int, int]:
    """Where a page's body begins, its two sizes, and how many values of the column it holds."""
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

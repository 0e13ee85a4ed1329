"""Where rows end, as a text table is read: a quoted field may hold ends of lines, within bounds.

Without this a quote that is never closed would be noticed only when all of the file is in memory.
"""

import re

import numpy as np

from verix_anon.arrays import Ints
from verix_anon.errors import TableError
from verix_anon.files.tables.quotes import Quotes
from verix_anon.files.tables.reading import Reading

__all__ = ["LARGEST_LINE", "LARGEST_ROW", "RowEnds"]

LARGEST_LINE = 1 << 22
"""Bytes: a table that holds a longer line is refused."""
LARGEST_ROW = 2 * LARGEST_LINE
ENDS = re.compile(rb"[\r\n]")


class RowEnds:
    """The bytes since the last end of a row, over one chunk after the other.

    As long as each quote opens or closes a field, or is one of two within it, which of them open
    is known by counting. Once one does not, only those that stand at the beginning of a field are
    taken to open it.
    """

    def __init__(self, name: str, head: bytes, reading: Reading) -> None:
        quote = reading.quote
        if quote is None:
            quote = "'" if head.lstrip().startswith(b"'") else '"'
        self.name = name
        self.quote = quote.encode()
        self.quotes = Quotes(quote) if quote else None
        self.since = 0
        self.is_inside = False
        self.before = b"\n"
        self.marks = b",;\t|" + (reading.delimiter or "").encode()[:1]
        beside = re.escape(self.marks + b"\r\n"), re.escape(self.quote)
        self.opening = re.compile(rb"(?<=[%b])%b" % beside)
        self.within = re.compile(rb"(?:[^\\%b]++|\\.|%b%b)*+" % ((self.quote,) * 3), re.S)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; raises if a row goes on for too long."""
        if not self.quote or (self.quotes is None and self.quote not in chunk):
            first, last = (-1, -1) if self.is_inside else _ends(chunk, 0, len(chunk))
        else:
            first, last = self._counted(chunk) or self._sought(chunk)
        if self.since + (len(chunk) if first < 0 else first) > LARGEST_ROW:
            raise TableError(
                f"{self.name} holds a row of more than {LARGEST_ROW >> 20} MiB; a quote may be"
                " missing, or mean nothing: then say so with --quote none"
            )
        self.since = self.since + len(chunk) if last < 0 else len(chunk) - last - 1
        self.before = chunk[-1:] or self.before

    def _counted(self, chunk: bytes) -> tuple[int, int] | None:
        """Where the first and the last row end; None if a quote stands elsewhere."""
        if self.quotes is None:
            return None
        at = self.quotes.feed(chunk)
        if not self.quotes.fit(self.marks):
            self.quotes = None
            return None
        starts, self.is_inside = [] if self.is_inside else [-1], self.quotes.is_inside
        # Between two quotes of which the first closes a field, or before the first, or after.
        edges = np.concatenate((starts, at, [] if self.is_inside else [len(chunk)]))
        return _first(chunk, edges), _last(chunk, edges)

    def _sought(self, chunk: bytes) -> tuple[int, int]:
        """The same, quote by quote."""
        text, at, first, last = self.before + chunk, 1, -1, -1
        if not self.is_inside and text[:2] == 2 * self.quote:
            self.is_inside, at = True, 2  # Two of them, that stand in two chunks.
        while at < len(text):
            if self.is_inside:
                found = self.within.match(text, at)
                at = found.end() + 1 if found else len(text)
                self.is_inside = text[at - 1 : at] != self.quote
                continue
            opening = self.opening.search(text, at)
            stop = opening.start() if opening else len(text)
            here = _ends(text, at, stop)
            if here[1] >= 0:
                first, last = here[0] if first < 0 else first, here[1]
            at, self.is_inside = stop + 1, opening is not None
        return (first - 1, last - 1) if first >= 0 else (-1, -1)


def _first(chunk: bytes, edges: Ints) -> int:
    """The first end of a line outside of quotes; edges are where that begins and ends, in turn."""
    for i in range(0, len(edges), 2):
        found = ENDS.search(chunk, int(edges[i]) + 1, int(edges[i + 1]))
        if found:
            return found.start()
    return -1


def _last(chunk: bytes, edges: Ints) -> int:
    for i in range(len(edges) - 2, -1, -2):
        start, stop = int(edges[i]) + 1, int(edges[i + 1])
        found = max(chunk.rfind(b"\n", start, stop), chunk.rfind(b"\r", start, stop))
        if found >= 0:
            return found
    return -1


def _ends(text: bytes, start: int, stop: int) -> tuple[int, int]:
    found = ENDS.search(text, start, stop)
    if found is None:
        return -1, -1
    return found.start(), max(text.rfind(b"\n", start, stop), text.rfind(b"\r", start, stop))

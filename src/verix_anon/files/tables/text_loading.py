"""Load the bytes of a text table within bounds, and give them as UTF-8 (spec §2.5).

A file that is not a text table is refused after a few megabytes: a .gz that unpacks to far too
much, NUL bytes, or a line or row that does not end. A row ends where a line ends outside of quotes,
so quotes are counted as the bytes come in. Otherwise a quote that is never closed would be noticed
only when the whole file is in memory.
"""

import codecs
import gzip
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, cast

import numpy as np

from verix_anon.arrays import Ints
from verix_anon.errors import TableError
from verix_anon.files.table_form import Reading
from verix_anon.files.tables.table_sources import opened, shown_url
from verix_anon.machine import check_memory

CHUNK = 1 << 20
PIECE = 1 << 20
"""How many bytes are looked at together; they fit into the processor's cache."""
LARGEST_LINE = 1 << 22
"""Bytes: a table that holds a longer line is refused."""
LARGEST_ROW = 2 * LARGEST_LINE
BOMB_BYTES, BOMB_RATIO = 1 << 28, 200
"""A .gz is refused if it unpacks to more than `BOMB_BYTES`, and `BOMB_RATIO` times its size."""
TIMES_IN_MEMORY = 4
"""Memory by size of the file: for the file, the columns as text, and the typed columns."""
ENDS = re.compile(rb"[\r\n]")
MARKS = (
    (codecs.BOM_UTF8, "UTF-8"),
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
# Text in Windows-1252 never has signs or quotes within a word, or words of accented letters only.
IMPLAUSIBLE = re.compile(
    r"[A-Za-z][\u00a1-\u00bf\u00d7\u00f7\u201a\u201e\u2026\u2020\u2021\u02c6\u2030\u201c\u201d"
    r"\u02dc\u2122\u0192]+[A-Za-z]|[\u00c0-\u00ff]{4}|[\u00a4\u0178]"
)
WORD = re.compile(r"\w*[^\W\x00-\x7f]+\w*")


def load(name: str, reading: Reading) -> "tuple[bytearray, Quotes | None]":
    """Load the whole file, unpacked, and its quotes if each may open or close a field.

    A file that is not a text table is refused after its first few megabytes.
    """
    data, shown = bytearray(), shown_url(name)
    with opened(name) as file, ThreadPoolExecutor(1) as beside:
        packed = name.lower().endswith(".gz")
        plain = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file
        since, may_hold_nul, largest = 0, True, 1 << 28
        rows: RowEnds | None = None
        counting: Future[None] | None = None
        while chunk := plain.read(CHUNK):
            if counting:
                counting.result()
            # Look for quotes and ends of rows without the byte order mark and NUL bytes of wide
            # encodings.
            text = chunk.replace(b"\0", b"")
            if rows is None:
                text = text.lstrip(b"\xef\xbb\xbf\xff\xfe")
                may_hold_nul = reading.encoding is not None or wide_encoding(chunk) is not None
                rows = RowEnds(shown, text, reading)
            if not may_hold_nul and b"\0" in chunk:
                line = data.count(b"\n") + chunk[: chunk.index(b"\0")].count(b"\n") + 1
                raise TableError(f"{shown}: line {line:,} holds a NUL byte; it is not a text table")
            since = _since_line_end(shown, chunk, since)
            # This takes about as long as reading the next chunk, and runs beside it.
            counting = beside.submit(rows.feed, text)
            data += chunk
            if len(data) > largest:
                largest *= 2
                check_memory(TIMES_IN_MEMORY * len(data), f"reading {shown}", TableError)
            if packed and len(data) > max(BOMB_BYTES, BOMB_RATIO * file.tell()):
                raise TableError(
                    f"{shown} unpacks to more than {BOMB_RATIO} times its size; unpack it first,"
                    " if that is right"
                )
        if counting:
            counting.result()
    check_memory((TIMES_IN_MEMORY - 1) * len(data), f"reading {shown}", TableError)
    return data, rows.quotes if rows else None


def _since_line_end(name: str, chunk: bytes, since: int) -> int:
    """Return how many bytes follow the last end of a line; refuse too many."""
    first, last = _ends(chunk, 0, len(chunk))
    if since + (len(chunk) if first < 0 else first) > LARGEST_LINE:
        raise TableError(
            f"{name} holds a line of more than {LARGEST_LINE >> 20} MiB; this is not a table"
            " of people, or its lines end in another way than in text files"
        )
    return since + len(chunk) if last < 0 else len(chunk) - last - 1


class RowEnds:
    """Counts the bytes since the last end of a row, over one chunk after another.

    While each quote opens or closes a field, or is one of two within it, counting tells which
    quotes open a field. After the first other quote, only a quote at the beginning of a field
    opens it.
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
        """Take the next bytes; raises TableError if a row is too long."""
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
        """Return where the first and the last row end; None if a quote is in another place."""
        if self.quotes is None:
            return None
        at = self.quotes.feed(chunk)
        if not self.quotes.fit(self.marks):
            self.quotes = None
            return None
        starts, self.is_inside = [] if self.is_inside else [-1], self.quotes.is_inside
        # The text outside of quotes: before the first, after a closing one, and after the last.
        edges = np.concatenate((starts, at, [] if self.is_inside else [len(chunk)]))

        def found(places: range) -> tuple[int, int]:
            ends = (_ends(chunk, int(edges[i]) + 1, int(edges[i + 1])) for i in places)
            return next((pair for pair in ends if pair[0] >= 0), (-1, -1))

        places = range(0, len(edges), 2)
        return found(places)[0], found(places[::-1])[1]

    def _sought(self, chunk: bytes) -> tuple[int, int]:
        """Return where the first and the last row end, looking at quote after quote."""
        text, at, first, last = self.before + chunk, 1, -1, -1
        if not self.is_inside and text[:2] == 2 * self.quote:
            self.is_inside, at = True, 2  # A double quote, split over two chunks.
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


def _ends(text: bytes, start: int, stop: int) -> tuple[int, int]:
    """Return where the first and the last line end; -1 if no line ends."""
    found = ENDS.search(text, start, stop)
    if found is None:
        return -1, -1
    return found.start(), max(text.rfind(b"\n", start, stop), text.rfind(b"\r", start, stop))


class Quotes:
    """Counts quotes, where every second one opens a field, and notes the characters beside them.

    Of two quotes within a field, the first closes it and the second opens it again.
    """

    def __init__(self, quote: str) -> None:
        self.quote = quote
        self.is_inside = False
        self._byte = quote.encode()[0]
        self._before = ord("\n")
        self._outside = np.zeros(256, bool)

    @classmethod
    def of(cls, data: bytes | bytearray, quote: str) -> "Quotes":
        """Count the quotes of a whole text."""
        found, text = cls(quote), memoryview(data)
        for start in range(0, len(data), PIECE):
            found.feed(text[start : start + PIECE])
        return found

    def feed(self, text: bytes | memoryview) -> Ints:
        """Take the next bytes, and return where they have quotes."""
        array = np.frombuffer(text, np.uint8)
        at = np.flatnonzero(array == self._byte)
        if not array.size:
            return at
        inside = int(self.is_inside)
        opening, closing = at[inside::2], at[1 - inside :: 2]
        if self._before == self._byte and not inside:
            self._outside[array[0]] = True
        if opening.size and opening[0] == 0:
            self._outside[self._before] = True
            opening = opening[1:]
        if closing.size and closing[-1] == array.size - 1:
            closing = closing[:-1]
        self._outside[array[opening - 1]] = True
        self._outside[array[closing + 1]] = True
        self._before = int(array[-1])
        self.is_inside = bool((inside + at.size) % 2)
        return at

    def fit(self, marks: bytes) -> bool:
        """Whether each quote so far opens or closes a field; `marks` may be beside a field."""
        others = self._outside.copy()
        others[[*marks, *b"\r\n", self._byte]] = False
        return not others.any()


def wide_encoding(head: bytes | bytearray) -> str | None:
    """Return the wide encoding that the first bytes show, by a mark or the places of NULs."""
    for mark, label in MARKS[1:]:
        if head.startswith(mark):
            return label
    head = head[:4096]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if 3 * odd > len(head) // 2 and not even:
        return "UTF-16LE"
    return "UTF-16BE" if 3 * even > len(head) // 2 and not odd else None


def to_utf8(name: str, data: bytearray, given: str | None) -> tuple[bytes | bytearray, str, str]:
    """Return the text in UTF-8 without a mark, its encoding, and a note about it."""
    if given is not None:
        try:
            "".encode(codecs.lookup(given).name)
        except (LookupError, ValueError, UnicodeError):
            raise TableError(f"encoding: there is none called {given[:40]!r}") from None
        return _transcoded(name, data, given), given, ""
    if wide := wide_encoding(data):
        return _transcoded(name, data, wide), wide, ""
    try:
        if not data.isascii():
            _each_decoded(data, "utf-8", lambda _: None)
        encoding = "UTF-8-SIG" if data.startswith(codecs.BOM_UTF8) else "UTF-8"
        return _bare(data), encoding, ""
    except UnicodeDecodeError as error:
        wrong = error.start
    return _western(name, data, wrong)


def _bare(data: bytearray) -> bytearray:
    if data.startswith(codecs.BOM_UTF8):
        del data[: len(codecs.BOM_UTF8)]
    return data


def _each_decoded(data: bytearray, encoding: str, use: Callable[[str], object]) -> None:
    """Decode piece by piece; an error says where it is in the whole text."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    for at in range(0, len(data), CHUNK):
        kept = len(decoder.getstate()[0])
        try:
            use(decoder.decode(memoryview(data)[at : at + CHUNK]))
        except UnicodeDecodeError as error:
            error.start += at - kept
            raise
    try:
        use(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        error.start = len(data) - 1
        raise


def _transcoded(name: str, data: bytearray, encoding: str) -> bytearray:
    found = bytearray()
    try:
        _each_decoded(data, encoding, lambda text: found.extend(text.encode()))
    except UnicodeDecodeError as error:
        raise TableError(
            f"{name}: line {_line(data, error.start):,} is not {encoding} text; give another"
            " encoding (--encoding), or save the table again as UTF-8"
        ) from None
    except UnicodeEncodeError:
        raise TableError(f"{name} is not {encoding} text; give another (--encoding)") from None
    return _bare(found)


def _line(data: bytearray, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _western(name: str, data: bytearray, wrong: int) -> tuple[bytearray, str, str]:
    """Decode text as Windows-1252, which includes Latin-1; raises TableError if it looks wrong."""
    way_out = "give its encoding (--encoding), or save the table again as UTF-8"
    line = _line(data, wrong)
    # Accented letters in another encoding are almost never valid UTF-8 by chance.
    if not data.decode("utf-8", "ignore").isascii():
        raise TableError(f"{name}: line {line:,} is not UTF-8 text, though others are; {way_out}")
    shown: list[str] = []

    def look(text: str) -> None:
        if odd := IMPLAUSIBLE.search(text):
            raise TableError(
                f"{name} is not UTF-8 text, and read as Windows-1252 it holds {odd.group()!r};"
                f" {way_out}"
            )
        if len(shown) < 3:
            shown.extend(WORD.findall(text)[:3])
        found.extend(text.encode())

    found = bytearray()
    try:
        _each_decoded(data, "windows-1252", look)
    except UnicodeDecodeError:
        raise TableError(f"{name} is neither UTF-8 nor Windows-1252 text; {way_out}") from None
    words = ", ".join(repr(word[:30]) for word in dict.fromkeys(shown))
    note = f"the table is not UTF-8 text; read as Windows-1252 it holds {words}" if words else ""
    return found, "Windows-1252", f"{note}: if that is wrong, {way_out}" if note else ""

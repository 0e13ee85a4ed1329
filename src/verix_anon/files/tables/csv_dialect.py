"""Recognise the form of a text table: delimiter, quotes, header and rows (spec §2.5).

This uses no library. Delimiters are few. A library guesses from a part of the file, without the
titles and sums around the rows, so its guess would have to be checked against the whole file.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verix_anon.errors import TableError
from verix_anon.files.table_form import Question, Reading
from verix_anon.files.tables.file_kinds import TAB_SUFFIXES
from verix_anon.files.tables.text_loading import LARGEST_LINE, Quotes

if TYPE_CHECKING:
    from _csv import Reader

MOST_COLUMNS = 16_384
DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 1 << 18
NEVER = "\x1f"
"""The delimiter of a table with one column: no text has it."""
MOST_ABOVE = 50
"""In how many lines a header is looked for."""
TAIL = 1 << 16
LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")
SEP = re.compile(r'"?sep=(.)"?\s*\Z', re.I | re.S)
RULER = re.compile(r"[-=_+:]{3,}")
NUMBER = re.compile(r"\s*[+-]?[0-9][0-9.,'\s]*%?\s*")
SUM = re.compile(
    r"\s*(grand total|totals?|totale|sum|summe|gesamtsumme|gesamt|insgesamt|somme|suma)\s*:?\s*",
    re.I,
)
SINGLE_QUOTED = re.compile(r"'[^']+'|'[^']*'(?P<mark>[,;\t|])'[^']*'((?P=mark)'[^']*')*")
REMARK = re.compile(r"\s*(\S[^:]{0,40}:(\s.*|\s*)|[*(©].*)", re.S)
"""A remark such as `Source: ...` or `(200 rows)`, if its row has no other fields."""
Text = bytes | bytearray
Row = tuple[int, list[str]]
"""The line that the row begins on, counted from 0, and its fields."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the lines of a table are cut into fields, and which of them are its header and rows."""

    delimiter: str
    quote: str
    escape: str
    skip: int
    header: tuple[str, ...]
    start: int
    """Where the first row begins, in bytes."""
    first_line: int
    """The number of the first row's line, counted from 1."""
    above: tuple[str, ...]
    """The lines above the header."""

    def rows(self, texts: Iterator[str]) -> "Reader":
        """Split each row into its fields."""
        return reader(texts, self.delimiter, self.quote, self.escape)


def form_of(name: str, data: Text, reading: Reading, quotes: Quotes | None = None) -> Dialect:
    """Return a table's form, as given or as recognised; `quotes` if all were counted before.

    Raises:
        TableError: This is not a table, or its form is not clear.
    """
    lines = _head(data)
    if not any(text.strip() for _, text in lines):
        raise TableError(f"{name} is empty; it has no header")
    given, sep_lines = reading.delimiter, 0
    if reading.skip is None and (found := SEP.match(lines[0][1])):
        # Excel takes this line for a command, not for a row.
        given, sep_lines = given or found.group(1), 1
    texts = [text for _, text in lines]
    quote = reading.quote
    if quote is None:
        # Double quotes, unless the first line has every field in single ones.
        first = next((text.strip() for text in texts[sep_lines:] if text.strip()), "")
        quote = "'" if SINGLE_QUOTED.fullmatch(first) else '"'
    shape, rows = _shaped(name, texts, reading, given, quote, sep_lines)
    delimiter = shape.delimiter
    if not delimiter.isascii() or delimiter == quote:
        raise TableError(f"delimiter must be one ASCII character, not {delimiter!r}")
    escape = _escape(name, data, reading, delimiter, quote, quotes)
    line, header = rows[shape.at]
    after = rows[shape.at + 1][0] if shape.at + 1 < len(rows) else len(lines)
    end = min(len(data), lines[-1][0] + len(lines[-1][1].encode()))
    if len(header) > MOST_COLUMNS:
        raise TableError(f"{name} has {len(header):,} columns; at most {MOST_COLUMNS:,} are read")
    return Dialect(
        delimiter=delimiter,
        quote=quote,
        escape=escape,
        skip=line,
        header=tuple(header),
        start=lines[after][0] if after < len(lines) else end,
        first_line=after + 1,
        above=tuple(text.strip() for text in texts[sep_lines:line] if text.strip()),
    )


def _head(data: Text) -> list[tuple[int, str]]:
    """Return the first lines, without the last one if it may go on."""
    for most in (SAMPLE, 4 * LARGEST_LINE):
        lines = list(lines_of(data, most=most))
        if len(data) <= most:
            return lines
        if len(lines) > MOST_ABOVE:
            return lines[:-1]
    return lines


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a delimiter splits the first lines."""

    delimiter: str
    width: int
    at: int
    """Which row is the header."""
    share: float
    """The share of the rows below that have as many fields."""


def _shaped(
    name: str, texts: list[str], reading: Reading, given: str | None, quote: str, above: int
) -> tuple[_Shape, list[Row]]:
    """Find the delimiter, and return the first rows as it splits them."""
    above = above if reading.skip is None else reading.skip
    escape = reading.escape or ""

    def cut(delimiter: str) -> list[Row]:
        cutting, found, before = reader(iter(texts[above:]), delimiter, quote, escape), [], above
        for row in cutting:
            if row and not _is_ruler(row, delimiter):
                found.append((before, row))
            if len(row) > MOST_COLUMNS:
                break  # No table has so many columns, and a few such rows would fill the memory.
            before = above + cutting.line_num
        return found

    fixed = reading.skip is not None
    if given is not None:
        rows = cut(given)
        return _shape(given, rows, fixed) or _Shape(given, 1, 0, 1.0), rows
    shapes, error = [], None
    for delimiter in DELIMITERS:
        try:
            shapes.append(_shape(delimiter, cut(delimiter), fixed))
        except csv.Error as found:
            error = found
    if error and not any(shapes):
        raise TableError(
            f"{name}: its first lines cannot be read as rows ({error}); a quote may be missing,"
            " or the delimiter is another one (--delimiter)"
        )
    best = _best(name, [shape for shape in shapes if shape is not None], cut)
    return best, cut(best.delimiter)


def _shape(delimiter: str, rows: list[Row], fixed: bool) -> _Shape | None:
    """Say how evenly a delimiter splits the rows; None if it splits no row."""
    if not rows:
        return None
    widths = [len(row) for _, row in rows]
    counted = Counter(widths)
    width = widths[0] if fixed else max(counted, key=lambda w: (counted[w], w == widths[0], w))
    if width == 1:
        return None
    at = 0 if fixed else next((i for i, (_, row) in enumerate(rows) if _is_header(row, width)), 0)
    below = widths[at + 1 :]
    return _Shape(delimiter, width, at, below.count(width) / len(below) if below else 1.0)


def _is_header(row: list[str], width: int) -> bool:
    """Whether a row has every column, and more names than a title, which has one."""
    n_named = sum(bool(field.strip()) for field in row)
    return len(row) == width and n_named > (1 if width > 2 else 0)


def _best(name: str, shapes: list[_Shape], cut: Callable[[str], list[Row]]) -> _Shape:
    """Return the delimiter that splits most evenly, with the fewest lines above the header."""
    shapes = [shape for shape in shapes if not _is_accident(shape, cut(shape.delimiter))]
    if not shapes:
        return _Shape(NEVER, 1, 0, 1.0)
    most = max(shape.share for shape in shapes)
    shapes = [shape for shape in shapes if shape.share == most]
    if most == 1.0:
        least = min(shape.at for shape in shapes)
        shapes = [shape for shape in shapes if shape.at == least]
    if len(shapes) > 1 and name.lower().endswith(TAB_SUFFIXES):
        shapes = [shape for shape in shapes if shape.delimiter == "\t"] or shapes
    if len(shapes) > 1:
        answers = tuple("tab" if s.delimiter == "\t" else s.delimiter for s in shapes)
        sentence = f"{name}: its columns may end at any of these"
        raise TableError(str(Question(sentence, "delimiter", None, answers)))
    found = shapes[0]
    if found.at == 1 and found.width == 2 and not _is_headed(cut(found.delimiter)):
        raise TableError(
            f"{name} may have one column, or two below a title: say which, with --skip 0 or --skip"
            " 1, or skip in [reading] of the roles file"
        )
    return found


def _is_accident(shape: _Shape, rows: list[Row]) -> bool:
    """Whether a delimiter splits the values of one column, such as decimals, but not its name."""
    return shape.at > 0 and any(NUMBER.fullmatch(field) for field in rows[shape.at][1])


def _is_headed(rows: list[Row]) -> bool:
    """Whether a column has numbers below a name that is not a number."""
    below = [row for _, row in rows[2:] if len(row) == 2]
    return bool(below) and any(all(NUMBER.fullmatch(row[i]) for row in below) for i in (0, 1))


def _escape(
    name: str, data: Text, reading: Reading, delimiter: str, quote: str, quotes: Quotes | None
) -> str:
    """Return the escape before a quote within quotes: a backslash, or empty for a second quote."""
    if reading.escape is not None or not quote or quote.encode() not in data:
        return reading.escape or ""
    if quotes is None or quotes.quote != quote:
        quotes = Quotes.of(data, quote)
    if _fit(quotes, delimiter):
        return ""
    if (slashed := rb"\%b" % quote.encode()) in data:
        bare = bytes(data).replace(rb"\\", b"xx").replace(slashed, b"xx")
        if _fit(Quotes.of(bare, quote), delimiter):
            return "\\"
    # A quote within a field that begins without one is a plain character; others are errors.
    cutting = reader((text for _, text in lines_of(data)), delimiter, quote, "", strict=True)
    try:
        for _ in cutting:
            pass
    except csv.Error as error:
        raise TableError(
            f"{name}: line {cutting.line_num:,} has a quote that does not fit ({error}); correct"
            " it, or say that quotes mean nothing, with --quote none"
        ) from None
    return ""


def _fit(quotes: Quotes, delimiter: str) -> bool:
    """Whether every quote opens or closes a field, or is one of two within it."""
    return quotes.fit(delimiter.encode()) and not quotes.is_inside


@dataclass(frozen=True, slots=True)
class TextFooter:
    """Where the rows end, how many lines are below, and the first of them with content."""

    end: int
    lines: int
    text: str = ""
    doubt: str = ""
    """The only field of the last row, if it may be a remark."""


def footer_of(data: Text, form: Dialect, given: int | None) -> TextFooter:
    """Find the lines below the last row, as given or as recognised."""
    lines = list(lines_of(data, max(form.start, len(data) - TAIL)))
    if len(data) - form.start > TAIL:
        lines = lines[1:]  # The first line may be cut.
    while lines and not lines[-1][1].strip("\r\n "):
        lines.pop()
    if given is not None:
        cut = lines[max(0, len(lines) - given) :] if given else []
        return TextFooter(cut[0][0] if cut else len(data), given, cut[0][1].strip() if cut else "")
    n_cut = _recognised(lines, form, data)
    if not n_cut:
        return TextFooter(len(data), 0, doubt=_doubt(lines, form))
    cut = lines[-n_cut:]
    return TextFooter(cut[0][0], n_cut, next((t.strip() for _, t in cut if _said(t, form)), ""))


def _said(text: str, form: Dialect) -> bool:
    row = _row(text, form)
    return any(field.strip() for field in row) and not _is_ruler(row, form.delimiter)


def _recognised(lines: Sequence[tuple[int, str]], form: Dialect, data: Text) -> int:
    """Count the lines at the end that are sums or remarks, or are below an empty row."""
    width, found, n_alone = len(form.header), 0, 0
    for n, (_, text) in enumerate(reversed(lines), 1):
        if form.quote and text.count(form.quote) % 2:
            break  # The line may be part of a field.
        row = _row(text, form)
        filled = [field for field in row if field.strip()]
        if not filled:
            # An empty line separates rows from the lines below; a row of empty fields is not a row.
            found, n_alone = (n, 0) if n_alone or (row and width > 1) else (found, 0)
        elif width > 1 and (
            _is_ruler(row, form.delimiter)
            or (SUM.fullmatch(filled[0]) and _once(data, text, form, len(row) == width))
        ):
            found, n_alone = n, 0
        elif _is_alone(row, width) and (len(row) == 1 or REMARK.fullmatch(row[0])):
            n_alone += 1  # A line of full width may be a row with a single value.
        else:
            return max(found, _remarks(lines, form, n - 1))
    return found


def _row(text: str, form: Dialect) -> list[str]:
    return next(form.rows(iter([text])), [])


def _is_alone(row: Sequence[str], width: int) -> bool:
    """Whether only the first field has a value; Excel pads such a row with empty fields."""
    return width > 2 and len(row) in (1, width) and bool(row[0].strip()) and not any(row[1:])


def _remarks(lines: Sequence[tuple[int, str]], form: Dialect, n_below: int) -> int:
    """Count the lines below the last row with several fields if all are remarks; otherwise 0."""
    first = ["".join(_row(text, form)[:1]) for _, text in lines[-n_below - 1 :]]
    above, below = first[0], [text for text in first[1:] if text.strip()]
    is_like = bool(REMARK.fullmatch(above)) or not below
    return 0 if is_like or not all(map(REMARK.fullmatch, below)) else n_below


def _doubt(lines: Sequence[tuple[int, str]], form: Dialect) -> str:
    rows = [_row(text, form) for _, text in lines[-2:]]
    if len(rows) < 2 or not _is_alone(rows[1], len(form.header)) or not any(rows[0][1:]):
        return ""
    return rows[1][0].strip()


def _once(data: Text, text: str, form: Dialect, is_whole: bool) -> bool:
    """Whether no other row begins with the same field; also true if this cannot be a row."""
    first = text.split(form.delimiter)[0]
    return not is_whole or data.count(f"\n{first}{form.delimiter}".encode()) <= 1


def lines_of(data: Text, start: int = 0, most: int | None = None) -> Iterator[tuple[int, str]]:
    """Yield the lines from an offset on, each with the offset where it begins."""
    end = len(data) if most is None else min(len(data), start + most)
    for found in LINE.finditer(memoryview(data), start, end):
        yield found.start(), found.group().decode("utf-8", "replace")


def reader(
    texts: Iterator[str] | Sequence[str],
    delimiter: str,
    quote: str,
    escape: str,
    strict: bool = False,
) -> "Reader":
    """Return a reader of rows in the given dialect."""
    return csv.reader(
        texts,
        delimiter=delimiter,
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        escapechar=escape or None,
        doublequote=not escape,
        strict=strict,
    )


def _is_ruler(row: Sequence[str], delimiter: str) -> bool:
    """Whether the row is a line of dashes, as in lists that are made for printing."""
    filled = [field.strip() for field in row if field.strip()]
    return (
        bool(filled) and (len(row) == 1 or delimiter == "|") and all(map(RULER.fullmatch, filled))
    )

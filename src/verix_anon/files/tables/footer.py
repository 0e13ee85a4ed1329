"""Lines below the rows of a text table: sums, sources, and rows with nothing in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from verix_anon.files.tables.dialect import Form, Text, is_ruler, lines_of

__all__ = ["Footer", "footer_of"]

TAIL = 1 << 16
SUM = re.compile(
    r"\s*(grand total|totals?|totale|sum|summe|gesamtsumme|gesamt|insgesamt|somme|suma)\s*:?\s*",
    re.I,
)

REMARK = re.compile(r"\s*(\S[^:]{0,40}:(\s.*|\s*)|[*(©].*)", re.S)
"""Such as `Source: ...` or `(200 rows)`, where nothing stands beside it."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Where the rows end, how many lines stand below, and the first of them that says something."""

    end: int
    lines: int
    text: str = ""
    doubt: str = ""
    """What stands alone in the last row, if it may be a remark."""


def footer_of(data: Text, form: Form, given: int | None) -> Footer:
    """What is no row at the end of the table, as given or as recognised."""
    lines = _tail(data, form.start)
    while lines and not lines[-1][1].strip("\r\n "):
        lines.pop()
    if given is not None:
        cut = lines[max(0, len(lines) - given) :] if given else []
        return Footer(cut[0][0] if cut else len(data), given, cut[0][1].strip() if cut else "")
    n_cut = _recognised(lines, form, data)
    if not n_cut:
        return Footer(len(data), 0, doubt=_doubt(lines, form))
    cut = lines[-n_cut:]
    return Footer(cut[0][0], n_cut, next((t.strip() for _, t in cut if _said(t, form)), ""))


def _tail(data: Text, start: int) -> list[tuple[int, str]]:
    if len(data) - start <= TAIL:
        return list(lines_of(data, start))
    # The first of them may begin in the middle.
    return list(lines_of(data, len(data) - TAIL))[1:]


def _said(text: str, form: Form) -> bool:
    row = _row(text, form)
    return any(field.strip() for field in row) and not is_ruler(row, form.delimiter)


def _recognised(lines: Sequence[tuple[int, str]], form: Form, data: Text) -> int:
    """How many lines from the end on are sums or remarks, or stand below an empty row."""
    width, found, n_alone = len(form.header), 0, 0
    for n, (_, text) in enumerate(reversed(lines), 1):
        if form.quote and text.count(form.quote) % 2:
            break  # It may be part of a field.
        row = _row(text, form)
        filled = [field for field in row if field.strip()]
        if not filled:
            # An empty line parts rows from what is below; a row of nothing is none.
            found, n_alone = (n, 0) if n_alone or (row and width > 1) else (found, 0)
        elif width > 1 and (
            is_ruler(row, form.delimiter)
            or (SUM.fullmatch(filled[0]) and _once(data, text, form, len(row) == width))
        ):
            found, n_alone = n, 0
        elif _is_alone(row, width) and (len(row) == 1 or REMARK.fullmatch(row[0])):
            n_alone += 1  # One of full width may be a row with a single value.
        else:
            return max(found, _remarks(lines, form, n - 1))
    return found


def _row(text: str, form: Form) -> list[str]:
    return next(form.rows(iter([text])), [])


def _is_alone(row: Sequence[str], width: int) -> bool:
    """Whether nothing stands beside the first field, or what does is as empty as Excel pads it."""
    return width > 2 and len(row) in (1, width) and bool(row[0].strip()) and not any(row[1:])


def _remarks(lines: Sequence[tuple[int, str]], form: Form, n_below: int) -> int:
    """How many of the lines below the last row with more than one field are remarks, if all are."""
    first = ["".join(_row(text, form)[:1]) for _, text in lines[-n_below - 1 :]]
    above, below = first[0], [text for text in first[1:] if text.strip()]
    is_like = bool(REMARK.fullmatch(above)) or not below
    return 0 if is_like or not all(map(REMARK.fullmatch, below)) else n_below


def _doubt(lines: Sequence[tuple[int, str]], form: Form) -> str:
    rows = [_row(text, form) for _, text in lines[-2:]]
    if len(rows) < 2 or not _is_alone(rows[1], len(form.header)) or not any(rows[0][1:]):
        return ""
    return rows[1][0].strip()


def _once(data: Text, text: str, form: Form, is_whole: bool) -> bool:
    """Whether no other row begins alike, if it could be one."""
    first = text.split(form.delimiter)[0]
    return not is_whole or data.count(f"\n{first}{form.delimiter}".encode()) <= 1

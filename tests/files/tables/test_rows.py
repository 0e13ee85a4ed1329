"""Where rows end, in chunks of any size: the same as a reader that looks at every byte."""

import csv
import io
import random

import pytest

from verix_anon.errors import TableError
from verix_anon.files.table_form import Reading
from verix_anon.files.tables import text_loading
from verix_anon.files.tables.text_loading import RowEnds


def fed(data: bytes, size: int) -> RowEnds:
    found = RowEnds("t.csv", data, Reading())
    for at in range(0, len(data), size):
        found.feed(data[at : at + size])
    return found


def plainly(text: str) -> tuple[int, bool]:
    """The characters since the last end of a row, and whether a field is open, one by one."""
    is_inside, last, at, is_first = False, -1, 0, True
    while at < len(text):
        if is_inside and text[at] == '"':
            if text[at + 1 : at + 2] == '"':
                at += 1
            else:
                is_inside = False
        elif not is_inside and text[at] == '"' and is_first:
            is_inside = True
        elif not is_inside and text[at] == "\n":
            last = at
        is_first = not is_inside and text[at] in ",\n"
        at += 1
    return len(text) - last - 1, is_inside


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("before", ["", 'x5" pipe,1,2\n'])
def test_any_quotes_in_any_chunks(size: int, before: str) -> None:
    draw = random.Random(size)
    for _ in range(200):
        out = io.StringIO()
        for _ in range(6):
            row = ["".join(draw.choices('ab,"\n;', k=draw.randrange(6))) for _ in range(3)]
            csv.writer(out, lineterminator="\n").writerow(row)
        text = before + out.getvalue()[: draw.randrange(5, 60)]
        if text.endswith('"'):
            continue  # Whether it closes is not known before what follows.
        found = fed(text.encode(), size)
        assert (found.since, found.is_inside) == plainly(text), text


def test_a_row_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_loading, "LARGEST_ROW", 100)
    fed(b'a,"' + b"x\n" * 40 + b'"\n', 8)
    with pytest.raises(TableError, match="holds a row of more than"):
        fed(b'a,"' + b"x\n" * 60 + b'"\n', 8)

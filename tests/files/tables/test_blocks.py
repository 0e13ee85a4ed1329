"""Rows read in blocks of any size are those that a reader of one line after the other finds."""

import csv
import io
import random

import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow.csv import ConvertOptions, ParseOptions

from verix_anon.files.tables import text_table as blocks
from verix_anon.files.tables.text_table import read_blocks

NAMES = ("a", "b")


def text_of(draw: random.Random, ends: str, within: str) -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator=ends, quoting=csv.QUOTE_ALL)
    rows.writerows((i, "".join(draw.choices(within, k=3))) for i in range(40))
    return out.getvalue()


def read(text: str) -> pa.Table:
    convert = ConvertOptions(column_types=dict.fromkeys(NAMES, pa.string()))
    return read_blocks(memoryview(text.encode()), ParseOptions(), convert, has_quotes=True)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("within", ["ab,", "abcdefgh\n", "abcdefgh\r", 'abcdefgh"\n'])
def test_ends_of_lines_within_fields(
    ends: str, within: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(40):
        draw = random.Random(seed)
        text = text_of(draw, ends, within)
        monkeypatch.setattr(blocks, "BLOCK", draw.choice([64, 100, 150]))
        found = [list(row.values()) for row in read(text).to_pylist()]
        assert found == list(csv.reader(io.StringIO(text, newline=""))), text


@pytest.mark.parametrize("text", ['"1","a"\n"2","b"\n', '"1","a"\r\n"2","b"', '"1","a\nb"\n'])
def test_lines_are_read_once_if_no_field_holds_their_end(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    read_csv = pyarrow.csv.read_csv

    def listened(rows: object, options: object, parse: ParseOptions, convert: object) -> pa.Table:
        told.append(parse.newlines_in_values)
        return read_csv(rows, options, parse, convert)

    monkeypatch.setattr(pyarrow.csv, "read_csv", listened)
    read(text)
    assert told == ([False, True] if "a\nb" in text else [False])

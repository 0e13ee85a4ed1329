"""Text tables as programs write them: recognised, asked about, or refused in a sentence."""

import gzip
import tracemalloc
from datetime import date, datetime
from pathlib import Path

import pytest

from verix_anon.errors import TableError
from verix_anon.files.tables import Read, Reading, read_table, read_table_as
from verix_anon.files.tables.text_loading import BOMB_BYTES


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(tmp_path: Path, text: str | bytes, /, **given: object) -> Read:
    path = write(tmp_path, text)
    return read_table_as(path, Reading().but(**given))


HOSPITAL = (
    "Geburtsdatum;Größe;Kosten;PLZ\n"
    "13.02.1950;1,85;1.234,50;01067\n"
    "01.03.1961;1,7;999,00;80331\n"
    "30.11.1999;1,62;12.345,99;10115\n"
)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_from_a_continental_excel(tmp_path: Path, encoding: str, end: str) -> None:
    found = read(tmp_path, HOSPITAL.replace("\n", end).encode(encoding)).settled()
    assert found.table.to_pydict() == {
        "Geburtsdatum": [date(1950, 2, 13), date(1961, 3, 1), date(1999, 11, 30)],
        "Größe": [1.85, 1.7, 1.62],
        "Kosten": [1234.5, 999.0, 12345.99],
        "PLZ": ["01067", "80331", "10115"],
    }
    label = {"utf-8-sig": "UTF-8", "cp1252": "Windows-1252", "latin-1": "Windows-1252"}
    named = label.get(encoding, encoding.upper().replace("UTF-16-", "UTF-16"))
    said = f"semicolons, {named}, decimal comma, thousands point, dates dd.mm.yyyy"
    assert found.reading.said() == said
    again = read_table_as(tmp_path / "table.csv", found.reading)
    assert again.table.equals(found.table)
    assert again.reading == found.reading
    assert any("'Größe'" in note for note in found.notes) == (named == "Windows-1252")


@pytest.mark.parametrize(
    ("text", "expected", "noted"),
    [
        ("sep=;\na;b\n1;2\n", {"a": [1], "b": [2]}, ""),
        ("a|b\n1|2\n", {"a": [1], "b": [2]}, ""),
        ("a\tb\n1\t2\n", {"a": [1], "b": [2]}, ""),
        ("'a';'b'\n'x;y';'2'\n", {"a": ["x;y"], "b": [2]}, ""),
        ('a,b\n"say \\"hi\\", x",2\n', {"a": ['say "hi", x'], "b": [2]}, ""),
        ('a,b\n5" pipe,2\n', {"a": ['5" pipe'], "b": [2]}, ""),
        ("wert\n1,5\n2,5\n", {"wert": [1.5, 2.5]}, ""),
        (
            "Export\n\nid;n;x\n1;2;3\n",
            {"id": [1], "n": [2], "x": [3]},
            "above the header is left out: 'Export'",
        ),
        ("Export;;\n;;\nid;n;x\n1;2;3\n", {"id": [1], "n": [2], "x": [3]}, "'Export;;'"),
        (
            "id;n;x\n1;2;3\nSumme;2;3\n",
            {"id": [1], "n": [2], "x": [3]},
            "below the rows is left out: 'Summe;2;3'",
        ),
        ("id;n;x\n1;2;3\n;;\n\nQuelle: Amt\n", {"id": [1], "n": [2], "x": [3]}, "'Quelle: Amt'"),
        ("a;b;\n1;2;\n", {"a": [1], "b": [2]}, "column 3 has neither a name nor values"),
        (",a\n1,x\n", {"column 1": [1], "a": ["x"]}, "called 'column 1'"),
        ("a ;b\n1;2\n", {"a": [1], "b": [2]}, "blanks around the name 'a'"),
        (
            "a;b\n1;x\nk.A.;y\n-;z\n",
            {"a": [1, None, None], "b": ["x", "y", "z"]},
            "means missing in column 'a'",
        ),
        ("a;b\nx;1\n-;2\n", {"a": ["x", "-"], "b": [1, 2]}, "has the value '-'"),
        (
            "a;b\nx;1\nk.A.;k.A.\n",
            {"a": ["x", "k.A."], "b": [1, None]},
            (
                "has the value 'k.A.', which means missing in many tables: if it does here, say"
                """ so in [reading.missing] of the roles file, "a" = ["k.A."]"""
            ),
        ),
        (
            "age;b\n33;x\n61;y\n999;z\n",
            {"age": [33, 61, 999], "b": ["x", "y", "z"]},
            "column 'age' has 999, and the next is 61",
        ),
        ("a;b\n-9;x\n61;y\n", {"a": [-9, 61], "b": ["x", "y"]}, "no other is negative"),
        ("a;b\n5 %;x\n7 %;y\n", {"a": ["5 %", "7 %"], "b": ["x", "y"]}, "its numbers have signs"),
        ("a;b\n5 €;x\n7 €;y\n", {"a": ["5 €", "7 €"], "b": ["x", "y"]}, "its numbers have signs"),
        ("a;b\n1'234.5;x\n10;y\n", {"a": [1234.5, 10], "b": ["x", "y"]}, ""),
        ("a;b\n1\u2019234;x\n10;y\n", {"a": [1234, 10], "b": ["x", "y"]}, ""),
        ("a;b\n1 234,5;x\n10;y\n", {"a": [1234.5, 10], "b": ["x", "y"]}, ""),
        ("a;b\n1\u00a0234;x\n10;y\n", {"a": [1234, 10], "b": ["x", "y"]}, ""),
        ("a;b\n1\u202f234;x\n10;y\n", {"a": [1234, 10], "b": ["x", "y"]}, ""),
        (
            "a;b\n123 456;x\n654 321;y\n",
            {"a": ["123 456", "654 321"], "b": ["x", "y"]},
            "stays text, as codes would",
        ),
        ("a;b\n1,234,567;x\n1;y\n", {"a": [1234567, 1], "b": ["x", "y"]}, ""),
        ("a;b\n1.234;0,5\n", {"a": [1234], "b": [0.5]}, ""),
        ("a;b\n1.234;0.5\n", {"a": [1.234], "b": [0.5]}, ""),
        (
            "a;b\n13/2/2020;1\n1/12/2020;2\n",
            {"a": [date(2020, 2, 13), date(2020, 12, 1)], "b": [1, 2]},
            "",
        ),
        ("a;b\n02/13/2020;1\n", {"a": [date(2020, 2, 13)], "b": [1]}, ""),
        ("a;b\n2020/02/03;1\n", {"a": [date(2020, 2, 3)], "b": [1]}, ""),
        ("a;b\n13.02.2020 14:05;1\n", {"a": [datetime(2020, 2, 13, 14, 5)], "b": [1]}, ""),
        ("a;b\n01.01.2020;1\n", {"a": [date(2020, 1, 1)], "b": [1]}, ""),
        ("a;b\n31.02.2020;1\n", {"a": ["31.02.2020"], "b": [1]}, "looks like dates"),
        (
            "a;b\n13.2.2020;1\n01.03.2020;2\n",
            {"a": ["13.2.2020", "01.03.2020"], "b": [1, 2]},
            "looks like dates",
        ),
        ("1,2\n3,4\n", {"1": [3], "2": [4]}, "does the table lack a header"),
        (
            "id;n;x\n1;2;3\nQuelle: Amt;;\n",
            {"id": [1], "n": [2], "x": [3]},
            "below the rows is left out: 'Quelle: Amt;;'",
        ),
        (
            "id;n;x\n1;2;3\n2;4;5\nSumme;6;8\nStand: Mai;;\n(vorläufig);;\n",
            {"id": [1, 2], "n": [2, 4], "x": [3, 5]},
            "below the rows is left out: 'Summe;6;8'",
        ),
        (
            "id;n;x\n1;2;3\n;;\n* vom Amt;;\n",
            {"id": [1], "n": [2], "x": [3]},
            "below the rows is left out: '* vom Amt;;'",
        ),
        (
            "id;n;x\n1;2;3\nvom Amt;;\n",
            {"id": ["1", "vom Amt"], "n": [2, None], "x": [3, None]},
            "the last row has 'vom Amt' and nothing else",
        ),
        (
            "id;n;x\nA: 1;2;3\nA: 2;;\n",
            {"id": ["A: 1", "A: 2"], "n": [2, None], "x": [3, None]},
            "the last row has 'A: 2' and nothing else",
        ),
        (
            "+-----+----+\n|plz  |n   |\n+-----+----+\n|01067|1,5 |\n|10115|  12|\n+-----+----+\n",
            {"plz": ["01067", "10115"], "n": [1.5, 12]},
            "blanks that pad the values",
        ),
        (
            " born       | n | s\n------------+---+---\n 1980-03-03 | 1 | x\n(1 row)\n",
            {"born": [date(1980, 3, 3)], "n": [1], "s": ["x"]},
            "below the rows is left out: '(1 row)'",
        ),
    ],
)
def test_what_programs_write(
    tmp_path: Path, text: str, expected: dict[str, list[object]], noted: str
) -> None:
    found = read(tmp_path, text).settled()
    assert found.table.to_pydict() == expected
    assert any(noted in note for note in found.notes) if noted else not found.notes
    again = read_table_as(tmp_path / "table.csv", found.reading).settled()
    assert again.table.equals(found.table)
    assert again.reading == found.reading


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (("3. März 1980", "13. Dezember 1981"), "d. mmmm yyyy"),
        (("03-Mar-1980", "13-Dec-1981"), "dd-mmm-yyyy"),
        (("Mar 3, 1980", "Dec 13, 1981"), "mmm d, yyyy"),
        (("March 3, 1980", "December 13, 1981"), "mmmm d, yyyy"),
        (("3 mars 1980", "13 décembre 1981"), "d mmmm yyyy"),
        (("3 mars 1980", "13 déc. 1981"), "d mmm yyyy"),
        (("03.Mär.1980", "13.Dez.1981"), "dd.mmm.yyyy"),
        (("03MAR1980", "13DEC1981"), "ddmmmyyyy"),
        (("03-Mar-1980 00:00:00", "13-Dec-1981 00:00:00"), "dd-mmm-yyyy hh:mm:ss"),
    ],
)
def test_months_with_names(tmp_path: Path, values: tuple[str, str], form: str) -> None:
    text = f"a;b\n{values[0]};1\n{values[1]};2\n"
    found = read(tmp_path, text).settled()
    assert [f"{day:%Y-%m-%d}" for day in found.table["a"].to_pylist()] == [
        "1980-03-03",
        "1981-12-13",
    ]
    assert found.reading.dates == {"a": form}
    for given in ({"dates": {"a": form}}, {"date_format": form}):
        assert read(tmp_path, text, **given).table.equals(found.table)


@pytest.mark.parametrize(
    "values",
    [
        ("31-Feb-1980", "01-Mar-1980"),
        ("3. März 1980", "4. May 1981"),
        ("3 March 1980", "4 Apr 1981"),
        ("3 Mar 1980", "04 Apr 1981"),
        ("03-Mar-1980", "04-MAR-1981"),
        ("3-Mar-1980", "4/Mar/1981"),
        ("1er mars 1980", "2 mars 1980"),
    ],
)
def test_months_that_do_not_print_back_the_same(tmp_path: Path, values: tuple[str, str]) -> None:
    found = read(tmp_path, f"a;b\n{values[0]};1\n{values[1]};2\n")
    assert found.table["a"].to_pylist() == list(values)
    assert any("stays text: it looks like dates" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "question", "answers"),
    [
        ("a;b\n01/02/2020;1\n", "day and month", {"dates": {"a": "mm/dd/yyyy"}}),
        ("a;b\n01.02.2020;1\n", "01.02.2020", {"date_format": "dd.mm.yyyy"}),
        ("a;b\n13.02.50;1\n", "which years are meant", {"dates": {"a": "dd.mm.yy from 1925"}}),
        ("a;b\n13-MAR-50;1\n", "which years are", {"dates": {"a": "dd-mmm-yy from 1925"}}),
        ("a;b\n1.234;1\n", "1.234, which may be thousands or decimals", {"decimal": "."}),
        ("a;b\n1,234;1\n", "1,234, which may be thousands", {"thousands": ","}),
        ("a;b\n1,5;2.5\n", "in different ways", {"decimal": ","}),
    ],
)
def test_what_is_asked(
    tmp_path: Path, text: str, question: str, answers: dict[str, object]
) -> None:
    found = read(tmp_path, text)
    assert len(found.questions) == 1
    with pytest.raises(TableError, match="say which, with --") as caught:
        read_table(tmp_path / "table.csv")
    assert question in str(caught.value)
    answered = read(tmp_path, text, **answers)
    assert not answered.questions
    assert read_table_as(tmp_path / "table.csv", answered.reading).table.equals(answered.table)


def test_answers_decide(tmp_path: Path) -> None:
    def first(text: str, **given: object) -> object:
        return read(tmp_path, text, **given).settled().table.column("a")[0].as_py()

    assert first("a;b\n01/02/2020;1\n", dates={"a": "mm/dd/yyyy"}) == date(2020, 1, 2)
    assert first("a;b\n01/02/2020;1\n", date_format="dd/mm/yyyy") == date(2020, 2, 1)
    assert first("a;b\n01/02/2020;1\n", dates={"a": "text"}) == "01/02/2020"
    assert first("a;b\n13.02.25;1\n", dates={"a": "dd.mm.yy from 1925"}) == date(1925, 2, 13)
    assert first("a;b\n13.02.24;1\n", dates={"a": "dd.mm.yy from 1925"}) == date(2024, 2, 13)
    assert first("a;b\n1.234;1\n", decimal=",") == 1234
    assert first("a;b\n1.234;1\n", thousands="") == 1.234
    assert first("a;b\n123 456;1\n", thousands=" ") == 123456
    assert first("a;b\n999;1\n5;1\n", missing={"a": ["999"]}) is None
    assert first("a;b,c\n1;2,3\n", delimiter=";") == 1
    assert first("x;y\na;b\n1;2\n", skip=1) == 1
    assert read(tmp_path, "a;b\n1;2\n3;4\n", footer=1).table.num_rows == 1


@pytest.mark.parametrize(
    ("text", "given", "sentence"),
    [
        ("a;b,c\n1;2,3\n", {}, 'say which, with --delimiter "," or --delimiter ";"'),
        ("name\nDoe,John\nRoe,Jane\n", {}, "--skip 0 or --skip 1"),
        ("a;b\n1;2\n3;4;5\n6;7\n8\n", {}, "line 3 has 3 fields, the header 2 (2 lines are so)"),
        ("a;b\n1;2\n3\n", {}, "line 3 has 1 field"),
        ('a;b\n"x" y;2\n', {}, "line 2 has a quote that does not fit"),
        ('a;b\n"x;2\n3;4\n', {}, "has a quote that does not fit"),
        ("a;b;a \n1;2;3\n", {}, "column name 'a' occurs twice, in columns 1 and 3 of line 1"),
        ("a;b\n1;2\n", {"encoding": "klingon"}, "there is none called 'klingon'"),
        ("a;b\né;2\n", {"encoding": "ascii"}, "line 2 is not ascii text"),
        ("a;b\n1;2\n", {"dates": {"c": "dd.mm.yyyy"}}, "there is no column 'c'"),
        ("a;b\n1;2\n", {"dates": {"a": "dd.mm.yyyy"}}, "not dates of the form 'dd.mm.yyyy'"),
        ("a;b\n1;2\n", {"dates": {"a": "dd.mm.yy"}}, "need the first year"),
        ("a;b\n1;2\n", {"dates": {"a": "%d.%m.%Y"}}, "is not a form of dates"),
        ("Łódź;b\nGdańsk;2\n".encode("cp1250"), {}, "--encoding"),
        (b"a;b\n\xc8\xe2\xe0\xed\xee\xe2;2\n", {}, "--encoding"),
        ("a;b\nMüller;2\n".encode("cp850"), {}, "--encoding"),
        (b"a;b\n1\0;2\n", {}, "line 2 holds a NUL byte"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, text: str | bytes, given: dict[str, object], sentence: str
) -> None:
    with pytest.raises(TableError) as caught:
        read(tmp_path, text, **given)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 500


def hostile(path: Path, data: bytes, times: int) -> Path:
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
        for _ in range(times):
            file.write(data)
    return path


@pytest.mark.parametrize(
    ("name", "data", "times", "sentence"),
    [
        ("t.csv", b"x" * (1 << 20), 64, "a line of more than 4 MiB"),
        ("t.csv.gz", b"x" * (1 << 20), 512, "a line of more than 4 MiB"),
        ("t.csv.gz", b"\0" * (1 << 20), 512, "holds a NUL byte"),
        ("t.csv", b"a,", 1_000_000, "1,000,001 columns; at most 16,384 are read"),
        ("t.csv", b'a\n"' + b"x\n" * (1 << 20), 8, "a quote may be missing"),
    ],
)
def test_hostile_files_end_early(
    tmp_path: Path, name: str, data: bytes, times: int, sentence: str
) -> None:
    path = hostile(tmp_path / name, data, times)
    tracemalloc.start()
    with pytest.raises(TableError) as caught:
        read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sentence in str(caught.value)
    assert peak < 400 << 20


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert BOMB_BYTES <= 1 << 28
    monkeypatch.setattr("verix_anon.files.tables.text_loading.BOMB_BYTES", 1 << 22)
    path = hostile(tmp_path / "t.csv.gz", b"1,2\n" * (1 << 18), 64)
    with pytest.raises(TableError, match="unpacks to more than 200 times its size"):
        read_table(path)

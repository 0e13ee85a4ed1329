"""The desk in German: odd tables, mistakes and steps that failed are told in German."""

import re

import pytest
from starlette.datastructures import Headers

from desk.browsing import ORIGIN, Browser, Given, Shown, fields, wait_for
from verix_anon.desk.rendering import stage_name
from verix_anon.translation import texts

ENGLISH = re.compile(r"\b(the|of|are|is|with|which|that|has|not|cannot|read|say|give|column)\b")
TABLES = {
    "century.csv": ("id;day\n1;12.04.24\n2;11.03.24\n", "Welches Jahrhundert gemeint ist"),
    "order.csv": ("id;day\n1;12/04/2024\n2;11/03/2024\n", "der Tag oder der Monat"),
    "thousands.csv": ("a;b\n1.234;1\n2.345;2\n", "Tausender oder Nachkommastellen"),
    "wide.csv": ("a;b\n1;2;3\n4;5\n", "Zeile 2 hat 3 Felder, die Kopfzeile 2"),
    "twice.csv": ("a;a\n1;2\n3;4\n", "Der Spaltenname „a“ kommt zweimal vor"),
    "units.csv": ("a;b\n5 %;1\n6 %;2\n7 %;999\n", "Spalte „a“ bleibt Text"),
    "title.csv": ("About people\n\nname;age;x\nA;3;1,5\nB;4;2,5\nC;9;3,5\n", "über der Kopfzeile"),
    "empty.csv": ("", "ist leer"),
    "letter.pdf": ("%PDF-1.4", "ist ein Dokument"),
    "sheet.xlsx": ("a;b\n1;2\n", "auch wenn der Name etwas anderes sagt"),
}


@pytest.fixture
def german(given: Given, browser: Browser) -> Browser:
    (given.desk.folder / "job").mkdir()
    for name, (text, _) in TABLES.items():
        (given.desk.folder / name).write_text(text)
    browser.headers["Accept-Language"] = "de"
    return browser


def english(html: str) -> list[str]:
    """What is shown beside the cells of tables and code, and still English."""
    main = re.sub(r"<(td|code|textarea)\b.*?</\1>", "", html.split("<main", 1)[1], flags=re.S)
    return [word for word in Shown(f"<p{main}").words if ENGLISH.search(word)]


@pytest.mark.parametrize("name", TABLES)
def test_how_a_table_is_read_and_why_it_is_not_is_told_in_german(
    given: Given, german: Browser, name: str
) -> None:
    page = german.get(f"/jobs/job/table?table={name}").text
    page = page.replace(str(given.desk.folder), "")
    assert TABLES[name][1] in page
    assert english(page) == []


def test_why_a_step_failed_is_told_in_german(given: Given, german: Browser) -> None:
    form = fields(german.get("/jobs/job/table").text)
    german.submit("/jobs/job/table", {**form, "table": "wide.csv"})
    task = given.desk.tasks.of("job")
    assert task is not None
    headers = Headers({"accept-language": "de"})
    wait_for(lambda: task.stage[0] or not task.is_running)
    assert stage_name(headers, task) in texts("de").values()
    wait_for(lambda: not task.is_running)
    page = german.get("/jobs/job/table").text
    assert TABLES["wide.csv"][1] in page
    assert english(page) == []


def test_a_file_that_is_not_taken_is_refused_in_german(german: Browser) -> None:
    headers = {"Origin": ORIGIN, "X-Verix-Csrf": german.csrf}
    answer = german.put("/jobs/job/upload?name=a.doc", content=b"x", headers=headers)
    assert answer.status_code == 400
    assert "ist ein Dokument" in answer.json()["problem"]

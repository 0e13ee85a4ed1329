"""Privacy: what is chosen is written unless somebody else wrote; plots mark what is chosen."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from desk.browsing import Browser, Given, Shown, fields, wait_for
from verix_anon.client.explore import Exploration, Explored, basis_of
from verix_anon.client.privacy_sheet import ColumnLoss
from verix_anon.client.table.overview import (
    ColumnOverview,
    Overview,
    overview,
    read_sample,
    sample_of,
)

SAYS = "import sys; print(sys.argv[1:])"
ROLES = """k = 5
target = "rich"
table = "../people.csv"
[columns]
age = "quasi"
"<b>ill" = "sensitive"
"""
CHOSEN = {"k": "10", "rule": "importance-spread", "traps": "adaptive", "min_leaf": "2k"}


def tried() -> Exploration:
    rows = [
        Explored(
            k=k,
            rule="importance-spread",
            l=1,
            is_chosen=k == 5,
            k_reached=k,
            classes=100 // k,
            prosecutor_max=1 / k,
            prosecutor_mean=0.5 / k,
            ncp=k / 100,
            same_target=0.1,
            scores={"f1": 0.5, "auc": 0.9 - k / 100},
            losses=(
                ColumnLoss(
                    column="<b>age",
                    exact=0.125,
                    median_width=9.0,
                    unit="years",
                    n_categories=0,
                    ncp=0.25,
                    bars=("<1960", "1960.."),
                    before=(0.4, 0.6),
                    after=(0.5, 0.5),
                ),
            ),
        )
        for k in (5, 10)
    ]
    raw = {"f1": 0.6, "auc": 0.95}
    return Exploration(
        rows=tuple(rows), raw=raw, target="rich", n_records=100, tested_on=30, left_out=("<i>x",)
    )


@pytest.fixture
def folder(given: Given) -> Path:
    """A job whose columns are chosen."""
    made = given.desk.folder / "job"
    made.mkdir()
    (made / "roles.toml").write_text(ROLES)
    return made


def digest(browser: Browser) -> str:
    return str(fields(browser.get("/jobs/job/privacy").text)["digest"])


def test_what_is_chosen_is_written(folder: Path, browser: Browser) -> None:
    chosen = {"column": ["rich", "<b>ill"], "l-0": "2", "t-1": "0,5"}
    answer = browser.submit(
        "/jobs/job/privacy", {**CHOSEN, "digest": digest(browser), "do": "on", **chosen}
    )
    assert answer.headers["location"] == "/jobs/job/send"
    text = (folder / "roles.toml").read_text()
    for line in ("k = 10", 'min_leaf = "2k"', "rich = {l = 2}", '"<b>ill" = {t = 0.5}'):
        assert line in text
    shown = Shown(browser.get("/jobs/job/privacy").text)
    assert not shown.all("b")
    values = {str(field.get("id")): field.get("value") for field in shown.all("input")}
    assert (values["k"], values["l-0"], values["t-1"]) == ("10", "2", "0.5")


def test_whatever_a_column_is_called_it_is_hidden(folder: Path, browser: Browser) -> None:
    (folder / "roles.toml").write_text(ROLES.replace('"<b>ill"', '"ill\\nor well"'))
    sent = fields(browser.get("/jobs/job/privacy").text)
    assert browser.submit("/jobs/job/privacy", {**sent, "l-1": "3"}).status_code == 303
    assert '"ill\\nor well" = {l = 3}' in (folder / "roles.toml").read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"k": "1"}, {"k": "x"}, {"k": ""}, {"rule": "x"}, {"traps": "x"}, {"min_leaf": "0k"}),
        *({"column": ["rich"], "l-0": "x"}, {"column": ["rich"], "l-0": "0"}),
        *({"column": ["age"], "l-0": "2"}, {"column": ["gone"], "l-0": "2"}),
    ],
)
def test_mistakes_are_told_and_not_written(
    folder: Path, browser: Browser, wrong: dict[str, str]
) -> None:
    sent = {**CHOSEN, "digest": digest(browser), **wrong}
    assert browser.submit("/jobs/job/privacy", sent).status_code == 400
    assert (folder / "roles.toml").read_text() == ROLES


def test_a_mistake_loses_nothing_of_the_form(folder: Path, browser: Browser) -> None:
    sent = fields(browser.get("/jobs/job/privacy").text)
    sent |= {"k": "1", "rule": "variance-reduction", "traps": "none", "min_leaf": "3k"}
    sent |= {"l-0": "<2", "t-1": "0,25"}
    answer = browser.submit("/jobs/job/privacy", sent)
    assert (answer.status_code, "is not a number" in answer.text) == (400, True)
    assert fields(answer.text) == sent
    (folder / "roles.toml").write_text(ROLES.replace("k = 5", "k = 7"))
    again = fields(browser.submit("/jobs/job/privacy", sent).text) | {"k": "6", "l-0": "2"}
    assert browser.submit("/jobs/job/privacy", again).status_code == 409


@pytest.mark.parametrize("language", ["en", "de"])
def test_numbers_are_shown_as_they_are(folder: Path, browser: Browser, language: str) -> None:
    asked = '\n[diversity]\n"<b>ill" = { cap = 1.0, t = 0.123456789, l = 12345 }\n'
    (folder / "roles.toml").write_text(ROLES + asked)
    browser.get(f"/language/{language}")
    sent = fields(browser.get("/jobs/job/privacy").text)
    assert sent["t-1"] == {"en": "0.123456789", "de": "0,123456789"}[language]
    assert browser.submit("/jobs/job/privacy", {**sent, "k": "6"}).status_code == 303
    text = (folder / "roles.toml").read_text()
    assert text == (ROLES + asked).replace("k = 5", "k = 6")


def test_the_second_writer_is_told(folder: Path, browser: Browser) -> None:
    seen = digest(browser)
    (folder / "roles.toml").write_text(ROLES.replace("k = 5", "k = 7"))
    answer = browser.submit("/jobs/job/privacy", {**CHOSEN, "digest": seen})
    assert answer.status_code == 409
    assert "k = 7" in answer.text
    assert "k = 7" in (folder / "roles.toml").read_text()
    sent = {**CHOSEN, "digest": digest(browser)}
    assert browser.submit("/jobs/job/privacy", sent).status_code == 303


def test_settings_are_tried_by_a_command(folder: Path, browser: Browser) -> None:
    text = browser.get("/jobs/job/privacy").text
    assert "explore people.csv --roles job/roles.toml --out job/explore.json" in text
    browser.given.desk.tasks.program = (sys.executable, "-c", SAYS)
    answer = browser.submit("/jobs/job/explore", {"try-k": "5, 10", "try-rules": "1"})
    assert answer.status_code == 303
    task = browser.given.desk.tasks.of("job")
    assert task is not None
    wait_for(lambda: not task.is_running)
    assert task.words[4:] == (
        *("--k", "5,10", "--rule", "variance-reduction,importance-spread"),
        *("--out", "job/explore.json"),
    )
    assert browser.submit("/jobs/job/explore", {"try-k": "--out"}).status_code == 400


def test_what_was_tried_is_shown_with_the_choice_of_now(folder: Path, browser: Browser) -> None:
    basis = basis_of(folder / "roles.toml", None)
    found = tried()
    # With l 2, more is lost.
    more = tuple(replace(row, l=2, is_chosen=False, ncp=row.ncp + 0.2) for row in found.rows)
    found = replace(found, rows=(*found.rows, *more), basis=basis)
    (folder / "explore.json").write_text(found.to_json())
    for k in (5, 10, 99):
        (folder / "roles.toml").write_text(ROLES.replace("k = 5", f"k = {k}"))
        answer = browser.get("/jobs/job/privacy")
        shown = Shown(answer.text)
        chosen = [row for row in shown.all("tr") if row.get("class") == "chosen"]
        assert len(chosen) == (k != 99)
        assert ("was not among those" in answer.text) == (k == 99)
        charts = [a for a in shown.all("svg") if a.get("class") == "bars"]
        assert len(charts) == (k != 99)
        assert not shown.all("b")
        # Of k 5 with l 1, and of k 10 with l 2, as these purposes ask for.
        measured = [a for a in shown.all("svg") if a.get("class") == "share"]
        assert len(measured) == 4
        lost = re.findall(r"Detail lost: <strong>([0-9]+%)", answer.text)
        assert lost == ["5%", "30%"]
        assert "Every row fits at least 25 people." in answer.text
        assert [one.get("class") for one in shown.all("li")].count("chosen") == (k == 5)


def test_a_purpose_sets_what_is_usual_for_it_and_tries_it(folder: Path, browser: Browser) -> None:
    browser.given.desk.tasks.program = (sys.executable, "-c", SAYS)

    def choose(name: str) -> str:
        sent = {"digest": digest(browser), "do": name}
        answer = browser.submit("/jobs/job/purpose", sent)
        assert answer.status_code == 303, answer.text
        task = browser.given.desk.tasks.of("job")
        assert task is not None
        assert task.words[:6] == (
            *("explore", "people.csv", "--roles", "job/roles.toml", "--k", "5,10,25"),
        )
        wait_for(lambda: not task.is_running)
        return (folder / "roles.toml").read_text()

    looked = [
        ColumnOverview(name="rich", n_distinct=2, bars=("no", "yes"), shares=(0.7, 0.3)),
        ColumnOverview(name="<b>ill", n_distinct=9, bars=("x",), shares=(0.85,)),
    ]
    seen = Overview(n_rows=9, columns={one.name: one for one in looked})
    (folder / "overview.json").write_text(seen.to_json())
    text = choose("public")
    for line in ("k = 25", "rich = {l = 2, cap = 0.9}", '"<b>ill" = {l = 3}', 'age = "auto"'):
        assert line in text
    text = choose("research")
    assert "k = 10" in text
    assert "cap" not in text
    assert "auto" not in text
    text = choose("internal")
    assert "k = 5" in text
    assert "l = " not in text
    answer = browser.submit("/jobs/job/purpose", {"digest": "x", "do": "research"})
    assert answer.status_code == 409
    assert browser.submit("/jobs/job/purpose", {"do": "x"}).status_code == 400
    assert (folder / "roles.toml").read_text() == text


def test_what_is_left_of_a_column_is_told_in_german(folder: Path, browser: Browser) -> None:
    (folder / "roles.toml").write_text(ROLES)
    basis = basis_of(folder / "roles.toml", None)
    (folder / "explore.json").write_text(replace(tried(), basis=basis).to_json())
    answer = browser.get("/jobs/job/privacy", headers={"accept-language": "de"})
    words = " ".join(" ".join(Shown(answer.text).words).split())
    assert "<b>age 12,5 % 9 Jahre 0,250" in words
    assert "Vorher (breite Balken)" in words


OTHER = "with other columns or another table"


def test_the_curves_of_other_columns_or_another_table_are_not_marked(
    folder: Path, browser: Browser
) -> None:
    table = folder.parent / "people.csv"
    table.write_text("age,rich,<b>ill\n")

    def try_now() -> None:
        basis = basis_of(folder / "roles.toml", table)
        (folder / "explore.json").write_text(replace(tried(), basis=basis).to_json())

    def is_marked() -> bool:
        answer = browser.get("/jobs/job/privacy")
        shown = Shown(answer.text)
        rows = [row for row in shown.all("tr") if row.get("class") == "chosen"]
        assert (OTHER in answer.text) is (not rows)
        return bool(rows)

    assert not (folder / "explore.json").exists()
    (folder / "explore.json").write_text(tried().to_json())
    assert not is_marked()
    try_now()
    assert is_marked()
    # What is tried, and what is no part of a class, changes nothing.
    same = ROLES.replace("k = 5", "k = 10 # more") + '[contract]\ntraps = "none"\n'
    (folder / "roles.toml").write_text(same + "[diversity]\nrich = { l = 1 }\n")
    assert is_marked()
    changes = ('[contract]\nmin_leaf = "2k"\n', "[diversity]\nrich = { cap = 0.9 }\n")
    for text in (ROLES.replace("quasi", "kept"), *(ROLES + change for change in changes)):
        (folder / "roles.toml").write_text(text)
        assert not is_marked()
    (folder / "roles.toml").write_text(ROLES)
    assert is_marked()
    table.write_text("age,rich,<b>ill\n1,2,3\n")
    assert not is_marked()
    try_now()
    assert is_marked()


@pytest.mark.parametrize("text", ["", "{}", "[]", "x", '{"format": "verix/exploration/1"}'])
def test_a_file_that_is_none_is_as_if_nothing_was_tried(
    folder: Path, browser: Browser, text: str
) -> None:
    (folder / "explore.json").write_text(text)
    assert "What the tests showed" not in browser.get("/jobs/job/privacy").text


def test_what_was_tried_is_read_back() -> None:
    whole = replace(tried(), basis={"columns": "x", "table": "1 2"})
    assert Exploration.from_json(whole.to_json()) == whole
    assert Exploration.from_json(tried().to_json()) == tried()


def sampled(folder: Path, n: int = 400) -> None:
    """A job whose values were read, of a table with ages and incomes."""
    rows = pa.table({"age": [i % 90 for i in range(n)], "rich": ["yes", "no"] * (n // 2)})
    (folder / "sample.arrow").write_bytes(sample_of(rows))
    (folder / "overview.json").write_text(overview(rows).to_json())
    (folder / "roles.toml").write_text('k = 5\ntarget = "rich"\n[columns]\nage = "quasi"\n')


def test_a_change_shows_at_once_what_it_does(folder: Path, browser: Browser) -> None:
    sampled(folder)
    before = (folder / "roles.toml").read_text()
    assert 'data-advice="/jobs/job/privacy/preview"' in browser.get("/jobs/job/privacy").text
    said = {}
    for k in ("5", "100"):
        answer = browser.submit("/jobs/job/privacy/preview", {**CHOSEN, "k": k})
        shown = " ".join(Shown(answer.text).words)
        assert answer.status_code == 200
        assert "all 400 rows" in shown
        assert shown.count("before: ") == 10
        said[k] = re.search(r"Largest share of one person in a group:\s+([0-9.]+)", shown)
    assert said["5"]
    assert said["100"]
    assert 0 < float(said["100"][1]) < float(said["5"][1]) <= 20
    assert (folder / "roles.toml").read_text() == before
    table = read_sample(folder / "sample.arrow")
    (folder / "sample.arrow").write_bytes(sample_of(table.slice(0, 200)))
    assert "200 of the 400 rows" in browser.submit("/jobs/job/privacy/preview", CHOSEN).text


def test_a_preview_says_why_there_is_none(folder: Path, browser: Browser) -> None:
    sampled(folder)

    def problem(**typed: str) -> str:
        return browser.submit("/jobs/job/privacy/preview", CHOSEN | typed).text

    assert "k must be a whole number" in problem(k="many")
    assert "500" in problem(k="500")
    whole = (folder / "sample.arrow").read_bytes()
    # Arrow raises errors of several kinds.
    for damaged in (b"", b"ARROW1", whole[:-60] + b"\xff" * 40 + whole[-20:]):
        (folder / "sample.arrow").write_bytes(damaged)
        assert "read its values again" in problem()
    (folder / "sample.arrow").unlink()
    assert "the sample of the table is missing or damaged" in problem()

"""The page of the columns: guesses, choices, warnings while one edits, and two who write."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from desk.browsing import Browser, Given, Shown, fields
from verix_anon.client.prepare.options import PrepareOptions
from verix_anon.client.table.overview import overview, sample_of
from verix_anon.client.table.roles_file import read_reading, read_roles, roles_text
from verix_anon.desk.pages.forms import reading_words
from verix_anon.files.tables import Reading, write_table

HOSTILE = "<script>alert(1)</script>"
TABLE = pa.table(
    {
        "name": [f"Person {i}" for i in range(40)],
        "age": [i // 2 for i in range(40)],
        HOSTILE: ["</select><b>", "x"] * 20,
        "outcome": ["no", "yes"] * 20,
    }
)


@pytest.fixture
def roles(given: Given) -> Path:
    folder = given.desk.folder / "job"
    folder.mkdir()
    (folder / "roles.toml").write_text(roles_text(TABLE, "people.csv"))
    return folder / "roles.toml"


def at(sent: dict[str, str | list[str]], name: str) -> int:
    return sent["column"].index(quote(name))


def test_guesses_are_shown_with_their_reasons(browser: Browser, roles: Path) -> None:
    page = browser.get("/jobs/job/columns").text
    sent = fields(page)
    assert sent["column"] == ["outcome", "name", "age", quote(HOSTILE)]
    assert sent[f"role-{at(sent, 'name')}"] == "identifier"
    assert "whole numbers, 20 values" in page
    assert sent["positive"] == "yes"
    shown = Shown(page)
    assert HOSTILE in shown.words
    assert [one["src"] for one in shown.all("script")] == ["/static/desk.js"]
    labels = {one["for"] for one in shown.all("label")}
    controls = [*shown.all("select"), *shown.all("textarea")]
    assert {one["id"] for one in controls} <= labels


def test_choices_are_written_into_the_file_of_the_commands(browser: Browser, roles: Path) -> None:
    sent = fields(browser.get("/jobs/job/columns").text)
    assert browser.submit("/jobs/job/columns", sent).status_code == 303
    unchanged = roles.read_text()
    sent = fields(browser.get("/jobs/job/columns").text)
    sent[f"role-{at(sent, 'age')}"] = "kept"
    sent[f"order-{at(sent, HOSTILE)}"] = "x\r\n</select><b>\r\n"
    sent["person"] = "record"
    answer = browser.submit("/jobs/job/columns", sent)
    assert answer.status_code == 303, answer.text
    _, declared = read_roles(roles)
    assert "age" in declared.kept
    assert declared.orders[HOSTILE] == ("x", "</select><b>")
    assert declared.person == "record"
    assert unchanged.splitlines()[0] == roles.read_text().splitlines()[0]
    page = browser.get("/jobs/job/columns").text
    assert "may be known to others" in page
    assert not Shown(page).all("b")


def test_how_fine_a_column_stays_is_chosen_and_a_number_is_kept(
    browser: Browser, roles: Path
) -> None:
    def chosen(**words: str) -> dict[str, object]:
        sent = fields(browser.get("/jobs/job/columns").text)
        changed = {f"priority-{at(sent, name)}": word for name, word in words.items()}
        assert browser.submit("/jobs/job/columns", {**sent, **changed}).status_code == 303
        return dict(PrepareOptions.of_roles(roles).priorities)

    before = roles.read_text()
    assert chosen() == {}
    assert roles.read_text() == before
    assert chosen(age="fine") == {"age": "fine"}
    assert chosen() == {"age": "fine"}
    assert chosen(age="coarse") == {"age": "coarse"}
    assert chosen(age="<b>") == {"age": "coarse"}
    assert chosen(age="normal") == {}
    roles.write_text(roles.read_text().replace("[priorities]", "[priorities]\nage = 2.5 #"))
    assert ">2.5</option>" in browser.get("/jobs/job/columns").text
    assert chosen() == {"age": 2.5}
    assert chosen(age="fine") == {"age": "fine"}
    browser.get("/language/de")
    assert "möglichst genau" in browser.get("/jobs/job/columns").text


def test_advice_comes_while_one_edits(browser: Browser, roles: Path) -> None:
    before = roles.read_text()
    sent = fields(browser.get("/jobs/job/columns").text)
    sent[f"role-{at(sent, 'name')}"] = "kept"
    part = browser.submit("/jobs/job/columns/advice", sent).text
    assert "<html" not in part
    assert "&#39;name&#39; looks like an identifier" in part
    sent[f"role-{at(sent, 'age')}"] = "target"
    assert "one target at most" in browser.submit("/jobs/job/columns/advice", sent).text
    assert roles.read_text() == before


def test_a_mistake_is_not_written_and_not_lost(browser: Browser, roles: Path) -> None:
    before = roles.read_text()
    sent = fields(browser.get("/jobs/job/columns").text)
    sent[f"role-{at(sent, 'age')}"] = "target"
    answer = browser.submit("/jobs/job/columns", sent)
    assert answer.status_code == 400
    assert fields(answer.text)[f"role-{at(sent, 'age')}"] == "target"
    said = answer.text.split(f'id="said-{at(sent, "age")}"')[1].split("</div>")[0]
    assert "one target at most" in said, "at its field"
    assert roles.read_text() == before


ODD = ["a\nb", "a\r\nb", "a\rb", "a%0Ab", "100 %", "ä+b&c", " x ", "a\u2028b"]


@pytest.mark.parametrize("name", ODD)
def test_whatever_a_column_is_called_it_is_what_is_chosen(
    browser: Browser, roles: Path, name: str
) -> None:
    table = pa.table({one: [str(i) for i in range(40)] for one in ODD})
    roles.write_text(roles_text(table, "people.csv"))
    sent = fields(browser.get("/jobs/job/columns").text)
    i = at(sent, name)
    changed = {f"role-{i}": "quasi", f"order-{i}": "1\n0", f"kind-{i}": "categorical"}
    answer = browser.submit("/jobs/job/columns", {**sent, **changed, "person": quote(name)})
    assert answer.status_code == 303
    _, declared = read_roles(roles)
    assert list(declared.quasi) == [name]
    assert declared.orders == {name: ("1", "0")}
    assert declared.person == name
    again = fields(browser.get("/jobs/job/columns").text)
    assert again["person"] == quote(name)


@pytest.mark.parametrize("wrong", [{"column": "a\nb"}, {"column": "b"}, {"person": "b"}])
def test_a_column_that_is_not_there_is_told(
    browser: Browser, roles: Path, wrong: dict[str, str]
) -> None:
    before = roles.read_text()
    sent = fields(browser.get("/jobs/job/columns").text)
    answer = browser.submit("/jobs/job/columns", {**sent, **wrong})
    assert (answer.status_code, "which does not exist; load the page again" in answer.text) == (
        400,
        True,
    )
    assert roles.read_text() == before


def test_what_is_not_changed_stays_as_it_was(browser: Browser, roles: Path) -> None:
    roles.write_text(
        'k = 5\ntarget = "income"\npositive = " >50K\\n"\n\n'
        '[columns]\n"age" = "quasi"\n"zip" = "quasi"\n\n'
        '[contract]\nperson = "gone"\n\n[hierarchies]\n"zip" = " zips.csv"\n\n[orders]\n'
        '"age" = ["\\nold", " young", "", "a\\nb", "new\\u0085"]\n'
    )
    (roles.parent / " zips.csv").write_text("1;2\n")
    before = roles.read_text()
    sent = fields(browser.get("/jobs/job/columns").text)
    answer = browser.submit("/jobs/job/columns", sent)
    assert (answer.status_code, roles.read_text()) == (303, before)
    i = at(sent, "age")
    changed = {"positive": " <=50K ", f"order-{i}": " young\n\nold \u2028\n"}
    answer = browser.submit("/jobs/job/columns", {**sent, **changed})
    assert answer.status_code == 303
    declared = read_roles(roles)[1]
    assert declared.positive == " <=50K "
    assert declared.orders["age"] == (" young", "old \u2028")


@pytest.mark.parametrize("value", ["", "owner", "<b>"])
def test_a_role_that_is_none_changes_nothing(browser: Browser, roles: Path, value: str) -> None:
    sent = fields(browser.get("/jobs/job/columns").text)
    sent[f"role-{at(sent, 'age')}"] = value
    assert browser.submit("/jobs/job/columns", sent).status_code == 303
    assert "age" in read_roles(roles)[1].quasi


def test_a_second_tab_is_told_what_changed(given: Given, browser: Browser, roles: Path) -> None:
    other = Browser(given).entered()
    mine = fields(browser.get("/jobs/job/columns").text)
    theirs = fields(other.get("/jobs/job/columns").text)
    theirs[f"role-{at(theirs, 'age')}"] = "kept"
    assert other.submit("/jobs/job/columns", theirs).status_code == 303
    mine[f"role-{at(mine, HOSTILE)}"] = "sensitive"
    answer = browser.submit("/jobs/job/columns", mine)
    assert answer.status_code == 409
    assert "age" in read_roles(roles)[1].kept, "nothing was written"
    shown = Shown(answer.text)
    changed, lines = answer.text.split("<pre")[1:3]
    assert any(word.startswith('+ "age" = "kept"') for word in Shown(f"<pre{changed}").words)
    assert any(word.startswith('- "age" = "kept"') for word in Shown(f"<pre{lines}").words)
    assert [one["src"] for one in shown.all("script")] == ["/static/desk.js"]
    again: dict[str, str | list[str]] = {"column": []}
    for one in shown.all("input"):
        if one["name"] == "column":
            again["column"] = [*again["column"], str(one["value"])]
        elif one["name"] != "csrf":
            again[str(one["name"])] = str(one["value"])
    assert browser.submit("/jobs/job/columns", again).status_code == 303
    _, declared = read_roles(roles)
    assert "age" in declared.quasi
    assert HOSTILE in declared.sensitive


def test_a_table_with_other_columns_since_is_told(browser: Browser, roles: Path) -> None:
    sent = fields(browser.get("/jobs/job/columns").text)
    roles.write_text(roles_text(TABLE.drop_columns(["age"]), "people.csv"))
    answer = browser.submit("/jobs/job/columns", sent)
    assert answer.status_code == 409


def test_without_a_roles_file_there_is_the_table(browser: Browser, given: Given) -> None:
    (given.desk.folder / "job").mkdir()
    answer = browser.get("/jobs/job/columns")
    assert answer.headers["location"] == "/jobs/job/table"


def test_a_prepared_job_keeps_its_columns(browser: Browser, roles: Path) -> None:
    sent = fields(browser.get("/jobs/job/columns").text)
    (roles.parent / "manifest.verix").touch()
    page = browser.get("/jobs/job/columns").text
    assert all("disabled" in one for one in Shown(page).all("fieldset"))
    assert browser.submit("/jobs/job/columns", sent).status_code == 400


def test_a_roles_file_that_cannot_be_read_is_said(browser: Browser, roles: Path) -> None:
    roles.write_text("k = ")
    for page, status in (("table", 200), ("columns", 400)):
        answer = browser.get(f"/jobs/job/{page}")
        assert answer.status_code == status
        assert "cannot be read" in answer.text


def looked(roles: Path) -> Path:
    (roles.parent / "overview.json").write_text(overview(TABLE).to_json())
    return roles


def danger(page: str, i: int) -> bool:
    return "fate danger" in page.split(f'id="said-{i}"')[1].split("</div>")[0]


def test_values_are_shown_and_what_tells_people_apart_is_red(browser: Browser, roles: Path) -> None:
    assert "are not shown yet" in browser.get("/jobs/job/columns").text
    page = browser.get(f"/jobs/{looked(roles).parent.name}/columns").text
    shown, sent = Shown(page), fields(page)
    assert {"Person 0", "</select><b>"} <= set(shown.words)
    assert not shown.all("b")
    assert len(shown.all("svg")) == 4
    assert danger(page, at(sent, "name"))
    assert not danger(page, at(sent, "age"))
    sent[f"role-{at(sent, 'name')}"] = "kept"
    part = browser.submit("/jobs/job/columns/advice", sent).text
    assert danger(part, at(sent, "name"))
    assert "would be published" in part


def test_values_that_do_not_fit_a_choice_are_told_at_their_column(
    browser: Browser, roles: Path
) -> None:
    (looked(roles).parent / "sample.arrow").write_bytes(sample_of(TABLE))
    page = browser.get("/jobs/job/columns").text
    sent = fields(page)
    i = at(sent, "name")
    assert f'id="hierarchy-{i}"' in page
    assert "month, quarter, year" not in page.split(f'id="hierarchy-{i}"')[1].split("</select>")[0]
    sent |= {f"role-{i}": "quasi", f"kind-{i}": "numeric"}
    part = browser.submit("/jobs/job/columns/advice", sent).text
    assert "is not numeric" in part.split(f'id="said-{i}"')[1].split("</div>")[0]
    # The values are read again only after the words for missing ones are saved.
    assert browser.submit("/jobs/job/columns", {**sent, "do": "on"}).status_code == 303


def test_several_columns_are_changed_at_once(browser: Browser, roles: Path) -> None:
    sent = fields(browser.get("/jobs/job/columns").text)
    picked = [str(at(sent, "name")), str(at(sent, HOSTILE))]
    changed = {"pick": picked, "role-all": "sensitive", "do": "several"}
    answer = browser.submit("/jobs/job/columns", {**sent, **changed})
    assert answer.headers["location"] == "/jobs/job/columns"
    _, declared = read_roles(roles)
    assert set(declared.sensitive) == {"name", HOSTILE}
    assert declared.quasi == ["age"]


def test_groups_and_words_that_mean_missing_are_chosen(browser: Browser, roles: Path) -> None:
    page = browser.get(f"/jobs/{looked(roles).parent.name}/columns").text
    sent = fields(page)
    i = at(sent, "age")
    assert "10: 0 → 0..9" in page
    changed = {f"bins-{i}": "10", f"missing-{i}": "99 | n/a"}
    assert browser.submit("/jobs/job/columns", {**sent, **changed}).status_code == 303
    assert read_roles(roles)[1].release == {"bins": {"age": 10}}
    assert read_reading(roles).missing == {"age": ("99", "n/a")}
    sent = fields(browser.get("/jobs/job/columns").text)
    assert (sent[f"bins-{i}"], sent[f"missing-{i}"]) == ("10", "99 | n/a")
    assert browser.submit("/jobs/job/columns", {**sent, f"bins-{i}": ""}).status_code == 303
    assert read_roles(roles)[1].release == {"bins": {}}
    assert read_reading(roles).missing == {"age": ("99", "n/a")}


GROUPS = "/jobs/job/columns/groups"
WARDS = ["Süd; 1", 'Nord "A"', "Ost", "West"]


@pytest.fixture
def wards(given: Given) -> Path:
    """A job on a table of wards; its sample lacks the last of them."""
    table = pa.table({"ward": WARDS * 10, "age": [*range(40)]})
    write_table(table, given.desk.folder / "wards.parquet")
    folder = given.desk.folder / "job"
    folder.mkdir()
    text = 'table = "../wards.parquet"\n[columns]\n"ward" = "quasi"\n"age" = "quasi"\n'
    (folder / "roles.toml").write_text(text)
    (folder / "overview.json").write_text(overview(table).to_json())
    (folder / "sample.arrow").write_bytes(sample_of(table.take([0, 1, 2, 4])))
    return folder


def test_values_are_put_into_groups_that_commands_read(browser: Browser, wards: Path) -> None:
    assert 'data-groups="ward"' in browser.get("/jobs/job/columns").text
    found = browser.get(GROUPS, params={"column": "ward"}).json()
    assert found == [[ward, 0.25, ward] for ward in sorted(WARDS)], "read from the whole table"
    south = ", ".join(WARDS[:2])
    named = {WARDS[0]: south, WARDS[1]: south}
    given = {"column": "ward", "value": WARDS, "group": [named.get(w, w) for w in WARDS]}
    answer = browser.submit(GROUPS, given)
    assert answer.status_code == 200, answer.text
    file = answer.json()["hierarchy"]
    sent = fields(browser.get("/jobs/job/columns").text)
    i = at(sent, "ward")
    assert browser.submit("/jobs/job/columns", {**sent, f"hierarchy-{i}": file}).status_code == 303
    declared = read_roles(wards / "roles.toml")[1]
    assert declared.hierarchy("ward").levels == {ward: (named.get(ward, ward),) for ward in WARDS}
    again = browser.get(GROUPS, params={"column": "ward", "hierarchy": file}).json()
    assert [[value, group] for value, _, group in again] == [
        [ward, named.get(ward, ward)] for ward in sorted(WARDS)
    ]
    assert "your own groups: " in browser.get("/jobs/job/columns").text
    assert ".hierarchy" not in browser.get("/jobs/job/table").text, "it is not a table"


@pytest.mark.parametrize("column", ["age", "gone"])
def test_a_column_without_values_to_group_is_told(
    browser: Browser, wards: Path, column: str
) -> None:
    looked = overview(pa.table({"age": [str(i) for i in range(201)]}))
    (wards / "overview.json").write_text(looked.to_json())
    answer = browser.get(GROUPS, params={"column": column})
    assert (answer.status_code, "too many to put them together" in answer.text) == (400, True)


def test_a_value_that_no_group_can_hold_is_told(browser: Browser, wards: Path) -> None:
    given = {"column": "ward", "value": "a\u2028b", "group": "g"}
    answer = browser.submit(GROUPS, given)
    assert (answer.status_code, "line break" in answer.text) == (400, True)
    assert not list(wards.glob("*.hierarchy"))


def test_groups_of_a_prepared_job_stay(browser: Browser, wards: Path) -> None:
    (wards / "manifest.verix").touch()
    answer = browser.submit(GROUPS, {"column": "ward", "value": "Ost", "group": "g"})
    assert answer.status_code == 400
    assert not list(wards.glob("*.hierarchy"))


def test_groups_are_not_read_from_outside_the_folder(
    given: Given, browser: Browser, wards: Path
) -> None:
    outside = given.desk.folder.parent / "outside.hierarchy"
    outside.write_text("Ost;secret\n")
    params = {"column": "ward", "hierarchy": f"../../{outside.name}"}
    assert "secret" not in browser.get(GROUPS, params=params).text
    text = (wards / "roles.toml").read_text()
    (wards / "roles.toml").write_text(text.replace("../wards", "../../wards"))
    (given.desk.folder / "wards.parquet").rename(given.desk.folder.parent / "wards.parquet")
    assert browser.get(GROUPS, params={"column": "ward"}).status_code == 400


def test_how_a_table_is_read_is_said_in_options() -> None:
    assert reading_words(Reading()) == []
    dates = {"born": "dd.mm.yyyy"}
    read = Reading(delimiter="\t", thousands="", date_format="yyyy-mm-dd", dates=dates, skip=2)
    assert reading_words(replace(read, null_tokens=("-",), leading_zeros_are_text=False)) == [
        *("--delimiter", "tab", "--thousands", "none", "--date-format", "yyyy-mm-dd"),
        *("--skip", "2", "--date-format", "born=dd.mm.yyyy", "--null", "-", "--no-leading-zeros"),
    ]


def test_the_command_reads_the_table_as_the_roles_say(roles: Path, browser: Browser) -> None:
    with roles.open("a") as file:
        file.write('[reading]\nencoding = "latin-1"\n')
    assert "--explain --encoding latin-1" in browser.get("/jobs/job/columns").text

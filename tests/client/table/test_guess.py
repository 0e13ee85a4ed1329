"""What is guessed of a column, by its name and its values."""

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from verix_anon.client.prepare import prepare
from verix_anon.client.table.guess import Guess, guess_roles
from verix_anon.client.table.owner_table import read_owner_table
from verix_anon.client.table.roles import Declared
from verix_anon.client.table.roles_file import place_from, read_roles, roles_text
from verix_anon.errors import TableError

ROWS = 120
DAYS = [date(1950, 1, 1) + timedelta(211 * i) for i in range(ROWS)]
MANY = [f"w{i}" for i in range(ROWS)]


def guessed(name: str, values: list[object]) -> Guess:
    made = (values * ROWS)[:ROWS]
    # With a target of its own, or a column of two values would be taken for it.
    table = pa.table({name: made, "target": ["no", "yes"] * (ROWS // 2)})
    return next(guess for guess in guess_roles(table).columns if guess.name == name)


@pytest.mark.parametrize(
    "name", ["Patienten-ID", "patientId", "Kundennr", "MRN", "KVNR", "user_id"]
)
@pytest.mark.parametrize("kind", [str, int])
def test_numbers_of_people_that_repeat(name: str, kind: type) -> None:
    table = pa.table({name: [kind(i // 2 + 1000) for i in range(ROWS)], "age": [1, 2, 3] * 40})
    found = guess_roles(table)
    assert found.columns[0].role == "identifier"
    assert found.person == name
    assert f'person = "{name}"' in roles_text(table, "t.csv")


def test_a_number_of_its_own_in_every_row_makes_rows_people() -> None:
    surnames = ["Weber", "Meyer", "Wolf"] * 40
    table = pa.table({"Nachname": surnames, "PatientNr": list(range(500, 500 + ROWS))})
    assert guess_roles(table).person == "record"
    assert guess_roles(table.select(["Nachname"])).person == "Nachname"


def test_of_cases_and_people_those_who_repeat_are_people() -> None:
    table = pa.table(
        {
            "Fallnummer": [i * 9 // 10 + 9000 for i in range(ROWS)],
            "Patienten-ID": [i // 2 + 1000 for i in range(ROWS)],
        }
    )
    assert guess_roles(table).person == "Patienten-ID"


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("Vorname", ["Ida", "Ben"], "identifier"),
        ("e-mail", ["a@x", "b@x"], "identifier"),
        ("product_name", ["chair", "table"], "quasi"),
        ("ward_id", ["a", "b", "c"], "quasi"),
        ("number_of_visits", list(range(60)), "quasi"),
        ("remark", MANY, "identifier"),
        ("row", list(range(ROWS)), "identifier"),
        ("balance", list(range(ROWS)), "sensitive"),
        ("population", list(range(ROWS)), "quasi"),
        ("x", [float(i) for i in range(ROWS)], "quasi"),
        ("annual_salary", list(range(ROWS)), "sensitive"),
        ("Nettoeinkommen", [1.5, 2.5], "sensitive"),
        ("clinic", ["north"], "kept"),
        ("opened", [b"x", b"y"], "kept"),
        ("nothing", [None], "kept"),
        ("gaps", ["yes", None], "quasi"),
    ],
)
def test_roles(name: str, values: list[object], role: str) -> None:
    assert guessed(name, values).role == role


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y"])
def test_text_that_is_birth_dates_is_never_dropped(form: str) -> None:
    found = guessed("Geburtsdatum", [f"{day:{form}}" for day in DAYS])
    assert (found.role, found.kind, found.hierarchy) == ("quasi", "datetime", "date")
    assert found.is_kind_said


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1,5", "2,25", "1.000,0"], "numeric"),
        (["1.5", "2"], "numeric"),
        (["01", "02"], "categorical"),
        (["1.5", "two"], "categorical"),
    ],
)
def test_text_that_is_numbers(values: list[object], kind: str) -> None:
    found = guessed("x", values)
    assert found.kind == kind
    assert found.is_kind_said is (kind == "numeric")


@pytest.mark.parametrize(
    ("name", "values", "hierarchy"),
    [
        ("PLZ", ["01067", "10115"], "prefix"),
        ("Postleitzahl", [10115, 80331], "prefix"),
        ("zip_code", ["0106", "1011"], "prefix"),
        ("postcode", [1067, 10115], None),
        ("place", ["01067", "10115", "20095", "50667", "80331"], "prefix"),
        ("place", ["01067", "10115"], None),
        ("code", ["E11.9", "none", "J45.0", "F32.1", "C50.9"], None),
    ],
)
def test_hierarchies(name: str, values: list[object], hierarchy: str | None) -> None:
    found = guessed(name, values)
    assert found.role == "quasi"
    assert found.hierarchy == hierarchy


def test_diagnoses_are_sensitive() -> None:
    codes: list[object] = ["E11.9", "I10", "J45.0", "F32.1", "C50.9"]
    for name in ("Hauptdiagnose", "ICD", "code"):
        found = guessed(name, codes)
        assert (found.role, found.hierarchy) == ("sensitive", "prefix")
        assert not found.is_hierarchy_likely
    # Rooms look alike, but have no point.
    rooms: list[object] = ["E119", "I10", "J45", "F32", "C50"]
    assert guessed("room", rooms).role == "quasi"
    assert guessed("icd", rooms).role == "sensitive"


REMARKS = [f"Seen by Dr. Meier on day {i}, no fever" for i in range(60)]
LISTS = ["E11.9", "E11.9, I10", "I10,J45.0,F32.1", "F32.1; C50.9", "C50.9|I10"]


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("Bemerkung", REMARKS, "identifier"),
        ("text", REMARKS, "identifier"),
        ("Befund", REMARKS, "identifier"),
        ("comment", ["doing fine", "not so well", "to be seen"], "identifier"),
        ("physician", ["Dr. Meier", "Prof. Vogt", "unknown"], "identifier"),
        ("answer", ["not at all or very little", "some of the time at least"] * 2, "quasi"),
        ("Note", ["1", "2", "3"], "quasi"),
        ("other", LISTS, "sensitive"),
        ("other", [*LISTS, *(f"A{i:02}.1;B01" for i in range(60))], "identifier"),
        ("other", [["E11.9"], ["E11.9", "I10"]], "identifier"),
        ("name_and_place", ["a, b", "c, d", "a, d", "c, b", "e, b"], "identifier"),
        ("seat", ["a,b", "c,d", "a,d", "c,b", "e,b"], "quasi"),
    ],
)
def test_free_text_and_lists_are_never_quasi(name: str, values: list[object], role: str) -> None:
    assert guessed(name, values).role == role


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("Geschlecht", [1, 2, 9], "categorical"),
        ("SEX", [1.0, 2.0], "categorical"),
        ("Aufnahmegrund", [1, 2, 10], "categorical"),
        ("admission_type_id", [1, 2, 8], "categorical"),
        ("status", [0.5, 1.5], "numeric"),
        ("group", list(range(60)), "numeric"),
        ("children", [0, 1, 2], "numeric"),
        ("education-num", [1, 2, 3], "numeric"),
        ("Kontostand", [0, 1, 2], "numeric"),
    ],
)
def test_numbers_that_stand_for_something(name: str, values: list[object], kind: str) -> None:
    found = guessed(name, values)
    assert (found.role, found.kind) == ("quasi", kind)
    assert found.is_kind_said is (kind == "categorical")
    table = pa.table({name: (values * ROWS)[:ROWS], "target": ["no", "yes"] * (ROWS // 2)})
    assert (f'"{name}" = "categorical"' in roles_text(table, "t.csv")) is found.is_kind_said


@pytest.mark.parametrize(
    ("columns", "target"),
    [
        ({"outcome": "ab", "label": "ab", "target": "abc"}, "target"),
        ({"outcome": "ab", "label": "abc", "y": "ab"}, "label"),
        ({"Outcome": "ab", "y": "ab"}, "Outcome"),
        ({"churn": "ab", "sex": "ab"}, "churn"),
        ({"churn": "abc", "sex": "ab", "smokes": "ab"}, "smokes"),
        ({"sex": "ab", "Vorname": "ab"}, "sex"),
        ({"Vorname": "ab", "job": "abc"}, None),
    ],
)
def test_targets(columns: dict[str, str], target: str | None) -> None:
    table = pa.table({name: (list(values) * ROWS)[:ROWS] for name, values in columns.items()})
    found = guess_roles(table).target
    assert (found and found.name) == target


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["no", "yes", "no"], "yes"),
        (["ja", "ja", "nein"], "ja"),
        (["<=50K", ">50K"], ">50K"),
        ([0, 1, 1], "1"),
        ([False, True], "true"),
        (["left", "left", "right"], "right"),
        (["left", "right", "right"], "left"),
        (["a", "b", "c"], None),
    ],
)
def test_class_1(labels: list[object], positive: str | None) -> None:
    table = pa.table({"a": [i % 5 for i in range(ROWS)], "label": (labels * ROWS)[:ROWS]})
    assert guess_roles(table).positive == positive


def test_a_table_on_another_drive_is_named_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def relpath(*_: object) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr("verix_anon.client.table.roles_file.os.path.relpath", relpath)
    assert place_from("/data/people.csv", Path("/jobs")) == "/data/people.csv"


def test_what_is_drafted_is_prepared(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "Geburtsdatum": [f"{day:%d.%m.%Y}" for day in DAYS],
            "PLZ": rng.choice(["01067", "10115", "80331"], ROWS),
            "Gewicht": [f"{60 + i / 8:.2f}".replace(".", ",") for i in range(ROWS)],
            "Diagnose": rng.choice(["E11.9", "I10", "J45.0", "F32.1", "C50.9"], ROWS),
            "label": rng.choice(["ja", "nein"], ROWS),
        }
    )
    roles = tmp_path / "roles.toml"
    roles.write_text(roles_text(table, "t.csv"), encoding="utf-8")
    k, declared = read_roles(roles)
    assert (k, declared.positive) == (5, "ja")
    manifest = prepare(table, roles=roles).manifest
    kinds = {column.name: column.kind.value for column in manifest.quasi}
    assert kinds == {"Geburtsdatum": "datetime", "PLZ": "categorical", "Gewicht": "numeric"}
    assert set(manifest.hierarchies) == {"Geburtsdatum", "PLZ"}


def test_dates_that_may_be_either_way_round_are_asked_for() -> None:
    table = pa.table({"day": ["01/02/2020", "03/04/2020"] * 20, "y": ["a", "b"] * 20})
    declared = Declared(target="y", quasi="all", kinds={"day": "datetime"})
    with pytest.raises(TableError, match="dd/mm/yyyy or mm/dd/yyyy, so it is not clear which"):
        read_owner_table(table, declared)


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([900.5 + 31 * i for i in range(ROWS)], 100),
        ([i + 1 for i in range(ROWS)], 5),
        ([i / 1000 for i in range(ROWS)], 0.005),
        ([0] * 115 + [7] * 5, None),
    ],
)
def test_exact_amounts_are_rounded_by_the_draft(values: list[object], width: object) -> None:
    found = guessed("Kosten_EUR", values)
    assert found.width == width
    table = pa.table({"Kosten_EUR": values, "target": ["no", "yes"] * (ROWS // 2)})
    line = f'"Kosten_EUR" = {{ from = "Kosten_EUR", width = {width} }}'
    assert (line in roles_text(table, "t.csv")) is (width is not None)
    assert line not in roles_text(table, "t.csv", target="Kosten_EUR")

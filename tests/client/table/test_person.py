"""Who is a person: said by the owner wherever an identifier repeats."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.jobs import Run
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.table.owner_table import person_column, person_numbers
from verix_anon.client.verify import verify
from verix_anon.errors import TableError
from verix_anon.provider.local import LocalProvider

PATIENTS, VISITS = 60, 12

pytestmark = pytest.mark.usefixtures("quick_models")


def visits() -> pa.Table:
    """Patients who differ in age, each of whom came often."""
    rng = np.random.default_rng(3)
    patient = np.repeat(np.arange(PATIENTS), VISITS)
    return pa.table(
        {
            "patient_id": [f"p{i}" for i in patient],
            "age": 20 + patient,
            "pulse": rng.integers(50, 110, patient.size),
            "readmitted": rng.integers(0, 2, patient.size),
        }
    )


def released_k(person: str | None, at_release: str | None = None) -> tuple[int, int]:
    """k as the sheet has it, and the fewest patients in a class."""
    table, options = visits(), PrepareOptions(unsafe_seed=1, threads=1)
    prepared = prepare(
        table,
        target="readmitted",
        quasi="all",
        identifier="patient_id",
        person=person,
        options=options,
    )
    delivery = LocalProvider(threads=1).anonymize(prepared.submission)
    verdict = verify(delivery, prepared.manifest, submission=prepared.submission)
    made = release(
        delivery,
        prepared.manifest,
        verdict,
        table=table,
        options=ReleaseOptions(person=at_release),
    )
    frame = made.table.to_pandas().assign(patient=table["patient_id"].take(made.rows).to_pylist())
    return made.sheet.k, int(frame.groupby(["age", "pulse"])["patient"].nunique().min())


def test_people_are_counted_as_said_at_prepare() -> None:
    k, fewest = released_k("patient_id")
    assert k == fewest >= 5
    # Counted by record, a class may be one patient: what must be said to be meant.
    assert released_k("record")[1] == 1
    k, fewest = released_k("record", at_release="patient_id")
    assert k == fewest >= 5


def test_nothing_is_said_and_an_identifier_repeats() -> None:
    with pytest.raises(TableError, match="'patient_id' has 60 values in 720 rows") as refused:
        prepare(visits(), target="readmitted", quasi="all", identifier="patient_id")
    assert "--person patient_id" in str(refused.value)
    named = visits().rename_columns({"patient_id": "patient no."})
    with pytest.raises(TableError, match=r"\(--person 'patient no\.'\)"):
        prepare(named, target="readmitted", quasi="all", identifier="patient no.")
    with pytest.raises(TableError, match="did you mean 'patient_id'"):
        prepare(
            visits(), target="readmitted", quasi="all", identifier="patient_id", person="patientid"
        )


def test_identifiers_that_do_not_repeat_say_nothing() -> None:
    roles = {"id": "identifier", "age": "quasi"}
    ages = pa.array([1, 1, 1])
    assert person_column({"id": pa.array(["a", "b", None]), "age": ages}, roles, None) is None
    assert person_column({"id": pa.array([None, None, "b"]), "age": ages}, roles, None) is None
    with pytest.raises(TableError, match="2 values in 3 rows"):
        person_column({"id": pa.array(["a", "b", "a"]), "age": ages}, roles, None)


def test_persons_without_a_name_are_their_own() -> None:
    numbers = person_numbers(pa.array(["a", None, "a", None, "b"]))
    assert len(set(numbers.tolist())) == 4
    assert numbers[0] == numbers[2]
    assert len(set(person_numbers(pa.nulls(3)).tolist())) == 3


def test_init_drafts_the_person(tmp_path: Path, run: Run) -> None:
    pq.write_table(visits(), tmp_path / "visits.parquet")
    roles = tmp_path / "roles.toml"
    assert run("init", tmp_path / "visits.parquet", "--out", roles)[0] == 0
    assert 'person = "patient_id"' in roles.read_text()
    numbered = visits().set_column(0, "patient_id", pa.array(np.repeat(np.arange(60), 12)))
    pq.write_table(numbered, tmp_path / "numbered.parquet")
    assert '"patient_id" = "identifier"' in run("init", tmp_path / "numbered.parquet")[1]
    arguments = ["prepare", tmp_path / "visits.parquet", "--roles", roles, "--quiet"]
    code, _, err = run(*arguments, "--out", tmp_path / "job")
    assert code == 0, err
    roles.write_text(roles.read_text().replace("person =", "# person ="))
    assert run(*arguments, "--out", tmp_path / "other")[0] == 2
    code, _, err = run(*arguments, "--person", "record", "--out", tmp_path / "other")
    assert code == 0, err

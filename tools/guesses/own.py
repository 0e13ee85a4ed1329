"""Tables as a hospital, a firm, a bank and a survey have them, made by code, with their truths."""

import tempfile
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from tools import hospital as export
from tools.guesses.truth import Truth
from verix_anon.files.tables import read_table_as

__all__ = ["OWN"]

ROWS = 600
SURNAMES = (
    "Müller",
    "Schmidt",
    "Schneider",
    "Fischer",
    "Weber",
    "Meyer",
    "Wagner",
    "Becker",
    "Schulz",
    "Hoffmann",
)
FIRST_NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Finn", "Greta", "Hans", "Ida", "Jonas")
WORDS = (
    "geht",
    "es",
    "gut",
    "nach",
    "Hause",
    "Termin",
    "offen",
    "Schmerz",
    "links",
    "rechts",
    "seit",
    "gestern",
    "heute",
)

Made = tuple[pa.Table, Truth]


def _days(rng: np.random.Generator, first: date, years: int) -> list[date]:
    return [first + timedelta(int(d)) for d in rng.integers(0, 365 * years, ROWS)]


def hospital() -> Made:
    """A hospital's stays: German names, text as a spreadsheet exports it."""
    rng = np.random.default_rng(1)
    patients = rng.integers(100_000, 100_400, ROWS)
    born = [date(1930, 1, 1) + timedelta(int(p) * 7919 % 29_000) for p in patients]
    codes = ["E11.9", "I10.0", "J45.0", "F32.1", "C50.9", "I21.0", "K35.8", "M54.5"]
    table = pa.table(
        {
            "Patienten-ID": [f"P{p}" for p in patients],
            "Fallnummer": pa.array(rng.permutation(ROWS) + 7_000_000),
            "Nachname": rng.choice(SURNAMES, ROWS),
            "Vorname": rng.choice(FIRST_NAMES, ROWS),
            "Geburtsdatum": [f"{d:%d.%m.%Y}" for d in born],
            "Geschlecht": rng.choice(["m", "w", "d"], ROWS),
            "PLZ": [f"{p:05}" for p in rng.choice([1067, 1069, 4109, 10115, 80331, 99084], ROWS)],
            "Krankenkasse": rng.choice(["AOK", "TK", "Barmer", "privat"], ROWS),
            "Klinik": ["Nord"] * ROWS,
            "Aufnahme": _days(rng, date(2023, 1, 1), 2),
            "Liegedauer": rng.integers(1, 30, ROWS),
            "Hauptdiagnose": rng.choice(codes, ROWS),
            "Bemerkung": [" ".join(rng.choice(WORDS, 6)) for _ in range(ROWS)],
            "Entlassgewicht": [f"{w:.1f}".replace(".", ",") for w in rng.normal(75, 12, ROWS)],
            "verstorben": rng.choice(["ja", "nein"], ROWS, p=[0.1, 0.9]),
        }
    )
    truth = Truth(
        target="verstorben",
        positive="ja",
        identifier="Patienten-ID Fallnummer Nachname Vorname Bemerkung",
        sensitive="Hauptdiagnose",
        kept="Klinik",
        kinds={"Geburtsdatum": "datetime", "Entlassgewicht": "numeric"},
        hierarchies={"PLZ": "prefix", "Geburtsdatum": "date"},
        person="Patienten-ID",
    )
    return table, truth


def staff() -> Made:
    """A firm's staff: English names, one row a person."""
    rng = np.random.default_rng(2)
    salary = np.round(rng.lognormal(10.8, 0.4, ROWS), -1).astype(int)
    table = pa.table(
        {
            "employeeId": pa.array(rng.permutation(ROWS) + 1),
            "full_name": [
                f"{a} {b}"
                for a, b in zip(
                    rng.choice(FIRST_NAMES, ROWS), rng.choice(SURNAMES, ROWS), strict=True
                )
            ],
            "work_email": [f"u{i}@example.org" for i in range(ROWS)],
            "date_of_birth": _days(rng, date(1960, 1, 1), 43),
            "gender": rng.choice(["female", "male", "diverse"], ROWS, p=[0.48, 0.5, 0.02]),
            "department": rng.choice(["sales", "research", "works", "office"], ROWS),
            "job_level": rng.integers(1, 9, ROWS),
            "hire_date": [d.isoformat() for d in _days(rng, date(2000, 1, 1), 24)],
            "postal_code": pa.array(rng.choice([10115, 20095, 50667, 80331], ROWS)),
            "annual_salary": salary,
            "bonus": (salary * rng.uniform(0, 0.2, ROWS)).astype(int),
            "sick_days": rng.poisson(8, ROWS),
            "union_member": rng.choice(["no", "yes"], ROWS, p=[0.7, 0.3]),
            "company": ["Example Ltd"] * ROWS,
            "attrition": rng.choice(["No", "Yes"], ROWS, p=[0.84, 0.16]),
        }
    )
    truth = Truth(
        target="attrition",
        positive="Yes",
        identifier="employeeId full_name work_email",
        sensitive="annual_salary bonus sick_days union_member",
        kept="company",
        kinds={"hire_date": "datetime", "postal_code": "categorical"},
        hierarchies={"postal_code": "prefix", "date_of_birth": "date"},
    )
    return table, truth


def bank() -> Made:
    """A bank's bookings: several rows a customer."""
    rng = np.random.default_rng(3)
    customers = rng.integers(0, 250, ROWS)
    table = pa.table(
        {
            "Kundennr": pa.array(customers + 40_001),
            "IBAN": [f"DE{c * 7919 % 89 + 10}500105170000{c:06}" for c in customers],
            "Geburtsjahr": pa.array(1940 + customers * 31 % 65),
            "Postleitzahl": [f"{c * 101 % 90 + 1:02}{c % 7:03}" for c in customers],
            "Familienstand": rng.choice(["ledig", "verheiratet", "geschieden"], ROWS),
            "Nettoeinkommen": pa.array(np.round(rng.lognormal(7.8, 0.4, ROWS), 2)),
            "Kontostand": pa.array(np.round(rng.normal(3_000, 4_000, ROWS), 2)),
            "Buchungsdatum": _days(rng, date(2024, 1, 1), 1),
            "Betrag": pa.array(np.round(rng.lognormal(4, 1, ROWS), 2)),
            "Filiale_Nr": pa.array(rng.integers(1, 21, ROWS)),
            "Waehrung": ["EUR"] * ROWS,
            "Schufa_Score": pa.array(rng.integers(300, 1_000, ROWS)),
            "label": rng.choice([0, 1], ROWS, p=[0.95, 0.05]),
            "Newsletter": rng.choice(["ja", "nein"], ROWS),
        }
    )
    truth = Truth(
        target="label",
        positive="1",
        identifier="Kundennr IBAN",
        sensitive="Nettoeinkommen Kontostand Betrag Schufa_Score",
        kept="Waehrung",
        kinds={"Filiale_Nr": "categorical"},
        hierarchies={"Postleitzahl": "prefix"},
        person="Kundennr",
    )
    return table, truth


def survey() -> Made:
    """A survey as SPSS stores it: answers as labels in the order of their codes."""
    rng = np.random.default_rng(4)

    def answers(*labels: str) -> pa.Array:
        codes = pa.array(rng.integers(0, len(labels), ROWS), pa.int8())
        return pa.DictionaryArray.from_arrays(codes, pa.array(labels), ordered=True)

    table = pa.table(
        {
            "RESPID": pa.array([float(i) for i in range(1, ROWS + 1)]),
            "WAVE": pa.array([3.0] * ROWS),
            "Q1_AGE": pa.array(rng.integers(18, 90, ROWS).astype(float)),
            "Q2_SEX": answers("male", "female"),
            "Q3_EDU": answers("none", "school", "college", "university"),
            "Q4_INCOME": answers("under 1000", "1000 to 2000", "2000 to 4000", "over 4000"),
            "Q5_RELIGION": answers("none", "catholic", "protestant", "muslim", "other"),
            "Q6_VOTE": answers("left", "green", "centre", "right", "none"),
            "Q7_HEALTH": answers("very good", "good", "fair", "bad", "very bad"),
            "Q8_TRUST": answers("not at all", "little", "some", "much"),
            "WEIGHT": pa.array(np.round(rng.uniform(0.4, 2.5, ROWS), 4)),
            "INTDATE": _days(rng, date(2024, 3, 1), 1),
            "OUTCOME": answers("refused", "completed"),
        }
    )
    truth = Truth(
        target="OUTCOME",
        positive="completed",
        identifier="RESPID",
        sensitive="Q4_INCOME Q5_RELIGION Q6_VOTE Q7_HEALTH",
        kept="WAVE WEIGHT",
    )
    return table, truth


def hospital_export() -> Made:
    """The hospital table of `tools.hospital`, read from its file."""
    with tempfile.TemporaryDirectory() as folder:
        table = read_table_as(export.write(Path(folder) / "export.csv", 2_000)).table
    assert isinstance(table, pa.Table)
    truth = Truth(
        target="Wiederaufnahme_30T",
        positive="ja",
        identifier="Fallnummer Patienten-Nr Name Versichertennummer Bemerkung",
        sensitive="ICD Nebendiagnosen Pflegegrad CRP Kosten_EUR",
        kinds={"Geschlecht": "categorical"},
        hierarchies={"PLZ": "prefix", "Geburtsdatum": "date"},
        person="Patienten-Nr",
    )
    return table, truth


OWN = {
    "hospital": hospital,
    "staff": staff,
    "bank bookings": bank,
    "survey": survey,
    "hospital export": hospital_export,
}

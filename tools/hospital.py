"""Admissions of a hospital as its export has them: 21 columns, several rows a patient, by a seed.

The German file is in Windows-1252 with semicolons, decimal commas, points between thousands and
dd.mm.yyyy. The English one is in UTF-8 with commas, decimal points and yyyy-mm-dd. Both hold what
makes such tables hard: coded sex, postcodes with leading zeros, a word for missing, codes of
ICD-10, a list of them in one cell, and a remark that names doctors.
"""

import argparse
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["COLUMNS", "DOCTORS", "rows", "write"]

ROWS = 12_000
SEED = 28
COLUMNS = {
    "de": (
        *("Fallnummer", "Patienten-Nr", "Name", "Versichertennummer", "Geburtsdatum"),
        *("Geschlecht", "PLZ", "Krankenkasse", "Beruf", "Aufnahmedatum", "Entlassdatum"),
        *("Station", "ICD", "Nebendiagnosen", "Pflegegrad", "Größe", "Gewicht", "CRP"),
        *("Kosten_EUR", "Bemerkung", "Wiederaufnahme_30T"),
    ),
    "en": (
        *("Case number", "Patient ID", "Name", "Insurance number", "Date of birth"),
        *("Sex", "Postcode", "Health insurer", "Occupation", "Admitted on", "Discharged on"),
        *("Ward", "ICD", "Other diagnoses", "Care level", "Height", "Weight", "CRP"),
        *("Cost_EUR", "Remark", "Readmitted_30d"),
    ),
}
DOCTORS = ("Meier", "Schäfer", "Yilmaz", "Vogt", "Lindner", "Kraus", "Okafor")
SURNAMES = ("Müller", "Schmidt", "Weber", "Wolf", "Kaiser", "Jäger", "Brandt", "Seidel", "Groß")
FIRST = ("Anna", "Ben", "Clara", "David", "Emma", "Finn", "Greta", "Hans", "Ida", "Jürgen")
INSURERS = ("AOK", "Barmer", "DAK", "IKK", "KKH", "privat", "TK")
WARDS = ("Chirurgie", "Gynäkologie", "Innere 1", "Innere 2", "Kardiologie", "Neurologie")
CODES = (
    *("A09.0", "C18.7", "C50.9", "E11.9", "E66.0", "F10.2", "F32.1", "G40.9", "G45.9", "H25.1"),
    *("I10.0", "I21.0", "I25.1", "I48.0", "I50.1", "I63.9", "J18.9", "J44.1", "J45.0", "K35.8"),
    *("K40.9", "K80.2", "M16.1", "M17.1", "M54.5", "N18.3", "N39.0", "O80", "S52.5", "S72.0"),
    *("U07.1", "Z38.0"),
)


class Words(NamedTuple):
    """What is said in a language."""

    missing: str
    jobs: tuple[str, ...]
    answers: tuple[str, str]
    remarks: tuple[tuple[str, ...], ...]
    """The parts that remarks are made of."""


WORDS = {
    "de": Words(
        missing="k.A.",
        jobs=("Angestellte/r", "Lehrer/in", "Rentner/in", "Schüler/in", "selbständig"),
        answers=("nein", "ja"),
        remarks=(
            ("Rücksprache mit", "Befund besprochen mit", "Verlegt durch", "Aufklärung durch"),
            ("Pat. ist orientiert", "Angehörige informiert", "Schmerz rückläufig", "fieberfrei"),
            ("weiter wie bisher", "Kontrolle in 2 Wochen", "Hausarzt informiert", "Reha beantragt"),
        ),
    ),
    "en": Words(
        missing="n/a",
        jobs=("employee", "teacher", "retired", "pupil", "self-employed"),
        answers=("no", "yes"),
        remarks=(
            ("Discussed with", "Findings reviewed by", "Transferred by", "Informed consent by"),
            ("patient is oriented", "family informed", "pain receding", "no fever"),
            ("continue as before", "see again in 2 weeks", "GP informed", "rehab applied for"),
        ),
    ),
}
N_REMARKS = 955


def rows(n: int = ROWS, *, seed: int = SEED, language: str = "de") -> list[list[str]]:
    """Return the cells of `n` admissions as text; about two in three patients come once."""
    rng = np.random.default_rng(seed)
    words = WORDS[language]
    n_patients = max(1, n * 13 // 20)
    # Every patient has a row. The others are of some patients more than of others.
    again = (n_patients * rng.random(n - n_patients) ** 1.5).astype(np.int64)
    patients = rng.permutation(np.concatenate([np.arange(n_patients), again]))
    people = [_person(rng, words) for _ in range(n_patients)]
    numbers = rng.permutation(900_000)[:n_patients] + 100_000
    remarks = _remarks(rng, words)
    found = []
    for i, at in enumerate(patients.tolist()):
        name, born, sex, *rest = people[at]
        admitted = date(2024, 1, 1) + timedelta(int(rng.integers(366)))
        stay = 1 + int(rng.gamma(1.5, 3))
        cost = 900 + 640 * stay * float(rng.lognormal(0, 0.5))
        beside = rng.choice(CODES, int(rng.choice([0, 1, 2, 3, 4], p=[0.2, 0.3, 0.25, 0.15, 0.1])))
        care, height, weight, crp = (
            rng.integers(6),
            round(rng.normal(171, 10)),
            round(float(rng.normal(78, 16)), 1),
            round(float(rng.lognormal(2, 1.2)), 1),
        )
        cells: list[object] = [
            f"F{2_400_000 + i}",
            int(numbers[at]),
            name,
            f"{'ABCDEFGH'[at % 8]}{(at * 7_919 + 100_003) % 1_000_000_000:09}",
            born,
            sex,
            *rest,
            admitted,
            admitted + timedelta(stay),
            str(rng.choice(WARDS)),
            str(CODES[int(len(CODES) * rng.random() ** 1.4)]),
            ", ".join(dict.fromkeys(beside.tolist())),
            *(words.missing if rng.random() < 0.03 else v for v in (care, height, weight, crp)),
            round(cost, 2),
            remarks[int(rng.integers(N_REMARKS))] if rng.random() < 0.8 else "",
            words.answers[int(rng.random() < 0.06 + 0.01 * min(stay, 12))],
        ]
        found.append([_text(cell, language) for cell in cells])
    return found


def _person(rng: np.random.Generator, words: Words) -> list[object]:
    """Return what does not change between the admissions of a patient."""
    region = int(rng.choice([1, 4, 8, 10, 12, 80]))
    born = date(1930, 1, 1) + timedelta(int(34_000 * rng.beta(1.6, 1.3)))
    return [
        f"{rng.choice(SURNAMES)}, {rng.choice(FIRST)}",
        words.missing if rng.random() < 0.01 else born,
        int(rng.choice([1, 2, 9], p=[0.47, 0.52, 0.01])),
        f"{region:02}{int(rng.integers(30)) * 33 + 1:03}",
        str(rng.choice(INSURERS)),
        words.missing if rng.random() < 0.08 else str(rng.choice(words.jobs)),
    ]


def _remarks(rng: np.random.Generator, words: Words) -> list[str]:
    parts = words.remarks
    made = [
        f"{first} Dr. {doctor}: {second}, {third}{room}."
        for first in parts[0]
        for doctor in DOCTORS
        for second in parts[1]
        for third in parts[2]
        for room in ("", " (Zi. 12)", " (Zi. 7)")
    ]
    return [made[i] for i in rng.permutation(len(made))[:N_REMARKS]]


def _text(cell: object, language: str) -> str:
    if isinstance(cell, date):
        return f"{cell:%d.%m.%Y}" if language == "de" else cell.isoformat()
    if isinstance(cell, float):
        shown = f"{cell:,.2f}" if cell >= 1000 else f"{cell:.1f}"
        if language == "de":
            return shown.translate(str.maketrans(",.", ".,"))
        return shown.replace(",", "")
    return str(cell)


def write(path: Path, n: int = ROWS, *, seed: int = SEED, language: str = "de") -> Path:
    """Write the table in the form that its language is used to, and return its file."""
    mark, encoding = (";", "cp1252") if language == "de" else (",", "utf-8")
    lines = [COLUMNS[language], *rows(n, seed=seed, language=language)]
    text = "".join(mark.join(_quoted(row, mark)) + "\r\n" for row in lines)
    path.write_bytes(text.encode(encoding))
    return path


def _quoted(row: Sequence[str], mark: str) -> list[str]:
    return [f'"{cell}"' if mark in cell else cell for cell in row]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.hospital", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--language", choices=COLUMNS, default="de")
    given = parser.parse_args()
    print(write(given.path, given.rows, seed=given.seed, language=given.language))

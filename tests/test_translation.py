"""Pages in another language: complete, in its form, and nothing left in English."""

import re
import string
import tomllib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from client.report import pages
from tools import cases
from verix_anon import translation
from verix_anon.adversaries import ADVERSARIES
from verix_anon.client.explore import explore
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.privacy_sheet import Linking, Sheet
from verix_anon.client.release import ReleaseOptions, release
from verix_anon.client.release.privacy import UNITS
from verix_anon.client.report import render, render_exploration
from verix_anon.client.verdict import Profile, Verdict
from verix_anon.client.verify import VerifyOptions, verify
from verix_anon.client.verify.case import Audit
from verix_anon.errors import TableError
from verix_anon.provider.local import LocalProvider
from verix_anon.translation import LANGUAGES, RECORD, date, keys, number, text, texts, translated

pytestmark = pytest.mark.usefixtures("quick_models")
OTHERS = [language for language in LANGUAGES if language != RECORD]
ENGLISH = re.compile(
    r"(?<!memory:)\b(the|of|are|were|with|which|that|has|have|been|from|records?)\b"
)
TECHNICAL = re.compile(r"Technische Angabe: .*?\.(?=\s)")
"""What is wrong with a damaged file is said in English, and the page says so."""


def names_in(sentence: str) -> set[str]:
    """The values of a text; the words that depend on one name it again."""
    fields = [field for _, field, _, _ in string.Formatter().parse(sentence) if field is not None]
    return {field.partition("|")[0] for field in fields}


@pytest.mark.parametrize("language", OTHERS)
def test_languages_have_the_same_texts_with_the_same_values(language: str) -> None:
    ours, others = texts(RECORD), texts(language)
    assert set(ours) == set(others)
    assert [key for key in ours if names_in(ours[key]) != names_in(others[key])] == []
    assert [key for key, value in others.items() if not value] == []


def test_no_sentence_is_hidden_by_another() -> None:
    """Each pattern finds its own examples: of two that fit, the more telling one is taken."""
    for key, sentence in texts(RECORD).items():
        if key.startswith("say.") and "{" not in sentence:
            assert translated(sentence, "de") == texts("de")[key], key


def test_every_unit_of_a_width_has_a_word() -> None:
    assert {*UNITS, "values"} <= set(keys("losses.units"))


def test_values_are_in_the_readers_form() -> None:
    assert number(1234.5, ",.1f", "de") == "1.234,5"
    assert number(0.125, ".1%", "de") == "12,5\N{NO-BREAK SPACE}%"
    assert date("2026-11-18", "de") == "18.11.2026"
    assert date("2026-11-18T20:05:11+00:00", "de") == "18.11.2026, 20:05:11 Uhr UTC"
    assert date("2026-11-18T22:05:11+02:00", "en") == "2026-11-18 20:05:11 UTC"
    assert date("no date", "de") == "no date"
    assert text("cards.deviations", "en", n=1).startswith(
        "1 of the nodes that were checked deviates"
    )
    assert text("cards.deviations", "de", n=2000).startswith("2.000 der geprüften Knoten weichen")
    assert translated("All 1,234 sentinels are back.", "de") == "Alle 1.234 Wächter sind zurück."


def test_names_are_not_translated() -> None:
    name = "a leaf. All 5 sentinels are back. {n}"
    said = f"SHAP values moved too far in {name!r} and 'b, c'."
    assert translated(said, "de") == (
        f"SHAP-Werte haben sich zu weit verschoben in „{name}“, „b, c“."
    )
    assert translated("Sentences that nobody knows.", "de") == "Sentences that nobody knows."
    assert translated(said, "en") == said


@pytest.mark.parametrize(
    ("fact", "shown"),
    [
        ("age 3, town 5,000; imputed", "age 3, town 5.000; durch geschätzte Werte ersetzt"),
        ("k 5; ill: l 3, cap 0.75; rich: t 0.5", "k 5; ill: l 3, cap 0,75; rich: t 0,5"),
        (
            "3,000 records of 12 people; distributions moved by age 0.123, a 1.5 b 0.001",
            "3.000 Datensätze von 12 Personen; Verteilungen verschoben um age 0,123, a 1.5 b 0,001",
        ),
    ],
)
def test_numbers_beside_names_are_in_the_readers_form(fact: str, shown: str) -> None:
    assert translated(fact, "de") == shown


def test_bins_of_several_columns_are_translated_each() -> None:
    shares = {"age 0.5": "12.0%", "born 5y": "under 0.1%", "town 2": "0.0%"}
    each = [f"{name} ({share} of the records span several)" for name, share in shares.items()]
    shown = translated(", ".join(each), "de")
    assert shown.count("der Datensätze") == 3
    assert "age 0,5 (12,0" in shown
    assert "born 5y (unter 0,1" in shown


def test_an_unknown_language_is_a_mistake() -> None:
    with pytest.raises(TableError, match="no texts in 'fr', only in"):
        render(pages.judged("honest"), language="fr")


@pytest.fixture
def missed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What a page shows without a translation."""
    found, find = set[str](), translation.find

    def noting(sentence: str, language: str) -> str | None:
        known = find(sentence, language)
        if known is None and sentence.strip() and not sentence.startswith("delivery"):
            found.add(sentence)
        return known

    monkeypatch.setattr(translation, "find", noting)
    return found


def left_in_english(page: str) -> list[str]:
    shown = TECHNICAL.sub("", pages.text_of(page))
    return [line for line in shown.splitlines() if ENGLISH.search(line)]


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("name", ["honest", "lazy", "forged"])
def test_reports_are_german_throughout(name: str, profile: Profile, missed: set[str]) -> None:
    sheet = Sheet.from_json(pages.released()) if name == "honest" else None
    page = render(pages.judged(name, profile), sheet, "de")
    assert missed == set()
    assert left_in_english(page) == []
    assert re.findall(r'content: "[^"]*\w', page) == []
    assert '<html lang="de">' in page


def test_without_a_time_a_report_is_german_too() -> None:
    text = pages.text_of(render(replace(pages.judged("honest"), time=""), language="de"))
    assert re.search(r"Die Anonymisierung .* haben wir mit verix-anon .* geprüft", text)
    assert "aus dem Prüfergebnis (Zeitpunkt unbekannt)." in text


def verdicts() -> Iterator[Verdict]:
    made = cases.prepared()
    sent, manifest = made.submission, made.manifest
    for adversary in ADVERSARIES.values():
        try:
            delivery = adversary(0).anonymize(sent)
        except Exception:  # The contract may not be one that it can break.
            continue
        yield verify(delivery, manifest, submission=sent)
        yield verify(delivery, manifest)
    sampled = VerifyOptions(audit=Audit.SAMPLE, audit_fraction=0.2, audit_miss=0.2)
    yield verify(cases.honest(sent), manifest, submission=sent, options=sampled)
    yield verify(cases.honest(sent), manifest, submission=sent, skip=["fingerprint", "utility"])
    for bare in (cases.prepared(traps=Traps.NONE), cases.prepared(witnesses=0)):
        yield verify(cases.honest(bare.submission), bare.manifest, submission=bare.submission)
        yield verify(cases.honest(bare.submission), bare.manifest)


def test_what_every_adversary_gives_rise_to_is_german(missed: set[str]) -> None:
    for verdict in verdicts():
        page = render(verdict, language="de")
        translated(verdict.guarantee or "F1", "de")
        assert left_in_english(page) == []
    assert {line for line in missed if not line.startswith(("records", "nodes", "leaves"))} == set()


def test_warnings_and_facts_of_a_release_are_german(missed: set[str]) -> None:
    rng = np.random.default_rng(2)
    n = 400
    words = np.array(["Dr. Meier saw the patient today", "came back after two weeks again"])
    table = pa.table(
        {
            "age": rng.integers(20, 90, n),
            "sex": rng.integers(1, 3, n).astype(str),
            "town": [None if i % 7 == 0 else f"t{i % 5}" for i in range(n)],
            "person": (np.arange(n) // 2).astype(str),
            "cost": rng.random(n),
            "note": [f"{words[i % 2]} {i % 30} and so on" for i in range(n)],
            "sick": np.where(rng.random(n) < 0.4, "yes", "no"),
        }
    )
    roles = {"quasi": ["age", "sex", "town"], "sensitive": ["cost"], "target": "sick"}
    roles |= {"kept": ["person", "note"]}
    for missing in ("mark", "impute"):
        options = PrepareOptions(unsafe_seed=1)
        made = prepare(table, k=5, missing=missing, options=options, **roles)  # type: ignore[arg-type]
        back = cases.honest(made.submission)
        verdict = verify(back, made.manifest, submission=made.submission)
        chosen = ReleaseOptions(keep_order=True, person="person", round_to={"cost": 0.25})
        found = release(back, made.manifest, verdict, table=table, options=chosen)
        asked = replace(
            found.sheet,
            released_before=1,
            linked=Linking(column="person", k=1, below_k=0.5, unique=0.25),
            enforced={"sick": {"l": 2, "cap": 0.75}},
            prosecutor_max=0.5,
        )
        for sheet in (found.sheet, asked, replace(asked, warnings=asked.measured_warnings)):
            assert left_in_english(render(verdict, sheet, "de")) == []
            for name, fact in sheet.facts().items():
                translated(name, "de")
                translated(fact, "de")
            for line in (*sheet.warnings, *sheet.measured_warnings):
                translated(line, "de")
    columns = set(table.column_names)
    assert {line for line in missed if line not in columns} == set()


def test_an_exploration_is_german(missed: set[str]) -> None:
    roles = {"target": "outcome", "quasi": ["amount", "town"]}
    roles |= {"kept": ["debt", "day"], "identifier": ["diagnosis", "person"]}
    found = explore(pages.canary_table(), roles, provider=LocalProvider())
    page = render_exploration(found, "de")
    assert left_in_english(page) == []
    assert {line for line in missed if not re.fullmatch(r"[\d.,%-]+", line)} == set()


def test_a_third_language_is_one_file() -> None:
    """All that names a language is its file; what is in it is held by the tests above."""
    folder = translation.FOLDER
    assert {path.name for path in folder.iterdir()} == {f"{name}.toml" for name in LANGUAGES}
    for language in LANGUAGES:
        assert tomllib.loads((folder / f"{language}.toml").read_text("utf-8"))["form"]

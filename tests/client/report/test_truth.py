"""The truth first: what a release leaves open, what was sent, and a word for every word."""

import json
import re
from dataclasses import replace

import pytest

from client.report import pages
from client.report.test_report import section
from tools import cases
from verix_anon.client.audit_subject import Account, SentColumn, SentForm
from verix_anon.client.manifest import Parties
from verix_anon.client.prepare.traps import Traps
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.report import render
from verix_anon.client.report.page import MOST_COLUMNS, glossary
from verix_anon.client.table.roles import Measure
from verix_anon.client.table.task import TableRole
from verix_anon.client.verdict import LAYERS, MEASURES, Outcome, Profile, Status
from verix_anon.client.verify import verify
from verix_anon.translation import PageTexts, share

pytestmark = pytest.mark.usefixtures("quick_models")


def part(page: str, pattern: str) -> str:
    """One part of a page, as it is read: without tags, spaces as one."""
    found = re.search(pattern, page, re.S)
    assert found is not None
    return " ".join(pages.text_of(found[0]).split())


def head(page: str) -> str:
    return part(page, r'<div class="verdict open.*?</header>')


def statement(page: str) -> str:
    return part(page, r"<blockquote>.*?</blockquote>")


def sheet(**changes: object) -> str:
    """The honest release's sheet with other figures; `target` and `sensitive` are given away."""
    document = json.loads(pages.released())
    given = {role: changes.pop(role, None) for role in ("target", "sensitive")}
    document["joined"]["records"] = changes.pop("joined", 0)
    for each in document["diversity"]:
        each["given_away"] = given[each["role"]] or 0.0
    document["diversity"] = [d for d in document["diversity"] if given[d["role"]] is not None]
    return json.dumps(document | {"warnings": []} | changes)


CLAIMS = r"\b(nobody|no one|no person|none of them|cannot be (picked|singled|identified))\b"
SHEETS = [
    {"singled_out": 0.125, "target": 0.25, "joined": 1_234},
    {"singled_out": 1.0, "target": 0.0},
    {"singled_out": 0.0001, "target": 0.99999, "sensitive": 0.5},
    {"singled_out": 0.0, "target": 0.031, "sensitive": 0.0},
    {"singled_out": 0.0, "singled_out_by": {}},
    {"singled_out": 0.5, "overridden": ["it did not pass"], "k": 1, "prosecutor_max": 1.0},
]


@pytest.mark.parametrize("changes", SHEETS, ids=range(len(SHEETS)))
def test_head_and_statement_say_what_is_left_open(changes: dict[str, object]) -> None:
    page = render(pages.judged("honest"), Sheet.from_json(sheet(**changes)))
    singled, target = changes["singled_out"], changes.get("target")
    assert isinstance(singled, float)
    wanted = [f"{share(singled)} of the records are singled out within their class by kept and"]
    if target is None:
        wanted.append("No target that a class could give away")
    else:
        assert isinstance(target, float)
        wanted.append(f"{share(target)} of the records are in classes that give the target away")
    if worst := changes.get("sensitive"):
        assert isinstance(worst, float)
        wanted.append(f"{share(worst)} of the records are in classes that give the worst sensitive")
    wanted.append(f"{changes.get('joined', 0):,} of 300 records are in classes joined")
    for said in (head(page), statement(page)):
        assert not re.search(CLAIMS, said, re.IGNORECASE)
        assert [words for words in wanted if words not in said] == []
    # The share by quasi-identifiers alone is never told without saying so.
    assert "only the quasi-identifiers of a person" in statement(page)
    assert ("The release was forced" in head(page)) == ("overridden" in changes)
    is_closed = not singled and not target
    assert ('class="verdict open good"' in page) == is_closed
    assert page.index("leaves open") < page.index('id="answers"')


def test_what_stays_possible_over_time_is_told_of_each_column() -> None:
    risk = {"number": 1, "time": "", "people": 100, "below": 0.25, "certain": 0.125, "least": 1}
    told = {"releases": [risk], "changing": {}, "returning": 0, "withheld": 0}
    by_column = {"ill": 1, "rich": 3}
    found = Sheet.from_json(sheet(over_time=told | {"least_by": by_column}))
    for language, rich, ill in (
        ("en", "At least 3 values stay possible", "At least 1 value stays possible"),
        ("de", "bleiben mindestens 3 Werte möglich", "bleibt mindestens 1 Wert möglich"),
    ):
        text = pages.text_of(render(pages.judged("honest"), found, language))
        assert re.search(f"ill ?: [^.]*{ill}", text)
        assert re.search(f"rich ?: [^.]*{rich}", text)
    told["releases"] = [risk | {"time": "2026-11-18T20:05:11+00:00"}]
    found = Sheet.from_json(sheet(over_time=told | {"least_by": {"ill": 1}}))
    assert "1, 18.11.2026" in pages.text_of(render(pages.judged("honest"), found, "de"))
    assert "stays possible" not in pages.text_of(render(pages.judged("honest"), found))


def test_a_little_is_not_nothing() -> None:
    assert [share(value) for value in (0.0, 0.0009, 0.001, 0.5, 0.9991, 1.0)] == [
        "0.0%",
        "under 0.1%",
        "0.1%",
        "50.0%",
        "over 99.9%",
        "100.0%",
    ]


@pytest.mark.parametrize("name", ["honest", "approximate"])
def test_without_a_sheet_it_says_so_as_large(name: str) -> None:
    page = pages.report(name)
    assert "No release known No privacy sheet came with this verdict" in head(page)
    assert ("Nothing made from this delivery should be released" in head(page)) == (
        name != "honest"
    )
    assert "This report does not know of a release" in statement(page)
    assert not re.search(CLAIMS, statement(page), re.IGNORECASE)


# Whose table, and what was sent.


def account() -> Account:
    found = pages.judged("honest").account
    assert found is not None
    return found


def about(changed: Account) -> str:
    page = render(replace(pages.judged("honest"), account=changed))
    return part(page, r'<section aria-labelledby="about">.*?</section>')


def test_names_of_table_and_parties_in_page_and_statement() -> None:
    names = Parties(table_name="<b>Wards</b>", controller="A & B", processor="Miller")
    page = render(replace(pages.judged("honest"), account=replace(account(), parties=names)))
    assert "<b>Wards" not in page
    text = about(replace(account(), parties=names))
    assert "table <b>Wards</b> controller A & B processor Miller" in text
    assert re.search(
        r"we, A & B, audited the anonymization of “<b>Wards</b>” .* that Miller did for us",
        statement(page),
    )
    assert about(account()).count("not named") == 3


def test_columns_with_role_form_and_fate() -> None:
    text = about(account())
    clear = "clear: names and values as they are"
    for row in (
        f"amount quasi {clear} generalized",
        "diagnosis sensitive never sent published unchanged",
        "person identifier never sent left out",
        f"outcome target {clear} published unchanged",
        "Never sent and never published: person .",
        "The provider sees the names and values of 4 columns, and every label.",
    ):
        assert row in text
    coded = tuple(
        replace(c, form=SentForm.CODED) if c.form is SentForm.CLEAR else c
        for c in account().columns
        if c.role is not TableRole.IDENTIFIER
    )
    text = about(replace(account(), columns=coded))
    assert "amount quasi coded: each value as its place, without its column's name" in text
    assert (
        "outcome target coded: which of two classes, without their names published unchanged"
        in text
    )
    assert "Never sent and never published: no column." in text


def test_genuine_records_and_traps_apart() -> None:
    text = about(replace(account(), genuine=30_162, sentinels=43, twins=1_508))
    assert "genuine records 30,162 sentinels 43 twins 1,508" in text
    page = render(replace(pages.judged("honest"), account=replace(account(), sentinels=0, twins=0)))
    assert "(300 genuine records, no traps)" in statement(page)


def test_many_columns_are_counted() -> None:
    many = tuple(
        SentColumn(f"column{i}x", TableRole.QUASI, SentForm.CODED)
        for i in range(MOST_COLUMNS + 1_500)
    )
    text = about(replace(account(), columns=many))
    assert "column199x" in text
    assert "column200x" not in text
    assert "1,500 more columns are in the verdict file." in text


# An ordinary run.


def test_an_ordinary_run_has_no_warning_colour() -> None:
    prepared = cases.prepared()
    sent = prepared.submission
    verdict = verify(cases.honest(sent), prepared.manifest, submission=sent)
    assert verdict.finding("fingerprint").status is Status.INCONCLUSIVE
    page = render(verdict)
    card = section(page, "fingerprint")
    assert 'class="card inconclusive quiet"' in card
    assert 'class="badge quiet"' in card
    assert not re.search(r'class="(card|badge)[^"]* (mark|bad)"', page)


def test_what_decides_keeps_its_colour_and_what_informs_is_grey() -> None:
    thin = cases.prepared(witnesses=0)
    page = render(verify(cases.honest(thin.submission), thin.manifest))
    assert 'class="card inconclusive mark"' in section(page, "splits")
    assert 'class="card fail bad"' in section(pages.report("approximate"), "splits")
    verdict = pages.judged("honest")
    failed = [
        replace(f, status=Status.FAIL) if f.layer == "fingerprint" else f for f in verdict.findings
    ]
    page = render(replace(verdict, findings=tuple(failed)))
    # Honest work may fail what only informs: it is grey, and says in words that it failed.
    card = section(page, "fingerprint")
    assert 'class="card fail quiet"' in card
    assert re.search(r"\bfail\b", pages.text_of(card))
    assert PageTexts("en")("cards.only_informs") in pages.text_of(card)


# Words.

VOCABULARY = {
    *LAYERS,
    *Status,
    *Outcome,
    *Profile,
    *TableRole,
    *Measure,
    *("coded", "clear", "place", "generalized", "role", "decides", "informs", "guarantee"),
    *("controller", "processor", "provider", "contract", "submission", "delivery", "manifest"),
    *("release", "privacy sheet", "profile", "layer", "root", "digest", "SHA-256", "engine"),
    *("genuine record", "trap", "sentinel", "twin", "tracker", "watch record", "witness"),
    *("person", "unsafe seed", "evasion curve", "honest run", "threshold", "p-value"),
    *("tree", "node", "split", "group", "leaf", "bounds", "class", "joined", "quasi-identifiers"),
    *("k", "entropy l", "NCP", "singled out", "risk", "give away", "SHAP value", "F1", "AUC"),
    *("alone with a printed bound", "macro F1", "R2", "mean absolute error", "key", "pinned"),
}
"""What a reader cannot know from elsewhere: the words of the code, and those of the prose."""


def outside_the_glossary() -> str:
    shown = [pages.report(name, profile) for name, profile in pages.ALL]
    shown += [pages.report("honest", with_sheet=True)]
    shown += [render(pages.judged("honest"), Sheet.from_json(sheet(singled_out=0.5, target=0.5)))]
    enforced = {"outcome": {"l": 2, "cap": 0.75, "t": 0.5}}
    shown += [render(pages.judged("honest"), Sheet.from_json(sheet(enforced=enforced, target=0.5)))]
    prepared = cases.prepared(witnesses=0)
    shown += [render(verify(cases.honest(prepared.submission), prepared.manifest))]
    coded = verify(
        cases.honest(prepared.submission), prepared.manifest, submission=prepared.submission
    )
    bare = cases.prepared(traps=Traps.NONE)
    shown += [render(verify(cases.honest(bare.submission), bare.manifest))]
    scores = dict.fromkeys(MEASURES, 0.5)
    shown += [render(pages.altered(pages.judged("honest"), "utility", raw=scores))]
    kept = replace(account(), columns=(SentColumn("a", TableRole.KEPT, SentForm.NEVER),))
    shown += [render(coded), render(replace(coded, account=kept))]
    cut = [re.sub(r'<section aria-labelledby="words">.*?</section>', "", each, flags=re.S)
           for each in shown]  # fmt: skip
    return " ".join(pages.text_of("".join(cut)).split())


def is_used(term: str, text: str) -> bool:
    """As a word of its own, in one or many; words in capitals as they stand."""
    if term == "give away":
        return "give the target away" in text
    flags = 0 if term != term.lower() or len(term) == 1 else re.IGNORECASE
    plural = {"leaf": "leaves", "witness": "witnesses", "class": "classes"}.get(term, f"{term}s")
    return bool(re.search(rf"(?<![\w-])({re.escape(term)}|{plural})(?![\w-])", text, flags))


def test_every_word_has_an_entry_and_no_entry_is_idle() -> None:
    text = outside_the_glossary()
    words = [entry for entries in glossary(PageTexts("en")).values() for entry in entries]
    terms = [each for shown, _ in words for each in shown.split(", ")]
    assert len(terms) == len(set(terms))
    assert {word for word in VOCABULARY if is_used(word, text)} - set(terms) == set()
    assert {term for term in terms if not is_used(term, text)} == set()
    # The list above is no shorter than the glossary, so that both grow together.
    assert set(terms) - VOCABULARY == set()
    page = pages.report("honest")
    assert [meaning for _, meaning in words if meaning not in pages.text_of(page)] == []

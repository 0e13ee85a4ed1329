"""The report as a file: hostile text stays text, self-contained, readable; with a sheet."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from client.report import pages
from client.report.pages import ALL, SCRIPT, Outline, altered
from tools import cases
from verix_anon.client import report
from verix_anon.client.audit_subject import Account
from verix_anon.client.manifest import Parties
from verix_anon.client.owner_files import parse_verdict, read_verdict, write_verdict
from verix_anon.client.prepare import PrepareOptions, prepare
from verix_anon.client.privacy_sheet import Sheet
from verix_anon.client.report import is_report_of, render
from verix_anon.client.report.cards import LINE
from verix_anon.client.verdict import Profile, Verdict
from verix_anon.client.verify import verify
from verix_anon.errors import TableError
from verix_anon.fields import printable
from verix_anon.files import optional_packages

HOSTILE = (
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{1}{0}$",
    "\u202eevil\u2066\u200f",
    "a\x00b\x1b[31mc\r\nd\x7f",
    "שלום عربي",
    "x" * 10_000,
)


pytestmark = pytest.mark.usefixtures("quick_models")


# Hostile text.


def hostile_verdict(text: str) -> Verdict:
    """Every text in a verdict, made hostile."""
    verdict = pages.judged("approximate")
    findings = [replace(f, summary=text, guarantee=text) for f in verdict.findings]
    verdict = replace(verdict, findings=tuple(findings), files={text: text}, version=text)
    verdict = replace(verdict, time=text, account=hostile_account(text))
    verdict = altered(verdict, "commitment", engine=text)
    deviating = [{"node": 1, "records": 2, "kind": text}]
    verdict = altered(verdict, "splits", deviating=deviating)
    shap = verdict.finding("fingerprint").evidence["shap"]
    assert isinstance(shap, list)
    return altered(verdict, "fingerprint", shap=[{**each, "feature": text} for each in shap])


def hostile_account(text: str) -> Account:
    """Names as far as a verdict may hold them, columns as the owner's table may call them."""
    account = pages.judged("approximate").account
    assert account is not None
    name = printable(text, LINE).replace("\N{REPLACEMENT CHARACTER}", "")
    return replace(
        account,
        parties=Parties(table_name=name, controller=name, processor=name),
        columns=tuple(replace(column, name=text) for column in account.columns),
        seen=(text,),
    )


def hostile_sheet(text: str) -> str:
    document = json.loads(pages.released())
    document |= {"counted_by": text, "warnings": [text], "overridden": [text]}
    document["root"] = pages.judged("approximate").root.hex()
    for each in document["diversity"]:
        each |= {"column": text, "role": text}
    for each in document["losses"]:
        each |= {"column": text, "unit": text, "bars": [text] * len(each["bars"])}
    return json.dumps(document)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text(text: str) -> None:
    tame = Outline.of(render(hostile_verdict("tame"), Sheet.from_json(hostile_sheet("tame"))))
    page = render(hostile_verdict(text), Sheet.from_json(hostile_sheet(text)))
    found = Outline.of(page)
    # The same elements with the same attributes: nothing broke out of its place.
    assert found.tags() == tame.tags()
    assert [set(a) for _, a in found.elements] == [set(a) for _, a in tame.elements]
    assert not any(name.startswith("on") for _, a in found.elements for name in a)
    assert not found.unbalanced
    assert all(c.isprintable() or c == "\n" for c in page)
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069]", page)
    assert "x" * 2_000 not in page
    assert len(page.encode()) < report.MOST_BYTES
    shown = printable(text, LINE)
    assert pages.text_of(page).count(shown.replace("\n", " ")) > 8


def test_hostile_column_names_from_preparation_to_page() -> None:
    source = cases.table(300)
    names = {"age": SCRIPT, "score": HOSTILE[1], "town": HOSTILE[6], "rank": "y" * 10_000}
    source = source.rename_columns([names.get(name, name) for name in source.column_names])
    prepared = prepare(source, target="y", quasi="all", k=3, options=PrepareOptions(unsafe_seed=1))
    sent = prepared.submission
    verdict = verify(pages.delivery_of("approximate", sent), prepared.manifest, submission=sent)
    page = render(parse_verdict(verdict.to_json()))
    assert not {"script", "img"} & set(Outline.of(page).tags())
    assert "&lt;script&gt;" in page
    assert len(page.encode()) < 1_000_000


def test_printable() -> None:
    assert printable("a\x1bb\u202ec\nd") == "a\ufffdb\ufffdc\ufffdd"
    assert printable("z" * 500) == "z" * 500
    assert printable("z" * 500, LINE) == "z" * 100 + "…"
    assert printable("שלום", LINE) == "שלום"


# The file.


def test_self_contained_and_small() -> None:
    page = pages.report("honest", with_sheet=True)
    assert len(page.encode()) <= report.MOST_BYTES
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", page)
    found = Outline.of(page)
    assert not {"script", "link", "iframe", "object", "img", "base", "form"} & set(found.tags())
    assert found.values("http-equiv") == ["Content-Security-Policy"]
    assert all(link.startswith("#") for link in found.values("href"))


@pytest.mark.parametrize(("name", "profile"), ALL)
def test_structure(name: str, profile: Profile) -> None:
    found = Outline.of(pages.report(name, profile))
    assert not found.unbalanced
    ids = found.values("id")
    assert len(ids) == len(set(ids))
    for reference in (*found.values("aria-labelledby"), *(h[1:] for h in found.values("href"))):
        assert reference in ids
    headings = [int(tag[1]) for tag in found.tags() if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(headings, headings[1:], strict=False))
    for tag, attributes in found.elements:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or len(attributes["aria-label"]) > 20


def test_same_verdict_same_page() -> None:
    verdict = pages.judged("approximate")
    assert render(verdict) == render(parse_verdict(verdict.to_json()))


def test_a_report_says_which_verdict_it_is_of(tmp_path: Path) -> None:
    verdict, page = pages.judged("approximate"), tmp_path / "verdict.html"
    write_verdict(verdict, tmp_path / "verdict.json")
    page.write_text(render(verdict), encoding="utf-8")
    digest = sha256((tmp_path / "verdict.json").read_bytes()).hexdigest()
    assert f'<meta name="verix-verdict" content="{digest}">' in page.read_text(encoding="utf-8")
    assert is_report_of(page, read_verdict(tmp_path / "verdict.json"))
    for other in (pages.judged("honest"), replace(verdict, time=""), replace(verdict, seconds=0.5)):
        assert not is_report_of(page, other)
    for text in (b"", b"\xff", f"<title>VIOLATION: {verdict.root.hex()}".encode()):
        page.write_bytes(text)
        assert not is_report_of(page, verdict)
    assert not is_report_of(tmp_path / "none.html", verdict)
    assert not is_report_of(tmp_path, verdict)


# The privacy sheet, and the extra.


def test_sheet() -> None:
    text = pages.text_of(pages.report("honest", with_sheet=True))
    sheet = json.loads(pages.released())
    assert f"holds at least {sheet['k']:,} (3 agreed)" in text
    agreed = f"{sheet['k']:,} (3 agreed), counted by record."
    assert f"A table was released. Every class holds at least {agreed}" in text
    assert "diagnosis" in text
    assert "Sizes of the released classes" in text
    assert f"{sheet['singled_out']:.1%}" in text
    assert "No privacy sheet was given" not in text
    assert "No privacy sheet was given" in pages.text_of(pages.report("honest"))


def test_sheet_says_what_was_enforced_and_what_it_cost() -> None:
    document = json.loads(pages.released())
    name = document["diversity"][0]["column"]
    document |= {"enforced": {name: {"l": 2, "cap": 0.75}}}
    document["joined"] |= {"records": 1234, "ncp_before": 0.125}
    document["diversity"][0] |= {"greatest_share": 0.5, "greatest_share_of_persons": 0.625}
    text = pages.text_of(render(pages.judged("honest"), Sheet.from_json(json.dumps(document))))
    assert "l 2, cap 0.75" in text
    assert "1,234" in text
    assert "12.5%" in text
    assert "50.0% of the records and 62.5% of the people" in text
    assert "share the target" in text
    document["diversity"] = [d for d in document["diversity"] if d["role"] != "target"]
    text = pages.text_of(
        render(pages.judged("honest"), Sheet.from_json(json.dumps(document | {"warnings": []})))
    )
    assert "share the target" not in text


def test_sheet_shows_what_is_left_of_each_column() -> None:
    document = json.loads(pages.released())
    first = document["losses"][0] | {"column": "sex", "exact": 0.08, "median_width": 2.0}
    first |= {"unit": "values", "n_categories": 3, "bars": ["<b>f", "m"]}
    first |= {"before": [0.6, 0.4], "after": [0.45, 0.55]}
    alone = first | {"column": "zip", "n_categories": 9, "unit": "years", "median_width": 9.0}
    alone |= {"bars": ["… (9)"], "before": [1.0], "after": [1.0]}
    document["losses"] = [first, alone]
    page = render(pages.judged("honest"), Sheet.from_json(json.dumps(document)))
    found, text = Outline.of(page), " ".join(pages.text_of(page).split())
    charts = [a for tag, a in found.elements if tag == "svg" and a.get("class") == "bars"]
    assert len(charts) == 1
    said = "Share of the rows before and after the release. <b>f: 60% → 45%; m: 40%"
    assert str(charts[0]["aria-label"]).startswith(said)
    drawn = [float(str(a["height"])) for tag, a in found.elements if tag == "rect" and "class" in a]
    assert drawn == [48.0, 32.0, 36.0, 44.0]
    assert "sex less than a third is left 8.0% 2 values" in text
    assert "zip 8.0% 9 years" in text
    del document["losses"]
    text = pages.text_of(render(pages.judged("honest"), Sheet.from_json(json.dumps(document))))
    assert "What is left of each column is not shown" in text


def test_losses_of_other_lengths_are_refused() -> None:
    document = json.loads(pages.released())
    document["losses"][0]["before"] = [0.5] * 13
    with pytest.raises(TableError, match="as many shares as bars"):
        Sheet.from_json(json.dumps(document))


def test_forced_release_is_said() -> None:
    document = json.loads(pages.released()) | {"overridden": ["there is no verdict"]}
    text = pages.text_of(render(pages.judged("honest"), Sheet.from_json(json.dumps(document))))
    assert "The release was forced" in text
    assert "there is no verdict" in text
    assert "against the verdict or the ledger" in text


def test_sheet_of_another_delivery() -> None:
    with pytest.raises(TableError, match="another delivery"):
        render(pages.judged("approximate"), Sheet.from_json(pages.released()))


def test_old_sheet_without_sizes() -> None:
    document = json.loads(pages.released())
    del document["class_sizes"]
    text = pages.text_of(render(pages.judged("honest"), Sheet.from_json(json.dumps(document))))
    assert "histogram of class sizes is left out" in text


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"format": "verix/verdict/2"}', "[" * 100_000]
)
def test_not_a_sheet(text: str) -> None:
    with pytest.raises(TableError, match="not a privacy sheet"):
        Sheet.from_json(text)


@pytest.mark.parametrize("key", ["k", "n_records", "prosecutor_max", "ncp", "class_sizes"])
@pytest.mark.parametrize("value", ["many", float("nan"), {"a": 1}, [1]])
def test_damaged_sheet(key: str, value: object) -> None:
    with pytest.raises(TableError, match=f"{key}|NaN is not a finite number"):
        Sheet.from_json(json.dumps(json.loads(pages.released()) | {key: value}))


@pytest.mark.parametrize("key", ["k", "n_records", "prosecutor_max", "ncp"])
def test_sheet_with_a_hole(key: str) -> None:
    with pytest.raises(TableError, match=key):
        Sheet.from_json(json.dumps(json.loads(pages.released()) | {key: None}))


def test_missing_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None)
    with pytest.raises(TableError, match=r"-m pip install .*\[report\]"):
        render(pages.judged("honest"))


def test_sheet_measures_class_sizes() -> None:
    sizes = json.loads(pages.released())["class_sizes"]
    assert sum(sizes["counts"]) == json.loads(pages.released())["n_classes"]
    assert sizes["at_least"] == 3
    assert isinstance(pages.canary_table(), pa.Table)

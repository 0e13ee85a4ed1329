"""The report: verdict first, aggregates only, pictures, old verdicts too."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from client.report import pages
from client.report.pages import ALL, SCRIPT, altered
from tools import cases
from verix_anon.client.owner_files import parse_verdict
from verix_anon.client.report import render
from verix_anon.client.verdict import LAYERS, Finding, Profile, Status
from verix_anon.client.verify import verify
from verix_anon.errors import TableError

pytestmark = pytest.mark.usefixtures("quick_models")


def section(page: str, layer: str) -> str:
    """The card of a layer."""
    at = LAYERS.index(layer) + 1
    match = re.search(rf'<article class="card [\w ]+" id="layer-{at}".*?</article>', page, re.S)
    assert match is not None
    return match[0]


# Canaries.


def assert_no_value(page: str) -> None:
    searched = page + unescape(page)
    assert not [value for value in pages.all_values() if value in searched]


@pytest.mark.parametrize(("name", "profile"), ALL)
def test_no_value_and_no_secret(name: str, profile: Profile) -> None:
    prepared = pages.canaries()
    page = pages.report(name, profile, with_sheet=(name, profile) == ("honest", Profile.FULL))
    # The sheet names categories that many people have, and that the table publishes.
    assert_no_value(re.sub(r"canarylabel[a-h]q", "", page))
    data = page.encode()
    for secret in pages.secret_forms(prepared.manifest, prepared.submission):
        assert secret not in data


def test_the_verdict_does_hold_values_so_the_search_bites() -> None:
    """The very search above finds thresholds in the verdict's own text."""
    text = pages.judged("approximate").to_json()
    assert any(value in text for value in pages.all_values())
    with pytest.raises(AssertionError):
        assert_no_value(text)
    manifest, sent = pages.canaries().manifest, pages.canaries().submission
    planted = f"... {sent.records.tracker[5].tobytes().hex()} ...".encode()
    assert any(secret in planted for secret in pages.secret_forms(manifest, sent))


@pytest.mark.parametrize("name", ["lazy", "approximate", "misplaced"])
def test_thin_reports_tell_no_place(name: str) -> None:
    """A node, leaf or row of a thin finding is where a watch record or witness is."""
    page = pages.text_of(pages.report(name, Profile.THIN))
    assert "VIOLATION" in page
    assert not re.search(r"\b(node|leaf|row) [0-9]", page, flags=re.IGNORECASE)
    assert "which records are watched" in page
    full = pages.text_of(pages.report("approximate"))
    assert re.search(r"\bNode [0-9]", full)


def test_thin_reports_tell_how_many() -> None:
    card = pages.text_of(section(pages.report("misplaced", Profile.THIN), "replay"))
    said = r"Watch records in a leaf that the tree does not send them to: [1-9][0-9,]*\."
    assert re.search(said, card)


def test_thin_reports_draw_no_tree_even_if_there_were_one() -> None:
    mapped = {"units": 400, "levels": ["r400"]}
    page = render(altered(pages.judged("honest", Profile.THIN), "splits", tree_map=mapped))
    assert "it would show which records are witnesses" in section(page, "splits")
    assert "<svg viewBox" not in section(page, "splits")


# What it says.


@pytest.mark.parametrize(("name", "profile"), ALL)
def test_verdict_first_then_a_card_for_every_layer(name: str, profile: Profile) -> None:
    verdict, page = pages.judged(name, profile), pages.report(name, profile)
    text = pages.text_of(page)
    assert text.index(verdict.outcome.value) < text.index("In short")
    for sign in ("Was the work done as agreed?", "How sure are we?", "tell the regulator?"):
        assert sign in text
    for finding in verdict.findings:
        card = pages.text_of(section(page, finding.layer))
        assert finding.status.value in card
        assert ("decides" if finding.decides else "informs only") in card
        assert "A pass proves" in card
        assert "It does not prove" in card
        if finding.guarantee:
            assert finding.guarantee in card
    for digest in (verdict.root.hex(), verdict.contract.hex(), *verdict.files.values()):
        assert digest in page


def test_where_and_what_of_a_failing_layer() -> None:
    card = pages.text_of(section(pages.report("approximate"), "splits"))
    for named in pages.judged("approximate").finding("splits").evidence["deviating"]:  # type: ignore[attr-defined]
        assert f"Node {named['node']:,}, with {named['records']:,} records" in card
        assert named["kind"] in card
    assert "only in the verdict file" in card
    replay = pages.text_of(section(pages.report("misplaced"), "replay"))
    assert pages.judged("misplaced").finding("replay").summary in replay


@pytest.mark.parametrize(
    ("name", "profile", "said"),
    [
        ("honest", Profile.FULL, "no chance of error"),
        ("honest", Profile.THIN, "as far as we could check without the data"),
        ("honest", Profile.PAPER, "not look at every record"),
        ("approximate", Profile.FULL, "5 checks decide, and 1 of them failed. splits:"),
        ("approximate", Profile.FULL, "files arrived as the provider sealed them"),
        ("misplaced", Profile.FULL, "Rule it out before you accuse anyone"),
        ("forged", Profile.FULL, "mixed-up transfer"),
        ("lazy", Profile.PAPER, "nothing made from it should be released"),
    ],
)
def test_answers(name: str, profile: Profile, said: str) -> None:
    # An honest delivery may fail the paper's fingerprint, which is why that only informs elsewhere.
    verdict = pages.judged(name, profile)
    if (name, profile) == ("honest", Profile.PAPER) and not verdict:
        said = "flags honest work too"
    assert said in pages.text_of(pages.report(name, profile))


def test_what_a_verdict_does_not_say_was_looked_at_was_not() -> None:
    verdict = altered(pages.judged("honest"), "splits", examined=None, nodes=None)
    assert "no chance of error" not in pages.text_of(render(verdict))


def test_a_failing_layer_that_informs_is_put_in_its_place() -> None:
    verdict = pages.judged("honest")
    findings = [
        replace(f, status=Status.FAIL) if f.layer == "fingerprint" else f for f in verdict.findings
    ]
    page = render(replace(verdict, findings=tuple(findings)))
    assert "VERIFIED" in page
    assert "does not count for the verdict" in section(page, "fingerprint")
    assert "does not count" not in section(pages.report("approximate"), "splits")


def test_statement_names_date_records_and_k() -> None:
    verdict = pages.judged("honest")
    text = pages.text_of(pages.report("honest"))
    manifest = pages.canaries().manifest
    n_traps = manifest.n_rows - manifest.n_genuine
    assert (
        f"On {verdict.time[:10]} we audited the anonymization of a table (300 genuine records,"
        f" {n_traps:,} traps planted among them) with k = 3 that a processor did for us" in text
    )
    older = pages.text_of(render(replace(verdict, account=None)))
    assert f"the anonymization of {manifest.n_rows:,} records, traps among them, with k" in older
    assert "does not say what was submitted" in older
    assert "with k = 3" in text
    assert "Unsafe seed" in text
    assert "Unsafe seed" not in render(replace(verdict, unsafe_seed=False))


def test_malformed_delivery(tmp_path: Path) -> None:
    (tmp_path / "delivery.json").write_text(SCRIPT)
    verdict = verify(tmp_path, pages.canaries().manifest)
    page = render(verdict)
    assert "is not a delivery" in pages.text_of(page)
    assert "<script" not in page


def test_inconclusive() -> None:
    prepared = cases.prepared(witnesses=0)
    verdict = verify(cases.honest(prepared.submission), prepared.manifest)
    text = pages.text_of(render(verdict))
    assert "INCONCLUSIVE" in text
    assert "gave no answer: splits" in text


def test_without_traps_nothing_is_drawn_of_them() -> None:
    from verix_anon.client.prepare.traps import Traps

    prepared = cases.prepared(traps=Traps.NONE)
    sent = prepared.submission
    verdict = verify(cases.honest(sent), prepared.manifest, submission=sent)
    text = pages.text_of(render(verdict))
    assert text.count("nothing was planted") == 2


# Pictures.


@pytest.mark.parametrize(
    ("layer", "title"),
    [
        ("sentinels", "How likely it is that dropped records go unnoticed"),
        ("twins", "How likely it is that dropped records go unnoticed"),
        ("replay", "Sizes of the delivered groups"),
        ("splits", "Map of the tree"),
        ("fingerprint", "SHAP values of"),
        ("fingerprint", "Against honest runs"),
    ],
)
def test_pictures(layer: str, title: str) -> None:
    card = section(pages.report("approximate"), layer)
    assert title in card
    assert 'role="img" aria-label="' in card.replace('focusable="false"', "")


def test_fingerprint_shows_distance_and_threshold_of_each_column() -> None:
    evidence = pages.judged("honest").finding("fingerprint").evidence
    card = pages.text_of(section(pages.report("honest"), "fingerprint"))
    parts = zip(evidence["features"], evidence["distance"], evidence["epsilon"], strict=True)  # type: ignore[call-overload]
    for name, distance, epsilon in parts:
        assert name in card
        assert f"Moved by {distance:.3f}. The threshold is {epsilon:.3f}." in card


def test_map_has_a_box_for_every_run() -> None:
    verdict = pages.judged("approximate")
    levels = verdict.finding("splits").evidence["tree_map"]["levels"]  # type: ignore[index]
    n_boxes = sum(token[0] != "-" for level in levels for token in level.split())
    card = section(pages.report("approximate"), "splits")
    assert card.count("fill: var(--good)") + card.count("fill: var(--bad)") == n_boxes
    assert card.count("fill: var(--bad)") == sum(
        token[0] in "wW" for level in levels for token in level.split()
    )


def test_small_classes_stand_out() -> None:
    sizes: dict[str, object] = {"at_least": 6, "smallest": 2, "largest": 9, "mean": 5.0}
    sizes |= {"edges": [2, 6, 10], "counts": [3, 4]}
    page = render(altered(pages.judged("honest"), "replay", leaf_sizes=sizes))
    card = section(page, "replay")
    assert "3 hold fewer than 6" in card
    assert "fill: var(--bad)" in card
    assert "fill: var(--bad)" not in section(pages.report("honest"), "replay")


def test_colours_are_all_variables_of_the_page() -> None:
    page = pages.report("approximate")
    drawn = "".join(re.findall(r"<svg viewBox.*?</svg>", page, flags=re.S))
    used = set(re.findall(r"var\(--([\w-]+)\)", drawn))
    assert used >= {"quiet", "line", "before", "after", "good", "bad", "mark"}
    assert not re.search(r"#[0-9a-f]{6}\b", drawn)


# Old and damaged verdicts.

ADDED = {
    "sentinels": ["evasion_curve"],
    "twins": ["evasion_curve"],
    "replay": ["found", "leaf_sizes"],
    "splits": ["deviating", "tree_map"],
    "fingerprint": ["shap", "honest"],
    "commitment": ["records", "k", "engine"],
}


@pytest.mark.parametrize("name", ["honest", "approximate", "misplaced"])
@pytest.mark.parametrize("profile", list(Profile))
def test_old_verdicts_render_and_say_what_is_missing(name: str, profile: Profile) -> None:
    verdict = replace(pages.judged(name, profile), time="")
    for layer, keys in ADDED.items():
        verdict = altered(verdict, layer, **dict.fromkeys(keys))
    page = render(parse_verdict(verdict.to_json()))
    text = pages.text_of(page)
    assert verdict.outcome.value in text
    assert "left out, because this verdict does not hold what it is drawn from" in text
    assert "<svg viewBox" not in page.replace('<svg class="icon" viewBox', "")
    assert_no_value(page)
    if profile is Profile.THIN:
        assert not re.search(r"\b(node|leaf|row) [0-9]", text, flags=re.IGNORECASE)


@pytest.mark.parametrize(
    ("layer", "key", "value"),
    [
        ("replay", "leaf_sizes", {"edges": [1, 2]}),
        ("replay", "leaf_sizes", "many"),
        ("replay", "records", -1),
        ("replay", "records", "1e9"),
        ("replay", "records", True),
        ("splits", "tree_map", {"units": 400, "levels": ["r399"]}),
        ("splits", "tree_map", {"units": 400, "levels": ["x400"]}),
        ("splits", "tree_map", {"units": 10**9, "levels": ["r400"]}),
        ("splits", "tree_map", {"units": 400, "levels": ["r400"] * 10_000}),
        ("splits", "tree_map", {"units": 400, "levels": [" ".join(["r1"] * 10**5)]}),
        ("sentinels", "evasion_curve", {"drop": [0.1], "probability": []}),
        ("sentinels", "evasion_curve", {"drop": [], "probability": []}),
        ("fingerprint", "shap", [{"feature": "x"}]),
        ("fingerprint", "honest", [float("nan")]),
        ("fingerprint", "honest", [0.1] * 100_000),
        ("fingerprint", "p_value", float("inf")),
        ("fingerprint", "p_value", 10**400),
        ("fingerprint", "shap", [{"feature": "x", "from": 0, "to": 1, "before": [1], "after": []}]),
        ("sentinels", "evasion_curve", {"drop": [0.1, 0.2], "probability": [0.5, 1.5]}),
        ("utility", "raw", [1, 2]),
    ],
)
def test_evidence_that_verix_never_writes_is_one_sentence(
    layer: str, key: str, value: object
) -> None:
    with pytest.raises(TableError, match=key):
        render(altered(pages.judged("honest"), layer, **{key: value}))


def test_too_many_findings_or_files() -> None:
    verdict = pages.judged("honest")
    more = Finding(layer="utility", status=Status.PASS, decides=False, summary="")
    with pytest.raises(TableError, match="too much"):
        render(replace(verdict, findings=verdict.findings + (more,) * 100))
    with pytest.raises(TableError, match="too much"):
        render(replace(verdict, files={str(i): "" for i in range(10_000)}))

"""Our verifier tells the deliveries of the kit apart, and none that lacks a layer does."""

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from cli import jobs
from conform.in_process import of_side
from tools.kit.verifier_cases import EXITS
from verix_anon.client.verdict import DECIDING, RECEIPT, Finding, Status, Verdict
from verix_anon.client.verify import (
    VerifyOptions,
    commitment,
    fingerprint,
    receipt,
    replay,
    splits,
    trap_rows,
    verify,
)
from verix_anon.conform.foreign_command import Ended
from verix_anon.conform.kit import CaseKind, Kit, KitCase, chosen
from verix_anon.conform.results import Result
from verix_anon.conform.trials import Judge, command_verifier, try_verifier
from verix_anon.errors import TableError
from verix_anon.fields import Fields
from verix_anon.files.hashed_files import Files
from verix_anon.protocol import envelopes

VERIFY = [sys.executable, "-m", "verix_anon", "verify"]
LAYERS = {
    ("commitment", "full"): "forged-root",
    ("commitment", "thin"): "thin-forged-root",
    ("commitment", "paper"): "forged-root-paper",
    ("sentinels", "paper"): "lost-sentinel",
    ("twins", "thin"): "moved-twin",
    ("twins", "paper"): "changed-twin",
    ("replay", "full"): "other-labels",
    ("replay", "thin"): "thin-labels",
    ("splits", "full"): "adversary-approximate",
    ("splits", "thin"): "thin-wide",
    ("fingerprint", "paper"): "other-labels-paper",
    ("receipt", "full"): "receipt-missing",
}
"""Every layer that decides under a profile, and a case that fails without it."""
WITHIN_REPLAY = {("sentinels", "full"), ("sentinels", "thin"), ("twins", "full")}
"""What these see replay sees as well, so that no delivery shows that they are missing."""
ALONE = {
    **{name: layer for (layer, _), name in LAYERS.items()},
    "thin-moved": "replay",
    "changed-sentinel": "sentinels",
    "last-of-equals": "splits",
    "receipt-forged": "receipt",
    "receipt-other-files": "receipt",
    **{f"stated-contract{kind}": "commitment" for kind in ("", "-paper")},
}
"""The cases that one layer alone sees."""
CHECKS = {
    "commitment": (commitment, "check"),
    "sentinels": (trap_rows, "check_sentinels"),
    "twins": (trap_rows, "check_twins"),
    "replay": (replay, "check"),
    "splits": (splits, "check"),
    "fingerprint": (fingerprint, "check"),
    "receipt": (receipt, "check"),
}
"""The module of each layer, and the name of its check."""


@pytest.fixture(scope="session")
def judged_kit(package_kit: Kit) -> Kit:
    """What a verifier is shown; not to be changed."""
    return of_side(package_kit, "verifier")


def in_process(shown: Mapping[str, object]) -> Ended:
    """The command, without a process for each case."""
    options = ["--manifest", shown["manifest"], "--submission", shown["submission"]]
    # Of the models only the one that decides is fitted.
    skipped = "utility" if shown["profile"] == "paper" else "fingerprint,utility"
    options += ["--profile", shown["profile"], "--skip", skipped]
    code = jobs.exit_code("verify", shown["delivery"], *options)
    return Ended(code=code, seconds=0.0, said="")


def ending_with(code: int | None) -> Judge:
    return lambda shown: Ended(code=code, seconds=0.0, said="hm")


def failed(results: list[Result]) -> list[str]:
    return [result.case.id for result in results if not result.passed]


def test_our_verifier_passes(judged_kit: Kit) -> None:
    results = try_verifier(judged_kit, judged_kit.cases, in_process)
    assert [(r.case.id, r.failures) for r in results if not r.passed] == []


def test_our_command_passes_some_cases(judged_kit: Kit) -> None:
    cases = chosen(judged_kit.cases, ["honest-coded", "forged-root", "malformed-loop"])
    assert len(cases) == 3
    judge = command_verifier(VERIFY, limit=300)
    assert failed(try_verifier(judged_kit, cases, judge, jobs=2)) == []


@pytest.mark.long
def test_our_command_passes(judged_kit: Kit) -> None:
    some = ["honest-*", "forged-root*", "moved-twin", "malformed-loop", "receipt*", "other-*"]
    cases = chosen(judged_kit.cases, some)
    judge = command_verifier(VERIFY, limit=300)
    assert failed(try_verifier(judged_kit, cases, judge, jobs=2)) == []
    # Logs lie beside copies of the manifests.
    assert not list(judged_kit.folder.rglob("audit.jsonl"))


def judged(kit: Kit, case: KitCase) -> Verdict:
    return verify(
        kit.path(case, "delivery"),
        kit.path(case, "manifest"),
        submission=kit.path(case, "submission"),
        profile=str(case.expected["profile"]),
        skip=("utility",) if case.expected["profile"] == "paper" else ("fingerprint", "utility"),
        options=VerifyOptions(threads=1),
    )


def test_the_layers_that_are_named_see_each_case(judged_kit: Kit) -> None:
    for case in judged_kit.cases:
        named = case.expected.get("layers", [])
        assert isinstance(named, list)
        assert bool(named) is (case.kind not in (CaseKind.ACCEPTED, CaseKind.MISTAKE))
        if named:
            verdict = judged(judged_kit, case)
            fired = {
                f.layer
                for f in verdict.findings
                if f.decides and f.status in (Status.FAIL, Status.INCONCLUSIVE)
            }
            assert fired >= set(named), case.id


@pytest.mark.parametrize("name", ALONE)
def test_those_made_for_one_layer_are_seen_by_no_other(judged_kit: Kit, name: str) -> None:
    (case,) = chosen(judged_kit.cases, [name])
    findings = judged(judged_kit, case).findings
    others = [f for f in findings if f.decides and f.layer != ALONE[name]]
    # Without replay nobody knows the records that splits would judge.
    assert all(f.status in (Status.PASS, Status.SKIPPED) for f in others), name


def test_every_layer_that_decides_is_among_them(judged_kit: Kit) -> None:
    deciding = {(layer, profile.value) for profile in DECIDING for layer in DECIDING[profile]}
    assert LAYERS.keys() | WITHIN_REPLAY == deciding | {(RECEIPT, "full")}
    profiles = {case.id: case.expected["profile"] for case in judged_kit.cases}
    assert all(profiles[name] == profile for (_, profile), name in LAYERS.items())


@pytest.mark.parametrize(("layer", "profile"), LAYERS)
def test_a_verifier_without_a_layer_fails_a_case_by_name(
    judged_kit: Kit, layer: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = LAYERS[layer, profile]
    cases = chosen(judged_kit.cases, [name])
    assert failed(try_verifier(judged_kit, cases, in_process)) == []
    passes = Finding(layer=layer, status=Status.PASS, summary="Not looked at.")
    monkeypatch.setattr(*CHECKS[layer], lambda *given: passes)
    assert failed(try_verifier(judged_kit, cases, in_process)) == [name]


WRONG = [
    ("stated-contract", commitment, 'problems.append("it was made for another contract")', "pass"),
    ("stated-contract-paper", commitment, 'append("it was made for another contract")', "copy()"),
    ("changed-sentinel", trap_rows, "failed = n_missing + n_other > 0", "failed = n_missing > 0"),
    ("changed-twin", trap_rows, "n_missing + n_changed + n_apart > 0", "n_missing + n_apart > 0"),
    ("thin-moved", replay, "np.flatnonzero(claimed != routed)", "claimed[:0]"),
    ("receipt-other-files", receipt, 'problems.append("it names other files")', "pass"),
]
"""A case, and what in which layer is changed into what."""


@pytest.mark.parametrize(("name", "module", "old", "new"), WRONG)
def test_a_layer_that_is_wrong_in_one_thing_fails_a_case_by_name(
    judged_kit: Kit,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    module: ModuleType,
    old: str,
    new: str,
) -> None:
    source = inspect.getsource(module)
    assert old in source
    wrong = ModuleType(module.__name__)
    exec(compile(source.replace(old, new), name, "exec"), wrong.__dict__)
    for check in (check for held, check in CHECKS.values() if held is module):
        monkeypatch.setattr(module, check, getattr(wrong, check))
    assert failed(try_verifier(judged_kit, chosen(judged_kit.cases, [name]), in_process)) == [name]


def whole_or_so(fields: Fields, name: str, within: range | None = None) -> int:
    return int(fields.number(name))


def test_a_reader_that_is_wrong_in_one_thing_fails_a_case_by_name(
    judged_kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, place, what, wrong in (
        ("receipt-forged", envelopes, "_has_signed", lambda *given: True),
        ("malformed-header-fraction", Fields, "whole", whole_or_so),
        ("malformed-parts-digest", Files, "different", lambda *given: ()),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(place, what, wrong)
            cases = chosen(judged_kit.cases, [name])
            assert failed(try_verifier(judged_kit, cases, in_process)) == [name]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 70, -11, None])
def test_one_answer_for_all_is_not_enough(judged_kit: Kit, code: int | None) -> None:
    results = try_verifier(judged_kit, judged_kit.cases, ending_with(code))
    right = [case.id for case in judged_kit.cases if EXITS[case.kind] == code]
    assert [result.case.id for result in results if result.passed] == right
    assert {case.kind for case in judged_kit.cases} == set(EXITS)


def test_what_was_missed_is_said(judged_kit: Kit) -> None:
    cases = chosen(judged_kit.cases, ["lost-sentinel", "honest-coded"])
    honest, lost = try_verifier(judged_kit, cases, ending_with(0))
    assert honest.checks[0].detail == "0, accepted"
    assert lost.checks[0].detail == "0, accepted instead of 1 (layer sentinels): hm"


def test_a_command_names_all_places_or_none(tmp_path: Path, judged_kit: Kit) -> None:
    with pytest.raises(TableError, match=r"lacks a place for \{submission\}, \{profile\}"):
        command_verifier(["judge", "{delivery}", "{manifest}"], limit=1)
    script = tmp_path / "judge.py"
    script.write_text(
        "import pathlib, sys\n"
        "profile, manifest, delivery, submission = sys.argv[1:]\n"
        "assert profile == 'thin' and pathlib.Path(delivery, 'delivery.json').is_file()\n"
        "assert pathlib.Path(submission, 'submission.json').is_file()\n"
        "sys.exit(0 if pathlib.Path(manifest).is_file() else 1)\n"
    )
    command = [sys.executable, str(script), "{profile}", "{manifest}", "{delivery}", "{submission}"]
    cases = chosen(judged_kit.cases, ["thin-coded"])
    assert failed(try_verifier(judged_kit, cases, command_verifier(command, limit=60))) == []


def test_the_command_line(run: jobs.Run, tmp_path: Path) -> None:
    wanted = ["--only", "forged-root", "--only", "honest-coded"]
    shown = ["--json", tmp_path / "out.json", "--html", tmp_path / "out.html", "--quiet"]
    ended = run("conform", "--verifier", *wanted, *shown, "true")
    assert ended.code == 1
    assert "0, accepted instead of 1 (layer commitment)" in ended.out
    assert "1 of 2 cases failed: forged-root" in ended.out
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["side"] == "verifier"
    assert [case["passed"] for case in report["cases"]] == [True, False]
    assert "Conformance of a verifier" in (tmp_path / "out.html").read_text()


def test_an_exported_kit_holds_both_sides(run: jobs.Run, tmp_path: Path) -> None:
    wanted = ["--only", "forged-root", "--only", "pure"]
    kit = tmp_path / "kit"
    assert run("conform", *wanted, "--export", kit, "--quiet").code == 0
    assert run("conform", "--kit", kit, "--verifier", "false").code == 0
    assert run("conform", "--kit", kit, "false").code == 1
    only = tmp_path / "one"
    assert run("conform", "--only", "pure", "--export", only, "--quiet").code == 0
    ended = run("conform", "--kit", only, "--verifier", "false")
    assert (ended.code, "no case for a verifier" in ended.err) == (2, True)
    ended = run("conform", "--verifier", "--url", "https://localhost")
    assert (ended.code, "in place of a command" in ended.err) == (2, True)

"""The rules in numpy are the plain ones."""

import sys
from pathlib import Path

import pytest

from cli.jobs import Run
from tools.kit import __main__ as command
from tools.kit import independent, large, provider_cases
from tools.kit.provider_cases import ANSWERED, LARGE, for_providers, submission
from verix_anon.conform.kit import CaseKind, KitSize, read_kit


@pytest.mark.parametrize("name", [name for name in ANSWERED if "chunk" not in name])
def test_the_same_comes_of_both(name: str) -> None:
    sent = submission(ANSWERED[name])
    plain = independent.anonymize(sent.contract, sent.trackers, sent.columns)
    assert independent.anonymize(sent.contract, sent.trackers, sent.columns, large.grow) == plain


def test_a_large_kit_has_the_large_cases_alone() -> None:
    cases = for_providers(KitSize.LARGE)
    assert [case.id for case in cases] == list(LARGE)
    assert {case.kind for case in cases} == {CaseKind.ANSWERED}


def made(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    """What `python -m tools.kit` does with these words."""
    monkeypatch.setattr(sys, "argv", ["tools.kit", *map(str, words)])
    command.main()


def test_a_large_kit_is_made_and_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(provider_cases, "LARGE", {"ties": ANSWERED["ties"]})
    folder = tmp_path / "kit"
    made(monkeypatch, "--size", "large", "--out", folder)
    kit = read_kit(folder)
    assert (kit.size, kit.size.limit) == (KitSize.LARGE, 1800)
    done = run("conform", "--kit", folder, "false")
    assert done.code == 1
    assert f"Kit {kit.version}, large, SHA-256 {kit.digest}." in done.out


def test_the_package_holds_small_tables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        made(monkeypatch, "--size", "large", "--write")

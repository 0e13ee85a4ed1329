"""A part of `make fuzz`: spoiled folders and odd tables, and that the campaign sees what fails."""

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fuzz_faults
from experiments.studies.peers.tools import setup
from tools.fuzz import campaign, judging, recheck_campaign, releases
from verix_anon.client.prepare import Prepared, prepare
from verix_anon.client.release import ReleaseOptions
from verix_anon.client.table.columns import without_views
from verix_anon.client.verdict import Status, Verdict
from verix_anon.client.verify import NO_ROOT, verify

FOLDERS, TABLES, RELEASES = 500, 20, 12


@pytest.fixture(autouse=True)
def _one_core() -> Iterator[None]:
    """Small tables are read faster by one thread."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.parametrize("part", range(3))
def test_spoiled_folders(tmp_path: Path, part: int) -> None:
    numbers = range(part * FOLDERS, (part + 1) * FOLDERS)
    found = Counter(judging.case(0, number, tmp_path / "case") for number in numbers)
    assert found["delivery: VIOLATION"] > FOLDERS / 4
    assert found["delivery: VERIFIED"] > 10
    assert found["submission: TableError"] > FOLDERS / 8
    assert found["submission: read"] > 5
    assert found["submission: ContractError"] > 0


@pytest.mark.parametrize("part", range(3))
def test_odd_tables(tmp_path: Path, part: int) -> None:
    numbers = range(part * TABLES, (part + 1) * TABLES)
    found = Counter(releases.case(0, number, tmp_path / "case") for number in numbers)
    assert sum(n for outcome, n in found.items() if "released" in outcome) > TABLES / 3


def test_published_files_hold_what_was_asked_for(tmp_path: Path) -> None:
    numbers = range(RELEASES)
    found = Counter(recheck_campaign.case(0, number, tmp_path / "case") for number in numbers)
    assert sum(n for outcome, n in found.items() if "released" in outcome) > RELEASES / 2


def first_violation(path: Path) -> str:
    """What does not hold of a published file; what the sheet says otherwise does not count."""
    found = (recheck_campaign.attempt(0, number, path / "case") for number in range(200))
    return str(next(v for _, judged in found for v in getattr(judged, "violations", ())))


def test_a_release_with_a_smaller_k_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lax(*given: Any, **named: Any) -> Prepared:
        return prepare(*given, **named | {"k": 2})

    monkeypatch.setattr(recheck_campaign, "prepare", lax)
    assert first_violation(tmp_path).startswith("k is ")


@pytest.mark.parametrize("measure", ["l", "cap", "t"])
def test_a_release_without_what_was_asked_for_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    asked = ReleaseOptions.asked

    def lax(options: ReleaseOptions, manifest: Any) -> Any:
        found = asked(options, manifest)
        return {n: {m: v for m, v in each.items() if m != measure} for n, each in found.items()}

    monkeypatch.setattr(ReleaseOptions, "asked", lax)
    assert first_violation(tmp_path).startswith(f"{measure} of ")


@pytest.mark.long
def test_pycanon_counts_the_same() -> None:
    if setup.python_of("pycanon") is None:
        pytest.skip("pycanon's environment is not there; `make recheck` makes it")
    sample = recheck_campaign.run(0, 20).for_pycanon
    assert recheck_campaign.count_with_pycanon(sample) == []
    spoiled = next(each for each in sample if each["sensitive"])
    spoiled["k"] += 1
    for figures in spoiled["sensitive"].values():
        figures["closeness_t"] += 0.1
    told = recheck_campaign.count_with_pycanon([spoiled])
    assert told is not None
    assert len(told) == 1 + len(spoiled["sensitive"])


def until_it_fails(case: campaign.Case, path: Path, most: int) -> str:
    for number in range(most):
        try:
            case(0, number, path / "case")
        except AssertionError as error:
            return str(error)
    return "never"


def test_what_is_published_by_mistake_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["verix_anon.client.release.published"]
    monkeypatch.setattr(module, "bare_array", without_views)
    assert re.search("is in the table|is published", until_it_fails(releases.case, tmp_path, 60))


def test_what_is_accepted_by_mistake_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a verifier that passes whatever it can read."""

    def lax(*given: Any, **named: Any) -> Verdict:
        verdict = verify(*given, **named)
        if verdict.root == NO_ROOT:
            return verdict
        passed = tuple(replace(found, status=Status.PASS) for found in verdict.findings)
        return replace(verdict, findings=passed)

    monkeypatch.setattr(judging, "verify", lax)
    assert "accepted, and not" in until_it_fails(judging.case, tmp_path, 100)


def test_a_campaign_tells_what_fails_hangs_and_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "PATIENCE", 3)
    *_, tally = campaign.run(fuzz_faults.case, 4, range(12))
    assert {failure.number for failure in tally.failures} == {3, 5, 7}
    reasons = {failure.number: failure.reason for failure in tally.failures}
    assert "KeyError: 'stray'" in reasons[3]
    assert reasons[5].endswith("with 9")
    assert reasons[7].endswith("with -9")
    assert tally.n_done == 12

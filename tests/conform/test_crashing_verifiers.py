"""A verifier is judged by what it exits with, and a crash is no verdict."""

import sys
from dataclasses import replace

import pytest

from verix_anon.conform.kit import Kit, chosen
from verix_anon.conform.trials import command_verifier, try_verifier


@pytest.fixture(scope="module")
def kit(package_kit: Kit) -> Kit:
    """Something to accept, a cheat, and what is malformed."""
    some = chosen(package_kit.cases, ["honest-coded", "forged-root", "malformed-loop"])
    return replace(package_kit, cases=tuple(some))


def said(kit: Kit, code: str) -> dict[str, str]:
    """What failed, with why."""
    results = try_verifier(kit, kit.cases, command_verifier([sys.executable, "-c", code], limit=60))
    return {r.case.id: r.failures[0].detail for r in results if not r.passed}


def test_an_exception_is_no_rejection(kit: Kit) -> None:
    rejects = said(kit, "import sys; sys.exit(1)")
    assert set(rejects) == {"honest-coded"}
    assert rejects["honest-coded"] == "1, rejected instead of 0"
    crashes = said(kit, "[][1]")
    assert set(crashes) == {case.id for case in kit.cases}
    assert crashes["forged-root"] == (
        "1 after a crash instead of 1 (layer commitment): IndexError: list index out of range"
    )


def test_a_trace_beside_an_acceptance_is_none_of_our_affair(kit: Kit) -> None:
    assert "honest-coded" not in said(kit, "print('Traceback (most recent call last)')")

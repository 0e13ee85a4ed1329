"""The rules in numpy are the plain ones."""

import pytest

from tools.kit import independent, large
from tools.kit.provider_cases import ANSWERED, LARGE, for_providers, submission
from verix_anon.conform.kit import CaseKind, KitSize


@pytest.mark.parametrize("name", [name for name in ANSWERED if "chunk" not in name])
def test_the_same_comes_of_both(name: str) -> None:
    sent = submission(ANSWERED[name])
    plain = independent.anonymize(sent.contract, sent.trackers, sent.columns)
    assert independent.anonymize(sent.contract, sent.trackers, sent.columns, large.grow) == plain


def test_a_large_kit_has_the_large_cases_alone() -> None:
    cases = for_providers(KitSize.LARGE)
    assert [case.id for case in cases] == list(LARGE)
    assert {case.kind for case in cases} == {CaseKind.ANSWERED}

"""The rules in numpy are the plain ones."""

import pytest

from verix_anon.conform import Size, independent, large
from verix_anon.conform.answered import ANSWERED, LARGE
from verix_anon.conform.kit import Kind
from verix_anon.conform.recipes import for_providers


@pytest.mark.parametrize("name", [name for name in ANSWERED if "chunk" not in name])
def test_the_same_comes_of_both(name: str) -> None:
    sent = ANSWERED[name].make()
    plain = independent.anonymize(sent.contract, sent.trackers, sent.columns)
    assert independent.anonymize(sent.contract, sent.trackers, sent.columns, large.grow) == plain


def test_a_large_kit_has_the_large_cases_alone() -> None:
    recipes = for_providers(Size.LARGE)
    assert [recipe.id for recipe in recipes] == list(LARGE)
    assert {recipe.kind for recipe in recipes} == {Kind.ANSWERED}
